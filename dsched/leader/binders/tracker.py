"""Reserved pods on their way to being bound: handed to the binders, settled by what comes back.

What is owed stands in Redis. A job that nobody answers is looked up in the cluster and handed out again under the same
reservation: binding is a compare-and-set, so a second job can do no harm. A reservation is released only when a binder
says that the bind failed, when its pod or node is gone, or when the cluster says that the pod is bound elsewhere.

Binders take what they are handed in turn. A bind without an outcome is overdue when binds that were handed out well
after it have one, or when no outcome comes any more; while the binders work through a long queue, waiting is no sign
that anything was lost, and handing out again would only make the queue longer.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dsched import backoff
from dsched.cluster.interface import BindVerdict, Cluster, SchedulingStatus
from dsched.errors import ClusterUnavailable, StateError
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Action, ClusterEvent, Resource
from dsched.framework.interning import shared
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.framework.table import amounts
from dsched.framework.validation import binding_failure
from dsched.leader.binders.device_claims import DeviceClaims
from dsched.leader.binders.foreign_binds import ForeignBinds
from dsched.leader.binders.node_quarantine import NodeQuarantine
from dsched.leader.binders.sender import BindSender
from dsched.leader.failure import SCHEDULER_ERROR, UNSCHEDULABLE, Failures, parked
from dsched.leader.observers.traces import Traces
from dsched.leader.parts import LeaderMemory, StoredState
from dsched.log import logger
from dsched.metrics import BINDS, PODS_PARKED, REBINDS, RESERVATIONS, STALE_RESULTS, collect
from dsched.model.messages import BindItem, BindRequest
from dsched.model.meta import NO_NODE, NodeName, PodUid
from dsched.plugins.default_binder import DefaultBinder
from dsched.scheduler.nominations import ends_unheard, released
from dsched.scheduler.ports import Move, QueueName
from dsched.scheduler.queue import PARKED
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
"""Verdicts that may have their reason in the node: those that `dsched.leader.binders.node_quarantine` counts."""
BY_THE_BINDER = frozenset({OTHER_CONFIGURATION, OTHER_CLUSTER})
"""Verdicts that another binder may not come to."""
BY_THE_CLUSTER = frozenset({BindVerdict.REFUSED.value, BindVerdict.NOT_NOW.value})
"""Verdicts of the cluster on what the default Bind plugin asks of it."""
FOR_GOOD = BY_THE_NODE | {PROCESS_LOST, BindVerdict.NOT_NOW.value}
"""Verdicts after which the pod is queued again, unless it is bound after all."""
IN_BINDERS = 2048
"""Pods that are handed out and not settled at most: what is decided beyond that waits in the binders' queue, where a
pod of higher priority cannot overtake."""
SOME_LEFT = 1024
"""Once there were so many, nothing is decided until this few are left: one large batch costs less than many small."""
STUCK_S = 60.0
"""A pod that has been bound for so long waits for something else (its volumes), and takes up no binder."""


@dataclass(slots=True)
class AssumedPod:
    """A reserved pod that is not known to be bound.

    Attributes:
        handed_out_at: 0 before it was.
        due_at: when it is handed out again although there was an answer; 0 while none came.
        failures: answers that settled nothing, since it was reserved.
        refused: whether a binder has refused it for its own configuration.
        unanswered: whether it was handed out again without an answer, so that another binder may have it still.
        pre_binding: the plugin whose PreBind was not ready the last time.
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
    unanswered: bool = False
    pre_binding: str = ""
    popped_at: float = 0.0
    leaving: str = ""
    leaving_by: float = 0.0
    seen: PodInfo | None = None


