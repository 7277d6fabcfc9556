"""One epoch of leadership: from taking over to losing the lease, everything in one loop and one thread.

Each turn of the loop: hear what came in, look at the timers, decide a batch. It waits only when there is nothing to
decide, and then for the next thing to come in, so a pod that arrives at an idle system is decided at once.
"""

import contextlib
from collections.abc import Mapping, Sequence

from dsched import log
from dsched.clock import Clock
from dsched.cluster.interface import Cluster
from dsched.config import SchedulerConfiguration
from dsched.engine.select import Selector
from dsched.errors import StateError
from dsched.framework import plugin_timeout
from dsched.framework.interface import Registry
from dsched.framework.runtime import Framework
from dsched.leader import overflows
from dsched.leader.audit.compare import STEP_S, Audit
from dsched.leader.audit.dump import Dump
from dsched.leader.audit.repair import Repair
from dsched.leader.batches import CYCLE_S, Batches
from dsched.leader.binders.node_quarantine import NodeQuarantine
from dsched.leader.binders.sender import BindSender
from dsched.leader.binders.tracker import BindTracker
from dsched.leader.commit import Commit
from dsched.leader.dispatch import Dispatcher
from dsched.leader.evaluators.router import Router
from dsched.leader.events import Events
from dsched.leader.expectations import GATE, Expectations
from dsched.leader.failure import Failures
from dsched.leader.gauges import Held
from dsched.leader.health import LeaderHealth, Stage
from dsched.leader.intake import Intake
from dsched.leader.observers.decision_log import DecisionLog
from dsched.leader.observers.explanations import Explanations
from dsched.leader.observers.loop_time import EVENTS, INTAKE, POP, SETTLE, TIMERS, WAIT, WRITE_EVERY_S, LoopTime
from dsched.leader.observers.recording import LOOK_EVERY_S, RecordedCycle, RecordingObserver
from dsched.leader.observers.traces import Traces
from dsched.leader.overflows import Overflows
from dsched.leader.preemption import Preemptions
from dsched.leader.promises import Promises
from dsched.leader.requests import CommandRequests
from dsched.leader.settings import Settings
from dsched.leader.sources import Answered, Broken, Heard, Letter, Sources
from dsched.leader.takeover import Takeover
from dsched.leader.timers import Timers
from dsched.leader.upkeep import Upkeep
from dsched.log import logger
from dsched.metrics import TAKEOVER_DURATION, TURN_DURATION, collect
from dsched.plugins import profiles
from dsched.scheduler.cache import Cache
from dsched.scheduler.cycle import Cycle
from dsched.scheduler.decision import Decision
from dsched.scheduler.handle import LeaderHandle
from dsched.scheduler.plugin_breaker import PluginBreaker
from dsched.scheduler.ports import QueueName
from dsched.scheduler.queue import Backoff, PendingPods
from dsched.scheduler.waiting_pods import WaitingPods
from dsched.state import time as redis_time
from dsched.state import workers
from dsched.state.attempt_history import AttemptHistory
from dsched.state.client import Store, WrongType
from dsched.state.leader_config import LeaderConfig
from dsched.state.node_log import NodeLog
from dsched.state.pipeline import Pipeline
from dsched.state.queue import Queue
from dsched.state.recording import RecordingStream
from dsched.state.reservations import Reservations
from dsched.state.results import Results
from dsched.state.usage import Usage
from dsched.tracing import Tracing

_log = logger(__name__)

BACKOFF_EVERY_S = 1.0
UNSCHEDULABLE_EVERY_S = 30.0
OVERDUE_EVERY_S = 0.5
PING_EVERY_S = 2.0
PROMISES_EVERY_S = 5.0
ASIDE_EVERY_S = 1.0
REQUESTS_EVERY_S = 0.25
PAUSES_EVERY_S = 1.0
UPKEEP_EVERY_S = 2.0


