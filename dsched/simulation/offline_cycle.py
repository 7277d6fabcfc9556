"""The leader's cycle where there is no leader: over a cluster in memory, with what plugins reach in a leader."""

from collections.abc import Mapping

from dsched.clock import Clock
from dsched.config import SchedulerConfiguration
from dsched.engine.evaluation_cache import EvaluationCache
from dsched.engine.select import Selector
from dsched.framework.extender import ReadObjects
from dsched.framework.interface import Registry
from dsched.framework.runtime import Framework
from dsched.plugins import profiles
from dsched.scheduler.cycle import Cycle
from dsched.scheduler.handle import LeaderHandle
from dsched.scheduler.memory import Memory, judge_here
from dsched.scheduler.observer import Observer
from dsched.scheduler.plugin_breaker import PluginBreaker
from dsched.scheduler.queue import Backoff, PendingPods
from dsched.scheduler.waiting_pods import WaitingPods


class OfflineCycle:
    """A cycle and what stands around it.

    Attributes:
        selector: chooses among equals.
        waiting: pods that Permit holds back; pending: those that are not bound. Nobody is there yet.
        frameworks: of the profiles, by scheduler name.
        percentages: of nodes that are to be found, by scheduler name.
        cycle: decides in this process.
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
        self.waiting = WaitingPods(clock)
        self.pending = PendingPods(clock, backoff or Backoff())
        handle = LeaderHandle(memory, self.waiting, self.pending, clock)
        self.frameworks: Mapping[str, Framework] = profiles.frameworks(configured, plugins, handle, read, devices=True)
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

    def unknown(self, scheduler_name: str) -> str:
        """What is told of a pod that no profile is for."""
        return f'schedulerName "{scheduler_name}" is none of {", ".join(self.frameworks)}'
