"""Reserved pods on their way to being bound: handed to the binders, settled by what comes back.

What is owed stands in Redis. A job that nobody answers is looked up in the cluster and handed out again under the same
reservation: binding is a compare-and-set, so a second job can do no harm. A reservation is released only when a binder
says that the bind failed, when its pod or node is gone, or when the cluster says that the pod is bound elsewhere.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dsched.clock import Clock
from dsched.cluster.interface import BindVerdict, Cluster, SchedulingStatus
from dsched.errors import ClusterUnavailable, StateError
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Action, ClusterEvent, Resource
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.framework.sharing import shared
from dsched.leader.courier import Courier
from dsched.leader.failure import SCHEDULER_ERROR, UNSCHEDULABLE, Failures, parked
from dsched.leader.pace import IN_BINDERS, SOME_LEFT, STUCK_S, Pace
from dsched.leader.pending import PARKED, Pending
from dsched.leader.promises import released
from dsched.leader.refusals import Refusals
from dsched.leader.rivals import Rivals
from dsched.log import logger
from dsched.metrics import BINDS, PODS_PARKED, REBINDS, RESERVATIONS, STALE_RESULTS, recording
from dsched.model.messages import BindItem, BindRequest
from dsched.model.meta import NO_NODE, NodeName, PodUid
from dsched.state.cache import Cache, amounts
from dsched.state.queue import Move, Place
from dsched.state.reservations import Reservations
from dsched.state.results import OTHER_CLUSTER, OTHER_CONFIGURATION, PROCESS_LOST, REJECTED, WAITING, Outcome, Result

_log = logger(__name__)

FEWEST_PODS_A_MESSAGE = 64
MOST_PODS_A_MESSAGE = 256
MESSAGES_A_BATCH = 2
"""A message costs leader and binder as much as several pods do, but a batch has to keep several binders busy, unless
they have enough to do already."""
LANDING_S = 2.0
"""How often it is looked what became of a bind that was on its way to an API server when its node went or became too
small. It binds to any name, and there may be another node of that name by then: its room is kept until it is known …"""
LANDED_S = 30.0
"""… or a binder that was stopped right before its request is not to be expected to go on any more."""
OVERDUE_S = 5.0
"""How long a bind may take before it is looked up."""
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
"""How long a pod whose bind did not succeed waits before it is handed out again: twice as long each time."""
PRE_BIND_POLL_S = 1.0
"""How long a pod waits for which PreBind was not ready. Source: plugins/volumebinding/binder.go ``BindPodVolumes``."""
BY_THE_NODE = frozenset({REJECTED, BindVerdict.REFUSED.value})
"""Verdicts that may have their reason in the node: those that `dsched.leader.refusals` counts."""
BY_THE_BINDER = frozenset({OTHER_CONFIGURATION, OTHER_CLUSTER})
"""Verdicts that another binder may not come to."""
FOR_GOOD = BY_THE_NODE | {PROCESS_LOST, BindVerdict.NOT_NOW.value}
"""Verdicts after which the pod is queued again, unless it is bound after all."""


@dataclass(slots=True)
class Owed:
    """A reserved pod that is not known to be bound.

    Attributes:
        handed_out_at: 0 before it was.
        due_at: when it is handed out again although there was an answer; 0 while none came.
        failures: answers that settled nothing, since it was reserved.
        refused: whether a binder has refused it for its own configuration.
        popped_at: when its attempt began.
        leaving: why its node has no place for it any more; it is given up when it turns out not to be bound …
        leaving_by: … by then.
        seen: the pod as it was seen bound, None where it was only said to be.
    """

    info: PodInfo
    node: NodeName
    framework: Framework
    state: CycleState
    attempt: int
    handed_out_at: float = 0.0
    due_at: float = 0.0
    failures: int = 0
    refused: bool = False
    popped_at: float = 0.0
    leaving: str = ""
    leaving_by: float = 0.0
    seen: PodInfo | None = None


class Binding:
    """The reserved pods of one epoch."""

    def __init__(
        self,
        epoch: int,
        config: str,
        pending: Pending,
        cache: Cache,
        cluster: Cluster,
        reservations: Reservations,
        courier: Courier,
        failures: Failures,
        clock: Clock,
        happened: Callable[[ClusterEvent], None],
        refusals: Refusals,
    ) -> None:
        self._epoch = epoch
        self._config = config
        self._pending = pending
        self._cache = cache
        self._cluster = cluster
        self._reservations = reservations
        self._courier = courier
        self._failures = failures
        self._clock = clock
        self._happened = happened
        self._refusals = refusals
        self.rivals = Rivals(clock)
        self._owed: dict[PodUid, Owed] = {}
        self._pace = Pace()
        self._full = False
        self.traced: Callable[[Sequence[Owed]], list[str]] | None = None

    def owed(self, uid: PodUid) -> Owed | None:
        """A reserved pod, None when nothing is reserved for it."""
        return self._owed.get(uid)

    def all(self) -> list[Owed]:
        """Every reserved pod."""
        return list(self._owed.values())

    def __len__(self) -> int:
        return len(self._owed)

    def is_full(self, waiting: int, coming: int = 0) -> bool:
        """Whether the binders have enough to do.

        Args:
            waiting: reserved pods that Permit holds back, those that are about to be among them.
            coming: pods that are decided and not reserved yet.
        """
        limit = SOME_LEFT if self._full else IN_BINDERS
        self._full = len(self._owed) + coming - waiting >= limit
        if self._full:
            since = self._clock.monotonic() - STUCK_S
            handed_out = sum(o.handed_out_at > 0 and o.popped_at > since for o in self._owed.values())
            self._full = handed_out + coming >= limit
        return self._full

    def reserve(self, owed: Owed) -> None:
        """A reservation stands; it is handed out by `hand_out`, at once or when Permit allows it."""
        self._owed[owed.info.uid] = owed

    def hand_out(self, pods: Sequence[Owed]) -> None:
        """Send reserved pods to the binders."""
        RESERVATIONS.set(len(self._owed))
        busy = len(self._owed) - len(pods) >= MOST_PODS_A_MESSAGE
        groups: dict[tuple[str, bool], list[Owed]] = {}
        for owed in pods:
            groups.setdefault((owed.framework.profile_name, owed.refused), []).append(owed)
        for (profile, refused), group in groups.items():
            wanted = len(group) if busy else max(len(group) // MESSAGES_A_BATCH, FEWEST_PODS_A_MESSAGE)
            size = min(wanted, MOST_PODS_A_MESSAGE)
            for start in range(0, len(group), size):
                self._send(profile, group[start : start + size], refused=refused)

    def _send(self, profile: str, pods: Sequence[Owed], *, refused: bool) -> None:
        items = [BindItem(o.info.key, o.info.uid, o.node, o.attempt, o.state.shared) for o in pods]
        for owed in pods:
            owed.handed_out_at, owed.due_at = self._clock.monotonic(), 0.0
        request = BindRequest(
            epoch=self._epoch,
            config=self._config,
            profile=profile,
            pods=items,
            cluster=self._cluster.kind,
            traces=[] if self.traced is None else self.traced(pods),
        )
        self._courier.bind(request, refused=refused)

    # -- settling --------------------------------------------------------------------------------------------------

    def settle(self, results: Sequence[Result]) -> None:
        """Act on what binders say; every step may be repeated.

        A job may have been done by two binders: that one of them failed does not mean that the pod is not bound, so
        the cluster is asked before a reservation is released.

        Raises:
            StateError: Redis has lost a reservation; the leader has to start over from the cluster.
        """
        bound: dict[PodUid, Owed] = {}
        unclear: dict[PodUid, Owed] = {}
        failed: dict[PodUid, Outcome] = {}
        verdicts: Counter[str] = Counter()
        now = self._clock.monotonic()
        for result in results:
            for outcome in result.outcomes:
                owed = self._owed.get(outcome.uid)
                if owed is None:
                    continue
                verdicts[outcome.verdict] += 1
                self._pace.settled(owed.handed_out_at, now)
                if outcome.verdict == BindVerdict.BOUND.value and owed.node == outcome.node:
                    bound[outcome.uid] = owed
                elif result.epoch != self._epoch:
                    STALE_RESULTS.inc()
                    unclear[outcome.uid] = owed
                elif outcome.attempt != owed.attempt:
                    STALE_RESULTS.inc()
                elif outcome.verdict == WAITING:
                    owed.due_at = self._clock.monotonic() + PRE_BIND_POLL_S
                elif outcome.verdict == BindVerdict.RESERVATION_LOST.value:
                    raise StateError(f"{owed.info.key}: its reservation is no longer in Redis")
                else:
                    unclear[outcome.uid] = owed
                    owed.refused = owed.refused or outcome.verdict in BY_THE_BINDER
                    self._pause(owed)
                    if outcome.verdict in FOR_GOOD:
                        failed[outcome.uid] = outcome
                    _log.warning(
                        "bind did not succeed, looking the pod up",
                        extra={"action": "bind", "pod": owed.info.key, "uid": owed.info.uid, "node": owed.node}
                        | {"verdict": outcome.verdict, "reason": outcome.message},
                    )
        for verdict, count in verdicts.items():
            BINDS.labels(verdict).inc(count)
        self.bound(list(bound.values()))
        self._look_up([owed for uid, owed in unclear.items() if uid not in bound], failed)

    def bound(self, pods: Sequence[Owed]) -> None:
        """These pods are bound where they were reserved, and count as they are now, not as they were decided on.

        Source: pkg/scheduler/eventhandlers.go ``addPodToCache``; backend/cache/cache.go ``AddPod``.
        """
        if not pods:
            return
        self._reservations.confirm_ahead([(owed.info.key, owed.info.uid) for owed in pods])
        counted = recording.Bound()
        now = self._clock.monotonic()
        for owed in pods:
            self._pace.settled(owed.handed_out_at, now)
            self._owed.pop(owed.info.uid, None)
            self._cache.confirm(owed.info.uid)
            self._refusals.bound(owed.node)
            info = owed.seen or owed.info
            pod = self._pending.get(owed.info.key)
            if pod is not None and pod.uid == owed.info.uid:
                self._pending.drop(owed.info.key)
                info = owed.seen or pod.info
                if pod.preempting.node:
                    self._happened(released(info, pod.preempting.node))
            is_now = info.pod.on(owed.node)
            if info is not owed.info:
                self._cache.add_pod(info, owed.node)
                if not info.counts_as(owed.info):  # whom it kept away as it was may fit now
                    was = owed.info.pod.on(owed.node)
                    self._happened(ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE, was, is_now))
            first_ms = 0 if pod is None else pod.first_ms
            counted.add(owed.framework.profile_name, owed.popped_at, owed.attempt, first_ms)
            self._happened(ClusterEvent(Resource.ASSIGNED_POD, Action.ADD, new=is_now))
        self._cache.usage.flush_ahead()
        counted.flush(self._clock.monotonic(), self._clock.now_ms())
        RESERVATIONS.set(len(self._owed))

    def on_node(self, node: NodeName) -> list[Owed]:
        """Reserved pods on a node."""
        return [owed for owed in self._owed.values() if owed.node == node]

    def give_up(self, pods: Sequence[Owed], reason: str) -> list[Owed]:
        """Their node has no place for them any more: their reservations end, but those of pods that may be bound this
        very moment where that cannot be prevented; they are looked up soon. Returns those that have ended."""
        ended: list[Owed] = []
        for owed in pods:
            if owed.handed_out_at and not self._cluster.checks_reservations:
                now = self._clock.monotonic()
                owed.leaving, owed.due_at = reason, now + LANDING_S
                owed.leaving_by = owed.leaving_by or now + LANDED_S
            else:
                self.release(owed, Place.BACKOFF, reason)
                ended.append(owed)
        return ended

    def _pause(self, owed: Owed) -> None:
        """Several answers to one job count once."""
        if not owed.due_at:
            owed.due_at = self._clock.monotonic() + min(FIRST_PAUSE_S * 2**owed.failures, LONGEST_PAUSE_S)
            owed.failures = min(owed.failures + 1, 16)

    def look_up_overdue(self) -> None:
        """Look up binds without an outcome for too long, and those whose pause is over; hand them out again where that
        does not settle them."""
        now = self._clock.monotonic()
        again = self._look_up([owed for owed in self._owed.values() if self._is_due(owed, now)], {})
        if again:
            REBINDS.inc(len(again))
            self.hand_out(again)

    def _is_due(self, owed: Owed, now: float) -> bool:
        """Soon after an answer, late where none came."""
        if owed.due_at or not owed.handed_out_at:
            return 0 < owed.due_at <= now
        return self._pace.overdue(owed.handed_out_at, _patience_s(owed), now)

    def _look_up(self, pods: Sequence[Owed], failed: dict[PodUid, Outcome]) -> list[Owed]:
        """Read the pods and decide: bound here, gone, bound elsewhere, or failed for good; returns the others."""
        if not pods:
            return []
        try:
            found = self._cluster.get_pods([owed.info.key for owed in pods])
        except ClusterUnavailable as error:  # they stay owed, and are overdue again soon
            _log.warning("pods not looked up", extra={"action": "look_up", "pods": len(pods), "error": str(error)})
            return []
        bound: list[Owed] = []
        again: list[Owed] = []
        for owed, pod in zip(pods, found, strict=True):
            if pod is None or pod.uid != owed.info.uid or pod.finished:
                self.release(owed, Place.NOWHERE, "")
            elif pod.node_name == owed.node:  # also while it is being deleted: it takes its room until it is gone
                owed.seen = shared(pod)
                bound.append(owed)
            elif pod.deleting:
                self.release(owed, Place.NOWHERE, "")
            elif pod.node_name != NO_NODE:
                self.rivals.bound(owed.info.key, owed.info.uid, pod.node_name)
                self.release(owed, Place.NOWHERE, "")
            elif owed.info.uid in failed:
                self._fail(owed, failed[owed.info.uid])
            elif owed.leaving and self._clock.monotonic() >= owed.leaving_by:
                self.release(owed, Place.BACKOFF, owed.leaving)
            elif owed.leaving:
                owed.due_at = self._clock.monotonic() + LANDING_S
            else:
                again.append(owed)
        self.bound(bound)
        return again

    def _fail(self, owed: Owed, outcome: Outcome) -> None:
        message = f"binding rejected: {outcome.message}" if outcome.message else "binding rejected"
        pod = self._pending.get(owed.info.key)
        if outcome.verdict == PROCESS_LOST and pod is not None and pod.uid == owed.info.uid:
            self._pending.crashed(pod, pod.crashes + 1)
            message = parked(pod, message)
            PODS_PARKED.inc(pod.crashes >= PARKED)
        if outcome.verdict in BY_THE_NODE:
            self._refusals.refused(owed.node, owed.info.key, owed.info.uid, message)
        self.release(owed, Place.BACKOFF, message)

    def release(self, owed: Owed, target: Place, message: str, plugins: frozenset[str] = frozenset()) -> None:
        """End a reservation without a bind: Unreserve, forget, queue the pod again (NOWHERE: it is gone)."""
        owed.framework.run_unreserve(owed.state, owed.info, owed.node)
        pod = self._pending.get(owed.info.key)
        if pod is not None and pod.uid == owed.info.uid and target is not Place.NOWHERE:
            pod.preempting.end()
            self._pending.requeued(pod, owed.framework, plugins)
            move = self._pending.move(pod, target, message=message, error=int(not plugins))
        else:
            pod = None
            move = Move(owed.info.key, owed.info.uid, Place.RESERVED, Place.NOWHERE, 0, "", 0)
        stood = self._reservations.release([(move, owed.node, amounts(owed.info))])[0]
        self._owed.pop(owed.info.uid, None)
        self._cache.forget(owed.info.uid, released=stood)
        RESERVATIONS.set(len(self._owed))
        if pod is not None:
            self._pending.placed(pod, target)
            recording.incoming(target, recording.ATTEMPT_FAILURE)
            took_s = self._clock.monotonic() - owed.popped_at if owed.popped_at else None
            recording.attempts("unschedulable" if plugins else "error", owed.framework.profile_name, took_s)
            reason = UNSCHEDULABLE if plugins else SCHEDULER_ERROR
            self._failures.tell([SchedulingStatus(pod.key, pod.uid, reason, message, NO_NODE)])
        elif (current := self._pending.get(owed.info.key)) is not None and current.uid == owed.info.uid:
            self._pending.drop(owed.info.key)
        _log.info(
            "reservation released",
            extra={"action": "release", "pod": owed.info.key, "uid": owed.info.uid, "node": owed.node, "to": target}
            | {"reason": message},
        )
        self._happened(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, old=owed.info.pod.on(owed.node)))


def _patience_s(owed: Owed) -> float:
    """How long the bind may take; an extender has its own deadline besides."""
    extenders = owed.framework.extenders
    return OVERDUE_S if extenders is None else OVERDUE_S + extenders.bind_timeout_s
