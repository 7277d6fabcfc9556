"""A leader's HTTP server: its metrics, whether it is live and ready, and what it was started and configured with."""

from collections.abc import Mapping
from typing import Protocol

from prometheus_client import REGISTRY

from dsched import __version__
from dsched.clock import SystemClock
from dsched.config import SchedulerConfiguration
from dsched.leader.gauges import EmulatedVersion, Holding, Memory
from dsched.leader.health import Stage
from dsched.observe import zpages
from dsched.observe.exposition import Exposition
from dsched.observe.queues import Queues
from dsched.observe.server import Page, Server
from dsched.state.client import Store


class Configured(Holding, Protocol):
    """A leader process that has a configuration, another one after each reload."""

    @property
    def config(self) -> SchedulerConfiguration:
        """The present one; from any thread."""
        ...


def server(host: str, port: int, store: Store, leader: Configured, flags: Mapping[str, str]) -> Server:
    """Listens at once, answers when it is started.

    Args:
        port: 0 for any that is free.
        store: a connection of its own, for the threads that answer.
        flags: the options that the process was started with, by name without dashes; secrets are hidden.

    Raises:
        DschedError: the port cannot be had.
    """
    queues = Queues(store, SystemClock(), lambda: leader.progress.stage is Stage.LEADING, leader.group_counts)
    sources = [REGISTRY, Memory(store.name, leader), EmulatedVersion(lambda: leader.config.features), queues]
    checks = leader.progress.checks()
    pages: dict[str, Page] = {"configz": zpages.configz(lambda: leader.config), "flagz": zpages.flagz(flags)}
    listed = [f"/{name}" for name in ("metrics", *checks, "healthz", *pages)]
    status = zpages.Status(SystemClock(), __version__, lambda: str(leader.config.features.version), listed)
    pages["statusz"] = status.page()
    return Server(host, port, Exposition("leader", sources, others=True), checks, pages)
