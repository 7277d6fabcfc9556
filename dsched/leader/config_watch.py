"""The leader's configuration file: read, tried, taken up when it has changed; the last good one stays otherwise.

A thread of its own looks at the file every second: at what is in it, so that a mounted ConfigMap, whose links are
swapped, is seen as well as a file that is written over. A change is taken up once it reads the same twice, or at once
when somebody asks for it (SIGHUP, ``dsched config reload``). The thread also tells in Redis which configuration this
process has, and what it does.
"""

import contextlib
import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from queue import Empty, SimpleQueue

from dsched import emulation
from dsched.clock import Clock
from dsched.cluster.opening import Kind
from dsched.config import Features, SchedulerConfiguration
from dsched.errors import ConfigError, DschedError, PluginError
from dsched.framework import plugin_timeout
from dsched.framework.interface import Registry
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.leader.health import LeaderHealth
from dsched.log import logger
from dsched.metrics import CONFIG_REFUSED, CONFIG_RELOADS
from dsched.model.meta import NodeName, PodUid
from dsched.plugins import profiles
from dsched.scheduler.handle import LeaderHandle
from dsched.scheduler.queue import Backoff, PendingPods
from dsched.scheduler.waiting_pods import WaitingPods
from dsched.state import leaders
from dsched.state.client import UNAVAILABLE, Store
from dsched.state.leader_config import LeaderConfig
from dsched.state.leaders import LeaderNote

_log = logger(__name__)

