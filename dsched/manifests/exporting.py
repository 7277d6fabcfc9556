"""Objects of a cluster as manifests for `dsched simulate`: what scheduling reads of them, or all but what must stay.

Never in there: managed fields, the copy of the manifest that kubectl keeps in an annotation, values of environment
variables, pod templates. Secrets and ConfigMaps are not read at all.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from dsched.manifests import kinds, shapes
from dsched.manifests.other_checks import CHECKS
from dsched.model import meta
from dsched.model.meta import ApiRecord
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.model.pod_groups import PodGroup

Json = dict[str, Any]

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
PREEMPT = "PreemptLowerPriority"

RECORDS: Mapping[kinds.Kind, type[ApiRecord]] = {
    **{kind: record for kind, (record, _) in CHECKS.items()},
    kinds.POD: Pod,
    kinds.NODE: Node,
    kinds.POD_GROUP: PodGroup,
    kinds.REPLICATION_CONTROLLER: shapes.Service,
}
"""What scheduling reads of each kind: of some less than is checked."""

_ANNOTATED = frozenset(
    {
        kinds.NODE,
        kinds.PERSISTENT_VOLUME,
        kinds.PERSISTENT_VOLUME_CLAIM,
        kinds.POD_GROUP,
        kinds.STORAGE_CLASS,
        kinds.CSI_NODE,
        kinds.RESOURCE_CLAIM,
    }
)
"""Kinds whose annotations plugins read."""

_TEMPLATES = ("template", "volumeClaimTemplates")


def exported(kind: kinds.Kind, value: Json, *, full: bool = False) -> Json:
    """An object as it goes into a snapshot.

    Args:
        full: everything but what must stay.

    Raises:
        msgspec.ValidationError: a field has the wrong type.
    """
    kept = _whole(value) if full else _read(kind, value)
    if kind is kinds.PERSISTENT_VOLUME_CLAIM:
        _keep_class(kept)
    elif kind is kinds.POD:
        _keep_priority(kept)
    return {"apiVersion": kind.api_version, "kind": kind.name, **kept}


def listed(objects: Iterable[Json]) -> Json:
    """Objects as one manifest."""
    return {"apiVersion": "v1", "kind": "List", "items": list(objects)}


def _read(kind: kinds.Kind, value: Json) -> Json:
    kept: Json = msgspec.to_builtins(meta.from_builtins(value, RECORDS[kind]))
    metadata = kept.get("metadata", {})
    annotations = metadata.pop("annotations", {})
    if kind in _ANNOTATED and (rest := {name: text for name, text in annotations.items() if name != LAST_APPLIED}):
        metadata["annotations"] = rest
    return kept


def _whole(value: Json) -> Json:
    kept = {name: field for name, field in value.items() if name not in ("apiVersion", "kind")}
    metadata = {name: field for name, field in (value.get("metadata") or {}).items() if name != "managedFields"}
    annotations = {
        name: text for name, text in (metadata.pop("annotations", None) or {}).items() if name != LAST_APPLIED
    }
    kept["metadata"] = {**metadata, "annotations": annotations} if annotations else metadata
    spec = value.get("spec")
    if isinstance(spec, dict):
        kept["spec"] = {name: _without_values(name, field) for name, field in spec.items() if name not in _TEMPLATES}
    return kept


def _without_values(name: str, field: Any) -> Any:
    """Of a pod's containers, the names of their environment variables without the values."""
    if name not in ("containers", "initContainers", "ephemeralContainers") or not isinstance(field, list):
        return field
    return [
        {
            **container,
            **(
                {"env": [{part: text for part, text in each.items() if part != "value"} for each in container["env"]]}
                if container.get("env")
                else {}
            ),
        }
        for container in field
    ]


def _keep_priority(pod: Json) -> None:
    """A priority of 0 has to be said: else the pod would get that of the default class when it is read back."""
    spec = pod.setdefault("spec", {})
    spec["priority"] = spec.get("priority") or 0
    spec["preemptionPolicy"] = spec.get("preemptionPolicy") or PREEMPT


def _keep_class(claim: Json) -> None:
    """A claim without a class has to say so: else it would get the default one when it is read back."""
    if claim.get("metadata", {}).get("annotations", {}).get(BETA_STORAGE_CLASS) is None:
        claim.setdefault("spec", {}).setdefault("storageClassName", "")
