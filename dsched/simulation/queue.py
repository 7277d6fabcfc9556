"""The pods that are still to be decided, in the leader's order, with the leader's rules for who is tried again.

Pods that an event may help are tried again once no other pod is left to be tried, as if their pause were over then.
When that is over too, every pod whose last attempt lies before the last time that a pod left its node gets another one,
as the leader gives it to pods that were unschedulable for long. So the queue runs dry when nothing changes any more.
"""

import heapq
from collections.abc import Iterable, Mapping

from dsched.clock import Clock
from dsched.framework.interface import Action, ClusterEvent, Status
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.model.meta import PodKey
from dsched.scheduler.hints import Hints
from dsched.scheduler.ports import QueueName
from dsched.scheduler.queue import PendingPods, QueuedPod
from dsched.simulation.turned_away import TurnedAway

_Turn = tuple[int, int, str, PodKey]
"""When it may be tried again, its place as QueueSort has it, the pod."""


class SimulatedQueue:
    """Pods by the place where they stand.

    Attributes:
        turned_away: by Permit; who was too often gets no turn.
    """

    def __init__(self, frameworks: Mapping[str, Framework], pending: PendingPods, clock: Clock) -> None:
        """
        Args:
            pending: of pods that are no longer pending it knows nothing; plugins may look into it.
        """
        self._frameworks = frameworks
        self._pending = pending
        self.turned_away = TurnedAway(clock)
        self._hints = Hints(frameworks)
        self._turns: dict[QueueName, list[_Turn]] = {QueueName.ACTIVE: [], QueueName.BACKOFF: []}
        self._departures = 0
        self._tried_at: dict[PodKey, int] = {}

    def add(self, infos: Iterable[PodInfo]) -> list[tuple[PodInfo, Status]]:
        """Take in pods, all before any plugin is asked about one; returns those that are gated, and by what."""
        added = [self._pending.add(info, self._framework(info)) for info in infos]
        gated: list[tuple[PodInfo, Status]] = []
        for pod in added:
            status = self._framework(pod.info).run_pre_enqueue(pod.info.pod)
            if status is not None:
                pod.plugins = frozenset({status.plugin})
                gated.append((pod.info, status))
            self._stand(pod, QueueName.ACTIVE if status is None else QueueName.GATED)
        return gated

    def pop(self) -> QueuedPod | None:
        """The pod whose turn it is, its attempt counted; None when there is nothing left to try."""
        if not self._turns[QueueName.ACTIVE] and not self._turns[QueueName.BACKOFF]:
            self._rescue()
        for place in (QueueName.ACTIVE, QueueName.BACKOFF):
            if self._turns[place]:
                pod = self._pending.get(heapq.heappop(self._turns[place])[-1])
                if pod is None:
                    raise LookupError("a pod that is not pending has a turn")
                self._pending.placed(pod, QueueName.INFLIGHT)
                pod.attempts += 1
                self._tried_at[pod.key] = self._departures
                return pod
        return None

    def placed(self, pod: QueuedPod) -> None:
        """The pod is no longer pending."""
        self._pending.drop(pod.key)
        self.turned_away.placed()

    def held(self, pod: QueuedPod) -> None:
        """The pod has a node, and Permit holds it back."""
        self._pending.placed(pod, QueueName.WAITING)

    def put_back(self, pod: QueuedPod, plugins: frozenset[str]) -> None:
        """The pod was not placed; ``plugins`` rejected it."""
        self._pending.requeued(pod, self._framework(pod.info), plugins)
        self._stand(pod, QueueName.UNSCHEDULABLE)

    def try_again(self, pod: QueuedPod) -> None:
        """Give an unschedulable pod another turn."""
        if pod.place is QueueName.UNSCHEDULABLE and not self.turned_away.too_often(pod.uid):
            self._stand(pod, QueueName.BACKOFF)

    def happened(self, event: ClusterEvent) -> None:
        """Something has changed: give those a turn whom it may help."""
        self._departures += event.action is Action.DELETE
        for pod in self._hints.helped(event, self._pending):
            if pod.place is not QueueName.GATED:
                self.try_again(pod)
            elif self._framework(pod.info).run_pre_enqueue(pod.info.pod) is None:
                self._stand(pod, QueueName.ACTIVE)

    def _rescue(self) -> None:
        for pod in list(self._pending):
            if self._tried_at.get(pod.key, self._departures) < self._departures:
                self.try_again(pod)

    def _framework(self, info: PodInfo) -> Framework:
        return self._frameworks[info.pod.spec.scheduler_name]

    def _stand(self, pod: QueuedPod, place: QueueName) -> None:
        self._pending.placed(pod, place)
        if place in self._turns:
            ends_ms = self._pending.backoff_ends_ms(pod) if place is QueueName.BACKOFF else 0
            heapq.heappush(self._turns[place], (ends_ms, pod.order, pod.turn, pod.key))
