"""Fields of a pod's spec that dsched does not know, of a newer API server or a standalone cluster: found, and told.

They are no reason to refuse a pod. They are told in the log, once a field; by an event on pods that dsched schedules,
at most one a field and minute; and by ``dsched_unknown_fields_total``.

*Looking* costs a fifth of what reading a pod does. Of an API server's pods, those of one controller and template are
alike, so one of each class (`PodInfo.class_key`) is looked at; pods without a controller are all looked at. What
somebody has put into one pod of a controller alone may be missed, therefore. A standalone cluster's specs are kept as
they were written, by ``dsched apply`` or another client, so each that differs is looked at once.

Known is what Kubernetes 1.34 to 1.37 have, whether scheduling reads it or not. Objects are walked into where a new
field may change what scheduling does: a field of a probe is nothing to it, one of an affinity term is.

Source: k8s.io/api v0.37.2 core/v1/types.go ``PodSpec`` and what it holds; v0.35.4 for ``workloadRef``, which later
versions do not have.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from dsched.clock import Clock, SystemClock
from dsched.cluster.interface import PodEvent
from dsched.framework import interning
from dsched.framework.pod_info import PodInfo
from dsched.log import cut, logger
from dsched.metrics import UNKNOWN_FIELDS
from dsched.model.meta import PodKey
from dsched.model.pod import Pod, PodSpec

_log = logger(__name__)

Fields: TypeAlias = Mapping[str, "Fields | None"]
"""Fields of an object by name; those of what the field holds, which may be in a list; None: not walked into."""

REASON = "UnknownField"
EVENT_EVERY_S = 60.0
MOST_FIELDS = 50
"""Fields that have a label, a line and events of their own; the others share `OTHER`."""
OTHER = "other"
SPECS = 4096
"""Specs of standalone clusters of which it is kept what was found."""

_of_class: dict[bytes, tuple[str, ...]] = {}
"""The fields that pods of a class have; of as many classes as are known in `dsched.framework.interning`."""


def _plain(names: str) -> dict[str, Fields | None]:
    return dict.fromkeys(names.split())


_SELECTOR: Fields = {"matchLabels": None, "matchExpressions": _plain("key operator values")}
_NODE_TERM: Fields = dict.fromkeys(("matchExpressions", "matchFields"), _plain("key operator values"))
_POD_TERM: Fields = {
    **_plain("namespaces topologyKey matchLabelKeys mismatchLabelKeys"),
    "labelSelector": _SELECTOR,
    "namespaceSelector": _SELECTOR,
}
_REQUIRED, _PREFERRED = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))
_POD_AFFINITY: Fields = {_REQUIRED: _POD_TERM, _PREFERRED: {"weight": None, "podAffinityTerm": _POD_TERM}}
_RESOURCES: Fields = {"limits": None, "requests": None, "claims": _plain("name request")}
_CONTAINER: Fields = {
    **_plain(
        "name image command args workingDir envFrom env resizePolicy restartPolicy volumeDevices livenessProbe "
        "readinessProbe startupProbe lifecycle terminationMessagePath terminationMessagePolicy imagePullPolicy "
        "securityContext stdin stdinOnce tty"
    ),
    "ports": _plain("name hostPort containerPort protocol hostIP"),
    "resources": _RESOURCES,
    "restartPolicyRules": _plain("action exitCodes"),
    "volumeMounts": _plain(
        "name readOnly recursiveReadOnly mountPath subPath mountPropagation subPathExpr bindMountOptions"
    ),
}
KNOWN: Fields = {
    **_plain(
        "restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy nodeSelector serviceAccountName "
        "serviceAccount automountServiceAccountToken nodeName hostNetwork hostPID hostIPC shareProcessNamespace "
        "securityContext imagePullSecrets hostname subdomain schedulerName hostAliases priorityClassName priority "
        "dnsConfig readinessGates runtimeClassName enableServiceLinks preemptionPolicy overhead setHostnameAsFQDN os "
        "hostUsers hostnameOverride evictionResponders workloadRef"
    ),
    "volumes": _plain(
        "name hostPath emptyDir gcePersistentDisk awsElasticBlockStore gitRepo secret nfs iscsi glusterfs "
        "persistentVolumeClaim rbd flexVolume cinder cephfs flocker downwardAPI fc azureFile configMap vsphereVolume "
        "quobyte azureDisk photonPersistentDisk projected portworxVolume scaleIO storageos csi ephemeral image"
    ),
    "initContainers": _CONTAINER,
    "containers": _CONTAINER,
    "ephemeralContainers": {**_CONTAINER, "targetContainerName": None},
    "affinity": {
        "nodeAffinity": {
            _REQUIRED: {"nodeSelectorTerms": _NODE_TERM},
            _PREFERRED: {"weight": None, "preference": _NODE_TERM},
        },
        "podAffinity": _POD_AFFINITY,
        "podAntiAffinity": _POD_AFFINITY,
    },
    "tolerations": _plain("key operator value effect tolerationSeconds"),
    "topologySpreadConstraints": {
        **_plain("maxSkew topologyKey whenUnsatisfiable minDomains nodeAffinityPolicy nodeTaintsPolicy matchLabelKeys"),
        "labelSelector": _SELECTOR,
    },
    "schedulingGates": _plain("name"),
    "schedulingGroup": _plain("podGroupName"),
    "resourceClaims": _plain("name resourceClaimName resourceClaimTemplateName"),
    "resources": _RESOURCES,
}
"""Of a pod's spec."""


