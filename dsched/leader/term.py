"""One epoch of leadership: from taking over to losing the lease, everything in one loop and one thread.

Each turn of the loop: hear what came in, look at the timers, decide a batch. It waits only when there is nothing to
decide, and then for the next thing to come in, so a pod that arrives at an idle system is decided at once.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from dsched import log
from dsched.clock import Clock
from dsched.cluster.interface import Cluster
from dsched.config import SchedulerConfiguration
from dsched.engine.select import Selector
from dsched.errors import StateError
from dsched.framework import plugin_timeout
from dsched.framework.interface import Registry
from dsched.leader import overflows, queue_statuses, wiring
from dsched.leader.audit.compare import STEP_S
from dsched.leader.audit.dump import Dump
from dsched.leader.batches import CYCLE_S
from dsched.leader.binders.sender import BindSender
from dsched.leader.dispatch import Dispatcher
from dsched.leader.gauges import Held
from dsched.leader.health import LeaderHealth, Stage
from dsched.leader.intake import Intake
from dsched.leader.observers.loop_time import EVENTS, INTAKE, POP, SETTLE, TIMERS, WAIT, WRITE_EVERY_S
from dsched.leader.observers.recording import LOOK_EVERY_S
from dsched.leader.overflows import Overflows
from dsched.leader.parts import LeaderMemory, StoredState
from dsched.leader.promises import Promises
from dsched.leader.queue_statuses import QueueStatuses
from dsched.leader.requests import CommandRequests
from dsched.leader.searches import Searches
from dsched.leader.settings import Settings
from dsched.leader.sources import Answered, Broken, Heard, Letter, Listens, Silence, Sources
from dsched.leader.upkeep import Upkeep
from dsched.log import logger
from dsched.metrics import TAKEOVER_DURATION, TURN_DURATION, collect
from dsched.scheduler.ports import QueueName
from dsched.scheduler.queue import QueuedGroup
from dsched.scheduler.quota.picking import Picking
from dsched.state import time as redis_time
from dsched.state import workers
from dsched.state.client import Store, WrongType
from dsched.state.leader_config import LeaderConfig
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


@dataclass(slots=True)
class _Timer:
    every_s: float
    action: Callable[[], object]
    aligned: bool
    share: float
    due: float = 0.0


class Timers:
    """Runs actions at intervals, from whoever calls `run`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timers: list[_Timer] = []

    def every(self, seconds: float, action: Callable[[], object], *, aligned: bool = False, share: float = 1.0) -> None:
        """Run an action every so many seconds, the first time after that long.

        Args:
            aligned: whenever the wall clock comes to a multiple of so many seconds.
            share: how much of the time it may take; one that takes longer runs less often.
        """
        timer = _Timer(seconds, action, aligned, share)
        timer.due = self._next(timer)
        self._timers.append(timer)

    def run(self) -> None:
        """Run what is due."""
        now = self._clock.monotonic()
        for timer in self._timers:
            if timer.due <= now:
                began = self._clock.monotonic()
                timer.action()
                timer.due = max(self._next(timer), began + (self._clock.monotonic() - began) / timer.share)

    def _next(self, timer: _Timer) -> float:
        past_s = self._clock.now_ms() / 1000 % timer.every_s if timer.aligned else 0.0
        return self._clock.monotonic() + timer.every_s - past_s

    def next_in_s(self) -> float:
        """Seconds until something is due."""
        now = self._clock.monotonic()
        return max(0.0, min((timer.due - now for timer in self._timers), default=1.0))


class Marks:
    """Tells in Redis how far the leader has come with the cluster, what limits of queues hold back, and when nothing
    else is left to try.

    Attributes:
        version: of the cluster, as it was told last.
        settled: whether it was told that nothing is left to try, and no pod has been popped since.
    """

    def __init__(
        self, state: StoredState, memory: LeaderMemory, picking: Picking | None, searches: Searches, cluster: str
    ) -> None:
        self._queue, self._line, self._reservations = state.queue, state.line, state.reservations
        self._frameworks, self._picking, self._searches = memory.frameworks, picking, searches
        self._cluster = cluster
        self.version = 0
        self.settled = False
        self._next = 0, 0
        """The version to tell next, and the number of the last script that it came to."""
        self._held_back = 0
        self._released = 0
        """How often something had been given back when it was told last that nothing is left to try."""

    def begin(self, version: int) -> None:
        """The takeover has told this."""
        self.version = version
        self._next = version, 0

    def say(self, heard: int, *, idle: bool = False) -> None:
        """Tell what has been taken in, once Redis has done all that it came to.

        Args:
            heard: up to which version changes were taken in.
            idle: nothing is left to be tried, so that this is known of the version, and Redis has answered everything.
        """
        if idle or self._next[0] == self.version:
            self._next = heard, self._line.count
        version, number = self._next
        held_back = self._held_back
        if self._picking is not None and (idle or version != self.version):
            held_back = self._picking.count_held_back() if idle else 0
        settled = idle and not self._searches.busy
        news = (version, held_back) != (self.version, self._held_back)
        news |= settled and (not self.settled or self._released != self._reservations.released)
        if news and self._line.answered(number):
            self._queue.mark_intake(version, self._frameworks, self._cluster, held_back, settled=settled)
            self.version, self._held_back, self.settled = version, held_back, settled
            self._released = self._reservations.released


