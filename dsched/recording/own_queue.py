"""Pods that a replay left without a node although the recorded leader went on otherwise: who is tried again, and when.

As long as a replay decides as was recorded, pods are tried when the recording says so, and nobody stands here. From the
first other decision on, what happens may help pods that were not helped then; the same hints as in a leader say whom.
"""

from collections.abc import Mapping

from dsched.clock import Clock
from dsched.framework.interface import ClusterEvent
from dsched.framework.runtime import Framework
from dsched.model.meta import PodUid
from dsched.scheduler.hints import Hints
from dsched.scheduler.ports import QueueName
from dsched.scheduler.queue import PendingPods, QueuedPod
from dsched.simulation.turned_away import TurnedAway


class OwnQueue:
    """Unschedulable pods that something has happened for.

    Attributes:
        open: whether anybody is taken in.
        turned_away: by Permit; who was too often is not taken in.
    """

    def __init__(self, frameworks: Mapping[str, Framework], pending: PendingPods, clock: Clock) -> None:
        self.open = False
        self.turned_away = TurnedAway(clock)
        self._hints = Hints(frameworks)
        self._pending = pending
        self._clock = clock
        self._woken: dict[PodUid, QueuedPod] = {}
        self._unpaused: set[PodUid] = set()
        """Those of them whose pauses do not count."""
        self._happened = 0
        self._activated_at: dict[PodUid, int] = {}
        """How much had happened when a plugin activated it last."""

    def happened(self, event: ClusterEvent) -> None:
        """Something has changed."""
        self._happened += 1
        if self.open:
            for pod in self._hints.helped(event, self._pending):
                self.wake(pod)

    def wake(self, pod: QueuedPod) -> None:
        """Give an unschedulable pod another turn; gated ones stay as recorded."""
        if self.open and pod.place is QueueName.UNSCHEDULABLE and not self.turned_away.too_often(pod.uid):
            self._woken[pod.uid] = pod

    def wake_if(self, event: ClusterEvent, pod: QueuedPod) -> None:
        """Give the pod another turn where an event about itself may have helped it."""
        if self._hints.helps(event, pod):
            self.wake(pod)

    def _activate(self) -> None:
        """Those that plugins have activated; each once as long as nothing happens, so that an end is reached."""
        for pod, flying in self._pending.activated():
            if self._activated_at.get(pod.uid) != self._happened:
                self._activated_at[pod.uid] = self._happened
                self.wake(pod)
                if pod.uid in self._woken and not flying:
                    self._unpaused.add(pod.uid)

    def forget(self, uid: PodUid) -> None:
        """The pod has been tried, or has gone."""
        self._woken.pop(uid, None)
        self._unpaused.discard(uid)

    def due(self, *, at_once: bool = False) -> list[QueuedPod]:
        """Pods whose turn it is, in queue order; they are no longer here.

        Args:
            at_once: as if every pause were over.
        """
        self._activate()
        now_ms = self._clock.now_ms()
        ready = [
            pod
            for uid, pod in self._woken.items()
            if pod.place is QueueName.UNSCHEDULABLE
            and (at_once or uid in self._unpaused or self._pending.backoff_ends_ms(pod) <= now_ms)
        ]
        for pod in ready:
            self.forget(pod.uid)
        return sorted(ready, key=lambda pod: (pod.order, pod.turn))
