"""Recording on the hot path: a batch at once where pods share a value, children of labelled metrics looked up once."""

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from dsched.metrics import scheduler
from dsched.metrics.instruments import BatchHistogram, Tally

SAMPLED = 0.1
"""Share of plugin calls that are measured. Source: pkg/scheduler/schedule_one.go ``pluginMetricsSamplePercent``."""
MANY_ATTEMPTS = 15

ATTEMPT_FAILURE = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
FORCE_ACTIVATE = "ForceActivate"
UNSCHEDULABLE_TIMEOUT = "UnschedulableTimeout"
POP_FROM_BACKOFF = "PopFromBackoffQ"
POD_ADD = "PendingPodAdd"
POD_UPDATE = "TargetPodUpdate"
TAKEOVER = "LeaderTakeover"
REPAIR = "Repair"
PROMISE_EXPIRED = "NominationExpired"
REQUESTED = "Requested"
"""What brings pods into a queue besides events of the cluster; the last four are dsched's own.

Source: pkg/scheduler/framework/events.go."""

now = time.perf_counter
"""Seconds on the clock that durations are measured with."""

_POINTS = {
    "pre_enqueue": "PreEnqueue",
    "pre_filter": "PreFilter",
    "pre_filter_placed": "PreFilter",
    "add_pod": "PreFilterExtensionAddPod",
    "remove_pod": "PreFilterExtensionRemovePod",
    "filter": "Filter",
    "filter_table": "Filter",
    "filter_few": "Filter",
    "post_filter": "PostFilter",
    "pre_score": "PreScore",
    "pre_score_placed": "PreScore",
    "score": "Score",
    "score_table": "Score",
    "score_few": "Score",
    "normalize": "ScoreExtensionNormalize",
    "reserve": "Reserve",
    "unreserve": "Unreserve",
    "permit": "Permit",
    "pre_bind_pre_flight": "PreBindPreFlight",
    "pre_bind": "PreBind",
    "pre_bind_together": "PreBind",
    "bind": "Bind",
    "post_bind": "PostBind",
}
"""A plugin's methods and the extension points they belong to."""


_names = {"PendingPod": "UnscheduledPod", "TargetPod": "TargetPod"}
"""What kube-scheduler calls pods that wait, and the one that is to be tried again itself, in the names of events."""


_tallies: dict[tuple[str, str, str], Tally] = {}
"""By extension point, status and profile; gathered because some points run for every pod."""


_calls: dict[tuple[str, str, str], Tally] = {}
"""By plugin, extension point and status, gathered alike: a plugin written node by node is called for each of them."""


_judged: dict[tuple[str, str, str], int] = {}
"""Evaluations by plugin, extension point and profile, gathered alike."""


@cache
def _attempt(result: str, profile: str) -> tuple[Any, BatchHistogram]:
    return scheduler.SCHEDULE_ATTEMPTS.labels(result, profile), scheduler.ATTEMPT_DURATION.labels(result, profile)


@cache
def _incoming(queue: str, event: str) -> Any:
    return scheduler.INCOMING_PODS.labels(queue, event)


@cache
def _incoming_entities(queue: str, event: str, kind: str) -> Any:
    return scheduler.INCOMING_ENTITIES.labels(queue, event, kind)


@cache
def _sli(attempts: str) -> BatchHistogram:
    return scheduler.SLI_DURATION.labels(attempts)


@cache
def _event(label: str) -> BatchHistogram:
    return scheduler.EVENT_DURATION.labels(event_name(label))


@cache
def _plugin(plugin: str, point: str, status: str) -> BatchHistogram:
    return scheduler.PLUGIN_DURATION.labels(plugin, point, status)


@cache
def _evaluations(plugin: str, point: str, profile: str) -> Any:
    return scheduler.PLUGIN_EVALUATIONS.labels(plugin, point, profile)


def attempts(result: str, profile: str, seconds: float | None, count: int = 1) -> None:
    """So many attempts ended alike after so long; None where nobody knows when they began."""
    counted, durations = _attempt(result, profile)
    counted.inc(count)
    if seconds is not None:
        durations.observe_many(seconds, count)