LOOK_EVERY_S = 1.0
NOTE_EVERY_S = 2.0
HOLDS_KEYS = "the configuration holds private keys, which are not written to Redis"
READ_ELSEWHERE = "the leader was not told which file its configuration was read from"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration with the text that it was read from, None where that is not known."""

    config: SchedulerConfiguration
    text: str | None
    source: str = ""

    def published(self, epoch: int, cluster: str) -> LeaderConfig:
        """As workers are told."""
        withheld = ""
        if any(extender.tls is not None and extender.tls.key_data for extender in self.config.extenders):
            withheld = HOLDS_KEYS
        elif self.text is None:
            withheld = READ_ELSEWHERE
        text = "" if withheld else self.text or ""
        code, emulated = self.config.carried_out_by, emulation.written(self.config.features)
        return LeaderConfig(epoch, self.config.hash, cluster, self.source, text, withheld, code, *emulated)


class _Call(Enum):
    """What the thread is woken for."""

    READ = "read"
    """Somebody asks for the file to be read again."""
    NOTE = "note"
    """There is something else to tell in Redis."""


class ConfigWatch:
    """A leader process's configuration.

    Attributes:
        loaded: the present one; the last that was good.
    """

    def __init__(
        self,
        store: Store,
        identity: str,
        cluster: str,
        config: SchedulerConfiguration,
        plugins: Registry,
        progress: LeaderHealth,
        clock: Clock,
        file: Path | None = None,
        taken: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Args:
            store: a connection of its own, for the thread.
            file: where the configuration was read from; None for the default one.
            taken: called from the thread when ``loaded`` has changed.
        """
        self.loaded = Loaded(config, None)
        self._store = store
        self._identity = identity
        self._cluster = cluster
        self._first = config
        self._features = config.features
        self._reading = threading.Lock()
        self._plugins = plugins
        self._progress = progress
        self._clock = clock
        self._file = file
        self._taken = taken
        self._taken_ms = clock.now_ms()
        self._error, self._error_ms = "", 0
        self._done = b""
        """Digest of what was tried last."""
        self._before = b""
        """Digest of what stood there at the last look."""
        self._answered: int | None = None
        self._calls: SimpleQueue[_Call] = SimpleQueue()  # which a signal handler may put into, whatever it interrupts
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._noted = float("-inf")
        progress.entered = lambda: self._calls.put(_Call.NOTE)
        self._read_first()

    def _read_first(self) -> None:
        """Find the text of the configuration that the process was started with."""
        if self._file is None:
            default = profiles.configuration(None, {}, self._first.features)
            self.loaded = Loaded(self._first, "" if self._first.hash == default.hash else None)
            return
        try:
            text = self._file.read_bytes()
            if profiles.parsed(text, str(self._file), self._plugins, self._first.features).hash == self._first.hash:
                self.loaded, self._done = Loaded(self._first, text.decode(), str(self._file)), _digest(text)
        except (OSError, ConfigError, UnicodeDecodeError) as error:  # changed since it was loaded: the thread will see
            _log.warning("configuration changed while starting", extra={"action": "reload", "error": str(error)})

    # -- the thread ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to look."""
        self._over.clear()
        self._thread = threading.Thread(target=self._run, name="configuration", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop looking; the process is no longer noted."""
        self._over.set()
        self._calls.put(_Call.NOTE)
        if self._thread is not None:
            self._thread.join()
        try:
            leaders.leave(self._store, self._identity)
        except DschedError as error:
            _log.debug("not taken off the list", extra={"action": "leave", "error": str(error)})
        self._store.close()

    def ask(self) -> None:
        """Read the file again, now; from any thread or a signal handler."""
        self._calls.put(_Call.READ)

    def _run(self) -> None:
        plugin_timeout.unheard()
        calls: set[_Call] = set()
        while not self._over.is_set():
            try:
                number = leaders.asked(self._store)
            except (DschedError, *UNAVAILABLE):
                number = None
            wanted = _Call.READ in calls or (number not in (None, self._answered) and self._answered is not None)
            if wanted or not calls:  # a look before its time would take up a file that is still being written
                self.look(at_once=wanted)
            if number is not None:
                self._note(number, at_once=bool(calls) or number != self._answered)
            calls = self._wait()

    def _wait(self) -> set[_Call]:
        """Until the next look; what the thread was called for meanwhile."""
        calls = set()
        with contextlib.suppress(Empty):
            calls.add(self._calls.get(timeout=LOOK_EVERY_S))
            while True:
                calls.add(self._calls.get_nowait())
        return calls

    def _note(self, number: int, *, at_once: bool) -> None:
        now = self._clock.monotonic()
        if not at_once and now - self._noted < NOTE_EVERY_S:
            return
        try:
            leaders.note(self._store, self._told(number))
            self._noted, self._answered = now, number
        except (DschedError, *UNAVAILABLE) as error:
            _log.debug("not noted", extra={"action": "note", "error": str(error)})

    def _told(self, number: int) -> LeaderNote:
        loaded = self.loaded
        return LeaderNote(
            self._identity,
            self._progress.stage.value,
            self._progress.epoch,
            loaded.config.hash,
            self._cluster,
            source=loaded.source,
            taken_ms=self._taken_ms,
            error=self._error,
            error_ms=self._error_ms,
            restart=self._restart(loaded.config),
            reload=number,
        )

    def _restart(self, config: SchedulerConfiguration) -> tuple[str, ...]:
        """What has changed since the process was started and shows only once it is started again."""
        if self._cluster != Kind.KUBERNETES:
            return ()
        found = []
        if config.client_connection.kubeconfig != self._first.client_connection.kubeconfig:
            found.append("clientConnection.kubeconfig")
        if config.profiles[0].scheduler_name != self._first.profiles[0].scheduler_name:
            found.append("the first profile's schedulerName, under which events are sent")
        return tuple(found)

    def emulate(self, features: Features) -> None:
        """Have the configuration for another version of kube-scheduler, or other feature gates, from now on.

        Raises:
            ConfigError: it is none for that version, or its text is not known here; the present one stays.
        """
        with self._reading:
            loaded = self.loaded
            if features == loaded.config.features:
                return
            text = self._text(loaded)
            if self._file is None:
                config = profiles.configuration(None, self._plugins, features)
            else:
                config = profiles.parsed(text, str(self._file), self._plugins, features)
            self._features = features
            self.loaded = Loaded(config, text, str(self._file or ""))
            if self._file is None:
                self._error, self._error_ms = "", 0
                CONFIG_REFUSED.set(0)
            elif self._error:
                self._done = b""  # what was refused may be right for this version
            self._taken_ms = self._clock.now_ms()

    def _text(self, loaded: Loaded) -> str:
        if loaded.text is not None:
            return loaded.text
        if self._file is None:
            raise ConfigError(f"the configuration cannot be read for another version: {READ_ELSEWHERE}")
        try:
            return self._file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{self._file} cannot be read: {error}") from error

    # -- looking ---------------------------------------------------------------------------------------------------

    def look(self, *, at_once: bool) -> None:
        """See whether the file has changed, and take it up if it is good.

        Args:
            at_once: somebody asks: what was refused is tried again, and what has just changed is not waited for.
        """
        if self._file is None:
            if at_once:
                _log.info("nothing to reload", extra={"action": "reload", "reason": "started without --config"})
            return
        try:
            text = self._file.read_bytes()
        except OSError as error:
            # While a mounted folder is swapped the file may be away for a moment.
            before, self._before = self._before, b"?"
            if at_once or before == b"?":
                self._refuse(b"?", ConfigError(f"{self._file} cannot be read: {error.strerror}"), again=at_once)
            return
        digest = _digest(text)
        before, self._before = self._before, digest
        if at_once or (digest != self._done and digest == before):
            with self._reading:
                self._try(text, digest, again=at_once)

    def _try(self, text: bytes, digest: bytes, *, again: bool) -> None:
        try:
            config = profiles.parsed(text, str(self._file), self._plugins, self._features)
            self._build(config)
        except (ConfigError, PluginError) as error:
            self._refuse(digest, error, again=again)
            return
        self._done, self._error, self._error_ms = digest, "", 0
        CONFIG_REFUSED.set(0)
        before = self.loaded.config
        if config.hash == before.hash:
            CONFIG_RELOADS.labels("unchanged").inc()
            _log.info("configuration is as it was", extra={"action": "reload", "config": config.hash})
            self.loaded = Loaded(before, text.decode(), str(self._file))
            return
        self.loaded = Loaded(config, text.decode(), str(self._file))
        self._taken_ms = self._clock.now_ms()
        CONFIG_RELOADS.labels("taken").inc()
        _log.info("configuration taken up", extra={"action": "reload", "config": config.hash, "before": before.hash})
        for what in self._restart(config):
            _log.warning("takes a restart", extra={"action": "reload", "what": what})
        self._taken()

    def _build(self, config: SchedulerConfiguration) -> None:
        """
        Raises:
            PluginError: the profiles cannot be built with the plugins that are here.
        """
        handle = LeaderHandle(_Nothing(), WaitingPods(self._clock), PendingPods(self._clock, Backoff()), self._clock)
        profiles.frameworks(config, self._plugins, handle)

    def _refuse(self, digest: bytes, error: Exception, *, again: bool) -> None:
        if digest == self._done and self._error and not again:
            return
        self._done = digest
        self._error, self._error_ms = str(error), self._clock.now_ms()
        CONFIG_RELOADS.labels("refused").inc()
        CONFIG_REFUSED.set(1)
        _log.error(
            "configuration refused, the last good one stays",
            extra={"action": "reload", "config": self.loaded.config.hash, "error": str(error)},
        )

    def give_back(self, good: Loaded, error: Exception) -> None:
        """The present configuration cannot lead after all: take the one that led before."""
        self.loaded, self._taken_ms = good, self._clock.now_ms()
        self._refuse(self._done, error, again=True)


class _Nothing:
    """A cluster without nodes, to build plugins with."""

    def __init__(self) -> None:
        self.snapshot = Snapshot()

    def assume(self, pod: PodInfo, node: NodeName) -> None:
        """There are no nodes."""

    def forget(self, uid: PodUid, *, released: bool) -> None:
        """There are no pods."""


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()
