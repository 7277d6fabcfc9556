"""Checks of volumes, claims, storage classes and what drivers report, and of the volumes that a pod names.

Source: kubernetes v1.37 pkg/apis/storage/validation/validation.go; pkg/apis/core/validation/validation.go
(ValidatePersistentVolumeSpec, ValidatePersistentVolumeClaimSpec, ValidateVolumes, ValidateTopologySelectorTerm).
"""

from collections.abc import Sequence

from dsched.manifests import resource_checks, syntax
from dsched.manifests.problems import Report, distinct, said
from dsched.manifests.selector_checks import label_selector, node_selector, one_of
from dsched.model import pod, quantity
from dsched.model.quantity import Quantity
from dsched.model.volumes import (
    READ_WRITE_ONCE_POD,
    STORAGE,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologyTerm,
    VolumeAttachment,
)

ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", READ_WRITE_ONCE_POD)
VOLUME_MODES = ("Filesystem", "Block")
BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
_NAMED_BY = (
    ("persistent_volume_claim", "claim_name", "persistentVolumeClaim.claimName"),
    ("image", "reference", "image.reference"),
    ("gce_persistent_disk", "pd_name", "gcePersistentDisk.pdName"),
    ("aws_elastic_block_store", "volume_id", "awsElasticBlockStore.volumeID"),
    ("cinder", "volume_id", "cinder.volumeID"),
    ("portworx_volume", "volume_id", "portworxVolume.volumeID"),
    ("azure_disk", "disk_uri", "azureDisk.diskURI"),
    ("iscsi", "iqn", "iscsi.iqn"),
    ("rbd", "monitors", "rbd.monitors"),
    ("rbd", "image", "rbd.image"),
)
"""Sources of a pod's volumes, what of them says which volume it is, and how a manifest spells that."""


def storage_class(given: StorageClass, report: Report) -> None:
    said(syntax.qualified_name(given.provisioner.lower()) if given.provisioner else "is missing", "provisioner", report)
    if given.volume_binding_mode is not None:
        one_of(given.volume_binding_mode, BINDING_MODES, "volumeBindingMode", report)
    seen: list[dict[str, set[str]]] = []
    for index, term in enumerate(given.allowed_topologies):
        path = f"allowedTopologies[{index}].matchLabelExpressions"
        _topology(term, path, report)
        meant = {each.key: set(each.values) for each in term.match_label_expressions}
        if not meant or meant in seen:
            report(path, "is given twice" if meant else "has to name at least one expression")
        seen.append(meant)


def volume(given: PersistentVolume, report: Report) -> None:
    spec = given.spec
    resource_checks.amounts(spec.capacity, "spec.capacity", report, of_node=True)
    _storage(spec.capacity.get(STORAGE), f"spec.capacity.{STORAGE}", report)
    for name in sorted(spec.capacity.keys() - {STORAGE}):
        report(f"spec.capacity.{name}", f"is not {STORAGE}, all that a volume has")
    _access_modes(spec.access_modes, report)
    _class_name(spec.storage_class_name, "spec.storageClassName", report)
    if spec.volume_mode is not None:
        one_of(spec.volume_mode, VOLUME_MODES, "spec.volumeMode", report)
    if spec.node_affinity is not None:
        if spec.node_affinity.required is None:
            report("spec.nodeAffinity.required", "is missing")
        else:
            node_selector(spec.node_affinity.required, "spec.nodeAffinity.required", report)
    if spec.csi is not None:
        said(syntax.driver(spec.csi.driver), "spec.csi.driver", report)
        if not spec.csi.volume_handle:
            report("spec.csi.volumeHandle", "is missing")


def claim(given: PersistentVolumeClaim, report: Report) -> None:
    spec = given.spec
    resource_checks.amounts(spec.resources.requests, "spec.resources.requests", report, of_node=True)
    _storage(spec.resources.requests.get(STORAGE), f"spec.resources.requests.{STORAGE}", report)
    _access_modes(spec.access_modes, report)
    _class_name(spec.storage_class_name or "", "spec.storageClassName", report)
    if spec.volume_mode is not None:
        one_of(spec.volume_mode, VOLUME_MODES, "spec.volumeMode", report)
    label_selector(spec.selector, "spec.selector", report)


def csi_node(given: CsiNode, report: Report) -> None:
    distinct((each.name for each in given.spec.drivers), "spec.drivers", report, "name")
    for index, driver in enumerate(given.spec.drivers):
        path = f"spec.drivers[{index}]"
        said(syntax.driver(driver.name), f"{path}.name", report)
        limit = driver.allocatable.count if driver.allocatable is not None else None
        if limit is not None and limit < 0:
            report(f"{path}.allocatable.count", f"{limit} is negative")


def storage_capacity(given: CsiStorageCapacity, report: Report) -> None:
    _class_name(given.storage_class_name, "storageClassName", report, needed=True)
    if given.capacity is not None:
        said(syntax.amount(given.capacity), "capacity", report)
    if given.maximum_volume_size is not None:
        said(syntax.any_amount(given.maximum_volume_size), "maximumVolumeSize", report)
    label_selector(given.node_topology, "nodeTopology", report)


def volume_attachment(given: VolumeAttachment, report: Report) -> None:
    said(syntax.driver(given.spec.attacher), "spec.attacher", report)
    said(syntax.subdomain(given.spec.node_name) if given.spec.node_name else "is missing", "spec.nodeName", report)
    if given.spec.source.persistent_volume_name is not None:
        said(syntax.subdomain(given.spec.source.persistent_volume_name), "spec.source.persistentVolumeName", report)


def pod_volumes(given: Sequence[pod.Volume], report: Report) -> None:
    """Check names of a pod's volumes, and that sources which scheduling reads say which volume they mean."""
    distinct((each.name for each in given), "spec.volumes", report, "name")
    for index, each in enumerate(given):
        path = f"spec.volumes[{index}]"
        said(syntax.dns_label(each.name) if each.name else "is missing", f"{path}.name", report)
        if each.csi is not None:
            said(syntax.driver(each.csi.driver), f"{path}.csi.driver", report)
        for source, field, shown in _NAMED_BY:
            held = getattr(each, source)
            if held is not None and not getattr(held, field):
                report(f"{path}.{shown}", "is missing")


def _storage(amount: Quantity | None, path: str, report: Report) -> None:
    if amount is None:
        report(path, "is missing")
    elif not syntax.amount(amount) and quantity.nano(amount) == 0:
        report(path, f'"{amount}" is not greater than zero')


def _access_modes(modes: Sequence[str], report: Report) -> None:
    if not modes:
        report("spec.accessModes", "has to name at least one mode")
    for index, mode in enumerate(modes):
        one_of(mode, ACCESS_MODES, f"spec.accessModes[{index}]", report)
    if READ_WRITE_ONCE_POD in modes and {*modes} != {READ_WRITE_ONCE_POD}:
        report("spec.accessModes", f"{READ_WRITE_ONCE_POD} excludes other modes")


def _class_name(name: str, path: str, report: Report, *, needed: bool = False) -> None:
    said(syntax.subdomain(name) if name else "is missing" if needed else "", path, report)


def _topology(term: TopologyTerm, path: str, report: Report) -> None:
    distinct((each.key for each in term.match_label_expressions), path, report, "key")
    for index, requirement in enumerate(term.match_label_expressions):
        place = f"{path}[{index}]"
        said(syntax.qualified_name(requirement.key) if requirement.key else "is missing", f"{place}.key", report)
        if not requirement.values:
            report(f"{place}.values", "has to name at least one value")
        distinct(requirement.values, f"{place}.values", report)
