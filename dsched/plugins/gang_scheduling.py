"""GangScheduling: at least ``minCount`` pods of a pod group are placed, or none.

Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go.
"""

from collections.abc import Sequence
from typing import Any

from dsched.framework import interface, pod_groups
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import (
    Action,
    ClusterEvent,
    Code,
    Hint,
    PermitResult,
    Registration,
    Resource,
    Status,
)
from dsched.framework.pod_info import PodInfo
from dsched.model import meta
from dsched.model.meta import NodeName
from dsched.model.pod import Pod
from dsched.model.pod_groups import GroupKey, PodGroup

NAME = "GangScheduling"
PERMIT_S = 5 * 60.0
"""How long Permit holds a pod back for the others. Source: ``permitTimeoutDuration``."""
COSCHEDULING_PERMIT_S = 60.0
NO_GROUP = 'waiting for pods\'s pod group "{name}" to appear in scheduling queue'
TOO_FEW = "waiting for minCount pods from a gang to appear in scheduling queue"
NOT_TOGETHER = "waiting for minCount pods from a gang to be scheduled"
OUT_OF_REACH = "minCount ({wanted}) cannot be satisfied: {scheduled} scheduled, {remaining} remaining"
NOT_REACHED = "minCount ({wanted}) is not yet satisfied: {scheduled} scheduled, {remaining} remaining"


class GangScheduling:
    name = NAME
    pre_enqueue_reads = ()
    pre_enqueue_fields = ("scheduling_group",)

    def __init__(self, args: Any, handle: Any) -> None:
        self._handle = handle

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Whether the pod's group is there, and as many pods of it as have to be placed together."""
        if pod.spec.scheduling_group is None:
            return None
        snapshot = self._handle.snapshot
        group: PodGroup | None = snapshot.pod_groups.objects.get(GroupKey(pod.group_key))
        if group is None:
            return interface.unresolvable(NO_GROUP.format(name=pod.spec.scheduling_group.pod_group_name or ""))
        gang = group.spec.scheduling_policy.gang
        if gang is not None and snapshot.pod_groups.count(group.key, snapshot.table) < gang.min_count:
            return interface.unresolvable(TOO_FEW)
        return None

    def placement_feasible(self, group: PodGroup, scheduled: int, remaining: int) -> Status | None:
        """Whether enough pods of the group are placed: None, Wait as long as the remaining ones may yet do it, or
        Unschedulable.

        Source: ``PlacementFeasible``.
        """
        told = {"wanted": group.min_count, "scheduled": scheduled, "remaining": remaining}
        if remaining + scheduled < group.min_count:
            return Status(Code.UNSCHEDULABLE, (OUT_OF_REACH.format(**told),))
        if scheduled < group.min_count:
            return Status(Code.WAIT, (NOT_REACHED.format(**told),))
        return None

    def permit(self, state: CycleState, pod: PodInfo, node: NodeName) -> PermitResult | None:
        """Hold the pod back until enough of its gang are placed; the last of these lets the others go.

        Source: ``permitPodGroup``. That it wakes pods of the group in the queue is left out: the queue tries what is
        left of a group again by itself.
        """
        key = pod.pod.group_key
        if not key:
            return None
        snapshot = self._handle.snapshot
        group = snapshot.pod_groups.objects.get(GroupKey(key))
        if group is None:
            return PermitResult(Status(Code.ERROR, (f"failed to get podGroup {key}: it does not exist",)))
        gang = group.spec.scheduling_policy.gang
        if gang is None:
            return None
        placed = pod_groups.scheduled(snapshot.table, key)
        if len(placed) < gang.min_count:
            return PermitResult(Status(Code.WAIT, (NOT_TOGETHER,)), _permit_s(group))
        # Not pod by pod of those that are placed: each of a large gang comes here, and few of them wait, if any.
        for waiting in self._handle.waiting_pods(key):
            waiting.allow(NAME)
        return None

    def events_to_register(self) -> Sequence[Registration]:
        """Pods of the group that come, the group itself, and that it wants fewer."""
        added = frozenset({Action.ADD})
        return (
            Registration(Resource.PENDING_POD, added, _after_pod_added, group=_group_of_pod),
            Registration(Resource.ASSIGNED_POD, added, _after_pod_added, group=_group_of_pod),
            Registration(Resource.POD_GROUP, added, _after_group_added, group=_group_itself),
            Registration(Resource.POD_GROUP, frozenset({Action.UPDATE}), _after_group_updated, group=_group_itself),
        )


def _permit_s(group: PodGroup) -> float:
    """A group of scheduler-plugins has a time of its own. Source: its pkg/util/podgroup.go ``GetWaitTimeDuration``."""
    terms = group.spec.coscheduling
    if terms is None:
        return PERMIT_S
    seconds = terms.schedule_timeout_seconds
    return COSCHEDULING_PERMIT_S if seconds is None else float(seconds)


def _group_of_pod(event: ClusterEvent) -> str:
    key: str = event.new.group_key
    return key


def _group_itself(event: ClusterEvent) -> str:
    return meta.key_of(event.new)


def _after_pod_added(pod: Pod, event: ClusterEvent) -> Hint:
    return _hint(pod.group_key != "" and pod.group_key == event.new.group_key)


def _after_group_added(pod: Pod, event: ClusterEvent) -> Hint:
    return _hint(pod.group_key == meta.key_of(event.new))


def _after_group_updated(pod: Pod, event: ClusterEvent) -> Hint:
    if pod.group_key != meta.key_of(event.new):
        return Hint.SKIP
    old, new = _min_count(event.old), _min_count(event.new)
    return _hint(old is not None and new is not None and new < old)


def _min_count(group: Any) -> int | None:
    """What a plain PodGroup says; None where it is no gang."""
    gang = group.get("spec", {}).get("schedulingPolicy", {}).get("gang")
    return None if gang is None else int(gang.get("minCount", 0))


def _hint(helps: bool) -> Hint:
    return Hint.QUEUE if helps else Hint.SKIP


_pre_enqueue: type[interface.PreEnqueuePlugin] = GangScheduling
_permit: type[interface.PermitPlugin] = GangScheduling
_enqueue: type[interface.EnqueueExtensions] = GangScheduling