def group_attempt(result: str, profile: str, seconds: float | None) -> None:
    """An attempt of a pod group ended after so long; None where nobody knows when it began."""
    scheduler.GROUP_ATTEMPTS.labels(result, profile).inc()
    if seconds is not None:
        scheduler.GROUP_ATTEMPT_DURATION.labels(result, profile).observe(seconds)


def placements(profile: str, feasible: int, infeasible: int) -> None:
    """Of so many placements it was found out whether a pod group fits."""
    scheduler.PLACEMENT_EVALUATIONS.labels("feasible", profile).inc(feasible)
    scheduler.PLACEMENT_EVALUATIONS.labels("infeasible", profile).inc(infeasible)


def decided(seconds: float, pods: int) -> None:
    """A batch was decided in so long."""
    if pods:
        scheduler.ALGORITHM_DURATION.observe_many(seconds / pods, pods)


def emulate(minor: int) -> None:
    """Name events as this version does. Source: pkg/scheduler/framework/events.go ``unschedulablePod``, until v1.36;
    staging/src/k8s.io/kube-scheduler/framework/types.go ``UnscheduledPod``, ``TargetPod``."""
    names = ("UnscheduledPod", "TargetPod") if minor >= 37 else ("UnschedulablePod", "UnschedulablePod")
    _names["PendingPod"], _names["TargetPod"] = names


def incoming(queue: str, event: str, count: int = 1) -> None:
    """So many pods came into a queue, each by itself, and not as `hinted` has it."""
    if count:
        queue = _queue(queue)
        _incoming(queue, event).inc(count)
        _incoming_entities(queue, event, "pod").inc(count)


def hinted(moves: Iterable[tuple[str, str, bool]]) -> None:
    """Pods came into queues after an attempt or because of an event, each by itself: (queue, event, whether the event
    ended its pause) a pod. A pod that went where a hint sends it, into backoff or into the active queue at once, or
    that stays unschedulable, does not count as an entity there.

    Source: pkg/scheduler/backend/queue/scheduling_queue.go ``recordIncomingEntitiesMetrics``, ``strategyToQueueLabel``.
    """
    for (queue, event, at_once), count in Counter(moves).items():
        if queue == "gated" or (queue == "active" and not at_once):
            incoming(queue, event_name(event), count)
        else:
            _incoming(_queue(queue), event_name(event)).inc(count)


def _queue(name: str) -> str:
    """As it is called where pods come into it. Source: pkg/scheduler/backend/queue/unschedulable_entities.go."""
    return "unschedulable" if name == "gated" else name


def incoming_group(queue: str, label: str, pods: int, *, moved: bool) -> None:
    """A pod group of so many pods came into a queue, or was put anew where it stood.

    Source: pkg/scheduler/backend/queue/scheduling_queue.go ``recordIncomingEntitiesMetrics``.
    """
    event, queue = event_name(label), _queue(queue)
    _incoming(queue, event).inc(pods)
    if moved:
        _incoming_entities(queue, event, "podgroup").inc()


def came(moves: Iterable[tuple[str, str]]) -> None:
    """Pods came into queues, each by itself and by an event: (queue, event) a pod."""
    for (queue, event), count in Counter(moves).items():
        incoming(queue, event_name(event), count)


def event_name(label: str) -> str:
    """An event as kube-scheduler's metrics name it."""
    for ours, theirs in _names.items():
        label = label.replace(ours, theirs)
    return label


def preemption_evaluated(preemptor: str, result: str, seconds: float) -> None:
    """It was looked for pods to evict. Source: pkg/scheduler/framework/preemption ``evaluate``."""
    scheduler.PREEMPTION_EVALUATION.labels(preemptor, result).observe(seconds)


