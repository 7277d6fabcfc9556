"""The running system that the page is about."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dsched import config
from dsched.clock import Clock
from dsched.cluster.interface import Cluster
from dsched.config import SchedulerConfiguration
from dsched.framework.interface import Registry
from dsched.plugins import profiles
from dsched.state import client, published
from dsched.state.client import Store

OpenCluster = Callable[[SchedulerConfiguration], Cluster]


@dataclass(slots=True)
class System:
    """
    Attributes:
        where: its Redis, for people; no password in it.
        given: the configuration that was named; None for the one that the leader publishes.
        open_cluster: opens what keeps nodes and pods.
        seed: the leader's, of the choice among equals.
    """

    store: Store
    where: str
    given: SchedulerConfiguration | None
    plugins: Registry
    open_cluster: OpenCluster
    clock: Clock
    seed: int = 0
    _known: tuple[str, SchedulerConfiguration] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def configuration(self) -> SchedulerConfiguration:
        """What explanations are worked out with: the one that was named, else the leader's, else the default one.

        Raises:
            ConfigError: the leader's cannot be read here, e.g. for a plugin that is not installed here.
            RedisUnavailable: Redis does not answer.
        """
        if self.given is not None:
            return self.given
        with client.reachable(self.store):
            told = published.read(self.store)
        if told is None or not told.text:
            return config.default()
        with self._lock:
            if self._known is None or self._known[0] != told.hash:
                self._known = told.hash, profiles.parsed(told.text, told.source, self.plugins)
            return self._known[1]

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
