"""A worker's HTTP server, in the process that its pool is forked from."""

import time
from collections.abc import Iterable

from prometheus_client.registry import Collector

from dsched.framework import plugin_timeout
from dsched.metrics.instruments import Exporter
from dsched.observe import checks
from dsched.observe.exposition import Exposition
from dsched.observe.health import Check
from dsched.observe.prefork import Pool
from dsched.observe.server import Server
from dsched.state import lease
from dsched.state.client import UNAVAILABLE, Store, WrongType
from dsched.state.workers import SILENT_AFTER_MS
from workers.replica_lag import ReplicaLag

STUCK_AFTER_S = 30.0 + plugin_timeout.task_limits(plugin_timeout.from_environment())[1]
"""Longer than the hard time limit of a task: a worker that has run no task for so long takes none."""
LAST_TASK = "dsched_last_task_timestamp_seconds"


class Health:
    """Whether a worker is well.

    Attributes:
        name: by which leader and broker know the worker; not known before it has started.
    """

    def __init__(self, store: Store, pool: Collector, replica_lag: ReplicaLag | None = None) -> None:
        """
        Args:
            store: a connection of its own: pool processes that are forked later must not share the worker's.
            lags: of an evaluator's replicas; None where there are none.
        """
        self.name = ""
        self._replica_lag = replica_lag
        self._store = store
        self._pool = pool
        self._since = time.time()

    def stuck(self) -> str:
        """Why the worker takes no tasks, though a leader is there to ping it. What it counts itself is looked at first:
        while Redis is away nobody can say, and starting the worker again would not help."""
        now = time.time()
        age_s = now - max(_last_task(self._pool.collect()), self._since)
        if age_s <= STUCK_AFTER_S:
            return ""
        try:
            leader = lease.holder(self._store)
        except (*UNAVAILABLE, WrongType):
            leader = None
        if leader is None:
            self._since = now  # nobody pings; it has its time again once somebody leads, and Redis is there
            return ""
        return f"no task has run for {age_s:.0f} s, though {leader[0]} leads"

    def silent(self) -> str:
        """Why the leader would not reckon with the worker."""
        return checks.silent(self._store, self.name, SILENT_AFTER_MS / 1000)

    def checks(self) -> dict[str, list[Check]]:
        """By page."""
        ready = [Check("heartbeat", self.silent)]
        if self._replica_lag is not None:
            ready.append(Check("replica", self._replica_lag.wrong))
        return {"livez": [Check("tasks", self.stuck)], "readyz": ready}


def server(host: str, port: int, exporter: Exporter, health: Health, pool: Collector) -> Server:
    """Listens at once, answers when it is started.

    Raises:
        DschedError: the port cannot be had.
    """
    return Server(host, port, Exposition(exporter, [pool]), health.checks())


def worker_server(
    where: tuple[str, int], exporter: Exporter, store: Store, replica_lag: ReplicaLag
) -> tuple[Server, Health]:
    """A worker's server and its health, to be told the worker's name."""
    pool = Pool()
    health = Health(store, pool, replica_lag if exporter == "evaluator" else None)
    return server(*where, exporter, health, pool), health


def _last_task(families: Iterable[object]) -> float:
    """When one of the pool's processes last ran a task, seconds since the epoch; 0 before the first."""
    samples = [sample for family in families for sample in getattr(family, "samples", ())]
    return max((sample.value for sample in samples if sample.name == LAST_TASK), default=0.0)
