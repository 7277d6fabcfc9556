"""Where the leader's loop spends its time: a clock that is always in one phase.

A change of phase costs one look at the clock. What was counted is written to Redis and to the metrics now and then.
"""

import time
from collections import defaultdict

from dsched.metrics import ATTEMPT_DURATION, PHASE_SECONDS
from dsched.scheduler.observer import Observer
from dsched.state import phases
from dsched.state.client import Store

WRITE_EVERY_S = 0.25

WAIT = "wait"
"""For something to come in."""
INTAKE = "intake"
"""Acting on changes of the cluster."""
SETTLE = "settle"
"""Acting on bind results."""
TIMERS = "timers"
POP = "pop"
EVALUATE = "evaluate"
"""The cycle: from a batch of pods to decisions."""
RESERVE = "reserve"
HAND_OUT = "hand out"
"""Sending reserved pods to the binders."""
REQUEUE = "requeue"
"""Putting back what was not placed, and evicting."""
EVENTS = "events"
"""Moving rejected pods that something helped."""


class LoopTime(Observer):
    """The clock of one term. Not thread-safe: it belongs to the loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._spent_ns: defaultdict[str, int] = defaultdict(int)
        self._told_ns: dict[str, int] = {}
        self._now = INTAKE
        self._since_ns = time.perf_counter_ns()
        self._written = 0

    def phase(self, phase: str) -> None:
        """From now on the time belongs to this phase."""
        now_ns = time.perf_counter_ns()
        self._spent_ns[self._now] += now_ns - self._since_ns
        self._now, self._since_ns = phase, now_ns

    def write(self) -> None:
        """Tell what was counted, to the metrics and to Redis."""
        self.phase(self._now)
        for phase, spent_ns in self._spent_ns.items():
            PHASE_SECONDS.labels(phase).inc((spent_ns - self._told_ns.get(phase, 0)) / 1e9)
        self._told_ns = dict(self._spent_ns)
        self._written += 1
        seconds = {phase: spent_ns / 1e9 for phase, spent_ns in self._spent_ns.items()}
        attempts, total_s, bounds = _attempts()
        phases.write(self._store, phases.Written(self._written, seconds, bounds, attempts, total_s))


def _attempts() -> tuple[dict[str, list[int]], float, list[float]]:
    """Attempts by result, counted by bucket; their seconds; the buckets' bounds."""
    cumulative: dict[tuple[str, str], list[tuple[float, int]]] = defaultdict(list)
    total_s = 0.0
    for metric in ATTEMPT_DURATION.collect():
        for sample in metric.samples:
            if sample.name.endswith("_bucket"):
                labels = sample.labels
                bucket = (float(labels["le"]), int(sample.value))
                cumulative[labels["result"], labels["profile"]].append(bucket)
            elif sample.name.endswith("_sum"):
                total_s += sample.value
    found: dict[str, list[int]] = {}
    bounds: list[float] = []
    for (result, _profile), buckets in cumulative.items():
        buckets.sort()
        bounds = [bound for bound, _ in buckets[:-1]]
        counts = [now - before for (_, now), (_, before) in zip(buckets, [(0.0, 0), *buckets[:-1]], strict=True)]
        found[result] = [a + b for a, b in zip(found.get(result, [0] * len(counts)), counts, strict=True)]
    return found, total_s, bounds
