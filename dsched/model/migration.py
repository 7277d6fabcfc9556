"""In-tree volume plugins whose volumes CSI drivers serve today: which driver, which volume, and where it is reachable.

Source: k8s.io/csi-translation-lib translate.go, plugins/*.go; pkg/scheduler/framework/plugins/nodevolumelimits/utils.go
``isCSIMigrationOn``, volumebinding/binder.go ``isCSIMigrationOnForPlugin``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import urlsplit

import msgspec

from dsched.errors import PluginError
from dsched.model.meta import LabelSelectorRequirement
from dsched.model.pod import AzureDisk, NodeSelector, NodeSelectorTerm, Volume
from dsched.model.selectors import IN
from dsched.model.volumes import PersistentVolume, PersistentVolumeSpec

Source = Volume | PersistentVolumeSpec
"""What says where a volume comes from: inline in a pod, or a persistent one's spec."""

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
ZONES_DELIMITER = "__"
_UNSPECIFIED = "UNSPECIFIED"
_EBS_VOLUME = re.compile(r"vol-[^/]*")


@dataclass(frozen=True, slots=True)
class InTreePlugin:
    """An in-tree plugin that a driver has taken over.

    Attributes:
        source: the field of a volume that holds its source, in this project's spelling.
        driver: the CSI driver's name.
        zone_key: the label by which the driver speaks of zones; ``""`` where zones are not translated.
        served: whether its volumes are the driver's at all.
        announced: whether, until v1.35, only nodes that list the plugin as migrated count its volumes.
    """

    name: str
    source: str
    driver: str
    zone_key: str = ""
    served: bool = True
    announced: bool = False


GCE_PD = InTreePlugin("kubernetes.io/gce-pd", "gce_persistent_disk", "pd.csi.storage.gke.io", "topology.gke.io/zone")
AWS_EBS = InTreePlugin(
    "kubernetes.io/aws-ebs", "aws_elastic_block_store", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"
)
CINDER = InTreePlugin(
    "kubernetes.io/cinder", "cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"
)
AZURE_DISK = InTreePlugin("kubernetes.io/azure-disk", "azure_disk", "disk.csi.azure.com")
PORTWORX = InTreePlugin("kubernetes.io/portworx-volume", "portworx_volume", "pxd.portworx.com", announced=True)
AZURE_FILE = InTreePlugin("kubernetes.io/azure-file", "azure_file", "file.csi.azure.com", served=False)
VSPHERE = InTreePlugin("kubernetes.io/vsphere-volume", "vsphere_volume", "csi.vsphere.vmware.com", served=False)

PLUGINS = (GCE_PD, AWS_EBS, CINDER, AZURE_DISK, PORTWORX, AZURE_FILE, VSPHERE)
ANNOUNCED = frozenset(plugin.name for plugin in PLUGINS if plugin.announced)
BY_NAME = {plugin.name: plugin for plugin in PLUGINS}


def plugin_of(source: Source) -> InTreePlugin | None:
    """The in-tree plugin of a volume; None for others (``GetInTreePluginNameFromSpec``)."""
    return next((plugin for plugin in PLUGINS if getattr(source, plugin.source) is not None), None)


def handle(source: Source, labels: Mapping[str, str] = MappingProxyType({})) -> str:
    """How its driver calls the volume of an in-tree plugin that is `served`.

    Args:
        labels: of a persistent volume; inline volumes have none.
    Raises:
        PluginError: the source makes no sense to the driver.
    """
    if source.gce_persistent_disk is not None:
        return f"projects/{_UNSPECIFIED}/{_gce_place(labels)}/disks/{source.gce_persistent_disk.pd_name}"
    if source.aws_elastic_block_store is not None:
        return _ebs_id(source.aws_elastic_block_store.volume_id)
    if source.azure_disk is not None:
        return _azure_uri(source.azure_disk)
    found = source.portworx_volume if source.cinder is None else source.cinder
    if found is None:
        raise PluginError("the volume has no source that a driver has taken over")
    return found.volume_id


