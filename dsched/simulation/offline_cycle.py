"""The leader's cycle where there is no leader: over a cluster in memory, with what plugins reach in a leader."""

from collections.abc import Mapping, Sequence

from dsched.clock import Clock
from dsched.config import SchedulerConfiguration
from dsched.engine.evaluation_cache import EvaluationCache
from dsched.engine.select import Selector
from dsched.framework.cycle_state import CycleState
from dsched.framework.extender import ReadObjects
from dsched.framework.interface import Registry
from dsched.framework.runtime import Framework
from dsched.plugins import profiles
from dsched.plugins.fair_share import plugin as fair_share
from dsched.scheduler.cycle import Cycle
from dsched.scheduler.decision import Candidate, Decision, GroupCandidate, GroupDecision
from dsched.scheduler.handle import LeaderHandle
from dsched.scheduler.memory import Memory, judge_here
from dsched.scheduler.observer import Observer
from dsched.scheduler.plugin_breaker import PluginBreaker
from dsched.scheduler.pod_groups import QueuedGroups
from dsched.scheduler.queue import Backoff, PendingPods
from dsched.scheduler.quota.ledger import Ledger
from dsched.scheduler.quota.picking import Picking
from dsched.scheduler.waiting_pods import WaitingPods


class OfflineCycle:
    """A cycle and what stands around it.

    Attributes:
        memory: the cluster.
        selector: chooses among equals.
        waiting: pods that Permit holds back; pending: those that are not bound. Nobody is there yet.
        frameworks: of the profiles, by scheduler name; groups: says what becomes of pod groups.
        percentages: of nodes that are to be found, by scheduler name.
        cycle: decides in this process.
        picking: whose pod is next where queues divide the cluster, else None.
    """

    def __init__(
        self,
        configured: SchedulerConfiguration,
        plugins: Registry,
        memory: Memory,
        selector: Selector,
        clock: Clock,
        backoff: Backoff | None = None,
        read: ReadObjects | None = None,
    ) -> None:
        """
        Args:
            backoff: None for the usual pauses.
            read: where extenders get whole pods and nodes from.

        Raises:
            PluginError: a profile's plugins cannot be built.
        """
        self.selector = selector
        self.memory = memory
        self.waiting = WaitingPods(clock)
        arguments = fair_share.arguments(configured)
        ledger = (
            None
            if arguments is None
            else Ledger(memory.snapshot, kueue=arguments.kueue_label, features=configured.features)
        )
        self.picking = None if ledger is None else Picking(ledger)
        self.pending = PendingPods(clock, backoff or Backoff(), memory.snapshot.pod_groups, self.picking)
        handle = LeaderHandle(memory, self.waiting, self.pending, clock, ledger)
        self.frameworks: Mapping[str, Framework] = profiles.frameworks(configured, plugins, handle, read)
        self.groups = QueuedGroups(
            self.frameworks, self.pending, memory.snapshot.pod_groups, memory.snapshot.version_of
        )
        self.percentages = {each.scheduler_name: each.effective_percentage(configured) for each in configured.profiles}
        self.cycle = Cycle(
            self.frameworks,
            self.percentages,
            memory,
            EvaluationCache(memory.snapshot, judge_here),
            selector,
            self.waiting,
            PluginBreaker(clock),
            Observer(),
        )

    def decide(self, candidates: Sequence[Candidate | GroupCandidate]) -> list[Decision | GroupDecision]:
        """Decide pods and groups in order. A pod on a node is tried where resizes preempt; else nothing is said."""
        tried = [each for each in candidates if not self._left_alone(each)]
        decided = iter(self.cycle.decide(tried) if tried else ())
        return [
            Decision(each, self._framework(each), CycleState())
            if isinstance(each, Candidate) and self._left_alone(each)
            else next(decided)
            for each in candidates
        ]

    def _left_alone(self, candidate: Candidate | GroupCandidate) -> bool:
        if isinstance(candidate, GroupCandidate):
            return False
        pod = candidate.info.pod
        return bool(pod.node_name) and not self._framework(candidate).defers(pod)

    def _framework(self, candidate: Candidate) -> Framework:
        return self.frameworks[candidate.info.pod.spec.scheduler_name]

    def unknown(self, scheduler_name: str) -> str:
        """What is told of a pod that no profile is for."""
        return f'schedulerName "{scheduler_name}" is none of {", ".join(self.frameworks)}'
