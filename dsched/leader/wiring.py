"""Builds the parts of a leader's term, a function a subject.

Nothing here decides or stores anything. Each part takes what stands in Redis, what is held in memory, and by name the
parts that it works with; who works with whom is to be read in `dsched.leader.term`.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from dsched.clock import Clock
from dsched.cluster.interface import Cluster
from dsched.config import SchedulerConfiguration
from dsched.engine.evaluation_cache import EvaluationCache
from dsched.engine.select import Selector
from dsched.framework.interface import Registry
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot
from dsched.leader.audit.compare import Audit
from dsched.leader.audit.repair import Repair
from dsched.leader.batches import Batches
from dsched.leader.binders.node_quarantine import NodeQuarantine
from dsched.leader.binders.sender import BindSender
from dsched.leader.binders.tracker import BindTracker
from dsched.leader.commit import Commit
from dsched.leader.dispatch import Dispatcher
from dsched.leader.evaluators.router import Router
from dsched.leader.events import Events
from dsched.leader.failure import Failures
from dsched.leader.intake import Intake
from dsched.leader.observers.decision_log import DecisionLog
from dsched.leader.observers.explanations import Explain, Explanations
from dsched.leader.observers.loop_time import LoopTime
from dsched.leader.observers.recording import RecordingObserver
from dsched.leader.observers.traces import Traces
from dsched.leader.parts import LeaderMemory, StoredState
from dsched.leader.preemption import Preemptions
from dsched.leader.promises import EXPECTATIONS_GATE, Expectations
from dsched.leader.searches import Searches
from dsched.leader.settings import Settings
from dsched.leader.takeover import Takeover
from dsched.metrics import collect
from dsched.plugins import profiles
from dsched.plugins.fair_share import plugin as fair_share
from dsched.scheduler.cache import Cache
from dsched.scheduler.cycle import Cycle
from dsched.scheduler.handle import LeaderHandle
from dsched.scheduler.observer import Observer, Observers
from dsched.scheduler.plugin_breaker import PluginBreaker
from dsched.scheduler.pod_groups import QueuedGroups
from dsched.scheduler.queue import Backoff, PendingPods
from dsched.scheduler.quota.ledger import Ledger
from dsched.scheduler.quota.limits import Limits
from dsched.scheduler.quota.picking import Picking
from dsched.scheduler.waiting_pods import WaitingPods
from dsched.state import keys
from dsched.state.attempt_history import AttemptHistory
from dsched.state.client import Store
from dsched.state.node_log import NodeLog
from dsched.state.pipeline import Pipeline
from dsched.state.queue import Queue
from dsched.state.recording import RecordingStream
from dsched.state.reservations import Reservations
from dsched.state.results import Results
from dsched.state.usage import Usage
from dsched.tracing import Tracing

MOST_AT_FIRST = 32
"""Pods of the first batch, but one where extenders are asked: how long they take is not known yet."""


def stored_state(store: Store, epoch: int) -> StoredState:
    """What stands in Redis, on a line of its own."""
    line = Pipeline(store.redis)
    lined = store.on(line)
    return StoredState(
        store=store,
        epoch=epoch,
        line=line,
        lined=lined,
        queue=Queue(lined, epoch),
        reservations=Reservations(lined, epoch),
        results=Results(lined, epoch),
        node_log=NodeLog(store, epoch),
    )


def leader_memory(
    state: StoredState,
    config: SchedulerConfiguration,
    registry: Registry,
    cluster: Cluster,
    clock: Clock,
    searches: Searches,
) -> tuple[LeaderMemory, Picking | None]:
    """An empty memory, with the frameworks, whose plugins see it; and what picks the next pod where queues divide the
    cluster.

    Raises:
        PluginError: a profile's plugins cannot be built.
    """
    collect.emulate(config.features.version.minor)
    backoff = Backoff(config.pod_initial_backoff_seconds * 1000, config.pod_max_backoff_seconds * 1000)
    snapshot, usage = Snapshot(), Usage(state.lined, state.epoch)
    arguments = fair_share.arguments(config)
    if arguments is None:
        picking, cache = None, Cache(usage, state.node_log, snapshot=snapshot)
    else:
        ledger = Ledger(snapshot, kueue=arguments.kueue_label, features=config.features)
        limits = Limits(ledger, Usage(state.lined, state.epoch, keys.QUOTA))
        picking, cache = Picking(ledger), Cache(usage, state.node_log, snapshot=snapshot, limits=limits)
    pending, waiting = PendingPods(clock, backoff, snapshot.pod_groups, picking), WaitingPods(clock)
    handle = LeaderHandle(cache, waiting, pending, clock, None if picking is None else picking.ledger, searches)
    frameworks: Mapping[str, Framework] = profiles.frameworks(config, registry, handle, cluster.get_objects)
    groups = QueuedGroups(frameworks, pending, cache.snapshot.pod_groups, cache.snapshot.version_of)
    memory = LeaderMemory(
        clock=clock,
        frameworks=frameworks,
        pending=pending,
        cache=cache,
        waiting=waiting,
        events=Events(frameworks, pending, state.queue, groups, rescues_gated=config.features.since(37)),
        groups=groups,
    )
    return memory, picking


class Binding(NamedTuple):
    """From a reservation to a bound pod, or back."""

    failures: Failures
    quarantine: NodeQuarantine
    tracker: BindTracker


def binding(
    config: SchedulerConfiguration,
    state: StoredState,
    memory: LeaderMemory,
    *,
    cluster: Cluster,
    sender: BindSender,
    traces: Traces | None,
) -> Binding:
    """What hands out reserved pods and takes them back."""
    failures = Failures(memory.pending, state.queue, cluster)
    quarantine = NodeQuarantine(memory.cache, cluster, memory.events.happened, memory.clock)
    tracker = BindTracker(
        config.hash,
        state,
        memory,
        cluster=cluster,
        sender=sender,
        failures=failures,
        quarantine=quarantine,
        traces=traces,
    )
    return Binding(failures, quarantine, tracker)


class Watching(NamedTuple):
    """Who watches a term, and all of them as one; ``traces`` is None where nothing is traced."""

    observer: Observer
    loop_time: LoopTime
    recording: RecordingObserver
    traces: Traces | None


def watching(
    settings: Settings,
    config: SchedulerConfiguration,
    state: StoredState,
    memory: LeaderMemory,
    *,
    cluster: Cluster,
    selector: Selector,
    tracing: Tracing | None,
) -> Watching:
    """What settings and configuration ask for."""
    loop_time = LoopTime(state.lined)
    recording = RecordingObserver(
        RecordingStream(state.store, state.epoch),
        config,
        memory.cache,
        memory.pending,
        memory.waiting,
        selector,
        memory.clock,
    )
    observers: list[Observer] = [loop_time, recording]
    traces = None if tracing is None else Traces(tracing, state.epoch, memory.pending, memory.cache)
    if traces is not None:
        observers.append(traces)
    if settings.decisions is not None:
        observers.append(DecisionLog(settings.decisions, state.store, state.epoch, settings.seed))
    if config.features.enabled(EXPECTATIONS_GATE):
        observers.append(Expectations(memory.pending, cluster))
    if settings.explain is not Explain.NONE:
        history = AttemptHistory(state.store, state.epoch)
        observers.append(Explanations(settings.explain, history, memory.cache.snapshot, memory.clock))
    return Watching(Observers(*observers), loop_time, recording, traces)


def cycle(
    settings: Settings,
    config: SchedulerConfiguration,
    state: StoredState,
    memory: LeaderMemory,
    cluster: Cluster,
    dispatcher: Dispatcher,
    *,
    selector: Selector,
    watching: Watching,
) -> Cycle:
    """The scheduling cycle, whose classes of pods are judged here or by evaluators."""
    breaker = PluginBreaker(memory.clock)
    router = Router(
        settings.mode,
        state.store,
        state.epoch,
        config.hash,
        memory.cache,
        dispatcher,
        memory.clock,
        cluster.kind,
        breaker,
        settings.plugin_timeout_s,
        watching.traces,
    )
    return Cycle(
        memory.frameworks,
        {profile.scheduler_name: profile.effective_percentage(config) for profile in config.profiles},
        memory.cache,
        EvaluationCache(memory.cache.snapshot, router, router.gather_first),
        selector,
        memory.waiting,
        breaker,
        watching.observer,
    )


class Deciding(NamedTuple):
    """From popped pods to reservations."""

    commit: Commit
    batches: Batches


def deciding(
    config: SchedulerConfiguration,
    state: StoredState,
    memory: LeaderMemory,
    picking: Picking | None,
    searches: Searches,
    *,
    cluster: Cluster,
    cycle: Cycle,
    binding: Binding,
    observer: Observer,
) -> Deciding:
    """What decides batch after batch."""
    preemptions = Preemptions(
        memory.pending,
        memory.cache.snapshot,
        cluster,
        memory.clock,
        happened=memory.events.happened,
        binding=binding.tracker,
    )
    commit = Commit(
        state,
        memory,
        cycle=cycle,
        binding=binding.tracker,
        preemptions=preemptions,
        searches=searches,
        observer=observer,
    )
    size = 1 if config.extenders else MOST_AT_FIRST
    batches = Batches(state, memory, picking, commit=commit, binding=binding.tracker, observer=observer, size=size)
    return Deciding(commit, batches)


def takeover(
    state: StoredState, memory: LeaderMemory, *, cluster: Cluster, binding: Binding, intake: Intake, before: int
) -> Takeover:
    """What comes before the loop; ``before`` is the epoch under which this process led last, 0 if it did not."""
    return Takeover(
        state,
        memory,
        cluster=cluster,
        binding=binding.tracker,
        intake=intake,
        failures=binding.failures,
        before=before,
    )


def audit(
    state: StoredState,
    memory: LeaderMemory,
    *,
    cluster: Cluster,
    binding: BindTracker,
    intake: Intake,
    heard: Callable[[], int],
) -> Audit:
    """What compares memory with the cluster and Redis, and repairs; ``heard`` as there."""
    repairs = Repair(state, memory, cluster=cluster, binding=binding, intake=intake)
    return Audit(state, memory, cluster=cluster, binding=binding, repairs=repairs, heard=heard)
