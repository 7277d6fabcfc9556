"""Pods that Permit holds back: reserved, not yet handed to the binders.

Plugins reach them through their handle: they may allow or reject a waiting pod from the permit call of another.
Preemption has victims among them queued again, instead of deleting them.

Source: pkg/scheduler/framework/runtime/waiting_pods_map.go.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dsched.clock import Clock
from dsched.config import Features, durations
from dsched.framework.interface import Code, Status
from dsched.framework.pod_info import PodInfo
from dsched.model.meta import PodUid

_PREEMPTION = "DefaultPreemption"


@dataclass(slots=True)
class WaitingPod:
    """A pod that Permit plugins hold back.

    Attributes:
        since_ms: when it began to wait, wall clock.
        holding: plugins that have not allowed it yet, to the wall-clock ms when their patience ends.
        rejection: why it was rejected, once it was.
    """

    pod: PodInfo
    since_ms: int
    holding: dict[str, int] = field(default_factory=dict)
    rejection: Status | None = None

    @property
    def allowed(self) -> bool:
        """Whether nobody holds the pod back any more."""
        return not self.holding and self.rejection is None

    @property
    def deadline_ms(self) -> int:
        """When the first plugin's patience ends."""
        return min(self.holding.values(), default=0)

    def allow(self, plugin: str) -> None:
        """The plugin no longer holds the pod back."""
        self.holding.pop(plugin, None)

    def reject(self, plugin: str, message: str) -> None:
        """The pod is turned away; the first rejection counts."""
        if self.rejection is None:
            self.rejection = Status(Code.UNSCHEDULABLE, (message,), plugin)


class TurnedAway(NamedTuple):
    """Victims of a preemption that are queued again instead of being deleted, for they were not about to be bound yet.

    Attributes:
        last: whether the last of all victims is among them: then no pod goes that would wake the preemptor.
    """

    pods: tuple[PodInfo, ...] = ()
    last: bool = False


class WaitingPods:
    """The pods that wait, by UID."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[PodUid, WaitingPod] = {}
        self._of_group: dict[str, dict[PodUid, WaitingPod]] = {}

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)

    def hold(self, pod: PodInfo, waits: Mapping[str, float]) -> WaitingPod:
        """A pod begins to wait.

        Args:
            waits: plugins that hold it back, to how many seconds their patience lasts.
        """
        now_ms = self._clock.now_ms()
        waiting = WaitingPod(pod, now_ms, {plugin: now_ms + round(wait_s * 1000) for plugin, wait_s in waits.items()})
        self.again(waiting)
        return waiting

    def again(self, waiting: WaitingPod) -> None:
        """A pod goes on waiting that did so elsewhere before."""
        self._pods[waiting.pod.uid] = waiting
        self._of_group.setdefault(waiting.pod.pod.group_key, {})[waiting.pod.uid] = waiting

    def get(self, uid: PodUid) -> WaitingPod | None:
        """A waiting pod, None when it does not wait."""
        return self._pods.get(uid)

    def of_group(self, key: str) -> Iterator[WaitingPod]:
        """The pods of a pod group that wait."""
        return iter(list(self._of_group.get(key, {}).values()))

    def drop(self, uid: PodUid) -> WaitingPod | None:
        """The pod no longer waits."""
        waiting = self._pods.pop(uid, None)
        if waiting is not None:
            alike = self._of_group[waiting.pod.pod.group_key]
            del alike[uid]
            if not alike:
                del self._of_group[waiting.pod.pod.group_key]
        return waiting

    def preempt(self, victims: Sequence[PodInfo], features: Features) -> tuple[tuple[PodInfo, ...], TurnedAway]:
        """Turn away those victims of a preemption that wait; returns those that are left to be deleted, and them.

        Source: framework/preemption/preemption.go ``PreemptPod``, since 1.36 in executor.go.
        """
        turned_away = tuple(victim for victim in victims if self._turn_away(victim.uid, features))
        left = tuple(victim for victim in victims if victim not in turned_away)
        return left, TurnedAway(turned_away, bool(turned_away) and turned_away[-1] is victims[-1])

    def _turn_away(self, uid: PodUid, features: Features) -> bool:
        waiting = self._pods.get(uid)
        if waiting is None:
            return False
        if features.since(36):
            failed = Status(Code.ERROR, ("waiting on permit for pod: preempted",), _PREEMPTION)
            waiting.rejection = waiting.rejection or failed
        else:
            waiting.reject(_PREEMPTION, "preempted")
        return True

    def expire(self) -> None:
        """Reject pods for which a plugin's patience has ended."""
        now_ms = self._clock.now_ms()
        for waiting in self:
            for plugin, deadline_ms in waiting.holding.items():
                if deadline_ms <= now_ms:
                    waited = durations.show((deadline_ms - waiting.since_ms) * 1_000_000)
                    waiting.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")

    def settled(self) -> tuple[list[WaitingPod], list[WaitingPod]]:
        """Pods that nobody holds back any more, and pods that were rejected; they wait until dropped."""
        rejected = [waiting for waiting in self if waiting.rejection is not None]
        allowed = [waiting for waiting in self if waiting.allowed]
        return allowed, rejected
