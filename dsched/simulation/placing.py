"""A simulation: the leader's cycle over a cluster in memory, pod by pod, until nothing changes any more.

What the cycle decides takes effect at once: a placed pod is bound, victims are gone before the next pod is looked at.
PreBind, Bind and PostBind do not run, but claims for devices are written as PreBind would write them; a pod that they
refuse is not bound. Time stands still but for this: when there is nothing left to try, the patience of Permit plugins
ends with the pods that they hold back, once for each pod. A pod that is turned away again and again is left as it is in
the end (`dsched.simulation.turned_away`).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import msgspec

from dsched.clock import ManualClock
from dsched.cluster.claims import Refused
from dsched.config import SchedulerConfiguration
from dsched.engine.diagnosis import Diagnosis
from dsched.engine.select import Selector
from dsched.framework.extender import ReadObjects
from dsched.framework.interface import Action, ClusterEvent, Registry, Resource, Status
from dsched.framework.pod_info import PodInfo
from dsched.framework.validation import binding_failure
from dsched.model.meta import NO_NODE, NodeName, PodKey, PodUid
from dsched.model.pod import Pod
from dsched.plugins.dynamic_resources.plugin import DynamicResources
from dsched.scheduler.cycle import ON_A_NODE
from dsched.scheduler.decision import Candidate, Decision, GroupCandidate, GroupDecision
from dsched.scheduler.memory import Memory
from dsched.scheduler.nominations import released
from dsched.scheduler.ports import entity_key
from dsched.scheduler.queue import QueuedPod
from dsched.simulation import capacity
from dsched.simulation.capacity import Usage
from dsched.simulation.claims import SimulatedClaims
from dsched.simulation.from_manifests import ManifestCluster
from dsched.simulation.offline_cycle import OfflineCycle
from dsched.simulation.outcome import NEVER_TRIED, Ending, GroupOutcomes, Outcome, PodOutcome, QueueOutcomes
from dsched.simulation.queue import SimulatedQueue

Hear = Callable[[Decision | GroupDecision, int], None]
"""Is told each decision in order, and the version of the table that it was taken on."""
Follow = Callable[[ClusterEvent], None]
"""Is told what becomes of claims, after the decision that brings it; and of a pod that has left its node because it
could not be bound."""


def simulate(
    configured: SchedulerConfiguration,
    plugins: Registry,
    given: ManifestCluster,
    now_ms: int,
    seed: int = 0,
    hear: Hear = lambda decision, version: None,
    follow: Follow = lambda event: None,
) -> Outcome:
    """Place the pods that wait.

    Args:
        now_ms: what plugins see as the time when it begins.
        seed: of the choice among equals.

    Raises:
        PluginError: a profile's plugins cannot be built.
    """
    return Simulation(configured, plugins, given, now_ms, seed, follow=follow).run(hear)


class Simulation:
    """One cluster and its pods on their way.

    Attributes:
        memory: the cluster as it is at the moment.
    """

    def __init__(
        self,
        configured: SchedulerConfiguration,
        plugins: Registry,
        given: ManifestCluster,
        now_ms: int,
        seed: int,
        read: ReadObjects | None = None,
        follow: Follow = lambda event: None,
    ) -> None:
        """
        Args:
            read: where extenders get whole pods and nodes from.
        """
        self._follow = follow
        self.memory = Memory()
        given.fill(self.memory.snapshot)
        self._before = Usage.of(self.memory.snapshot.table)
        self._clock = ManualClock(now_ms)
        self._made = OfflineCycle(configured, plugins, self.memory, Selector(seed), self._clock, read=read)
        self._claims = SimulatedClaims(self.memory.snapshot, self._clock)
        self._waiting = self._made.waiting
        self._queue = SimulatedQueue(
            self._made.frameworks, self._made.pending, self._made.groups, self._clock, self._made.picking
        )
        self._groups = GroupOutcomes(self.memory.snapshot)
        picking = self._made.picking
        self._queues = None if picking is None else QueueOutcomes(picking.ledger)
        self._outcomes: dict[PodUid, PodOutcome] = {}
        self._held: dict[PodUid, tuple[QueuedPod, Decision]] = {}
        self._impatient: set[PodUid] = set()
        self._take_in([PodInfo(pod) for pod in given.waiting(configured)])

    def run(self, hear: Hear) -> Outcome:
        """Decide until nothing changes any more."""
        while True:
            while (popped := self._queue.pop()) is not None:
                self._decide(popped, hear)
            if not self._lose_patience():
                return self._outcome()

    def _decide(self, popped: Candidate | GroupCandidate, hear: Hear) -> Decision | GroupDecision:
        """Decide a pod or a group, and let it take effect."""
        version = self.memory.snapshot.table.version
        decided: Sequence[Decision | GroupDecision] = self._made.cycle.decide([popped])
        (decision,) = decided
        hear(decision, version)
        if isinstance(decision, GroupDecision):
            self._decided_group(decision)
        else:
            self._decided(decision)
        self._settle_waiting()
        return decision

    def concerns_groups(self, pod: Pod) -> bool:
        """Whether a pod is placed with its pod group."""
        return self._made.groups.concerns(pod)

    def _take_in(self, infos: Sequence[PodInfo]) -> None:
        ours = [info for info in infos if info.pod.spec.scheduler_name in self._made.frameworks]
        for info in infos:
            if info.pod.spec.scheduler_name not in self._made.frameworks:
                message = self._made.unknown(info.pod.spec.scheduler_name)
                self._note(PodOutcome(info.key, Ending.IGNORED, message=message), info.uid)
        gated = {info.uid: why for info, why in self._queue.add(ours)}
        for info in ours:
            if info.uid in gated:
                self._note(PodOutcome(info.key, Ending.GATED, message=gated[info.uid]), info.uid)
            if self._made.groups.concerns(info.pod):
                self._groups.came(info, gated.get(info.uid, ""))
        for info in ours:
            promised = NodeName(info.pod.status.nominated_node_name)
            if promised and not info.node_name:
                self.memory.snapshot.nominations.set(info, promised)

    # -- decisions take effect -------------------------------------------------------------------------------------

    def _decided_group(self, decided: GroupDecision) -> None:
        """As `dsched.leader.commit.Commit.finish`: first its pods, then the group itself, then those who have to go."""
        for decision in decided.decisions:
            self._decided(decision)
        self._groups.attempted(decided)
        self._queue.attempted(decided)
        for victim in decided.victims:
            self._evict(victim, entity_key(decided.candidate.group.key))

    def _decided(self, decision: Decision) -> None:
        pod = self._queue.tried(decision.candidate)
        for displaced in decision.displaced:
            self._queue.happened(released(displaced, decision.nominated or NO_NODE))
        if decision.node is None:
            self._unplaced(pod, decision)
        else:
            self._placed(pod, decision, decision.node)

    def _placed(self, pod: QueuedPod, decision: Decision, node: NodeName) -> None:
        if decision.waiting is None:
            self._bound(pod, decision)
            return
        self._queue.held(pod)
        self._held[pod.uid] = pod, decision
        plugins = ", ".join(sorted(decision.waiting.holding))
        self._note(PodOutcome(pod.key, Ending.WAITING, node, pod.attempts, f"held back by {plugins}"), pod.uid)

    def _bound(self, pod: QueuedPod, decision: Decision) -> None:
        node = decision.node or NO_NODE
        try:
            claims = self._claims.bound(decision.state)
        except Refused as error:
            self._not_bound(pod, decision, binding_failure("PreBind", DynamicResources.name, str(error)))
            return
        self._queue.placed(pod)
        if decision.promised not in (None, node):  # who is where he was promised to be frees nothing
            self._queue.happened(released(pod.info, decision.promised or NO_NODE))
        self._note(PodOutcome(pod.key, Ending.PLACED, node, pod.attempts), pod.uid)
        self._became(claims)
        self._queue.happened(ClusterEvent(Resource.ASSIGNED_POD, Action.ADD, new=pod.info.pod.on(node)))

    def _not_bound(self, pod: QueuedPod, decision: Decision, message: str) -> None:
        left = self._leaves(pod, decision)
        self._follow(left)
        self._note(PodOutcome(pod.key, Ending.FAILED, NO_NODE, pod.attempts, message), pod.uid)
        self._queue.put_back(pod, frozenset())
        self._queue.happened(left)

    def _unplaced(self, pod: QueuedPod, decision: Decision) -> None:
        diagnosis, error = decision.diagnosis, decision.error
        ending, message = Ending.UNSCHEDULABLE if error is None else Ending.FAILED, decision.message
        if pod.resizes and message == ON_A_NODE.format(uid=pod.uid, key=pod.key):
            ending, message = Ending.RESIZABLE, ""
        self._note(PodOutcome(pod.key, ending, pod.info.node_name, pod.attempts, message), pod.uid)
        waiting = frozenset[str]() if diagnosis is None else diagnosis.pending_plugins
        plugins = waiting if diagnosis is None else diagnosis.unschedulable_plugins | waiting
        self._queue.put_back(pod, plugins, waiting)
        for victim in decision.victims:
            self._evict(victim, pod.key)
        if decision.victims:
            self._queue.try_again(pod)
        elif decision.nominated:  # whom it waits for is going already, which takes time
            self._queue.turned_away.add(pod.uid)
        self._became(self._claims.given_back(decision.deallocations, decision.deleted_claims))

    def _became(self, claims: Iterable[ClusterEvent]) -> None:
        for event in claims:
            self._follow(event)
            self._queue.happened(event)

    def _evict(self, victim: PodInfo, preemptor: PodKey) -> None:
        node = self.memory.snapshot.table.node_of(victim.uid) or NO_NODE
        self._waiting.drop(victim.uid)
        if (held := self._held.pop(victim.uid, None)) is not None:
            held[1].framework.run_unreserve(held[1].state, victim, node)
        self.memory.forget(victim.uid, released=False)
        self._queue.gone(victim)
        attempts = self._outcomes[victim.uid].attempts if victim.uid in self._outcomes else 0
        evicted = PodOutcome(victim.key, Ending.EVICTED, node, attempts, evicted_by=preemptor)
        self._note(evicted, victim.uid)
        self._queue.happened(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, old=victim.pod.on(node)))
        self._became(self._claims.gone(victim.uid))

    # -- pods that Permit holds back -------------------------------------------------------------------------------

    def _settle_waiting(self) -> None:
        """Pods that plugins have allowed are bound, pods that they have rejected are put back."""
        while any(self._waiting.settled()):
            allowed, rejected = self._waiting.settled()
            for waiting in allowed:
                self._waiting.drop(waiting.pod.uid)
                pod, decision = self._held.pop(waiting.pod.uid)
                self._bound(pod, decision)
            for waiting in rejected:
                self._waiting.drop(waiting.pod.uid)
                pod, decision = self._held.pop(waiting.pod.uid)
                if waiting.rejection is not None:
                    self._rejected(pod, decision, waiting.rejection)

    def _lose_patience(self) -> bool:
        """Let time pass until a pod has waited too long that has not done so before; False when there is none."""
        patient = [waiting for waiting in self._waiting if waiting.pod.uid not in self._impatient]
        if not patient:
            return False
        until_ms = min(waiting.deadline_ms for waiting in patient)
        self._clock.advance(max(0, until_ms - self._clock.now_ms()) / 1000)
        self._queue.time_passed()
        self._waiting.expire()
        self._impatient.update(waiting.pod.uid for waiting in self._waiting if waiting.rejection is not None)
        self._settle_waiting()
        return True

    def _rejected(self, pod: QueuedPod, decision: Decision, status: Status) -> None:
        left = self._leaves(pod, decision)
        self._unplaced(
            pod, msgspec.structs.replace(decision, node=None, waiting=None, diagnosis=Diagnosis.of_node(status))
        )
        self._queue.happened(left)

    def _leaves(self, pod: QueuedPod, decision: Decision) -> ClusterEvent:
        """What happens where a pod that was to be bound is not: it gives back what was reserved for it."""
        node = decision.node or NO_NODE
        decision.framework.run_unreserve(decision.state, pod.info, node)
        self.memory.forget(pod.uid, released=True)
        self._queue.turned_away.add(pod.uid)
        return ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, old=pod.info.pod.on(node))

    # -- what it came to -------------------------------------------------------------------------------------------

    def _note(self, outcome: PodOutcome, uid: PodUid) -> None:
        self._outcomes.pop(uid, None)
        self._outcomes[uid] = outcome

    def _outcome(self) -> Outcome:
        snapshot = self.memory.snapshot
        nominations = snapshot.nominations
        for pod, message in self._queue.held_back():
            self._note(PodOutcome(pod.key, Ending.GATED, attempts=pod.attempts, message=message), pod.uid)
        pods = [
            replace(outcome, nominated=nominations.node_of(uid) or NO_NODE) for uid, outcome in self._outcomes.items()
        ]
        pods.sort(key=lambda pod: pod.ending in NEVER_TRIED)
        nodes = capacity.nodes(snapshot.table, self._before, Usage.of(snapshot.table))
        homeless = sum(name not in snapshot.table.index for name, _ in snapshot.table.placed())
        queues = () if self._queues is None else self._queues.outcome()
        groups = self._groups.outcome(self._outcomes)
        return Outcome(tuple(pods), nodes, capacity.cluster(nodes), homeless, groups, queues)
