"""The configuration that the running system decides with, for explanations of what it would decide."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dsched import config, emulation
from dsched.config import Features, SchedulerConfiguration
from dsched.config.feature_gates import DEFAULT
from dsched.emulation import NOTHING, Asked
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
    """The configuration that the leader publishes, or one that was named instead, for what the leader emulates; read
    again only when either is another one. Thread-safe."""

    def __init__(self, store: Store, plugins: Registry, file: Path | None = None, asked: Asked = NOTHING) -> None:
        """
        Args:
            file: of a configuration to take instead of the leader's.
            asked: a version and feature gates to take instead.
        """
        self._store = store
        self._plugins = plugins
        self._file = file
        self._asked = asked
        self._known: tuple[tuple[str, Features], SchedulerConfiguration] | None = None
        self._lock = threading.Lock()

    def read(self) -> Configured:
        """What the leader has published last; the default one where it has published none, or keeps it back. This
        process counts what pods take up accordingly from now on.

        Raises:
            ConfigError: it cannot be read here, e.g. for a plugin that is not installed here; or the named one was
                refused.
            RedisUnavailable: Redis does not answer.
        """
        with client.reachable(self._store):
            told = leader_config.read(self._store)
        emulated = DEFAULT if told is None else emulation.read(told.version, told.gates)
        features = self._asked.instead_of(emulated)
        profiles.emulate(features)
        if self._file is not None:
            file = self._file
            return Configured(self._once("", features, lambda: profiles.configuration(file, self._plugins, features)))
        if told is None:
            return Configured(config.default(features), NEVER_LED)
        if told.text:
            return Configured(self._once(told.hash, features, lambda: self._parsed(told, features)))
        if told.withheld and told.hash != config.default(emulated).hash:
            why = f"the leader keeps its configuration back ({told.withheld})"
            return Configured(config.default(features), why)
        return Configured(config.default(features))

    def _parsed(self, told: LeaderConfig, features: Features) -> SchedulerConfiguration:
        return profiles.parsed(told.text, told.source, self._plugins, features)

    def _once(
        self, which: str, features: Features, read: Callable[[], SchedulerConfiguration]
    ) -> SchedulerConfiguration:
        with self._lock:
            if self._known is None or self._known[0] != (which, features):
                self._known = (which, features), read()
            return self._known[1]