def beyond(value: Any, known: Fields, path: str) -> Iterator[str]:
    """The paths of fields that a value has and that are not known, as ``spec.containers[].newField``; of each item of a
    list, so that one may come more than once. What is null counts as absent."""
    if isinstance(value, list):
        for item in value:
            yield from beyond(item, known, f"{path}[]")
    elif isinstance(value, dict):
        for name, held in value.items():
            if held is None:
                continue
            if name not in known:
                yield f"{path}.{name}"
            elif (inner := known[name]) is not None:
                yield from beyond(held, inner, f"{path}.{name}")


def of(pod: PodInfo, raw: bytes | msgspec.Raw) -> tuple[str, ...]:
    """The paths of the fields in a pod's JSON that dsched does not know, sorted; none, mostly. From any thread.

    Args:
        pod: what was read from it.
    """
    found = _of_class.get(pod.class_key)
    if found is None:
        found = _look(raw)
        if any(owner.controller for owner in pod.pod.metadata.owner_references):
            if len(_of_class) >= interning.MOST:
                _of_class.clear()
            _of_class[pod.class_key] = found
    return found


@lru_cache(maxsize=SPECS)
def of_spec(spec: bytes) -> tuple[str, ...]:
    """The paths of the fields in a spec's JSON that dsched does not know, sorted; equal specs are looked at once."""
    return _look(b'{"spec":%b}' % spec)


def _strict(name: str, known: Fields) -> type[msgspec.Struct]:
    """The type of an object that has these fields and no others."""
    fields: list[tuple[str, Any, Any]] = []
    for field, inner in known.items():
        if inner is None:
            fields.append((field, msgspec.Raw | msgspec.UnsetType, msgspec.UNSET))
        else:
            record = _strict(field, inner)
            fields.append((field, record | list[record] | None, None))  # type: ignore[valid-type]
    return msgspec.defstruct(name, fields, forbid_unknown_fields=True, gc=False)


class _Loose(msgspec.Struct):
    """A pod's spec with all that it has."""

    spec: dict[str, Any] = {}


_known_alone = msgspec.json.Decoder(msgspec.defstruct("KnownPod", [("spec", _strict("KnownSpec", KNOWN) | None, None)]))
_loose = msgspec.json.Decoder(_Loose)


def _look(raw: bytes | msgspec.Raw) -> tuple[str, ...]:
    """Nearly all pods are done with the first step; only the second can name all the fields."""
    try:
        _known_alone.decode(raw)
    except msgspec.ValidationError:
        return tuple(sorted(set(beyond(_all(raw), KNOWN, "spec"))))
    return ()


