"""The leader process: stands by, leads, steps down.

One thread keeps the lease, renewed at a third of its time, so that work cannot starve it. Losing the lease or Redis
ends the term, not the process: it stands by again and starts over from Redis and the cluster when it gets the lease.
"""

import contextlib
import faulthandler
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

from dsched import backoff, emulation, garbage, log
from dsched.clock import Clock, SystemClock
from dsched.cluster.interface import Cluster
from dsched.cluster.opening import Kind
from dsched.config import SchedulerConfiguration, feature_gates
from dsched.emulation import Asked
from dsched.errors import (
    ClusterUnavailable,
    ConfigError,
    DschedError,
    PluginError,
    RedisUnavailable,
    StaleEpoch,
    UnfitRedis,
)
from dsched.framework import plugin_timeout
from dsched.framework.interface import Registry
from dsched.leader import dispatch
from dsched.leader.config_watch import ConfigWatch, Loaded
from dsched.leader.gauges import Held
from dsched.leader.health import LeaderHealth, Stage
from dsched.leader.settings import Settings
from dsched.leader.term import LeaderTerm
from dsched.leader.unreadable import set_aside
from dsched.log import logger
from dsched.metrics import FENCED
from dsched.model import coscheduling, reading
from dsched.model.queues import PLUGIN
from dsched.scheduler.pod_groups import NO_GROUPS, GroupCounts
from dsched.state import leader_config, redis_check
from dsched.state.client import UNAVAILABLE, CannotPersist, Store, WrongType, connect
from dsched.state.lease import LONGEST_S, Lease
from dsched.state.time import RedisClock
from dsched.tracing import Tracing

_log = logger(__name__)

FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 5.0
"""How long a leader waits before it starts over: twice as long each time."""
LONGEST_PAUSE_WITHOUT_REDIS_S = 0.5
"""Decisions wait about so long at most once Redis is back."""
LED_WELL_S = 5.0
"""After a term that went on for so long, the first pause is short again."""
STANDBY_S = 0.25
"""How often a standby asks for the lease; it is woken when a leader steps down, and waits for the very end of a lease
that is about to run out."""
LEASE_PATIENCE_S = 1.0
"""At least so long a reply about the lease is waited for."""
THREAD_TURN_S = 0.0005
"""How long a thread that decodes what comes in may keep the loop waiting whenever the loop comes back from Redis;
Python's own 5 ms are as long as deciding dozens of pods."""


