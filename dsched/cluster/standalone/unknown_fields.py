"""Telling of fields that a standalone cluster's pods have and dsched does not know.

Another client wrote them to Redis, a newer dsched, or ``dsched apply``, which keeps what a manifest says.
"""

from collections.abc import Callable, Collection, Sequence

import msgspec

from dsched.clock import Clock
from dsched.cluster.interface import PodEvent
from dsched.cluster.unknown_fields import Telling, of_spec
from dsched.model.meta import PodKey
from dsched.model.pod import Pod


class _Spec(msgspec.Struct):
    """A pod's spec as it was written."""

    spec: msgspec.Raw = msgspec.Raw(b"{}")


_specs = msgspec.json.Decoder(_Spec)


class UnknownFields:
    """Looks at the pods of which a leader hears, and tells of each once while its fields stay the same.

    Args:
        record: records events.
    """

    def __init__(self, record: Callable[[Sequence[PodEvent]], None], clock: Clock) -> None:
        self._telling = Telling(record, clock)
        self._of: dict[PodKey, tuple[str, Sequence[str]]] = {}  # UID and fields of pods that have any

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
        fields = of_spec(bytes(_specs.decode(raw).spec))
        if not fields:
            self._of.pop(pod.key, None)
        elif self._of.get(pod.key) != (pod.uid, fields):
            self._telling.found(pod, fields)
            self._of[pod.key] = pod.uid, fields

    def gone(self, key: PodKey) -> None:
        """A pod was deleted."""
        self._of.pop(key, None)