class BindTracker:
    """The reserved pods of one epoch.

    Attributes:
        failures: tell pods that they were not bound.
    """

    def __init__(
        self,
        config: str,
        state: StoredState,
        memory: LeaderMemory,
        *,
        cluster: Cluster,
        sender: BindSender,
        failures: Failures,
        quarantine: NodeQuarantine,
        traces: Traces | None,
    ) -> None:
        """
        Args:
            config: hash of the configuration.
        """
        self._config = config
        self._epoch, self._reservations = state.epoch, state.reservations
        self._clock, self._pending, self._cache = memory.clock, memory.pending, memory.cache
        self._events, self._groups = memory.events, memory.groups
        self._happened = memory.events.happened
        self._cluster = cluster
        self._sender = sender
        self.failures = failures
        self._quarantine = quarantine
        self._traces = traces
        self.foreign_binds = ForeignBinds(memory.clock)
        self.claims = DeviceClaims(state, memory, cluster)
        self._assumed: dict[PodUid, AssumedPod] = {}
        self._pace = Pace()
        self._full = False

    def assumed(self, uid: PodUid) -> AssumedPod | None:
        """A reserved pod, None when nothing is reserved for it."""
        return self._assumed.get(uid)

    def all(self) -> list[AssumedPod]:
        """Every reserved pod."""
        return list(self._assumed.values())

    def __len__(self) -> int:
        return len(self._assumed)

    def is_full(self, waiting: int, coming: int = 0) -> bool:
        """Whether the binders have enough to do.

        Args:
            waiting: reserved pods that Permit holds back, those that are about to be among them.
            coming: pods that are decided and not reserved yet.
        """
        limit = SOME_LEFT if self._full else IN_BINDERS
        self._full = len(self._assumed) + coming - waiting >= limit
        if self._full:
            since = self._clock.monotonic() - STUCK_S
            handed_out = sum(o.handed_out_at > 0 and o.popped_at > since for o in self._assumed.values())
            self._full = handed_out + coming >= limit
        return self._full

    def reserve(self, assumed: AssumedPod) -> None:
        """A reservation stands; it is handed out by `hand_out`, at once or when Permit allows it."""
        self._assumed[assumed.info.uid] = assumed

    def hand_out(self, pods: Sequence[AssumedPod]) -> None:
        """Send reserved pods to the binders."""
        RESERVATIONS.set(len(self._assumed))
        busy = len(self._assumed) - len(pods) >= MOST_PODS_A_MESSAGE
        groups: dict[tuple[str, bool], list[AssumedPod]] = {}
        for assumed in pods:
            groups.setdefault((assumed.framework.profile_name, assumed.refused), []).append(assumed)
        for (profile, refused), group in groups.items():
            wanted = len(group) if busy else max(len(group) // MESSAGES_A_BATCH, FEWEST_PODS_A_MESSAGE)
            size = min(wanted, MOST_PODS_A_MESSAGE)
            for start in range(0, len(group), size):
                self._send(profile, group[start : start + size], refused=refused)

    def _send(self, profile: str, pods: Sequence[AssumedPod], *, refused: bool) -> None:
        items = [BindItem(o.info.key, o.info.uid, o.node, o.attempt, o.state.shared) for o in pods]
        now = self._clock.monotonic()
        for assumed in pods:
            assumed.unanswered |= assumed.handed_out_at > 0 and not assumed.due_at
            assumed.handed_out_at, assumed.due_at = now, 0.0
        request = BindRequest(
            epoch=self._epoch,
            config=self._config,
            profile=profile,
            pods=items,
            cluster=self._cluster.kind,
            traces=[] if self._traces is None else self._traces.handed_out(items),
        )
        self._sender.bind(request, refused=refused)

    # -- settling --------------------------------------------------------------------------------------------------

    def settle(self, results: Sequence[Result]) -> None:
        """Act on what binders say; every step may be repeated.

        A job may have been done by two binders: that one of them failed does not mean that the pod is not bound, so
        the cluster is asked before a reservation is released.

        Raises:
            StateError: Redis has lost a reservation; the leader has to start over from the cluster.
        """
        bound: dict[PodUid, AssumedPod] = {}
        unclear: dict[PodUid, AssumedPod] = {}
        failed: dict[PodUid, Outcome] = {}
        pausing: list[PodUid] = []
        verdicts: Counter[str] = Counter()
        now = self._clock.monotonic()
        for result in results:
            for outcome in result.outcomes:
                assumed = self._assumed.get(outcome.uid)
                if assumed is None:
                    continue
                verdicts[outcome.verdict] += 1
                self._pace.settled(assumed.handed_out_at, now)
                if outcome.verdict == BindVerdict.BOUND.value and assumed.node == outcome.node:
                    bound[outcome.uid] = assumed
                elif result.epoch != self._epoch:
                    STALE_RESULTS.inc()
                    unclear[outcome.uid] = assumed
                elif outcome.attempt != assumed.attempt:
                    STALE_RESULTS.inc()
                elif outcome.verdict == WAITING:
                    assumed.due_at = self._clock.monotonic() + PRE_BIND_POLL_S
                    assumed.pre_binding = outcome.plugin
                    if self._cluster.checks_reservations or not assumed.unanswered:
                        pausing.append(outcome.uid)
                elif outcome.verdict == BindVerdict.RESERVATION_LOST.value:
                    raise StateError(f"{assumed.info.key}: its reservation is no longer in Redis")
                else:
                    unclear[outcome.uid] = assumed
                    assumed.refused = assumed.refused or outcome.verdict in BY_THE_BINDER
                    self._pause(assumed)
                    if outcome.verdict in FOR_GOOD:
                        failed[outcome.uid] = outcome
                    _log.warning(
                        "bind did not succeed, looking the pod up",
                        extra={"action": "bind", "pod": assumed.info.key, "uid": assumed.info.uid, "node": assumed.node}
                        | {"verdict": outcome.verdict, "reason": outcome.message},
                    )
        for verdict, count in verdicts.items():
            BINDS.labels(verdict).inc(count)
        self._reservations.pause_ahead(pausing)
        self.bound(list(bound.values()))
        self._look_up([assumed for uid, assumed in unclear.items() if uid not in bound], failed)

    def bound(self, pods: Sequence[AssumedPod]) -> None:
        """These pods are bound where they were reserved, and count as they are now, not as they were decided on.

        Source: pkg/scheduler/eventhandlers.go ``addPodToCache``; backend/cache/cache.go ``AddPod``.
        """
        if not pods:
            return
        self._reservations.confirm_ahead([(assumed.info.key, assumed.info.uid) for assumed in pods])
        counted = collect.Bound()
        now = self._clock.monotonic()
        for assumed in pods:
            self._pace.settled(assumed.handed_out_at, now)
            self._assumed.pop(assumed.info.uid, None)
            self.claims.ended(assumed.info.uid)
            self._cache.confirm(assumed.info.uid)
            self._quarantine.bound(assumed.node)
            info = assumed.seen or assumed.info
            pod = self._pending.get(assumed.info.key)
            if pod is not None and pod.uid == assumed.info.uid:
                self._pending.drop(assumed.info.key)
                info = assumed.seen or pod.info
                if pod.promised and not ends_unheard(assumed.framework):
                    self._happened(released(info, pod.promised))
            is_now = info.pod.on(assumed.node)
            if info is not assumed.info:
                self._cache.add_pod(info, assumed.node)
                if not info.counts_as(assumed.info):  # whom it kept away as it was may fit now
                    was = assumed.info.pod.on(assumed.node)
                    self._happened(ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE, was, is_now))
            first_ms = 0 if pod is None else pod.first_ms
            counted.add(assumed.framework.profile_name, assumed.popped_at, assumed.attempt, first_ms)
            self._happened(ClusterEvent(Resource.ASSIGNED_POD, Action.ADD, new=is_now))
        self._cache.flush_ahead()
        counted.flush(now, self._clock.now_ms())
        RESERVATIONS.set(len(self._assumed))

    def on_node(self, node: NodeName) -> list[AssumedPod]:
        """Reserved pods on a node."""
        return [assumed for assumed in self._assumed.values() if assumed.node == node]

    def give_up(self, pods: Sequence[AssumedPod], reason: str) -> list[AssumedPod]:
        """Their node has no place for them any more: their reservations end, but those of pods that may be bound this
        very moment where that cannot be prevented; they are looked up soon. Returns those that have ended."""
        ended: list[AssumedPod] = []
        for assumed in pods:
            if assumed.handed_out_at and not self._cluster.checks_reservations:
                now = self._clock.monotonic()
                assumed.leaving, assumed.due_at = reason, now + LANDING_S
                assumed.leaving_by = assumed.leaving_by or now + LANDED_S
            else:
                self.release(assumed, reason)
                ended.append(assumed)
        return ended

    def cancel(self, victims: Sequence[PodInfo]) -> dict[PodUid, AssumedPod]:
        """Those victims of a preemption for which PreBind has something to do, and no binder is at work. None may begin
        any more: they are released next. Killed before that: the next leader binds them, and the preemptor looks for
        room anew.

        Source: framework/runtime/pods_in_prebind_map.go ``CancelPod``; schedule_one.go ``bindingCycle``.
        """
        found = [assumed for victim in victims if (assumed := self._assumed.get(victim.uid)) is not None]
        waiting = [
            each for each in found if each.pre_binding or each.framework.will_pre_bind(each.state, each.info, each.node)
        ]
        marked = self._reservations.cancel([assumed.info.uid for assumed in waiting])
        return {assumed.info.uid: assumed for assumed, ours in zip(waiting, marked, strict=True) if ours}

    def release_cancelled(self, assumed: AssumedPod, message: str) -> None:
        """Queue a pod again that was cancelled."""
        plugin = assumed.pre_binding
        self.release(assumed, binding_failure("PreBind", plugin, message) if plugin else message)

    def _pause(self, assumed: AssumedPod) -> None:
        """Several answers to one job count once."""
        if not assumed.due_at:
            assumed.due_at = self._clock.monotonic() + backoff.doubled(FIRST_PAUSE_S, assumed.failures, LONGEST_PAUSE_S)
            assumed.failures += 1

    def look_up_overdue(self) -> None:
        """Look up binds without an outcome for too long, and those whose pause is over; hand them out again where that
        does not settle them."""
        now = self._clock.monotonic()
        again = self._look_up([assumed for assumed in self._assumed.values() if self._is_due(assumed, now)], {})
        if again:
            REBINDS.inc(len(again))
            self.hand_out(again)

    def _is_due(self, assumed: AssumedPod, now: float) -> bool:
        """Soon after an answer, late where none came."""
        if assumed.due_at or not assumed.handed_out_at:
            return 0 < assumed.due_at <= now
        return self._pace.overdue(assumed.handed_out_at, _patience_s(assumed), now)

    def _look_up(self, pods: Sequence[AssumedPod], failed: dict[PodUid, Outcome]) -> list[AssumedPod]:
        """Read the pods and decide: bound here, gone, bound elsewhere, or failed for good; returns the others."""
        if not pods:
            return []
        try:
            found = self._cluster.get_pods([assumed.info.key for assumed in pods])
        except ClusterUnavailable as error:  # they stay owed, and are overdue again soon
            _log.warning("pods not looked up", extra={"action": "look_up", "pods": len(pods), "error": str(error)})
            return []
        bound: list[AssumedPod] = []
        again: list[AssumedPod] = []
        for assumed, pod in zip(pods, found, strict=True):
            if pod is None or pod.uid != assumed.info.uid or pod.finished:
                self.release(assumed, "", gone=True)
            elif pod.node_name == assumed.node:  # also while it is being deleted: it takes its room until it is gone
                assumed.seen = shared(pod)
                bound.append(assumed)
            elif pod.deleting:
                self.release(assumed, "", gone=True)
            elif pod.node_name != NO_NODE:
                self.foreign_binds.bound(assumed.info.key, assumed.info.uid, pod.node_name)
                self.release(assumed, "", gone=True)
            elif assumed.info.uid in failed:
                self._fail(assumed, failed[assumed.info.uid])
            elif assumed.leaving and self._clock.monotonic() >= assumed.leaving_by:
                self.release(assumed, assumed.leaving)
            elif assumed.leaving:
                assumed.due_at = self._clock.monotonic() + LANDING_S
            else:
                again.append(assumed)
        self.bound(bound)
        return again

    def _fail(self, assumed: AssumedPod, outcome: Outcome) -> None:
        message = outcome.message or "binding rejected"
        if outcome.verdict in BY_THE_CLUSTER:
            message = binding_failure("Bind", DefaultBinder.name, message)
        pod = self._pending.get(assumed.info.key)
        if outcome.verdict == PROCESS_LOST and pod is not None and pod.uid == assumed.info.uid:
            self._pending.crashed(pod, pod.crashes + 1)
            message = parked(pod, message)
            PODS_PARKED.inc(pod.crashes >= PARKED)
        if outcome.verdict in BY_THE_NODE:
            self._quarantine.refused(assumed.node, assumed.info.key, assumed.info.uid, message)
        self.release(assumed, message)

    def release(
        self, assumed: AssumedPod, message: str, plugins: frozenset[str] = frozenset(), *, gone: bool = False
    ) -> None:
        """End a reservation without a bind: Unreserve, forget, queue the pod again unless it is gone."""
        had_claims = self.claims.give_back(assumed.info, written=assumed.handed_out_at > 0)
        assumed.framework.run_unreserve(assumed.state, assumed.info, assumed.node)
        pod = self._pending.get(assumed.info.key)
        target = QueueName.NOWHERE
        if pod is not None and pod.uid == assumed.info.uid and not gone:
            pod.end_promise()
            self._pending.requeued(pod, assumed.framework, plugins)
            target, gated = self._pending.place_after_attempt(pod, assumed.framework)
            move = self._pending.move(pod, target, message=gated or message, error=int(not plugins))
        else:
            pod = None
            move = Move(assumed.info.key, assumed.info.uid, QueueName.RESERVED, QueueName.NOWHERE, 0, "", 0)
        stood = self._reservations.release([(move, assumed.node, amounts(assumed.info))])[0]
        self._assumed.pop(assumed.info.uid, None)
        self._cache.forget(assumed.info.uid, released=stood)
        if had_claims:  # a pod of a group is decided again at once, and must not seem to be among their consumers still
            self.claims.look_up(assumed.info)
        RESERVATIONS.set(len(self._assumed))
        if pod is not None:
            self._pending.placed(pod, target)
            if pod.group:
                self._events.change(self._groups.joined(pod), collect.ATTEMPT_FAILURE)
            else:
                collect.hinted([(target, collect.ATTEMPT_FAILURE, False)])
            took_s = self._clock.monotonic() - assumed.popped_at if assumed.popped_at else None
            collect.attempts("unschedulable" if plugins else "error", assumed.framework.profile_name, took_s)
            reason = UNSCHEDULABLE if plugins else SCHEDULER_ERROR
            self.failures.tell([SchedulingStatus(pod.key, pod.uid, reason, message, NO_NODE)])
        elif (current := self._pending.get(assumed.info.key)) is not None and current.uid == assumed.info.uid:
            self._pending.drop(assumed.info.key)
        _log.info(
            "reservation released",
            extra={
                "action": "release",
                "pod": assumed.info.key,
                "uid": assumed.info.uid,
                "node": assumed.node,
                "to": target,
            }
            | {"reason": message},
        )
        self._happened(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, old=assumed.info.pod.on(assumed.node)))


def _patience_s(assumed: AssumedPod) -> float:
    """How long the bind may take; an extender has its own deadline besides."""
    extenders = assumed.framework.extenders
    return OVERDUE_S if extenders is None else OVERDUE_S + extenders.bind_timeout_s


class Pace:
    """Times of one epoch's hand-outs and outcomes, by the monotonic clock."""

    def __init__(self) -> None:
        self._newest = 0.0
        self._heard_at = 0.0

    def settled(self, handed_out_at: float, now: float) -> None:
        """A bind that was handed out then has an outcome."""
        self._newest = max(self._newest, handed_out_at)
        self._heard_at = now

    def overdue(self, handed_out_at: float, patience_s: float, now: float) -> bool:
        """Whether the outcome of a bind that was handed out then should be here by now."""
        if now - handed_out_at <= patience_s:
            return False
        return self._newest - handed_out_at > patience_s or now - self._heard_at > patience_s