class Leader:
    """The process.

    Attributes:
        progress: how it is getting on.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        cluster: Cluster,
        config: SchedulerConfiguration,
        registry: Registry,
        clock: Clock | None = None,
        config_file: Path | None = None,
        tracing: Tracing | None = None,
        asked: Asked | None = None,
    ) -> None:
        """
        Args:
            config_file: where ``config`` was read from; it is read again when it changes.
            tracing: where spans go, None where nothing is traced.
            asked: for the version that is to be emulated; None for that of ``config``, whatever the cluster is.
        """
        self._settings = settings
        self._store = store
        self._cluster = cluster
        self._registry = registry
        self._tracing = tracing
        self._clock = clock or SystemClock()
        patience_s = max(LEASE_PATIENCE_S, settings.lease_s * 2 / 3)  # asked at a third: it has run out by then
        lease_store = connect(store.url, store.name, patience_s)
        self._lease = Lease(lease_store, settings.identity, round(settings.lease_s * 1000))
        self._stop = threading.Event()
        self.term: LeaderTerm | None = None
        self.progress = LeaderHealth(self._clock)
        self._configured = ConfigWatch(
            connect(store.url, store.name),
            settings.identity,
            cluster.kind,
            config,
            registry,
            self.progress,
            self._clock,
            config_file,
            self._reconfigured,
        )
        self._asked = asked
        self._led = 0
        """The epoch under which this process has decided last: a takeover that was cut short took nothing in flight."""
        self._good: Loaded | None = None
        """The configuration that has led last."""

    def _reconfigured(self) -> None:
        """Another configuration: the present term ends between two batches, and the next one begins with it."""
        if self.term is not None:
            self.term.stop()

    @property
    def config(self) -> SchedulerConfiguration:
        """The configuration that this process has, another one once a changed file is taken up; from any thread."""
        return self._configured.loaded.config

    def held(self) -> Held | None:
        """What the present term holds in memory, None while there is none; from any thread."""
        term = self.term
        return None if term is None else term.held()

    def group_counts(self) -> GroupCounts:
        """The pods of pod groups in the queue; from any thread."""
        term = self.term
        return NO_GROUPS if term is None else term.memory.groups.counts()

    def stop(self) -> None:
        """Step down soon; may be called from any thread or a signal handler."""
        self._stop.set()
        if self.term is not None:
            self.term.stop()

    def stop_on_signals(self) -> None:
        """SIGTERM and SIGINT step down and release the lease; SIGHUP reads the configuration again; SIGUSR2 writes to
        the log what is held in memory."""

        def handler(_signal: int, _frame: FrameType | None) -> None:
            self.stop()

        signal.signal(signal.SIGTERM, handler)
        signal.signal(signal.SIGINT, handler)
        signal.signal(signal.SIGHUP, lambda _signal, _frame: self._configured.ask())
        signal.signal(signal.SIGUSR2, lambda _signal, _frame: self.dump())

    def dump(self) -> None:
        """Write soon to the log what the present term holds; may be called from any thread or a signal handler."""
        term = self.term
        if term is None:
            log.say(__name__, "nothing to dump, this process does not lead")
        else:
            term.dump()

    def run(self) -> None:
        """Stand by and lead until stopped.

        Raises:
            UnfitRedis: this Redis must not be used.
            PluginError, ConfigError: a plugin cannot be built with this configuration.
        """
        sys.setswitchinterval(THREAD_TURN_S)
        garbage.look_seldom()
        faulthandler.enable()  # should C code fail, the log says where
        dispatch.prepare(self._store)
        reading.prepare()
        self._configured.start()
        try:
            self._run()
        finally:
            self._configured.close()
            if self._tracing is not None:
                self._tracing.close()

    def _run(self) -> None:
        pause_s = FIRST_PAUSE_S
        checked = False
        self._emulate_early()
        while not self._stop.is_set():
            self.progress.turn()  # waiting for Redis is no reason to be killed
            began = self._clock.monotonic()
            try:
                if not checked:
                    redis_check.check(self._store, keeps_objects=self._cluster.kind == Kind.STANDALONE)
                    checked = True
                asked = self._clock.monotonic()
                leads = self._lease.acquire()
                for name in self._lease.garbage:
                    set_aside(name, "", "no leader wrote it")
                if self._lease.cut_s:
                    why = "somebody wrote it, or Redis' clock went back"
                    extra = {"action": "cut_lease", "lasted_s": self._lease.cut_s, "lasts_s": LONGEST_S, "reason": why}
                    _log.warning("a lease that no leader asks for, cut", extra=extra)
                self.progress.trouble = ""
                if leads:
                    self._lead(asked + self._settings.lease_s)
                else:
                    self._stand_by()
                pause_s = FIRST_PAUSE_S
            except (*UNAVAILABLE, RedisUnavailable) as error:
                checked = checked and isinstance(error, CannotPersist)  # that is the same server, and it answers
                pause_s = min(self._pause(pause_s, error, began), LONGEST_PAUSE_WITHOUT_REDIS_S)
            except StaleEpoch as error:
                FENCED.inc()
                _log.warning("no longer leading", extra={"action": "step_down", "reason": str(error)})
            except DschedError as error:
                if not self._lease.epoch:
                    raise
                checked = checked and not isinstance(error, UnfitRedis)  # stands by until it is fit again
                pause_s = self._pause(pause_s, error, began)
        # While Redis is away nobody leads; the lease runs out by itself.
        with contextlib.suppress(*UNAVAILABLE):
            self._lease.release()

    def _stand_by(self) -> None:
        """Until the lease may be had: it is given back, it runs out, or who holds it is of a version that says nothing
        when it gives it back."""
        if self._lease.left_s > STANDBY_S:
            self._lease.wait(STANDBY_S)
        else:
            self._stop.wait(self._lease.left_s + 0.001)

    def _pause(self, pause_s: float, error: Exception, began: float) -> float:
        """Wait after an error, only for a moment where what began then went well for long; returns the next pause."""
        if self._clock.monotonic() - began >= LED_WELL_S:
            pause_s = FIRST_PAUSE_S
        if self.progress.trouble != str(error):  # else it has been said
            _log.warning("starting over", extra={"action": "start_over", "error": str(error), "in_s": pause_s})
        self.progress.trouble = str(error)
        self._stop.wait(pause_s)
        return backoff.doubled(pause_s, 1, LONGEST_PAUSE_S)

    def _emulate_early(self) -> None:
        """See as a standby already what would be emulated, where the API server answers.

        Raises:
            ConfigError: as `_emulate`.
        """
        try:
            self._emulate()
        except ClusterUnavailable as error:
            _log.warning("asked again before leading", extra={"action": "emulate", "error": str(error)})

    def _emulate(self) -> None:
        """Have the configuration for the version that is to be emulated: the cluster's own, unless one was named.

        Raises:
            ConfigError: the configuration, or a feature gate, is not for that version. One that has led before goes on
                as it was; where there is none, the lease is given back.
            ClusterUnavailable: the cluster's version cannot be read.
        """
        if self._asked is None or self._asked.version is not None:
            return
        present = self._cluster.kubernetes_version()
        if present is None:
            return
        nearest = feature_gates.nearest(present)
        if nearest != present:
            _log.warning(
                "the API server's version cannot be emulated, the nearest one is",
                extra={"action": "emulate", "cluster": str(present), "version": str(nearest)},
            )
        try:
            self._configured.emulate(self._asked.on(present))
        except ConfigError as error:
            if self._good is None:
                self._give_up(error)
                raise
            self._configured.give_back(self._good, error)

    def _give_up(self, error: Exception) -> None:
        """No configuration can lead: leave the lease to a process that can."""
        _log.error("cannot lead with this configuration, ending", extra={"action": "give_up", "error": str(error)})
        with contextlib.suppress(*UNAVAILABLE):
            self._lease.release()
        self._lease.epoch = 0

    def _build(self, loaded: Loaded) -> LeaderTerm:
        """
        Raises:
            PluginError, ConfigError: this configuration can never lead. One that has led before goes on; where there is
                none, the lease is given back for a process that can.
        """
        try:
            return LeaderTerm(
                self._settings,
                self._store,
                self._cluster,
                loaded.config,
                self._registry,
                self._lease.epoch,
                RedisClock(self._store, self._clock),
                self.progress,
                self._led,
                self._tracing,
                loaded.published(self._lease.epoch, self._cluster.kind),
            )
        except (PluginError, ConfigError) as error:
            if self._good is not None and self._good.config is not loaded.config:
                self._configured.give_back(self._good, error)
                raise
            self._give_up(error)
            raise

    def _lead(self, good_until: float) -> None:
        """
        Args:
            good_until: the lease that was just taken, monotonic clock.
        """
        self._emulate()
        loaded = self._configured.loaded
        term = self.term = self._build(loaded)
        if self._stop.is_set() or loaded.config is not self._configured.loaded.config:
            return
        self._good = loaded
        version, gates = emulation.written(loaded.config.features)
        _log.info("emulating kube-scheduler", extra={"action": "emulate", "version": version, "gates": gates})
        leader_config.publish(self._store, loaded.published(self._lease.epoch, self._cluster.kind))
        over = threading.Event()
        self.progress.renewed(good_until)
        profiles = frozenset(profile.scheduler_name for profile in loaded.config.profiles)
        groups = loaded.config.features.enabled("GenericWorkload")
        claims = loaded.config.features.enabled("DRAWorkloadResourceClaims")
        self._cluster.lead(
            self._lease.epoch,
            self.progress.holds,
            profiles,
            groups=groups,
            group_claims=claims,
            queues=loaded.config.enables(PLUGIN),
            coscheduling=loaded.config.features.enabled(coscheduling.GATE),
        )
        keeper = threading.Thread(target=self._keep_lease, args=(term, over, good_until), name="lease", daemon=True)
        keeper.start()
        try:
            with plugin_timeout.watched(self._settings.plugin_timeout_s):
                term.run()
        finally:
            if self.progress.stage is Stage.LEADING:
                self._led = self.progress.epoch
            self.progress.enter(Stage.STANDBY)
            self.term = None
            over.set()
            keeper.join()

    def _keep_lease(self, term: LeaderTerm, over: threading.Event, good_until: float) -> None:
        """Renew until the term is over; end it when the lease cannot be kept."""
        while not over.wait(self._settings.lease_s / 3):
            asked = self._clock.monotonic()
            try:
                self._lease.renew()
                good_until = asked + self._settings.lease_s
                self.progress.renewed(good_until)
            except (StaleEpoch, WrongType):
                FENCED.inc()
                term.stop()
            except (*UNAVAILABLE, RedisUnavailable) as error:
                _log.warning("lease not renewed", extra={"action": "renew", "error": str(error)})
                if self._clock.monotonic() >= good_until:
                    term.stop()
