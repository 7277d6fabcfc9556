"""Pod groups in the scheduling queue: a group is one entity there, its pods stand beside it.

::

    (pod, no PodGroup) ──► gated alone          group: active | backoff | gated ──pop──► inflight ──► again, or gone
              └──PodGroup comes──► group ◄───────── its pods: group ──────────────────► inflight ──► reserved, or group

A group stands in the queue as long as there are pods beside it. It is gated while PreEnqueue holds back any of them,
and after an attempt that failed it waits for its pause alone: no event is waited for.

Source: pkg/scheduler/backend/queue/scheduling_queue.go ``addPodGroupMember``, ``AddAttemptedPodGroupIfNeeded``;
framework/types.go ``QueuedPodGroupInfo``.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dsched.framework import group_points
from dsched.framework.interface import Action, ClusterEvent, Resource, Status
from dsched.framework.pod_groups import PodGroups
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.model.meta import PodKey, PodUid
from dsched.model.pod import Pod
from dsched.model.pod_groups import GroupKey, PodGroup
from dsched.scheduler.decision import GroupDecision, GroupEnd
from dsched.scheduler.hints import Hints
from dsched.scheduler.ports import Move, QueueName
from dsched.scheduler.queue import PendingPods, QueuedGroup, QueuedPod

PLUGIN = group_points.FEASIBLE_PLUGIN
"""Pods of a profile without this plugin are no part of a group."""


@dataclass(slots=True)
class Changes:
    """What has to be done in the queue.

    Attributes:
        moves: of pods and groups.
        removals: of groups that have no pods any more.
    """

    moves: list[tuple[QueuedPod, Move]] = field(default_factory=list)
    removals: list[tuple[PodKey, PodUid]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """How many pods there are of pod groups, where they count as such in metrics.

    Attributes:
        groups: by the queue where they stand.
        pods: beside these, by the same.
        pending: beside groups that are being decided, and not decided with them.
        incomplete: gated because their PodGroup is not there.
    """

    groups: Counter[str]
    pods: Counter[str]
    pending: int
    incomplete: int


NO_GROUPS = GroupCounts(Counter(), Counter(), 0, 0)


class QueuedGroups:
    """Says what becomes of groups as their pods come, go, and are tried; makes no move itself."""

    def __init__(
        self,
        frameworks: Mapping[str, Framework],
        pending: PendingPods,
        groups: PodGroups,
        version_of: Callable[[str], int],
    ) -> None:
        """
        Args:
            version_of: grows with every change of an object of a kind.
        """
        self._frameworks = frameworks
        self._pending = pending
        self._groups = groups
        self._version_of = version_of
        self._hints = Hints(frameworks)
        self._let_go: dict[str, QueuedGroup] = {}
        self._on = {name for name, framework in frameworks.items() if framework.plugin(PLUGIN) is not None}
        self.any = bool(self._on)

    def concerns(self, pod: Pod) -> bool:
        """Whether a pod is scheduled with its group; a deferred resize is decided for itself alone.

        Source: backend/queue/scheduling_queue.go ``isPodGroupMember``.
        """
        return pod.spec.scheduling_group is not None and not pod.node_name and pod.spec.scheduler_name in self._on

    def object_of(self, key: str) -> PodGroup | None:
        """The group of a key, None where there is none."""
        return self._groups.objects.get(GroupKey(key))

    def counts(self) -> GroupCounts:
        """How many groups and pods of groups there are; from any thread."""
        groups: Counter[str] = Counter()
        pods: Counter[str] = Counter()
        pending = 0
        for queued in tuple(self._pending.groups()):
            beside = self._pending.members(queued.pod_group.key)
            groups[queued.place] += 1
            pods[queued.place] += len(beside)
            if queued.place is QueueName.INFLIGHT:
                pending += sum(pod.place is QueueName.GROUP for pod in beside)
        alone = (pod for pods_ in tuple(self._pending.rejected_by(PLUGIN)) for pod in tuple(pods_.values()))
        incomplete = sum(pod.place is QueueName.GATED and bool(pod.group) for pod in alone)
        return GroupCounts(groups, pods, pending, incomplete)

    # -- pods come and go ------------------------------------------------------------------------------------------

    def joined(self, pod: QueuedPod) -> Changes:
        """A pod of a group has come into the queue, or back to it; or its group has come."""
        pod.group = pod.info.pod.group_key
        self._pending.resort(pod, self._framework(pod.info))
        group = self.object_of(pod.group)
        if group is None:
            return Changes([(pod, self._alone(pod))])
        self._pending.beside(pod)
        queued = self._pending.group(pod.group)
        changes = Changes([(pod, self._pending.move(pod, QueueName.GROUP))])
        if queued is None:
            changes.moves.append(self._new(group, [pod]))
        elif queued.place is not QueueName.INFLIGHT and (entry := self._again(queued, pod)) is not None:
            changes.moves.append(entry)
        return changes

    def left(self, pod: QueuedPod) -> Changes:
        """A pod that stood beside its group is no longer pending, or is on its way to a node. PreEnqueue, asked about
        the others, still counts it: so fewer than enough may have their turn once more.

        Source: eventhandlers.go ``deletePodFromSchedulingQueue``.
        """
        queued = self._pending.group(pod.group) if pod.group else None
        if queued is None or queued.place is QueueName.INFLIGHT:
            return Changes()
        rest = self._pending.members(pod.group)
        if not rest:
            return self.ended(queued)
        if queued.info.uid == pod.uid:
            queued.info = rest[0].info
        with self._groups.counting(pod.info.pod):
            entry = self._again(queued, None)
        if queued.place is QueueName.GATED and not any(each.held for each in rest):
            self._let_go[pod.group] = queued
        return Changes([] if entry is None else [entry])

    def group_came(self, key: str) -> Changes:
        """A PodGroup has come or changed."""
        queued, group = self._pending.group(key), self.object_of(key)
        if queued is not None and group is not None:
            queued.pod_group = group.with_priority_of(queued.info.priority)
            if self._pending.resort(queued, self._framework(queued.info)) and queued.place in _SORTED:
                return Changes([(queued, self._pending.move(queued, queued.place))])
            return Changes()
        waiting = [pod for pod in self._pending if pod.group == key and pod.place in (QueueName.GATED, QueueName.GROUP)]
        changes = Changes()
        for pod in waiting:
            found = self.joined(pod)
            changes.moves += found.moves
            changes.removals += found.removals
        return changes

    def group_gone(self, key: str) -> Changes:
        """A PodGroup is no more: its pods wait for another one, each by itself."""
        queued = self._pending.group(key)
        changes = Changes() if queued is None else self.ended(queued)
        for pod in self._pending.members(key):
            changes.moves.append((pod, self._alone(pod)))
        return changes

    def rebuilt(self, pods: Iterable[QueuedPod]) -> Changes:
        """Groups of pods that an earlier leader has left, with the times of the first of these."""
        changes = Changes()
        members: dict[str, list[QueuedPod]] = {}
        for pod in pods:
            pod.group = pod.info.pod.group_key
            self._pending.resort(pod, self._framework(pod.info))
            if self.object_of(pod.group) is None:
                changes.moves.append((pod, self._alone(pod)))
                continue
            self._pending.beside(pod)
            members.setdefault(pod.group, []).append(pod)
            if pod.place is not QueueName.GROUP:
                changes.moves.append((pod, self._pending.move(pod, QueueName.GROUP)))
        for key, found in members.items():
            group = self.object_of(key)
            if group is not None:
                changes.moves.append(self._new(group, found))
        return changes

    def _new(self, group: PodGroup, pods: Sequence[QueuedPod]) -> tuple[QueuedPod, Move]:
        """The group stands in the queue from now on."""
        first = min(pods, key=lambda pod: pod.queued_us)
        queued = QueuedGroup(
            first.info,
            queued_us=first.queued_us,
            pod_group=group.with_priority_of(first.info.priority),
            crashes=max(pod.crashes for pod in pods),
        )
        self._pending.add_group(queued)
        self._pending.resort(queued, self._framework(queued.info))
        return queued, self._entering(queued, QueueName.ACTIVE)

    def _again(self, queued: QueuedGroup, newcomer: QueuedPod | None) -> tuple[QueuedPod, Move] | None:
        """A pod has come to a group in the queue, or has left it: PreEnqueue is asked again, as upstream asks where it
        takes the group out and puts it in again. A gated group stays so unless a newcomer comes, which is heard of by
        the plugin that gates the group, and itself passes. Those that have passed are not asked again as long as
        nothing has changed that they are asked about."""
        gated, before = queued.place is QueueName.GATED, queued.plugins
        if gated and (newcomer is None or not self._hints.heeded(Resource.PENDING_POD, Action.ADD, queued)):
            return None
        status = None if newcomer is None else self._held_back(newcomer)
        if newcomer is not None and status is not None:  # the last one that is held back says why the group is
            self._pending.hold(newcomer, status.plugin)
            queued.plugins, queued.passed = frozenset({status.plugin}), None
        elif newcomer is None or queued.passed is None or queued.passed != self._read(queued):
            status = self._gate(queued)
        else:
            self._pending.hold(newcomer, None)
        if status is not None:
            move = self._held_by(queued, status, before)
            return None if move is None else (queued, move)
        if queued.place in (QueueName.ACTIVE, QueueName.BACKOFF):
            return None
        return queued, self._entered(queued)

    def _alone(self, pod: QueuedPod) -> Move:
        """The move of a pod whose group is not there."""
        status = self._held_back(pod)
        pod.plugins, pod.held = frozenset({PLUGIN if status is None else status.plugin}), False
        self._pending.apart(pod)
        return self._pending.move(pod, QueueName.GATED, message="" if status is None else status.message)

    def ended(self, queued: QueuedGroup) -> Changes:
        """No pod stands beside the group any more."""
        self._pending.drop_group(queued.pod_group.key)
        return Changes(removals=[(queued.key, queued.uid)])

    def entities(self, helped: Sequence[QueuedPod]) -> list[QueuedPod]:
        """What stands in the queue for pods that an event may help: their groups, or they themselves; each once."""
        found: dict[int, QueuedPod] = {}
        for pod in helped:
            queued = self._pending.group(pod.group) if pod.place is QueueName.GROUP else pod
            if queued is not None:
                found[id(queued)] = queued
        return list(found.values())

    # -- attempts --------------------------------------------------------------------------------------------------

    def attempt(self, queued: QueuedGroup) -> list[QueuedPod]:
        """The pods of a group that is about to be tried, in order."""
        beside = self._pending.members(queued.pod_group.key)
        return self.in_order([pod for pod in beside if pod.place is QueueName.GROUP])

    def in_order(self, pods: Iterable[QueuedPod]) -> list[QueuedPod]:
        """Pods of one group in the order in which they are decided.

        Source: framework/types.go ``PodGroupMemberPodsOrderingFunc``.
        """
        return sorted(pods, key=lambda pod: (-pod.info.priority, -pod.attempts, pod.queued_us, pod.key))

    def attempted(self, decided: GroupDecision) -> Changes:
        """A group was tried, and those of its pods that were not placed are beside it again."""
        queued = self._pending.group(decided.candidate.group.key)
        if queued is None:
            return Changes()
        rest = self._pending.members(queued.pod_group.key)
        if not rest:
            return self.ended(queued)
        queued.info = rest[0].info
        tried = {each.info.uid for each in decided.candidate.pods}
        if decided.end is GroupEnd.SCHEDULED:
            queued.attempts = queued.errors = 0
        elif decided.end is GroupEnd.ERROR and not decided.rejected:
            queued.errors += 1
        else:
            queued.attempts, queued.errors = queued.attempts + 1, 0
        if decided.end is not GroupEnd.SCHEDULED or not any(pod.uid in tried for pod in rest):
            queued.queued_us = self._pending.stamp()
        self._pending.pause(queued)
        self._pending.resort(queued, self._framework(queued.info))
        target = self._pending.ready_place(queued, at_once=decided.end is GroupEnd.SCHEDULED)
        return Changes([(queued, self._entering(queued, target))])

    def released(self, queued: QueuedGroup, event: ClusterEvent | None = None) -> Move | None:
        """The move of a gated group that an event may have helped; None where the same plugin holds it back still, or
        where the event is none that the plugin which gates the group wants to hear of.

        Source: backend/queue/scheduling_queue.go ``moveEntitiesToActiveOrBackoffQueue``.
        """
        if event is not None and not self._hints.heeded(event.resource, event.action, queued):
            return None
        before = queued.plugins
        status = self._still_held(queued) or self._gate(queued)
        return self._entered(queued) if status is None else self._held_by(queued, status, before)

    def helped_by_change(self, pod: QueuedPod, event: ClusterEvent) -> tuple[QueuedPod, Move] | None:
        """A pod beside its group has changed, which the group may be held back for; what becomes of the group."""
        queued = self._pending.group(pod.group)
        if queued is None or not queued.rejected:
            return None
        if not self.helped_by_any_change(queued) and not (pod.held and self._hints.helps(event, pod)):
            return None
        move = self.released(queued)
        return None if move is None else (queued, move)

    def helped_by_any_change(self, queued: QueuedGroup) -> bool:
        """Whether PreEnqueue is asked about a gated group whichever of its pods changes, and how: nothing has
        rejected one of them since it was last tried. Source: ``isPodWorthRequeuing``."""
        beside = self._pending.members(queued.pod_group.key)
        return any(pod.place is QueueName.GROUP and not pod.plugins for pod in beside)

    def let_go(self, event: ClusterEvent) -> list[QueuedPod]:
        """Gated groups whose pods that were held back have left them: PreEnqueue is asked about the others at the next
        event that the plugin which gates the group wants to hear of, if nothing has rejected one of them. Source:
        ``isPodWorthRequeuing``."""
        found: list[QueuedPod] = []
        for key, queued in list(self._let_go.items()):
            beside = self._pending.members(key)
            gated = self._pending.group(key) is queued and queued.place is QueueName.GATED
            if not gated or any(pod.held for pod in beside):
                del self._let_go[key]
            elif self._hints.heeded(event.resource, event.action, queued) and self.helped_by_any_change(queued):
                found.append(queued)
        return found

    def _held_by(self, queued: QueuedGroup, status: Status, before: frozenset[str]) -> Move | None:
        """The move of a group that PreEnqueue holds back; None where it is gated by the same plugin already."""
        if queued.place is QueueName.GATED and queued.plugins == before:
            return None
        return self._pending.move(queued, QueueName.GATED, message=status.message)

    def _still_held(self, queued: QueuedGroup) -> Status | None:
        """What is said of the last of the pods that held back the group before and do so now, if there is one. While
        many are held back, and let go one by one, most of them need not be asked each time."""
        for pod in reversed(self._pending.members(queued.pod_group.key)):
            if pod.held:
                status = self._held_back(pod)
                self._pending.hold(pod, None if status is None else status.plugin)
                if status is not None:
                    queued.plugins = frozenset({status.plugin})
                    return status
        return None

    def _entering(self, queued: QueuedGroup, target: QueueName) -> Move:
        """The move into a place, or to where PreEnqueue holds it back.

        A group waits for the end of its pause even where there is nothing else to do, as a pod does after an error: it
        names no plugin that rejected it. Source: backoff_queue.go ``add``.
        """
        status = self._gate(queued)
        if status is not None:
            return self._pending.move(queued, QueueName.GATED, message=status.message, **self._fields(queued))
        error = int(target is QueueName.BACKOFF)
        return self._pending.move(queued, target, message="", error=error, **self._fields(queued))

    def _entered(self, queued: QueuedGroup) -> Move:
        """The move of a group that PreEnqueue lets go."""
        target = self._pending.ready_place(queued)
        return self._pending.move(queued, target, message="", error=int(target is QueueName.BACKOFF))

    def _fields(self, queued: QueuedGroup) -> dict[str, str | int]:
        return {"profile": queued.info.pod.spec.scheduler_name, "attempts": queued.attempts}

    # -- PreEnqueue ------------------------------------------------------------------------------------------------

    def _gate(self, queued: QueuedGroup) -> Status | None:
        """Ask PreEnqueue of every pod beside the group; the status of the last one that is held back, which holds back
        the group. Source: ``runPreEnqueuePlugins``."""
        found: Status | None = None
        read = self._read(queued)
        for pod in self._pending.members(queued.pod_group.key):
            status = self._held_back(pod)
            self._pending.hold(pod, None if status is None else status.plugin)
            found = status or found
        queued.plugins = frozenset() if found is None else frozenset({found.plugin})
        queued.passed = read if found is None else None
        return found

    def _read(self, queued: QueuedGroup) -> tuple[int, ...] | None:
        """The state of all that PreEnqueue reads besides a pod and what is the same for all pods of its group; None
        where a plugin does not say what that is. Pods of a group have one profile, or it is refused."""
        kinds = self._framework(queued.info).pre_enqueue_reads
        return None if kinds is None else tuple(self._version_of(kind) for kind in kinds)

    def _held_back(self, pod: QueuedPod) -> Status | None:
        return self._framework(pod.info).run_pre_enqueue(pod.info.pod)

    def _framework(self, info: PodInfo) -> Framework:
        return self._frameworks[info.pod.spec.scheduler_name]


_SORTED = (QueueName.ACTIVE, QueueName.BACKOFF)