def _gce_place(labels: Mapping[str, str]) -> str:
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE, "")).split(ZONES_DELIMITER)
    return f"zones/{zones[0] or _UNSPECIFIED}" if len(zones) == 1 else f"regions/{_gce_region(zones)}"


def _gce_region(zones: list[str]) -> str:
    parts = [zone.split("-") for zone in zones]
    wrong = next((zone for zone, words in zip(zones, parts, strict=True) if len(words) != 3), None)
    if wrong is not None:
        raise PluginError(
            "failed to get region from zones: "
            f"zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {wrong}"
        )
    regions = {"-".join(words[:2]) for words in parts}
    if len(regions) != 1:
        raise PluginError(
            "failed to get region from zones: multiple or no regions gotten from zones, "
            f"got: {', '.join(sorted(regions))}"
        )
    return regions.pop()


def _ebs_id(text: str) -> str:
    """``vol-1`` out of ``aws://zone/vol-1``; other texts are the id (``KubernetesVolumeIDToEBSVolumeID``)."""
    if not text.startswith("aws://"):
        return text
    found = urlsplit(text).path.strip("/")
    if not _EBS_VOLUME.fullmatch(found):
        raise PluginError(f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({text})")
    return found


def _azure_uri(disk: AzureDisk) -> str:
    if disk.kind is not None and disk.kind.lower() != "managed":
        raise PluginError(f"kind({disk.kind}) is not supported in csi migration")
    return disk.disk_uri


def affinity(volume: PersistentVolume, plugin: InTreePlugin) -> NodeSelector | None:
    """Where the volume is reachable, in the labels of its driver; None for everywhere.

    Raises:
        PluginError: the source makes no sense to the driver.
    Source: plugins/in_tree_volume.go ``translateTopologyFromInTreeToCSI``.
    """
    handle(volume.spec, volume.metadata.labels)
    own = volume.spec.node_affinity.required if volume.spec.node_affinity else None
    if not plugin.zone_key:
        return own
    terms = [] if own is None else own.node_selector_terms
    zone, region = _spoken(terms, volume.metadata.labels)
    if _has_values(terms, zone):
        terms = _renamed(terms, zone, plugin.zone_key)
    elif zones := sorted({each.strip() for each in volume.metadata.labels.get(zone, "").split(ZONES_DELIMITER)} - {""}):
        terms = _narrowed(terms, LabelSelectorRequirement(plugin.zone_key, IN, zones))
    if region == BETA_REGION and _has_values(terms, BETA_REGION):
        terms = _renamed(terms, BETA_REGION, REGION)
    return own if own is None and not terms else NodeSelector(terms)


def _spoken(terms: list[NodeSelectorTerm], labels: dict[str, str]) -> tuple[str, str]:
    """The labels by which the volume speaks of zone and region (``getTopologyLabel``)."""
    named = {requirement.key for term in terms for requirement in term.match_expressions}
    for known in (named, labels):
        if ZONE in known:
            return ZONE, REGION
        if BETA_ZONE in known:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _has_values(terms: list[NodeSelectorTerm], key: str) -> bool:
    return any(each.key == key and each.values for term in terms for each in term.match_expressions)


def _renamed(terms: list[NodeSelectorTerm], old: str, new: str) -> list[NodeSelectorTerm]:
    def rename(requirement: LabelSelectorRequirement) -> LabelSelectorRequirement:
        return msgspec.structs.replace(requirement, key=new) if requirement.key == old else requirement

    return [NodeSelectorTerm([rename(each) for each in term.match_expressions], term.match_fields) for term in terms]


def _narrowed(terms: list[NodeSelectorTerm], added: LabelSelectorRequirement) -> list[NodeSelectorTerm]:
    """Every term with one more requirement; without any term, one that has only this."""
    return [
        NodeSelectorTerm([*term.match_expressions, added], term.match_fields) for term in terms or [NodeSelectorTerm()]
    ]
