"""The pods and pod groups that are still to be decided, in the leader's order, with its rules for who is tried again.

Pods that an event may help are tried again once no other pod is left to be tried, as if their pause were over then.
When that is over too, every pod whose last attempt lies before the last time that a pod left its node gets another one,
as the leader gives it to pods that were unschedulable for long. A leader tries a pod group, and a pod whose attempt has
ended in an error, again after each pause; here that is so where time passes, and as long as it stands still they are
tried again when anything has happened since. So the queue runs dry when nothing changes any more.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping

from dsched.clock import Clock
from dsched.framework.interface import Action, ClusterEvent, Resource
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.model.meta import PodKey
from dsched.scheduler.decision import Candidate, GroupCandidate, GroupDecision
from dsched.scheduler.hints import Hints
from dsched.scheduler.pod_groups import Changes, QueuedGroups
from dsched.scheduler.ports import Move, QueueName
from dsched.scheduler.queue import PendingPods, QueuedGroup, QueuedPod
from dsched.scheduler.quota.picking import Picking
from dsched.simulation.turned_away import TurnedAway

_Turn = tuple[int, int, str, PodKey]
"""When it may be tried again, its place as QueueSort has it, the pod or the `entity_key` of a group."""

_NOBODY: frozenset[str] = frozenset()


class SimulatedQueue:
    """Pods by the place where they stand.

    Attributes:
        turned_away: who was too often gets no turn, and neither does its group.
    """

    def __init__(
        self,
        frameworks: Mapping[str, Framework],
        pending: PendingPods,
        groups: QueuedGroups,
        clock: Clock,
        picking: Picking | None = None,
    ) -> None:
        """
        Args:
            pending: of pods that are no longer pending it knows nothing; plugins may look into it.
            picking: says whose turn it is where queues divide the cluster.
        """
        self._picking = picking
        self._clock = clock
        self._frameworks = frameworks
        self._pending = pending
        self._groups = groups
        self.turned_away = TurnedAway(clock)
        self._hints = Hints(frameworks)
        self._turns: dict[QueueName, list[_Turn]] = {QueueName.ACTIVE: [], QueueName.BACKOFF: []}
        self._pauses: list[_Turn] = []
        """Of those in backoff that no plugin has rejected: their pauses last to the end, whoever else is left."""
        self._departures = 0
        self._happened = 0
        self._tried_at: dict[PodKey, tuple[int, int]] = {}
        """Departures, and all that had happened, when it was tried last."""
        self._activated_at: dict[PodKey, int] = {}
        """How much had happened when it was activated last."""
        self._why: dict[PodKey, str] = {}
        """Of pods and groups that are gated: by whom and why."""

    def add(self, infos: Iterable[PodInfo]) -> list[tuple[PodInfo, str]]:
        """Take in pods, all before any plugin is asked about one; returns those that are gated, and why."""
        added = [self._pending.add(info, self._framework(info)) for info in infos]
        for pod in added:
            if self._groups.concerns(pod.info.pod):
                self._change(self._groups.joined(pod))
                continue
            self._enter(pod, QueueName.ACTIVE)
        return [(pod.info, why) for pod in added if (why := self._gated(pod))]

    def _gated(self, pod: QueuedPod) -> str:
        """Why the pod, or its group, is gated; empty where it is not."""
        entity = self._pending.group(pod.group) if pod.place is QueueName.GROUP else pod
        return self._why[entity.key] if entity is not None and entity.place is QueueName.GATED else ""

    @property
    def any_paused(self) -> bool:
        """Whether there are pods that may be tried again once their pause is over."""
        return bool(self._turns[QueueName.BACKOFF])

    def pop(self, *, active: bool = False, rescue: bool = True) -> Candidate | GroupCandidate | None:
        """The pod or the group whose turn it is, its attempt counted; None when there is nothing left to try.

        Args:
            active: pauses do not end; where queues divide the cluster.
            rescue: when nobody else is left, as if time had passed.
        """
        self.activate()
        while True:
            if self._picking is not None and (picked := self._picking.pick(1)):
                return self._popped(picked[0])
            if active:
                return None
            if rescue and not any(self._turns.values()):
                self.rescue()
            if self._picking is not None:
                if not self.end_pauses():
                    return None
                continue
            place = QueueName.ACTIVE if self._turns[QueueName.ACTIVE] else QueueName.BACKOFF
            if not self._turns[place]:
                return None
            _, order, turn, key = heapq.heappop(self._turns[place])
            pod = self._pending.standing(key)
            # It may be gone: its group has no pods any more, its resize is not waited for; or it stands elsewhere.
            if pod is not None and (pod.place, pod.order, pod.turn) == (place, order, turn):
                return self._popped(pod)

    def activate(self) -> None:
        """Those that plugins have activated; each once as long as nothing happens, so that an end is reached."""
        for pod, flying in self._pending.activated():
            if self._activated_at.get(pod.key) == self._happened or self._spent(pod):
                continue
            self._activated_at[pod.key] = self._happened
            if pod.place is QueueName.BACKOFF and not flying:
                self._stand(pod, QueueName.ACTIVE)
            elif isinstance(pod, QueuedGroup):
                if pod.place is QueueName.GATED and (move := self._groups.released(pod)) is not None:
                    self._moved(pod, move)
            elif pod.place in (QueueName.GATED, QueueName.UNSCHEDULABLE):
                self._enter(pod, self._ready(pod) if flying else QueueName.ACTIVE)

    def end_pauses(self) -> bool:
        """Those in backoff become active, to take their turns among the others; False where there are none."""
        turns, self._turns[QueueName.BACKOFF] = self._turns[QueueName.BACKOFF], []
        for entry in turns:
            if (pod := self._in_backoff(entry)) is not None:
                self._pending.placed(pod, QueueName.ACTIVE)
        return bool(turns)

    def time_passed(self) -> None:
        """Those whose pauses are over become active."""
        for turns in (self._turns[QueueName.BACKOFF], self._pauses):
            while turns and turns[0][0] <= self._clock.now_ms():
                pod = self._in_backoff(heapq.heappop(turns))
                if pod is not None:
                    self._stand(pod, QueueName.ACTIVE)

    def _in_backoff(self, entry: _Turn) -> QueuedPod | None:
        """Who stands in backoff by this entry; None where he stands elsewhere by now."""
        _, order, turn, key = entry
        pod = self._pending.standing(key)
        still = pod is not None and (pod.place, pod.order, pod.turn) == (QueueName.BACKOFF, order, turn)
        return pod if still else None

    def held_back(self) -> Iterator[tuple[QueuedPod, str]]:
        """Pods that have been let in once and are held back now, by a limit of their queue or by PreEnqueue, and what
        they are told."""
        if self._picking is not None:
            yield from self._picking.held_back()
        for pod in self._pending:
            if pod.place is QueueName.GATED and pod.attempts:
                yield pod, self._why[pod.key]

    def _popped(self, pod: QueuedPod) -> Candidate | GroupCandidate:
        pods = self._groups.attempt(pod) if isinstance(pod, QueuedGroup) else [pod]
        self._pending.placed(pod, QueueName.INFLIGHT)
        self._tried_at[pod.key] = self._departures, self._happened
        candidates = []
        for each in pods:
            self._pending.placed(each, QueueName.INFLIGHT)
            each.attempts += 1
            candidates.append(Candidate(each.info, each.attempts))
        return GroupCandidate(pod.pod_group, tuple(candidates)) if isinstance(pod, QueuedGroup) else candidates[0]

    def tried(self, candidate: Candidate) -> QueuedPod:
        """The pod that is being decided."""
        pod = self._pending.get(candidate.info.key)
        if pod is None:
            raise LookupError(f"pod {candidate.info.key} is not pending")
        return pod

    def gone(self, info: PodInfo) -> None:
        """A pod is deleted. It may have stood here for the room that a resize needs, or was held back by Permit."""
        pod = self._pending.get(info.key)
        if pod is not None and pod.uid == info.uid:
            self.withdrawn(pod)

    def withdrawn(self, pod: QueuedPod) -> None:
        """A pod that stands here is not to be placed any more."""
        self._pending.drop(pod.key)
        if pod.group:
            self._change(self._groups.left(pod))

    def changed(self, info: PodInfo) -> None:
        """A pod that stands here has changed; nothing happens where it does not."""
        pod = self._pending.get(info.key)
        if pod is None or pod.uid != info.uid:
            return
        old = pod.info.pod
        turned = self._pending.replace(pod, info, self._framework(info))
        event = ClusterEvent(Resource.POD, Action.UPDATE, old, info.pod)
        if turned and pod.place in self._turns:
            self._stand(pod, pod.place)
        elif pod.place is QueueName.GROUP:
            if (entry := self._groups.helped_by_change(pod, event)) is not None:
                self._moved(*entry)
        elif pod.place is QueueName.GATED:
            self._enter(pod, self._ready(pod))
        elif pod.place is QueueName.UNSCHEDULABLE and self._hints.helps(event, pod):
            self.try_again(pod, event)
        self.happened(ClusterEvent(Resource.PENDING_POD, Action.UPDATE, old, info.pod))

    def group_changed(self, key: str, *, there: bool) -> None:
        """A PodGroup has come or changed, or is no more."""
        self._change(self._groups.group_came(key) if there else self._groups.group_gone(key))

    def placed(self, pod: QueuedPod) -> None:
        """The pod is no longer pending."""
        self._pending.drop(pod.key)
        self.turned_away.placed()

    def held(self, pod: QueuedPod) -> None:
        """The pod has a node, and Permit holds it back."""
        self._pending.placed(pod, QueueName.WAITING)

    def put_back(self, pod: QueuedPod, plugins: frozenset[str], waiting: frozenset[str] = _NOBODY) -> None:
        """The pod was not placed.

        Args:
            plugins: that rejected it; nobody where the attempt has ended in an error.
            waiting: those of them that said Pending.
        """
        deciding = pod.place is QueueName.INFLIGHT
        self._pending.requeued(pod, self._framework(pod.info), plugins, waiting)
        if not pod.group and (plugins or pod.resizes):  # a resize that fits is made by the kubelet
            self._stand(pod, QueueName.UNSCHEDULABLE)
        elif not pod.group:
            self._enter(pod, QueueName.BACKOFF)
        elif deciding:
            self._pending.placed(pod, QueueName.GROUP)
        else:
            self._change(self._groups.joined(pod))

    def attempted(self, decided: GroupDecision) -> None:
        """A group was decided, and its pods are placed, held back, or put back."""
        self._change(self._groups.attempted(decided))

    def try_again(self, pod: QueuedPod, event: ClusterEvent | None = None) -> None:
        """Give an unschedulable pod another turn, if PreEnqueue lets it have one.

        Args:
            event: what may have helped it.
        """
        if pod.place is not QueueName.UNSCHEDULABLE or self.turned_away.too_often(pod.uid):
            return
        if isinstance(pod, QueuedGroup):
            self._stand(pod, self._ready(pod))
        else:
            self._enter(pod, self._ready(pod, event))

    def happened(self, event: ClusterEvent) -> None:
        """Something has changed: give those a turn whom it may help."""
        self._departures += event.action is Action.DELETE
        self._happened += 1
        helped = self._groups.entities(self._hints.helped(event, self._pending))
        for pod in [*helped, *self._groups.let_go(event)]:
            if pod.place is not QueueName.GATED:
                self.try_again(pod, event)
            elif isinstance(pod, QueuedGroup):
                if (move := self._groups.released(pod, event)) is not None:
                    self._moved(pod, move)
            else:
                self._enter(pod, self._ready(pod))

    def _ready(self, pod: QueuedPod, event: ClusterEvent | None = None) -> QueueName:
        """Where it goes that may be tried again."""
        at_once = event is not None and self._hints.end_pause(event, pod)
        if self._picking is None:
            return self._pending.ready_place(pod, at_once=at_once)
        return QueueName.ACTIVE if at_once or pod.place is QueueName.GATED else QueueName.BACKOFF

    def _enter(self, pod: QueuedPod, place: QueueName) -> None:
        """Stand where a turn is to be had, or be gated where PreEnqueue says no."""
        status = self._framework(pod.info).run_pre_enqueue(pod.info.pod)
        if status is not None:
            self._pending.held_back(pod, status.plugin)
            self._why[pod.key] = f"{status.plugin}: {status.message}"
        self._stand(pod, place if status is None else QueueName.GATED)

    def rescue(self) -> None:
        """Nobody else is left to be tried: who would be if time passed is tried now, where that may bring another end.
        These are unschedulable pods if one has left its node since their last attempt, and those whose pauses last to
        the end if anything has happened."""
        for pod in list(self._pending):
            if self._tried_at.get(pod.key, (self._departures, 0))[0] < self._departures:
                self.try_again(pod)
        for group in list(self._pending.groups()):
            if self._happened_since(group):
                self.try_again(group)
        pauses, self._pauses = self._pauses, []
        for entry in pauses:
            if (paused := self._in_backoff(entry)) is not None:
                over = self._happened_since(paused) and not self._spent(paused)
                heapq.heappush(self._turns[QueueName.BACKOFF] if over else self._pauses, entry)

    def _happened_since(self, pod: QueuedPod) -> bool:
        """Whether anything has happened since it was tried."""
        return self._tried_at.get(pod.key, (0, self._happened))[1] < self._happened

    # -- places ----------------------------------------------------------------------------------------------------

    def _change(self, changes: Changes) -> None:
        for pod, move in changes.moves:
            self._moved(pod, move)

    def _moved(self, pod: QueuedPod, move: Move) -> None:
        if move.target is QueueName.GATED:
            self._why[pod.key] = f"{' '.join(sorted(pod.plugins))}: {move.fields['message']}"
        self._stand(pod, move.target)

    def _spent(self, pod: QueuedPod) -> bool:
        """Whether the pod, or one of the group, was turned away too often."""
        pods = self._pending.members(pod.pod_group.key) if isinstance(pod, QueuedGroup) else [pod]
        return any(self.turned_away.too_often(each.uid) for each in pods)

    def _framework(self, info: PodInfo) -> Framework:
        return self._frameworks[info.pod.spec.scheduler_name]

    def _stand(self, pod: QueuedPod, place: QueueName) -> None:
        if isinstance(pod, QueuedGroup) and place in self._turns and self._spent(pod):
            place = QueueName.UNSCHEDULABLE
        self._pending.placed(pod, place)
        if place in self._turns and (self._picking is None or place is QueueName.BACKOFF):
            ends_ms = self._pending.backoff_ends_ms(pod) if place is QueueName.BACKOFF else 0
            turns = self._turns[place] if place is QueueName.ACTIVE or pod.plugins else self._pauses
            heapq.heappush(turns, (ends_ms, pod.order, pod.turn, pod.key))
