"""What the API server fills in where a manifest leaves it out, as far as scheduling reads it. Changes the object.

Source: kubernetes v1.37 pkg/apis/{core,storage,resource}/v1/defaults.go; pkg/registry/core/pod/strategy.go
(applyMatchLabelKeysAndMismatchLabelKeys, applyMatchLabelKeys).
"""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from dsched.manifests import kinds
from dsched.manifests.resource_checks import HUGE_PAGES
from dsched.model.devices import EQUAL
from dsched.model.resource_claims import EXACT_COUNT

DEFAULT_NAMESPACE = "default"
DEFAULT_SCHEDULER = "default-scheduler"
NAMESPACE_LABEL = "kubernetes.io/metadata.name"

POD_AFFINITIES = ("podAffinity", "podAntiAffinity")
"""The parts of a pod's affinity that are about pods."""
SPREAD = "topologySpreadConstraints"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

Object = dict[str, Any]


def fill_in(kind: kinds.Kind, value: Object) -> None:
    """Fill in the defaults of an object whose fields have the right types."""
    default = _DEFAULTS.get(kind)
    if default is not None:
        default(value)


def _pod(value: Object) -> None:
    spec = value["spec"]
    spec["schedulerName"] = spec.get("schedulerName") or DEFAULT_SCHEDULER
    host_network = spec.get("hostNetwork", False)
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        _requests_from_limits(container.get("resources"))
        for port in container.get("ports", ()):
            port["protocol"] = port.get("protocol") or "TCP"
            if host_network and not port.get("hostPort"):
                port["hostPort"] = port["containerPort"]
    if "resources" in spec:
        _pod_requests(spec)
    _fold_label_keys(spec, value["metadata"].get("labels", {}))
    for volume in spec.get("volumes", ()):
        _volume_source(volume)


def _requests_from_limits(resources: Object | None) -> None:
    """A limit without a request is the request too."""
    if resources and "limits" in resources:
        resources["requests"] = {**resources["limits"], **resources.get("requests", {})}


def _pod_requests(spec: Object) -> None:
    """A pod's own limit is its request for resources that none of its containers requests."""
    resources = spec["resources"]
    requested = set(resources.get("requests", {}))
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        requested.update(container.get("resources", {}).get("requests", {}))
    missing = {
        name: amount
        for name, amount in resources.get("limits", {}).items()
        if name not in requested and (name in ("cpu", "memory") or name.startswith(HUGE_PAGES))
    }
    if missing:
        resources["requests"] = {**missing, **resources.get("requests", {})}


def _fold_label_keys(spec: Object, labels: Mapping[str, str]) -> None:
    """matchLabelKeys and mismatchLabelKeys become expressions of the label selector; doing it again adds nothing."""
    for term in _terms(spec):
        selector = term.get("labelSelector")
        if selector is None:
            continue
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
            for key in term.get(field, ()):
                if key not in labels:
                    continue
                expression = {"key": key, "operator": operator, "values": [labels[key]]}
                expressions = selector.setdefault("matchExpressions", [])
                if expression not in expressions:
                    expressions.append(expression)


def without_label_keys(spec: Mapping[str, Any]) -> Object:
    """A pod's affinity and spread constraints without what matchLabelKeys and mismatchLabelKeys have become, whatever
    the labels were."""
    bare: Object = deepcopy({name: spec[name] for name in ("affinity", SPREAD) if name in spec})
    for term in _terms(bare):
        selector = term.get("labelSelector") or {}
        folded = {("In", key) for key in term.get("matchLabelKeys", ())}
        folded |= {("NotIn", key) for key in term.get("mismatchLabelKeys", ())}
        expressions = selector.pop("matchExpressions", ())
        if left := [each for each in expressions if (each["operator"], each["key"]) not in folded]:
            selector["matchExpressions"] = left
    return bare


def _terms(spec: Object) -> Iterator[Object]:
    """What selects pods by labels: terms of pod affinity, and topology spread constraints."""
    yield from spec.get(SPREAD, ())
    for name in POD_AFFINITIES:
        terms = spec.get("affinity", {}).get(name, {})
        yield from terms.get(_REQUIRED, ())
        for weighted in terms.get(_PREFERRED, ()):
            if "podAffinityTerm" in weighted:
                yield weighted["podAffinityTerm"]


