"""The running system that the page is about."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dsched.clock import Clock
from dsched.cluster.interface import Cluster
from dsched.config import SchedulerConfiguration
from dsched.framework.interface import Registry
from dsched.simulation.configured import Configured, LeadersConfiguration
from dsched.state.client import Store

OpenCluster = Callable[[SchedulerConfiguration], Cluster]


@dataclass(slots=True)
class System:
    """
    Attributes:
        where: its Redis, for people; no password in it.
        given: the configuration file that was named; None for what the leader publishes.
        open_cluster: opens what keeps nodes and pods.
        seed: the leader's, of the choice among equals.
    """

    store: Store
    where: str
    given: Path | None
    plugins: Registry
    open_cluster: OpenCluster
    clock: Clock
    seed: int = 0
    _leaders: LeadersConfiguration = field(init=False)

    def __post_init__(self) -> None:
        self._leaders = LeadersConfiguration(self.store, self.plugins, self.given)

    def configuration(self) -> Configured:
        """What explanations are worked out with: the one that was named, else the leader's, else the default one.

        Raises:
            ConfigError: the leader's cannot be read here, e.g. for a plugin that is not installed here; or the one that
                was named was refused.
            RedisUnavailable: Redis does not answer.
        """
        return self._leaders.read()

    @contextmanager
    def cluster(self, configured: SchedulerConfiguration) -> Iterator[Cluster]:
        """The cluster, for one answer.

        Raises:
            ConfigError: there are no credentials for it.
            RedisUnavailable: Redis does not answer.
        """
        cluster = self.open_cluster(configured)
        try:
            yield cluster
        finally:
            # What has connections gives them back; a process that answers many requests would run out of them.
            getattr(cluster, "close", cluster.stand_down)()
