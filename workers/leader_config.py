"""The configuration of a worker's process, and how it comes to that of the leader.

A worker begins with its own file, or the default configuration, as the version that its environment asks for. Where
the leader has another one, the worker takes up what the leader has published: when it starts, before the next task or
at the next ping; where it cannot, it refuses and says why.
"""

import os
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from dsched import emulation
from dsched.cluster import opening
from dsched.config import SchedulerConfiguration
from dsched.emulation import Asked
from dsched.errors import ConfigError, DschedError
from dsched.framework.interface import Registry
from dsched.log import logger
from dsched.metrics import CONFIG_RELOADS
from dsched.plugins import profiles, registry
from dsched.state import leader_config
from dsched.state.client import Store
from dsched.state.leader_config import LeaderConfig

_log = logger(__name__)

TRIED_AGAIN_S = 5.0
"""A configuration that could not be taken up is not tried again before that."""

Build = Callable[[SchedulerConfiguration], None]


class LeaderConfigFollower:
    """One process's configuration.

    Attributes:
        trouble: why the leader's configuration, or cluster, is not this process's; empty where it is.
        build: makes the frameworks of a configuration, or fails and leaves those there are; None before the first task.
    """

    def __init__(self, store: Callable[[], Store]) -> None:
        self.trouble = ""
        self.build: Build | None = None
        self._store = store
        self._file = Path(os.environ["DSCHED_CONFIG"]) if os.environ.get("DSCHED_CONFIG") else None
        self._taken: SchedulerConfiguration | None = None
        self._failed: tuple[str, float, str] = ("", 0.0, "")

    @cached_property
    def plugins(self) -> Registry:
        """Every plugin there is, in tree and out of tree."""
        return registry.load()

    @cached_property
    def kind(self) -> str:
        """What this process takes to keep the objects: standalone or kubernetes."""
        return opening.from_environment().kind.value

    @cached_property
    def _asked(self) -> Asked:
        """The version and the gates to begin with."""
        return emulation.from_environment()

    @property
    def config(self) -> SchedulerConfiguration:
        """The present configuration: the leader's once it was taken up, this process's own before.

        Raises:
            ConfigError: this process's own file cannot be read, or was refused; or a variable was.
        """
        if self._taken is None:
            # Where no version is named it is the leader's to say; this process's own file is good for any until then.
            possible = self._asked.possible(on_kubernetes=True)
            self._taken = profiles.first_accepted(self._file, self.plugins, possible)
        return self._taken

    def check(self) -> None:
        """See whether this process's own file, and the kind of its cluster, are such that it can begin with them.

        Raises:
            ConfigError: as `config`; or there is no such kind.
        """
        _ = self.config, self.kind

    def refusal(self, wanted: str, cluster: str) -> str:
        """Why a task of a leader with this configuration cannot be done here, empty where it can; takes the
        configuration up if need be.

        Args:
            wanted: hash of the leader's configuration.
            cluster: of which kind its cluster is; empty where an older leader does not say.
        """
        self.trouble = self._other_cluster(cluster) or self._other_configuration(wanted)
        return self.trouble

    def look(self) -> None:
        """See what the leader has, and take it up."""
        told = leader_config.read(self._store())
        if told is None:
            self.trouble = ""
        else:
            self.trouble = self._other_cluster(told.cluster) or self._other_configuration(told.hash, told)

    def other_cluster(self, cluster: str) -> bool:
        """Whether the leader's objects are kept elsewhere than where this process looks."""
        return bool(self._other_cluster(cluster))

    def _other_cluster(self, cluster: str) -> str:
        if cluster in ("", self.kind):
            return ""
        return (
            f"this worker was started for a {self.kind} cluster, the leader schedules a {cluster} one; "
            f"start it with {opening.KIND}={cluster}"
        )

    def _other_configuration(self, wanted: str, told: LeaderConfig | None = None) -> str:
        own = self.config.hash
        if wanted == own:
            return ""
        failed, until, why = self._failed
        if failed != wanted or time.monotonic() >= until:
            why = self._take_up(wanted, told or leader_config.read(self._store()))
            self._failed = (wanted, time.monotonic() + TRIED_AGAIN_S, why) if why else ("", 0.0, "")
        return f"configuration {own} here, {wanted} asked for: {why}" if why else ""

    def _take_up(self, wanted: str, told: LeaderConfig | None) -> str:
        """Why it cannot be done, empty when it is done."""
        try:
            config = self._wanted(wanted, told)
            if config is None:
                return "the leader that asks has not published it; an older one, or one that no longer leads"
            if config.hash != wanted:
                raise ConfigError(
                    f"read here it comes to {config.hash}; leader and worker differ in version or plugins"
                    + (f" ({config.carried_out_by} here, {told.code} there)" if told and told.code else "")
                )
            if self.build is not None:
                self.build(config)
        except DschedError as error:
            CONFIG_RELOADS.labels("refused").inc()
            _log.error(
                "the leader's configuration cannot be taken up here",
                extra={"action": "reload", "config": wanted, "error": str(error)},
            )
            return " ".join(str(error).split())
        CONFIG_RELOADS.labels("taken").inc()
        _log.info(
            "the leader's configuration taken up",
            extra={
                "action": "reload",
                "config": wanted,
                "before": self.config.hash,
                "epoch": told.epoch if told else 0,
            },
        )
        self._taken = config
        return ""

    def _wanted(self, wanted: str, told: LeaderConfig | None) -> SchedulerConfiguration | None:
        """The leader's configuration; where it keeps the text back, what this process's own file says now.

        Raises:
            ConfigError: it was refused, or cannot be had.
        """
        if told is None or told.hash != wanted:
            return None
        features = emulation.read(told.version, told.gates)
        if not told.withheld:
            return (
                profiles.parsed(told.text, told.source, self.plugins, features)
                if told.text
                else profiles.configuration(None, self.plugins, features)
            )
        if self._file is None:
            raise ConfigError(f"{told.withheld}; give this worker the file with DSCHED_CONFIG")
        return profiles.configuration(self._file, self.plugins, features)