def _all(raw: bytes | msgspec.Raw) -> dict[str, Any]:
    """Everything in a pod's spec; nothing, where that cannot be read although what scheduling reads of it could be."""
    try:
        return _loose.decode(raw).spec
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


class Telling:
    """Tells about the pods of which this process hears while it leads.

    Attributes:
        profiles: the schedulerNames that are served; None while this process does not lead: nothing is told then.
    """

    def __init__(self, record: Callable[[Sequence[PodEvent]], None], clock: Clock | None = None) -> None:
        self.profiles: Collection[str] | None = None
        self._record = record
        self._clock = clock or SystemClock()
        self._event_at: dict[str, float] = {}

    def found(self, pod: Pod, fields: Sequence[str]) -> None:
        """A pod that was not there before, or has been changed, has these fields."""
        if self.profiles is None:
            return
        ours = not pod.node_name and not pod.deleting and pod.spec.scheduler_name in self.profiles
        now = self._clock.monotonic()
        due: list[str] = []
        for path in fields:
            field = self._counted_as(path, pod)
            UNKNOWN_FIELDS.labels(field).inc()
            if ours and now - self._event_at[field] >= EVENT_EVERY_S:
                self._event_at[field] = now
                due.append(cut(path))
        if due:
            message = (
                "dsched ignores fields that it does not know and schedules the pod as if they were not there; "
                f"upgrade dsched to a version that knows them: {', '.join(due)}"
            )
            self._record([PodEvent(pod.key, pod.uid, "Warning", REASON, message, pod.spec.scheduler_name)])

    def _counted_as(self, path: str, pod: Pod) -> str:
        """The label of a field; the log is told when it is new."""
        field = cut(path)
        if field not in self._event_at and len(self._event_at) >= MOST_FIELDS:
            field = OTHER
        if field not in self._event_at:
            self._event_at[field] = -math.inf
            extra = {"action": "unknown_field", "pod": pod.key, "uid": pod.uid, "field": cut(path)}
            _log.warning("a field of a pod is not known and ignored; upgrade dsched", extra=extra)
        return field


class _Spec(msgspec.Struct):
    """A pod's spec as it was written."""

    spec: msgspec.Raw = msgspec.Raw(b"{}")


_specs = msgspec.json.Decoder(_Spec)


class StandalonePods:
    """Looks at the pods of a standalone cluster of which a leader hears, and tells of each once while its fields stay
    the same.

    Args:
        record: records events.
    """

    def __init__(self, record: Callable[[Sequence[PodEvent]], None], clock: Clock) -> None:
        self._telling = Telling(record, clock)
        self._of: dict[PodKey, tuple[str, Sequence[str]]] = {}  # UID and fields of pods that have any
        self._without: dict[int, PodSpec] = {}
        """Specs by identity that have none; those that are written alike are one (`dsched.cluster.standalone.stored`).
        """

    def lead(self, profiles: Collection[str] | None) -> None:
        """This process leads, and serves these schedulerNames; None: it does not, and nothing is looked at."""
        self._telling.profiles = profiles

    def listed(self, pods: Collection[PodKey]) -> None:
        """There are no other pods."""
        self._of = {key: told for key, told in self._of.items() if key in pods}

    def heard(self, raw: bytes, pod: Pod) -> None:
        """A pod is there, or has been changed, and this is its JSON."""
        if self._telling.profiles is None:
            return
        fields = () if id(pod.spec) in self._without else self._look(raw, pod.spec)
        if not fields:
            if self._of:
                self._of.pop(pod.key, None)
        elif self._of.get(pod.key) != (pod.uid, fields):
            self._telling.found(pod, fields)
            self._of[pod.key] = pod.uid, fields

    def _look(self, raw: bytes, spec: PodSpec) -> tuple[str, ...]:
        fields = of_spec(bytes(_specs.decode(raw).spec))
        if not fields:
            if len(self._without) >= SPECS:
                self._without.clear()
            self._without[id(spec)] = spec
        return fields

    def gone(self, key: PodKey) -> None:
        """A pod was deleted."""
        self._of.pop(key, None)