class LeaderTerm:
    """Leads under one epoch."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        cluster: Cluster,
        config: SchedulerConfiguration,
        registry: Registry,
        epoch: int,
        clock: Clock,
        progress: LeaderHealth | None = None,
        before: int = 0,
        tracing: Tracing | None = None,
        told: LeaderConfig | None = None,
    ) -> None:
        """
        Args:
            before: the epoch under which this process led last, 0 if it did not.
            tracing: where spans go, None where nothing is traced.
            told: what workers are told of the configuration.
        """
        if progress is None:  # there is no lease that could be lost
            progress = LeaderHealth(clock)
            progress.renewed(float("inf"))
        self._progress = progress
        self._store = store
        self._clock = clock
        self._epoch = epoch
        self._cluster = cluster
        self._line = Pipeline(store.redis)
        lined = store.on(self._line)
        self._queue = Queue(lined, epoch)
        self._pending = PendingPods(
            clock, Backoff(config.pod_initial_backoff_seconds * 1000, config.pod_max_backoff_seconds * 1000)
        )
        node_log = NodeLog(store, epoch)
        self._cache = Cache(Usage(lined, epoch), node_log)
        self._waiting = WaitingPods()
        self._phases = LoopTime(lined)
        handle = LeaderHandle(self._cache, self._waiting, self._pending, clock)
        self._frameworks: Mapping[str, Framework] = profiles.frameworks(config, registry, handle, cluster.get_objects)
        self._dispatcher = Dispatcher(store)
        self._sender = BindSender(self._dispatcher)
        self._results = Results(lined, epoch)
        reservations = Reservations(lined, epoch)
        failures = Failures(self._pending, self._queue, cluster)
        self._events = Events(self._frameworks, self._pending, self._queue)
        quarantine = NodeQuarantine(self._cache, cluster, self._events.happened, clock)
        self._cache.dress = quarantine.dressed
        self._binding = BindTracker(
            epoch,
            config.hash,
            self._pending,
            self._cache,
            cluster,
            reservations,
            self._sender,
            failures,
            clock,
            self._events.happened,
            quarantine,
        )
        breaker = PluginBreaker(clock)
        router = Router(
            settings.mode,
            store,
            epoch,
            config.hash,
            self._cache,
            self._dispatcher,
            clock,
            cluster.kind,
            breaker,
            settings.plugin_timeout_s,
        )
        self._traces = None if tracing is None else Traces(tracing, epoch, self._pending, self._cache, self._binding)
        if self._traces is not None:
            self._binding.traced, router.traced = self._traces.handed_out, self._traces.scattered
        percentages = {profile.scheduler_name: profile.effective_percentage(config) for profile in config.profiles}
        selector = Selector(settings.seed, tell_best=settings.decisions is not None)
        expected = config.features.enabled(GATE)
        expectations = Expectations(self._pending, cluster, on=expected)
        explaining = Explanations(settings.explain, AttemptHistory(store, epoch), self._cache.snapshot, clock)
        cycle = Cycle(
            self._frameworks,
            percentages,
            self._cache,
            router if self._traces is None else self._traces.around(router),
            selector,
            self._waiting,
            clock,
            router.gather_first,
            explaining.looked if explaining.looks else None,
            breaker,
        )
        self._recording_observer = RecordingObserver(
            RecordingStream(store, epoch), config, self._cache, self._pending, self._waiting, selector, clock
        )

        def committed(decisions: Sequence[Decision]) -> None:
            expectations.tell(decisions)
            explaining.tell(decisions)

        self._commit = Commit(
            RecordedCycle(cycle, self._recording_observer),
            self._pending,
            self._cache,
            reservations,
            self._binding,
            self._waiting,
            failures,
            Preemptions(self._pending, self._cache.snapshot, cluster, clock, self._events.happened),
            DecisionLog(settings.decisions, store, epoch, settings.seed),
            clock,
            self._phases.to if self._traces is None else self._traces.timing(self._phases.to),
            committed,
        )
        size = 1 if config.extenders else 32  # how long extenders take is not known yet
        self._batches = Batches(
            epoch,
            self._queue,
            self._line,
            self._pending,
            self._binding,
            self._waiting,
            self._commit,
            clock,
            self._traces,
            size,
        )
        self._intake = Intake(
            self._frameworks,
            self._pending,
            self._cache,
            self._queue,
            cluster,
            self._binding,
            self._events,
            self._batches.finish,
        )
        self._takeover = Takeover(
            store,
            epoch,
            self._frameworks,
            self._pending,
            self._cache,
            self._queue,
            reservations,
            cluster,
            self._binding,
            self._events,
            self._intake,
            failures,
            before,
        )
        promises = Promises(self._pending, self._cache.snapshot, cluster, self._events, clock)
        self._timers = Timers(clock)
        self._timers.every(BACKOFF_EVERY_S, self._flush_backoff, aligned=True)
        self._timers.every(UNSCHEDULABLE_EVERY_S, self._rescue)
        self._timers.every(OVERDUE_EVERY_S, self._binding.look_up_overdue)
        self._timers.every(PING_EVERY_S, lambda: self._sender.run(self._ping))
        self._timers.every(PROMISES_EVERY_S, promises.expire)
        self._timers.every(WRITE_EVERY_S, self._phases.write)
        self._timers.every(ASIDE_EVERY_S, quarantine.expire)
        self._timers.every(overflows.EVERY_S, Overflows(lined, self._cache.snapshot.table).tell)
        repairs = Repair(
            store,
            cluster,
            self._pending,
            self._cache,
            self._queue,
            reservations,
            self._binding,
            self._events,
            self._intake,
        )
        self._audit = Audit(
            store, cluster, self._pending, self._cache, self._binding, repairs, lambda: self._marked, clock
        )
        self._timers.every(STEP_S, self._compare)
        self._dump = Dump(self._audit, self._compare, self._pending, self._cache, self._binding)
        self._upkeep = Upkeep(store, epoch, node_log, told)
        self._timers.every(UPKEEP_EVERY_S, self._upkeep.look)
        requested = CommandRequests(store, epoch, self._frameworks, self._pending, self._events)
        self._timers.every(REQUESTS_EVERY_S, requested.answer)
        self._timers.every(PAUSES_EVERY_S, requested.notice)
        self._timers.every(LOOK_EVERY_S, self._recording_observer.look)
        self._heard = 0
        """The version of the cluster up to which changes were heard."""
        self._marked = 0
        """The one up to which it was said that they are taken in."""
        self._to_mark = 0, 0
        """The one to say next, and the number of the last script that it came to."""
        self._stopping = False
        self._sources: Sources | None = None

    def stop(self) -> None:
        """Let `run` return soon; from any thread or a signal handler."""
        self._stopping = True
        if self._sources is not None:
            self._sources.wake()

    def dump(self) -> None:
        """Write soon to the log what is held in memory; from any thread or a signal handler."""
        self._dump.ask()
        if self._sources is not None:
            self._sources.wake()

    def run(self) -> None:
        """Lead until stopped.

        Raises:
            StaleEpoch: another leader has taken over.
            DschedError, or what `dsched.state.client.UNAVAILABLE` lists: start over.
        """
        try:
            self._run()
        except WrongType:
            with contextlib.suppress(WrongType):  # the epoch's own key, which is cleared when the lease is taken
                self._upkeep.clear()
            raise

    def _run(self) -> None:
        log.about(epoch=self._epoch)
        self._progress.enter(Stage.TAKEOVER, self._epoch)
        began = collect.now()
        self._upkeep.begin()
        self._sender.run(self._ping)  # workers take the configuration up meanwhile, before the first task
        version = self._takeover.run()
        self._line.settle()
        TAKEOVER_DURATION.observe(collect.now() - began)
        self._progress.enter(Stage.LEADING, self._epoch)
        self._marked = self._heard = version
        self._to_mark = version, 0
        sources = self._sources = Sources(self._cluster, self._results, version)
        sources.open()
        try:
            busy = True
            while not self._over():
                timeout_s = 0.0 if busy or self._dump.due else self._idle_s()
                self._phases.to(WAIT)
                with plugin_timeout.undisturbed():
                    letters = sources.letters(timeout_s)
                began = collect.now()
                self._progress.turn()
                self._hear(letters)
                self._batches.finish()
                self._mark()
                self._phases.to(TIMERS)
                self._timers.run()
                self._dump.step()
                self._phases.to(EVENTS)
                self._commit.settle_waiting()
                if self._traces is not None:
                    self._traces.turn()
                self._events.apply()
                self._phases.to(POP)
                busy = self._batches.decide() or self._events.busy
                if not busy:
                    self._line.settle()
                    self._mark()
                self._recording_observer.flush()
                collect.flush()
                TURN_DURATION.observe(collect.now() - began)
            self._batches.end()
        finally:
            log.about()
            sources.close()
            if self._traces is not None:
                self._traces.close()
            self._cluster.stand_down()
            self._sender.close()
            self._dispatcher.close()
            self._line.close()

    def _idle_s(self) -> float:
        """How long to wait for something to come in where there is nothing to decide."""
        return min(self._timers.next_in_s(), CYCLE_S if len(self._waiting) else 1.0)

    def _over(self) -> bool:
        """Whether to stop: somebody says so, or the lease has run out and nothing was heard of its renewal."""
        if not self._stopping and not self._progress.holds():
            _log.warning("no longer leading", extra={"action": "step_down", "reason": "the lease was not renewed"})
            self._stopping = True
        return self._stopping

    def _hear(self, letters: list[Letter]) -> None:
        for letter in letters:
            match letter:
                case Heard(events=events, version=up_to):
                    self._phases.to(INTAKE)
                    self._intake.take(events)
                    self._heard = up_to
                case Answered(results=results):
                    self._phases.to(SETTLE)
                    self._binding.settle(results)
                    self._results.ack(results)
                case Broken(error=error):
                    raise error if isinstance(error, StateError) else StateError(f"cannot go on: {error}") from error

    def _mark(self) -> None:
        """Say what has been taken in, once Redis has done all that it came to."""
        if self._to_mark[0] == self._marked:
            self._to_mark = self._heard, self._line.count
        version, number = self._to_mark
        if version != self._marked and self._line.answered(number):
            self._queue.mark_intake(version, self._frameworks, self._cluster.kind)
            self._marked = version

    def held(self) -> Held:
        """What the term holds in memory; from any thread."""
        table = self._cache.snapshot.table
        pods = int(table.pod_count.sum())
        return Held(len(table), pods, len(self._binding), self._events.gathered, self._pending.rejections())

    def _flush_backoff(self) -> None:
        ready = self._queue.flush_backoff(self._clock.now_ms())
        collect.incoming(QueueName.ACTIVE, collect.BACKOFF_COMPLETE, len(ready))
        for key in ready:
            pod = self._pending.get(key)
            if pod is not None:
                self._pending.placed(pod, QueueName.ACTIVE)

    def _rescue(self) -> None:
        self._events.rescue(self._clock.now_ms())

    def _compare(self) -> None:
        if self._audit.looking:
            self._line.settle()  # what it looks up by other connections is to be there
        self._audit.step()

    def _ping(self) -> None:
        """Ask workers for a sign of life, and forget those that have given none for long; by the bind sender."""
        now_ms = redis_time.now_ms(self._store)  # which may have been set since the term began
        known = workers.read(self._store)
        for worker in known:
            if now_ms - worker.last_seen_ms > workers.FORGOTTEN_AFTER_MS:
                self._dispatcher.forget(worker.name)
                workers.leave(self._store, worker.name)
        self._dispatcher.ping([worker.name for worker in known], expires_s=workers.SILENT_AFTER_MS / 1000)