def preemption_found(preemptor: str, victims: int, violations: int = 0, disruptions: int = 0) -> None:
    """Pods to evict were found.

    Args:
        victims: how many, those included that are leaving anyway.
        violations: of disruption budgets.
        disruptions: what of pod groups goes, pods or groups as a whole.

    Source: pkg/scheduler/framework/preemption/executor.go ``observeVictims``.
    """
    found = scheduler.PREEMPTION_VICTIMS if preemptor == "pod" else scheduler.GROUP_PREEMPTION_VICTIMS
    found.observe(victims)
    if violations:
        scheduler.PREEMPTION_VIOLATIONS.labels(preemptor).inc(violations)
    if disruptions:
        scheduler.PREEMPTION_DISRUPTIONS.labels(preemptor).observe(disruptions)


class Bound:
    """Pods that a message says are bound, counted together where they share profile, batch and attempts."""

    def __init__(self) -> None:
        self._pods: Counter[tuple[str, float, int, int]] = Counter()

    def add(self, profile: str, popped_at: float, attempt: int, first_ms: int) -> None:
        """A pod: when its batch was popped (monotonic seconds, 0 where nobody knows), which attempt it was, when its
        first attempt began (0 where nobody knows)."""
        self._pods[profile, popped_at, attempt, first_ms] += 1

    def flush(self, now_s: float, now_ms: int) -> None:
        """They are bound now."""
        for (profile, popped_at, attempt, first_ms), count in self._pods.items():
            attempts("scheduled", profile, max(0.0, now_s - popped_at) if popped_at else None, count)
            scheduler.POD_ATTEMPTS.observe_many(attempt, count)
            if first_ms:
                label = str(attempt) if attempt < MANY_ATTEMPTS else f"{MANY_ATTEMPTS}+"
                _sli(label).observe_many(max(0, now_ms - first_ms) / 1000, count)
        self._pods.clear()


def handled(label: str, seconds: float, events: int) -> None:
    """So many events of a kind, one after the other, were handled in so long all together."""
    _event(label).observe_many(seconds / events, events)


def extension_point(point: str, status: str, profile: str, seconds: float, runs: int = 1) -> None:
    """The plugins of a point have run, so many times, as long each time; shows after `flush`."""
    _tally(_tallies, (point, status, profile), scheduler.EXTENSION_POINTS, seconds, runs)


def _tally(
    tallies: dict[tuple[str, str, str], Tally],
    key: tuple[str, str, str],
    bounds: Sequence[float],
    seconds: float,
    runs: int = 1,
) -> None:
    tally = tallies.get(key)
    if tally is None:
        tally = tallies[key] = Tally(bounds)
    tally.counts[bisect_left(bounds, seconds)] += runs
    tally.total += seconds * runs


def flush() -> None:
    """Show what was gathered; called now and then by the thread that gathers: after a batch, after a task."""
    for (point, status, profile), tally in _tallies.items():
        scheduler.EXTENSION_POINT_DURATION.labels(point, status, profile).add(tally)
    _tallies.clear()
    for (plugin, point, status), tally in _calls.items():
        _plugin(plugin, point, status).add(tally)
    _calls.clear()
    for (plugin, point, profile), count in _judged.items():
        _evaluations(plugin, point, profile).inc(count)
    _judged.clear()


def evaluated(point: str, profile: str, plugins: Iterable[str]) -> None:
    """These plugins have judged a class of pods; shows after `flush`."""
    for plugin in plugins:
        key = (plugin, point, profile)
        _judged[key] = _judged.get(key, 0) + 1


def plugin_call(plugin: str, call: Callable[..., Any], seconds: float, status: str) -> None:
    """A plugin's method was called; shows after `flush`. Methods of no extension point are left out."""
    point = _POINTS.get(getattr(call, "__name__", ""))
    if point is not None:
        _tally(_calls, (plugin, point, status), scheduler.PLUGIN_CALLS, seconds)


def hint_call(plugin: str, event: str, seconds: float, hint: str) -> None:
    """A queueing hint was asked."""
    scheduler.HINT_DURATION.labels(plugin, event_name(event), hint).observe_many(seconds, 1)
