"""From decisions to state: reserve what was placed, put back what was not, hand out what may be bound.

A reservation that Redis refuses because the node changed underneath is an expected outcome: the pod is decided again
at once. Killed before the reserve script: the batch is in flight and goes back to active. Killed after it: the
reservations stand, and the next leader adopts them.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from dsched.engine.diagnosis import Diagnosis
from dsched.framework.interface import Code
from dsched.framework.pod_info import PodInfo
from dsched.framework.table import amounts
from dsched.leader.binders.tracker import AssumedPod, BindTracker
from dsched.leader.observers.loop_time import EVALUATE, HAND_OUT, REQUEUE, RESERVE
from dsched.leader.parts import LeaderMemory, StoredState
from dsched.leader.preemption import Preemptions
from dsched.leader.searches import Searches
from dsched.leader.unreadable import set_aside
from dsched.log import logger
from dsched.metrics import MISSED, PERMIT_WAIT, RESERVATIONS_REFUSED, SCHEDULED_AFTER_FLUSH, collect
from dsched.model.meta import NodeName, PodUid
from dsched.plugins.dynamic_resources.reserved import charges_of
from dsched.scheduler.cycle import Cycle
from dsched.scheduler.decision import Candidate, Decision, GroupCandidate, GroupDecision, GroupEnd, by_pod
from dsched.scheduler.observer import Observer
from dsched.scheduler.pod_groups import Changes
from dsched.scheduler.ports import Move, Popped, QueueName
from dsched.scheduler.queue import QueuedGroup, QueuedPod
from dsched.scheduler.quota.limits import Charges
from dsched.state import keys, reservations
from dsched.state.pieces import LIGHT_AT_MOST
from dsched.state.reservations import Request

_log = logger(__name__)

Placed = tuple[Decision, NodeName]
"""A decision for a node, and the node."""


@dataclass(slots=True)
class Begun:
    """A batch that was decided, and that Redis was told to reserve.

    Attributes:
        groups: those that were decided; the decisions about their pods are among ``decisions``.
        version: of the table after the last decision.
        number: what to wait for until ``verdicts`` are there, one for each of ``placed``.
    """

    decisions: Sequence[Decision]
    groups: Sequence[GroupDecision]
    placed: Sequence[Placed]
    version: int
    number: int = 0
    verdicts: list[str] = field(default_factory=list)

    @property
    def leaves_some(self) -> bool:
        """Whether pods of a group have their turn next, before whoever is in the queue."""
        return any(group.leaves_some for group in self.groups)


ROUNDS = 5
"""Times a pod is decided again at once; then it waits its turn in backoff."""
MOST_PODS = 2 * LIGHT_AT_MOST
"""Pods of a batch in which there are groups; a group alone may have more."""
NODE_KEPT_CHANGING = "the chosen node kept changing while the pod was being placed"


class Commit:
    """Decides and commits batches for one epoch."""

    def __init__(
        self,
        state: StoredState,
        memory: LeaderMemory,
        *,
        cycle: Cycle,
        binding: BindTracker,
        preemptions: Preemptions,
        searches: Searches,
        observer: Observer,
    ) -> None:
        self._reservations = state.reservations
        self._clock, self._pending, self._cache = memory.clock, memory.pending, memory.cache
        self._waiting, self._groups, self._events = memory.waiting, memory.groups, memory.events
        self._queue = state.queue
        self._cycle = cycle
        self._binding = binding
        self._failures = binding.failures
        self._preemptions = preemptions
        self._searches = searches
        self._observer = observer

    def begin(self, popped: Sequence[Popped]) -> Begun | None:
        """Decide a batch and have Redis reserve; `finish` goes on from there. None where no pod is pending any more."""
        candidates = self._candidates(self._not_too_many(popped), self._clock.monotonic())
        return self._decide(candidates) if candidates else None

    def finish(self, begun: Begun) -> None:
        """Take the batch from in flight to reserved, or back into the queue."""
        for round_ in range(ROUNDS):
            self._observer.phase(RESERVE)
            again, refused = self._placed(begun)
            self._observer.phase(REQUEUE)
            tried = [decision for decision in begun.decisions if id(decision) not in refused]
            unplaced = [decision for decision in tried if decision.node is None]
            if unplaced or begun.groups:
                self._requeue(unplaced, [group for group in begun.groups if id(group) not in refused])
            self._observer.committed(tried, begun.version)
            if not again:
                return
            if round_ < ROUNDS - 1:
                begun = self._decide(again)
        self._give_up(begun, refused)

    def _requeue(self, unplaced: Sequence[Decision], groups: Sequence[GroupDecision]) -> None:
        self._preemptions.note(unplaced)
        # The promise is on the pod before victims are deleted: who is killed in between has evicted nobody in vain.
        self._failures.requeue(unplaced, self._clock.monotonic())
        self._requeue_groups(groups)
        self._preemptions.carry_out(unplaced)
        self._binding.claims.carry_out(unplaced)

    def _give_up(self, begun: Begun, refused: set[int]) -> None:
        """The nodes of these kept changing."""
        given_up = [decision for decision in begun.decisions if id(decision) in refused]
        for decision in given_up:
            self._preemptions.ended(decision.candidate.info)
        self._failures.give_up(given_up, NODE_KEPT_CHANGING, self._clock.monotonic())
        self._requeue_groups([_failed(group) for group in begun.groups if id(group) in refused])

    def _requeue_groups(self, groups: Sequence[GroupDecision]) -> None:
        """Put groups back of which pods are left, which are beside them already; tell how they are, and make room for
        them. Killed before: a group is in flight without its pods, or with some, and is put back by the next leader."""
        if not groups:
            return
        found = [self._groups.attempted(group) for group in groups]
        together = Changes(
            [move for changes in found for move in changes.moves],
            [each for changes in found for each in changes.removals],
        )
        self._events.change(together, collect.ATTEMPT_FAILURE)
        self._failures.tell_groups(groups, self._clock.monotonic())
        self._preemptions.carry_out_groups(groups)

    def _decide(self, candidates: Sequence[Candidate | GroupCandidate]) -> Begun:
        self._observer.phase(EVALUATE)
        began = collect.now()
        decided = self._cycle.decide(candidates, until_some_are_left=True)
        self._put_back(candidates[len(decided) :])
        decided = self._hold(decided)
        decisions = by_pod(decided)
        groups = [each for each in decided if isinstance(each, GroupDecision)]
        collect.decided(collect.now() - began, len(decisions))
        self._observer.phase(RESERVE)
        placed = [(decision, decision.node) for decision in decisions if decision.node is not None]
        begun = Begun(decisions, groups, placed, self._cache.snapshot.table.version)
        # First what has become of the nodes, on the same line: the requests expect the versions that this leaves.
        self._cache.flush_ahead()
        if placed:
            requests, now_ms = self._requests(placed), self._clock.now_ms()
            begun.number = self._reservations.reserve_ahead(requests, now_ms, begun.verdicts.extend)
        return begun

    def _hold(self, decided: Sequence[Decision | GroupDecision]) -> Sequence[Decision | GroupDecision]:
        """Those that are decided. Pods for which a plugin's answer is still searched stay in flight, and are put back
        when it is there. Killed before: the next leader puts them back, and has it searched for once more."""
        held = [each for each in decided if isinstance(each, Decision) and each.not_yet]
        if not held:
            return decided
        self._searches.hold(held)
        return [each for each in decided if isinstance(each, GroupDecision) or not each.not_yet]

    def settle_searches(self) -> None:
        """Put pods back that wait no more for a plugin's answer."""
        free = self._searches.free()
        if free:
            self._put_back(free)

    def end(self) -> None:
        """Put all pods back that wait for a plugin's answer: those in flight under a leader that is gone count as lost
        with it."""
        self._put_back(self._searches.all())

    def _put_back(self, rest: Sequence[Candidate | GroupCandidate]) -> None:
        """Those whose turn has not come after all stand where they stood, as if they had not been popped."""
        moves: list[Move] = []
        for each in rest:
            queued = self._pending.group(each.group.key) if isinstance(each, GroupCandidate) else None
            pods = each.pods if isinstance(each, GroupCandidate) else (each,)
            for info in (candidate.info for candidate in pods):
                pod = self._pending.get(info.key)
                if pod is None or pod.uid != info.uid:
                    continue
                pod.attempts -= 1
                target = QueueName.ACTIVE if queued is None else QueueName.GROUP
                moves.append(self._pending.move(pod, target, attempts=pod.attempts))
                self._pending.placed(pod, target)
            if queued is not None:
                moves.append(self._pending.move(queued, QueueName.ACTIVE, attempts=queued.attempts))
                self._pending.placed(queued, QueueName.ACTIVE)
        if moves:
            self._queue.move_ahead(moves, lambda refused: None)  # who is not there any more is popped by nobody

    def _not_too_many(self, popped: Sequence[Popped]) -> Sequence[Popped]:
        """Those of a batch that are decided: at least one group, and as many pods as a batch may have. The others go
        back to where they stood."""
        if not self._groups.any:
            return popped
        pods, over = 0, []
        for place, entry in enumerate(popped):
            queued = self._pending.standing(entry.key)
            size = len(self._pending.members(queued.pod_group.key)) if isinstance(queued, QueuedGroup) else 1
            if pods and pods + size > MOST_PODS:
                over = [each for later in popped[place:] if (each := self._pending.standing(later.key)) is not None]
                popped = popped[:place]
                break
            pods += size
        moves = [(each, self._pending.move(each, QueueName.ACTIVE)) for each in over]
        if moves:
            self._events.make(moves, [collect.ATTEMPT_FAILURE] * len(moves))
        return popped

    def _candidates(self, popped: Sequence[Popped], popped_at: float) -> list[Candidate | GroupCandidate]:
        found: list[Candidate | GroupCandidate] = []
        ending: list[QueuedPod] = []
        now_ms = self._clock.now_ms()
        for entry in popped:
            pod = self._pending.standing(entry.key)
            if pod is None or pod.uid != entry.uid:
                continue
            if isinstance(pod, QueuedGroup):
                if (group := self._group(pod, now_ms, popped_at)) is not None:
                    found.append(group)
                continue
            if pod.info.pod.deleting and not pod.resizes:
                ending.append(pod)
                continue
            pod.attempts = entry.attempt
            pod.first_ms = pod.first_ms or now_ms
            found.append(Candidate(pod.info, entry.attempt, popped_at))
        self._pass_over(ending)
        return found

    def _pass_over(self, ending: Sequence[QueuedPod]) -> None:
        """Pods that are being deleted are not tried, and leave the queue. Killed before: they are put back into the
        queue by the next leader, and have their turn once more."""
        if not ending:
            return
        for pod in ending:
            self._pending.pass_over(pod.key)
            self._cache.snapshot.nominations.pass_over(pod.uid)
        self._queue.remove_ahead([(pod.key, pod.uid) for pod in ending])
        self._failures.tell_passed_over(ending)

    def _group(self, queued: QueuedGroup, now_ms: int, popped_at: float) -> GroupCandidate | None:
        """A group that was popped, with its pods, which come in flight as well; None where it has none any more.

        Killed before: the group is in flight and its pods beside it. Killed after: all are in flight; the next leader
        puts the pods beside it again.
        """
        moves: list[Move] = []
        candidates: list[Candidate] = []
        for pod in self._tried(queued):
            pod.attempts += 1
            pod.first_ms = pod.first_ms or now_ms
            told = {"attempts": pod.attempts, "first_ms": pod.first_ms, "last_ms": now_ms}
            moves.append(self._pending.move(pod, QueueName.INFLIGHT, **told))
            self._pending.placed(pod, QueueName.INFLIGHT)
            candidates.append(Candidate(pod.info, pod.attempts, popped_at))
        if not candidates:
            self._events.change(self._groups.ended(queued), collect.ATTEMPT_FAILURE)
            return None
        self._queue.move_ahead(moves, lambda refused: None)  # of who is not there, the reservation is refused
        return GroupCandidate(queued.pod_group, tuple(candidates))

    def _tried(self, queued: QueuedGroup) -> list[QueuedPod]:
        """The pods of a group that are tried, in order; if any of all those in the queue does not belong to the group,
        none is passed over, for that is told before. Source: schedule_one_podgroup.go ``scheduleOnePodGroup``."""
        pods = self._groups.attempt(queued)
        ending = [pod for pod in pods if pod.info.pod.deleting]
        if not ending or self._cycle.invalid(GroupCandidate(queued.pod_group, _as_candidates(pods))):
            return pods
        self._pass_over(ending)
        return [pod for pod in pods if pod not in ending]

    def _placed(self, begun: Begun) -> tuple[list[Candidate | GroupCandidate], set[int]]:
        """Take down what Redis has reserved, and hand out what may be bound; returns what has to be decided again, and
        the ids of the decisions, those about groups among them, that do not stand."""
        if not begun.placed:
            return [], set()
        self._reservations.settle(begun.number)
        again: list[Candidate | GroupCandidate] = []
        dropped: set[int] = set()
        gone: set[PodUid] = set()
        group_of = {id(each): group for group in begun.groups for each in group.decisions}
        torn: dict[int, GroupDecision] = {}
        ready: list[AssumedPod] = []
        refused: set[NodeName] = set()
        for (decision, node), verdict in zip(begun.placed, begun.verdicts, strict=True):
            if verdict == reservations.OK:
                assumed = self._reserved(decision, node)
                if decision.waiting is None:
                    ready.append(assumed)
            else:
                RESERVATIONS_REFUSED.labels(verdict).inc()
                self._undo(decision, node)
                refused.add(node)
                if verdict == reservations.GONE:
                    gone.add(decision.candidate.info.uid)
                if (group := group_of.get(id(decision))) is not None:
                    torn[id(group)] = group
                elif verdict in (reservations.CHANGED, reservations.TAKEN, reservations.LIMITED):
                    dropped.add(id(decision))
                    again.append(decision.candidate)
        for node in refused:  # after the loop: what it has counted is in Redis already
            if not self._cache.usage.look_again(node) and self._cache.mend_usage(node):
                set_aside(keys.NODE.name, node, "its versions are no numbers")
        if self._cache.limits is not None and reservations.LIMITED in begun.verdicts:
            self._cache.limits.rewrite()
        for group in torn.values():
            pods = tuple(each for each in group.candidate.pods if each.info.uid not in gone)
            if pods:
                again.append(GroupCandidate(group.candidate.group, pods))
                dropped |= {id(group), *map(id, group.decisions)}
        self._observer.phase(HAND_OUT)
        self._binding.hand_out(ready)
        return again, dropped

    def _requests(self, placed: Sequence[Placed]) -> list[Request]:
        """The requests; each expects the node as its predecessors in the batch leave it."""
        ahead: Counter[NodeName] = Counter()
        requests: list[Request] = []
        charges = self._charges(placed)
        for at, (decision, node) in enumerate(placed):
            info, seen = decision.candidate.info, self._cache.usage.seen(node)
            version = seen.version + ahead[node]
            ahead[node] += 1
            requests.append(
                Request(
                    info.key,
                    info.uid,
                    node,
                    version,
                    seen.object_version,
                    amounts(info),
                    has_ports=bool(info.demand.ports),
                    deadline_ms=(decision.waiting.deadline_ms or self._clock.now_ms()) if decision.waiting else 0,
                    devices=charges_of(decision.state),
                    group=self._group_of(info),
                    queues=charges[at] if charges else (),
                )
            )
        return requests

    def _charges(self, placed: Sequence[Placed]) -> list[Charges]:
        """What counts against limits of queues; nothing where there are none."""
        if self._cache.limits is None:
            return []
        infos = [decision.candidate.info for decision, _ in placed]
        return self._cache.limits.charges([(info, self._group_of(info)) for info in infos])

    def _group_of(self, info: PodInfo) -> str:
        """The pod group beside which a pod stands in the queue."""
        pod = self._pending.get(info.key)
        return "" if pod is None else pod.group

    def _reserved(self, decision: Decision, node: NodeName) -> AssumedPod:
        info = decision.candidate.info
        self._cache.reserved(info, node)
        candidate = decision.candidate
        assumed = AssumedPod(
            info, node, decision.framework, decision.state, candidate.attempt, popped_at=candidate.popped_at
        )
        self._binding.reserve(assumed)
        self._binding.claims.reserved(info.uid, charges_of(decision.state))
        pod = self._pending.get(info.key)
        if pod is not None:
            self._pending.placed(pod, QueueName.RESERVED if decision.waiting is None else QueueName.WAITING)
            if pod.rescued:
                _missed(pod)
        return assumed

    def _undo(self, decision: Decision, node: NodeName) -> None:
        info = decision.candidate.info
        decision.framework.run_unreserve(decision.state, info, node)
        self._cache.forget(info.uid, released=False)
        if decision.promised is not None:
            self._cache.snapshot.nominations.set(info, decision.promised)
        self._waiting.drop(info.uid)

    def settle_waiting(self) -> None:
        """Hand out waiting pods that nobody holds back any more; queue rejected ones again."""
        self._binding.hand_out(self._let_go() if len(self._waiting) else ())

    def _let_go(self) -> list[AssumedPod]:
        for waiting in self._waiting:
            if self._binding.assumed(waiting.pod.uid) is None:
                self._waiting.drop(waiting.pod.uid)
        self._waiting.expire()
        allowed, rejected = self._waiting.settled()
        ready: list[AssumedPod] = []
        self._reservations.allow([(waiting.pod.key, waiting.pod.uid) for waiting in allowed])
        for waiting in (*allowed, *rejected):
            result = "Success" if waiting.rejection is None else str(waiting.rejection.code)
            PERMIT_WAIT.labels(result).observe(max(0, self._clock.now_ms() - waiting.since_ms) / 1000)
        for waiting in allowed:
            self._waiting.drop(waiting.pod.uid)
            assumed, pod = self._binding.assumed(waiting.pod.uid), self._pending.get(waiting.pod.key)
            if assumed is not None:
                ready.append(assumed)
            if pod is not None:
                self._pending.placed(pod, QueueName.RESERVED)
        for waiting in rejected:
            self._waiting.drop(waiting.pod.uid)
            assumed, status = self._binding.assumed(waiting.pod.uid), waiting.rejection
            if assumed is not None and status is not None:
                if status.code is Code.ERROR:
                    self._binding.release(assumed, status.message)
                else:
                    message = Diagnosis.of_node(status).message
                    self._binding.release(assumed, message, frozenset({status.plugin}))
        return ready


def _as_candidates(pods: Sequence[QueuedPod]) -> tuple[Candidate, ...]:
    return tuple(Candidate(pod.info, pod.attempts) for pod in pods)


def _failed(group: GroupDecision) -> GroupDecision:
    return msgspec.structs.replace(group, end=GroupEnd.ERROR, message=NODE_KEPT_CHANGING)


def _missed(pod: QueuedPod) -> None:
    """It fits, and no event had moved it: a plugin asks for too few events or a hint is wrong, or one never came."""
    SCHEDULED_AFTER_FLUSH.inc()
    for plugin, event in pod.rescued:
        MISSED.labels(plugin, collect.event_name(event)).inc()
    extra = {
        "action": "missed",
        "pod": pod.key,
        "uid": pod.uid,
        "plugins": " ".join(sorted({plugin for plugin, _ in pod.rescued})),
        "events": " ".join(sorted({collect.event_name(event) for _, event in pod.rescued})),
    }
    _log.warning("pod fits although no event moved it", extra=extra)
    pod.rescued = frozenset()