def _volume_source(volume: Object) -> None:
    """Source: ``SetDefaults_AzureDiskVolumeSource``, ``SetDefaults_RBDVolumeSource``."""
    if "azureDisk" in volume:
        volume["azureDisk"].setdefault("kind", "Shared")
    if "rbd" in volume:
        volume["rbd"]["pool"] = volume["rbd"].get("pool") or "rbd"


def _node(value: Object) -> None:
    status = value.get("status", {})
    if not status.get("allocatable") and "capacity" in status:
        status["allocatable"] = dict(status["capacity"])


def _namespace(value: Object) -> None:
    metadata = value["metadata"]
    metadata.setdefault("labels", {}).setdefault(NAMESPACE_LABEL, metadata["name"])


def _replication_controller(value: Object) -> None:
    spec = value.get("spec", {})
    labels = spec.get("template", {}).get("metadata", {}).get("labels")
    if not labels:
        return
    if not spec.get("selector"):
        spec["selector"] = dict(labels)
    if not value["metadata"].get("labels"):
        value["metadata"]["labels"] = dict(labels)


def _storage_class(value: Object) -> None:
    value.setdefault("volumeBindingMode", "Immediate")
    value.setdefault("reclaimPolicy", "Delete")


def _csi_driver(value: Object) -> None:
    spec = value.setdefault("spec", {})
    spec.setdefault("storageCapacity", False)
    spec.setdefault("preventPodSchedulingIfMissing", False)


def _volume(value: Object) -> None:
    value["spec"].setdefault("volumeMode", "Filesystem")


def _claim(value: Object) -> None:
    _device_requests(value.get("spec", {}))


def _claim_template(value: Object) -> None:
    _device_requests(value.get("spec", {}).get("spec", {}))


def _device_requests(spec: Object) -> None:
    """One device, where a request does not say how many (``SetDefaults_ExactDeviceRequest``)."""
    for request in spec.get("devices", {}).get("requests", ()):
        exactly = [request["exactly"]] if "exactly" in request else []
        for requirements in (*exactly, *request.get("firstAvailable", ())):
            for toleration in requirements.get("tolerations", ()):
                toleration["operator"] = toleration.get("operator") or EQUAL
            requirements["allocationMode"] = requirements.get("allocationMode") or EXACT_COUNT
            if requirements["allocationMode"] == EXACT_COUNT:
                requirements["count"] = requirements.get("count") or 1


def _slice(value: Object) -> None:
    """A capacity without a value is none."""
    for device in value.get("spec", {}).get("devices", ()):
        for capacity in device.get("capacity", {}).values():
            capacity.setdefault("value", "0")


def _pod_group(value: Object) -> None:
    """Source: pkg/apis/scheduling/v1beta1/zz_generated.defaults.go ``SetObjectDefaults_PodGroup``."""
    value["spec"].setdefault("disruptionMode", {"single": {}})


def _priority_class(value: Object) -> None:
    value.setdefault("preemptionPolicy", "PreemptLowerPriority")


_DEFAULTS: Mapping[kinds.Kind, Callable[[Object], None]] = {
    kinds.POD: _pod,
    kinds.NODE: _node,
    kinds.NAMESPACE: _namespace,
    kinds.REPLICATION_CONTROLLER: _replication_controller,
    kinds.STORAGE_CLASS: _storage_class,
    kinds.CSI_DRIVER: _csi_driver,
    kinds.PERSISTENT_VOLUME: _volume,
    kinds.PERSISTENT_VOLUME_CLAIM: _volume,
    kinds.PRIORITY_CLASS: _priority_class,
    kinds.POD_GROUP: _pod_group,
    kinds.RESOURCE_SLICE: _slice,
    kinds.RESOURCE_CLAIM: _claim,
    kinds.RESOURCE_CLAIM_TEMPLATE: _claim_template,
}
