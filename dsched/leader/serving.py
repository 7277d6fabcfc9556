"""A leader's HTTP server: its metrics, and whether it is live and ready."""

from typing import Protocol

from prometheus_client import REGISTRY

from dsched.clock import SystemClock
from dsched.config import Features
from dsched.leader.gauges import Holding, Memory
from dsched.leader.health import Stage
from dsched.leader.version_gauges import EmulatedVersion
from dsched.observe.exposition import Exposition
from dsched.observe.queues import Queues
from dsched.observe.server import Server
from dsched.state.client import Store


class Measured(Holding, Protocol):
    """A leader process."""

    def features(self) -> Features:
        """What it emulates, or would if it led; from any thread."""
        ...


def server(host: str, port: int, store: Store, leader: Measured) -> Server:
    """Listens at once, answers when it is started.

    Args:
        port: 0 for any that is free.
        store: a connection of its own, for the threads that answer.

    Raises:
        DschedError: the port cannot be had.
    """
    queues = Queues(store, SystemClock(), lambda: leader.progress.stage is Stage.LEADING)
    sources = [REGISTRY, Memory(store.name, leader), EmulatedVersion(leader.features), queues]
    return Server(host, port, Exposition("leader", sources, others=True), leader.progress.checks())
