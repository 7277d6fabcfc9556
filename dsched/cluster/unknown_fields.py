"""Fields of a pod's spec that dsched does not know, of a newer API server or a standalone cluster: found, and told.

They are no reason to refuse a pod. They are told in the log, once a field; by an event on pods that dsched schedules,
at most one a field and minute; and by ``dsched_unknown_fields_total``.

*Looking* costs a fifth of what reading a pod does. Of an API server's pods, those of one controller and template are
alike, so one of each class (`PodInfo.class_key`) is looked at; pods without a controller are all looked at. What
somebody has put into one pod of a controller alone may be missed, therefore. A standalone cluster's specs are kept as
they were written, so each that differs is looked at once.
"""

import math
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from dsched.clock import Clock, SystemClock
from dsched.cluster import pod_fields
from dsched.cluster.interface import PodEvent
from dsched.cluster.pod_fields import Fields
from dsched.framework import interning
from dsched.framework.pod_info import PodInfo
from dsched.log import cut, logger
from dsched.metrics import UNKNOWN_FIELDS
from dsched.model.pod import Pod

_log = logger(__name__)

REASON = "UnknownField"
EVENT_EVERY_S = 60.0
MOST_FIELDS = 50
"""Fields that have a label, a line and events of their own; the others share `OTHER`."""
OTHER = "other"
SPECS = 4096
"""Specs of standalone clusters of which it is kept what was found."""

_of_class: dict[bytes, tuple[str, ...]] = {}
"""The fields that pods of a class have; of as many classes as are known in `dsched.framework.interning`."""


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


_known_alone = msgspec.json.Decoder(
    msgspec.defstruct("KnownPod", [("spec", _strict("KnownSpec", pod_fields.SPEC) | None, None)])
)
_loose = msgspec.json.Decoder(_Loose)


def _look(raw: bytes | msgspec.Raw) -> tuple[str, ...]:
    """Nearly all pods are done with the first step; only the second can name all the fields."""
    try:
        _known_alone.decode(raw)
    except msgspec.ValidationError:
        return tuple(sorted(set(pod_fields.beyond(_all(raw), pod_fields.SPEC, "spec"))))
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