class LeaderTerm:
    """Leads under one epoch.

    Attributes:
        state: what stands in Redis; memory: what is held here.
        sources: where letters come from, nowhere before it leads.
        heard: the version of the cluster up to which changes were heard.
        marks: what was said of how far that is taken in.
    """

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
        self._cluster = cluster
        self._stopping = False
        self.heard = 0
        self.sources: Listens = Silence()
        state = self.state = wiring.stored_state(store, epoch)
        self.searches = searches = Searches(self._search_ended)
        memory, picking = wiring.leader_memory(state, config, registry, cluster, clock, searches)
        self.memory = memory
        self.marks = Marks(state, memory, picking, searches, cluster.kind)
        self.dispatcher = Dispatcher(store)
        self.sender = BindSender(self.dispatcher)
        selector = Selector(settings.seed, tell_best=settings.decisions is not None)
        watching = wiring.watching(settings, config, state, memory, cluster=cluster, selector=selector, tracing=tracing)
        observer, self.recording, self.traces = watching.observer, watching.recording, watching.traces
        self._observer = observer
        binding = wiring.binding(config, state, memory, cluster=cluster, sender=self.sender, traces=self.traces)
        self.binding = binding.tracker
        cycle = wiring.cycle(
            settings, config, state, memory, cluster, self.dispatcher, selector=selector, watching=watching
        )
        self.commit, self.batches = wiring.deciding(
            config, state, memory, picking, searches, cluster=cluster, cycle=cycle, binding=binding, observer=observer
        )
        self.intake = Intake(state, memory, cluster=cluster, binding=self.binding, answered=self.batches.finish)
        self.takeover = wiring.takeover(
            state, memory, cluster=cluster, binding=binding, intake=self.intake, before=before
        )
        self.audit = wiring.audit(
            state, memory, cluster=cluster, binding=self.binding, intake=self.intake, heard=lambda: self.marks.version
        )
        self.dumping = Dump(memory, audit=self.audit, compare=self._compare)
        self.upkeep = Upkeep(store, epoch, state.node_log, told)
        self.queues = None if picking is None else QueueStatuses(picking, binding.failures, cluster)
        self.timers = self._timers(watching, binding)

    def _timers(self, watching: wiring.Watching, binding: wiring.Binding) -> Timers:
        """What is done now and then."""
        memory, store = self.memory, self.state.store
        pending, snapshot = memory.pending, memory.cache.snapshot
        promises = Promises(pending, snapshot, self._cluster, memory.events, memory.clock)
        requested = CommandRequests(store, self.state.epoch, memory.frameworks, pending, memory.events)
        timers = Timers(memory.clock)
        timers.every(BACKOFF_EVERY_S, self.flush_backoff, aligned=True)
        timers.every(UNSCHEDULABLE_EVERY_S, self.rescue)
        timers.every(OVERDUE_EVERY_S, self.binding.look_up_overdue)
        timers.every(PING_EVERY_S, lambda: self.sender.run(self.ping))
        timers.every(PROMISES_EVERY_S, promises.expire)
        timers.every(WRITE_EVERY_S, watching.loop_time.write)
        timers.every(ASIDE_EVERY_S, binding.quarantine.expire)
        timers.every(overflows.EVERY_S, Overflows(self.state.lined, snapshot.table).tell)
        timers.every(STEP_S, self._compare)
        timers.every(UPKEEP_EVERY_S, self.upkeep.look)
        timers.every(REQUESTS_EVERY_S, requested.answer)
        timers.every(PAUSES_EVERY_S, requested.notice)
        timers.every(LOOK_EVERY_S, watching.recording.look)
        if self.queues is not None:
            timers.every(queue_statuses.EVERY_S, self.queues.write, share=queue_statuses.SHARE)
        return timers

    def stop(self) -> None:
        """Let `run` return soon; from any thread or a signal handler."""
        self._stopping = True
        self.sources.wake()

    def dump(self) -> None:
        """Write soon to the log what is held in memory; from any thread or a signal handler."""
        self.dumping.ask()
        self.sources.wake()

    def _search_ended(self) -> None:
        """From the thread that has read the answer."""
        self.sources.wake()

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
                self.upkeep.clear()
            raise

    def take_over(self) -> None:
        """What comes before the loop: begin from what the cluster and Redis say.

        Raises:
            StaleEpoch: another leader has taken over meanwhile.
        """
        self._progress.enter(Stage.TAKEOVER, self.state.epoch)
        began = collect.now()
        self.upkeep.begin()
        self.sender.run(self.ping)  # workers take the configuration up meanwhile, before the first task
        version = self.takeover.run()
        self.state.line.settle()
        TAKEOVER_DURATION.observe(collect.now() - began)
        self._progress.enter(Stage.LEADING, self.state.epoch)
        self.heard = version
        self.marks.begin(version)

    def _run(self) -> None:
        log.about(epoch=self.state.epoch)
        self.take_over()
        self.sources = sources = Sources(self._cluster, self.state.results, self.heard)
        sources.open()
        try:
            busy = True
            while not self._over():
                busy = self.turn(0.0 if busy or self.dumping.due else self._idle_s())
            self.batches.end()
        finally:
            self.close()

    def turn(self, timeout_s: float) -> bool:
        """One turn of the loop: hear, look at the timers, decide a batch.

        Args:
            timeout_s: how long to wait for something to come in.
        Returns:
            whether there is more to do at once.
        """
        self._observer.phase(WAIT)
        with plugin_timeout.undisturbed():
            letters = self.sources.letters(timeout_s)
        began = collect.now()
        self._progress.turn()
        self.hear(letters)
        # Before anything else is done with a pod it is known whether its reservation stands.
        self.batches.finish()
        self.commit.settle_searches()
        if (limits := self.memory.cache.limits) is not None:  # now that nothing is about to be reserved
            limits.refresh()
            limits.flush_ahead()
        if self.heard != self.marks.version:
            self.marks.say(self.heard)
        self._observer.phase(TIMERS)
        self.timers.run()
        self.dumping.step()
        self._observer.phase(EVENTS)
        self.commit.settle_waiting()
        self._observer.settled()
        # Last before the next batch: pods that were in flight are back in the queue, so each event finds them there.
        self.memory.events.apply()
        self._observer.phase(POP)
        busy = self.batches.decide() or self.memory.events.busy or self.searches.any_free
        self.searches.begin()
        if busy:
            self.marks.settled = False
        else:
            self.state.line.settle()
            self.marks.say(self.heard, idle=True)
        self._observer.turned()
        collect.flush()
        TURN_DURATION.observe(collect.now() - began)
        return busy

    def close(self) -> None:
        """Stop listening and sending."""
        log.about()
        if self.queues is not None:
            self.queues.close()
        self.sources.close()
        self.searches.close()
        self._observer.close()
        self._cluster.stand_down()
        self.sender.close()
        self.dispatcher.close()
        self.state.line.close()

    def _idle_s(self) -> float:
        """How long to wait for something to come in where there is nothing to decide."""
        return min(self.timers.next_in_s(), CYCLE_S if len(self.memory.waiting) else 1.0)

    def _over(self) -> bool:
        """Whether to stop: somebody says so, or the lease has run out and nothing was heard of its renewal."""
        if not self._stopping and not self._progress.holds():
            _log.warning("no longer leading", extra={"action": "step_down", "reason": "the lease was not renewed"})
            self._stopping = True
        return self._stopping

    def hear(self, letters: list[Letter]) -> None:
        """Act on what has come in.

        Raises:
            StateError: a thread that listens cannot go on.
        """
        for letter in letters:
            match letter:
                case Heard(events=events, version=up_to):
                    self._observer.phase(INTAKE)
                    self.intake.take(events)
                    self.heard = up_to
                case Answered(results=results):
                    self._observer.phase(SETTLE)
                    self.binding.settle(results)
                    self.state.results.ack(results)
                case Broken(error=error):
                    raise error if isinstance(error, StateError) else StateError(f"cannot go on: {error}") from error

    def held(self) -> Held:
        """What the term holds in memory; from any thread."""
        table = self.memory.cache.snapshot.table
        pods = int(table.pod_count.sum())
        memory = self.memory
        return Held(len(table), pods, len(self.binding), memory.events.gathered, memory.pending.rejections())

    def flush_backoff(self) -> None:
        """Make pods active whose pauses are over."""
        ready = self.state.queue.flush_backoff(self.memory.clock.now_ms())
        pending, groups = self.memory.pending, 0
        for key in ready:
            pod = pending.standing(key)
            if pod is None:
                continue
            pending.placed(pod, QueueName.ACTIVE)
            if isinstance(pod, QueuedGroup):
                pods = len(pending.members(pod.pod_group.key))
                collect.incoming_group(QueueName.ACTIVE, collect.BACKOFF_COMPLETE, pods, moved=True)
                groups += 1
        collect.incoming(QueueName.ACTIVE, collect.BACKOFF_COMPLETE, len(ready) - groups)

    def rescue(self) -> None:
        """Try pods again that no event has moved for long."""
        self.memory.events.rescue(self.memory.clock.now_ms())

    def _compare(self) -> None:
        if self.audit.looking:
            self.state.line.settle()  # what it looks up by other connections is to be there
        self.audit.step()

    def ping(self) -> None:
        """Ask workers for a sign of life, and forget those that have given none for long; by the bind sender."""
        store = self.state.store
        now_ms = redis_time.now_ms(store)  # which may have been set since the term began
        known = workers.read(store)
        for worker in known:
            if now_ms - worker.last_seen_ms > workers.FORGOTTEN_AFTER_MS:
                self.dispatcher.forget(worker.name)
                workers.leave(store, worker.name)
        self.dispatcher.ping([worker.name for worker in known], expires_s=workers.SILENT_AFTER_MS / 1000)
