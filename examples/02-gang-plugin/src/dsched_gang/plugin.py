"""The plugin: what it says of pods, in the order in which it is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import (
    SKIP,
    Action,
    ClusterEvent,
    Code,
    Hint,
    Normalization,
    PermitResult,
    Registration,
    Resource,
    Rows,
    Scope,
    Status,
    Verdict,
    unresolvable,
    unschedulable,
)
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model.meta import NodeName, PodUid
from dsched.model.pod import Pod
from dsched_gang import zones
from dsched_gang.gang import SIZE, Gang

if TYPE_CHECKING:
    from dsched.scheduler.handle import LeaderHandle
    from dsched.scheduler.waiting_pods import WaitingPod

OTHER_ZONE = "node(s) were not in the zone of the pod's gang"


class GangPlugin:
    """Binds the pods of a gang all together or not at all.

    A member that has found a node is reserved there and waits (Permit). When enough members wait, all are let go; when
    the first has waited too long, all are turned away (Unreserve) and give their room back. Only one gang at a time
    waits incomplete, so that two gangs never hold what the other one needs.
    """

    name = "Gang"
    pre_filter_scope = Scope.NODE
    filter_scope = Scope.CLUSTER
    score_scope = Scope.CLUSTER
    normalization = Normalization.MAX
    """Scores are spread over 0..100, the best node getting 100."""

    def __init__(self, args: Mapping[str, Any] | None, handle: LeaderHandle) -> None:
        """
        Args:
            args: ``deadlineSeconds``, how long members wait for the rest of their gang, 30 if not said;
                ``zoneLabel``, the node label that names a zone, ``topology.kubernetes.io/zone`` if not said.
            handle: in evaluators and binders it has nothing but the snapshot; only Permit and what else runs in the
                leader may use the rest.

        Raises:
            ValueError: an argument is not one of these, or no positive number.
        """
        given: dict[str, Any] = {"deadlineSeconds": 30, "zoneLabel": "topology.kubernetes.io/zone"} | dict(args or {})
        self._deadline_s = float(given.pop("deadlineSeconds"))
        self._zone_label = str(given.pop("zoneLabel"))
        if given or self._deadline_s <= 0:
            raise ValueError(f"arguments are deadlineSeconds, a positive number, and zoneLabel; found {args}")
        self._handle = handle
        self._behind: dict[Gang, dict[PodUid, int]] = {}
        """Gangs that let another one go first: their members that were turned away for it, and at which attempt."""

    # -- may it enter the queue? (leader) --------------------------------------------------------------------------

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """A pod stays out of the active queue until its gang is there."""
        gang = Gang.of(pod)
        if gang is None:
            return None
        if gang.size < 1:
            return unresolvable(f"label {SIZE} must be a number from 1 on; found {pod.metadata.labels.get(SIZE)!r}")
        existing, _ = self._count(gang)
        return None if existing >= gang.size else unresolvable(_too_few(gang, existing, "exist"))

    # -- which nodes? (leader, evaluators) -------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> Status | None:
        gang = Gang.of(pod.pod)
        return None if gang is not None and gang.one_zone else SKIP

    def filter_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> Verdict:
        """Once one member has a node, the others have to go to that zone."""
        gang, zone = _gang(pod), zones.of(table, self._zone_label)
        taken = zone[gang.on_nodes(table) > 0]
        fits = (zone > 0) & (np.isin(zone, taken) | (len(taken) == 0))
        return Verdict.where(~fits[rows], unresolvable(OTHER_ZONE))

    def pre_score(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> Status | None:
        return SKIP if Gang.of(pod.pod) is None else None

    def score_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> NDArray[np.int64]:
        """Close to the other members: on their nodes, or in their zones. The first one goes where all have room."""
        gang, zone = _gang(pod), zones.of(table, self._zone_label)
        members = gang.on_nodes(table)
        if members.any():
            return (members + zones.sums(zone, members))[rows]
        return np.minimum(zones.sums(zone, zones.room(pod, table)), gang.size)[rows]

    # -- now, later, or not at all? (leader) -----------------------------------------------------------------------

    def permit(self, state: CycleState, pod: PodInfo, node: NodeName) -> PermitResult:
        """The last member lets all of them go; the others wait for it."""
        gang = Gang.of(pod.pod)
        if gang is None:
            return PermitResult()
        waiting = self._waiting(gang)
        if any(member.rejection for member in waiting):
            return PermitResult(unschedulable(f"gang {gang.name} is being turned away"))
        if self._placed(gang) >= gang.size:
            for member in waiting:
                member.allow(self.name)
            return PermitResult()
        reason = "" if waiting else self._why_not_begin(gang, pod)
        return PermitResult(unschedulable(reason)) if reason else PermitResult(Status(Code.WAIT), self._deadline_s)

    def reserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status | None:
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        """One member loses its place, so all that wait do."""
        gang = Gang.of(pod.pod)
        if gang is not None:
            for member in self._waiting(gang):
                member.reject(self.name, _too_few(gang, self._placed(gang), "had a node"))

    def _why_not_begin(self, gang: Gang, pod: PodInfo) -> str:
        """Why the first member may not begin to wait for the others; empty when it may."""
        existing, tried = self._count(gang)
        if existing < gang.size:
            return _too_few(gang, existing, "exist")
        if tried < gang.size:
            return _too_few(gang, tried, "are being tried, the others were turned away")
        gangs = (Gang.of(other.pod.pod) for other in self._handle.waiting_pods() if not other.allowed)
        ahead = next((other for other in gangs if other is not None and other != gang), None)
        if ahead is None:
            self._behind.pop(gang, None)
            return ""
        queued = self._handle.pending_pod(pod.key)
        self._behind.setdefault(gang, {})[pod.uid] = queued.attempts if queued is not None else 0
        return f"gang {ahead.name} goes first"

    # -- when is it worth another try? (leader) --------------------------------------------------------------------

    def events_to_register(self) -> Sequence[Registration]:
        """Whatever may help one member is worth a try of all of them."""
        pods = (Resource.POD, Resource.PENDING_POD, Resource.ASSIGNED_POD)
        came_or_changed = frozenset({Action.ADD, Action.UPDATE})
        return (
            Registration(Resource.PENDING_POD, came_or_changed, self._after_pending_pod),
            Registration(Resource.ASSIGNED_POD, frozenset({Action.ADD, Action.DELETE}), self._after_assigned_pod),
            *(Registration(resource, came_or_changed) for resource in Resource if resource not in pods),
        )

    def _after_pending_pod(self, pod: Pod, event: ClusterEvent) -> Hint:
        """A member came, or is another now."""
        return Hint.QUEUE if Gang.of(event.new) == Gang.of(pod) else Hint.SKIP

    def _after_assigned_pod(self, pod: Pod, event: ClusterEvent) -> Hint:
        """The gang ahead was bound or turned away; or a pod is gone, but not if it was only reserved and is pending
        again: the room that a gang gives back when it is turned away is no reason to try it again."""
        gang, other = Gang.of(pod), Gang.of(event.new or event.old)
        if gang in self._behind and other not in (None, gang):
            return Hint.QUEUE
        if event.action is Action.ADD:
            return Hint.QUEUE if other == gang else Hint.SKIP
        return Hint.SKIP if self._handle.pending_pod(event.old.key) else Hint.QUEUE

    # -- counting --------------------------------------------------------------------------------------------------

    def _waiting(self, gang: Gang) -> list[WaitingPod]:
        """Members that Permit holds back."""
        return [waiting for waiting in self._handle.waiting_pods() if Gang.of(waiting.pod.pod) == gang]

    def _placed(self, gang: Gang) -> int:
        """How many members are bound, or reserved."""
        return int(gang.on_nodes(self._handle.snapshot.table).sum())

    def _count(self, gang: Gang) -> tuple[int, int]:
        """How many members exist, and how many of them have a node or are on their way through the queue."""
        table, placed = self._handle.snapshot.table, self._placed(gang)
        pending = [each for each in self._handle.pending_pods() if Gang.of(each.info.pod) == gang]
        others = [each for each in pending if table.node_of(each.uid) is None]
        behind = self._behind.get(gang, {})
        tried = [each for each in others if not each.rejected and behind.get(each.uid) != each.attempts]
        return placed + len(others), placed + len(tried)


def _gang(pod: PodInfo) -> Gang:
    """The gang of a pod that PreFilter or PreScore did not skip."""
    gang = Gang.of(pod.pod)
    assert gang is not None
    return gang


def _too_few(gang: Gang, members: int, what: str) -> str:
    return f"gang {gang.name}: {members} of {gang.size} members {what}"
