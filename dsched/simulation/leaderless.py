"""The leader's cycle where there is no leader: over a cluster in memory, with what plugins reach in a leader."""

from collections.abc import Mapping

from dsched.clock import Clock
from dsched.config import SchedulerConfiguration
from dsched.framework.extending import ReadObjects
from dsched.framework.interface import Registry
from dsched.framework.runtime import Framework
from dsched.framework.select import Selector
from dsched.leader.cycle import Cycle
from dsched.leader.handle import LeaderHandle
from dsched.leader.pending import Backoff, Pending
from dsched.leader.permit import WaitingPods
from dsched.plugins import profiles
from dsched.simulation.memory import Memory, judge_here


class Leaderless:
    """A cycle and what stands around it.

    Attributes:
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
        self.waiting = WaitingPods()
        self.pending = Pending(clock, backoff or Backoff())
        handle = LeaderHandle(memory, self.waiting, self.pending, clock)
        self.frameworks: Mapping[str, Framework] = profiles.frameworks(configured, plugins, handle, read)
        self.percentages = {each.scheduler_name: each.effective_percentage(configured) for each in configured.profiles}
        self.cycle = Cycle(self.frameworks, self.percentages, memory, judge_here, selector, self.waiting, clock)

    def unknown(self, scheduler_name: str) -> str:
        """What is told of a pod that no profile is for."""
        return f'schedulerName "{scheduler_name}" is none of {", ".join(self.frameworks)}'
