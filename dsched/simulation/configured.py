"""The configuration that the running system decides with, for explanations of what it would decide."""

import threading
from dataclasses import dataclass

from dsched import config
from dsched.config import SchedulerConfiguration
from dsched.framework.interface import Registry
from dsched.plugins import profiles
from dsched.state import client, leader_config, workers
from dsched.state.client import Store
from dsched.state.leader_config import LeaderConfig

NEVER_LED = "no leader has published its configuration yet"


@dataclass(frozen=True, slots=True)
class Configured:
    """
    Attributes:
        why_default: why it is the default configuration instead of the leader's; empty where it is not.
    """

    config: SchedulerConfiguration
    why_default: str = ""

    def note(self, store: Store, now_ms: int) -> str:
        """What whoever asks has to know: that it may not be what the system decides with; empty where it is.

        Raises:
            RedisUnavailable: Redis does not answer.
        """
        if self.why_default:
            return f"{self.why_default}, so the default configuration was used; --config names the leader's file"
        with client.reachable(store):
            known = workers.read(store)
        if any(not worker.silent(now_ms) and worker.config != self.config.hash for worker in known):
            return "the system's workers have another configuration, or other code; --config names its file"
        return ""


class LeadersConfiguration:
    """The configuration that the leader publishes, read again only when it is another one. Thread-safe."""

    def __init__(self, store: Store, plugins: Registry) -> None:
        self._store = store
        self._plugins = plugins
        self._known: tuple[str, SchedulerConfiguration] | None = None
        self._lock = threading.Lock()

    def read(self) -> Configured:
        """What the leader has published last; the default one where it has published none, or keeps it back.

        Raises:
            ConfigError: it cannot be read here, e.g. for a plugin that is not installed here.
            RedisUnavailable: Redis does not answer.
        """
        with client.reachable(self._store):
            told = leader_config.read(self._store)
        if told is None:
            return Configured(config.default(), NEVER_LED)
        if told.text:
            return Configured(self._parsed(told))
        default = config.default()
        if told.withheld and told.hash != default.hash:
            return Configured(default, f"the leader keeps its configuration back ({told.withheld})")
        return Configured(default)

    def _parsed(self, told: LeaderConfig) -> SchedulerConfiguration:
        with self._lock:
            if self._known is None or self._known[0] != told.hash:
                self._known = told.hash, profiles.parsed(told.text, told.source, self._plugins)
            return self._known[1]
