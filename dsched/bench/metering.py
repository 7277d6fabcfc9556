"""Measured stretches of a workload: begun, and ended with the figures of the pods that were bound in between, as
upstream's throughput collector computes them.

Source: kubernetes v1.36 test/integration/scheduler_perf/util.go ``throughputCollector``: the pods bound are counted
every second; the first count is skipped; seconds without a bind are spread over by the next that has one.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dsched.bench.following import Counter, Follower
from dsched.errors import ConfigError

SAMPLE_S = 1.0
ENOUGH_SAMPLES = 3

Seen = Sequence[tuple[float, int]]
"""(time, pods bound since the time before), in order."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Average and percentiles of some figures; None where there are none."""

    average: float | None = None
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None


@dataclass(frozen=True, slots=True)
class Throughput:
    """Pods bound a second.

    Attributes:
        pods: how many were counted, over ``seconds`` from the first measured pod that was written to the last bind.
        whole: pods by seconds.
        samples: of one second, as upstream takes them.
        average: as ``basis`` says: of the samples, where there are at least `ENOUGH_SAMPLES`; else of what was bound
            after the first binds were seen, by the time from then to the last, for samples begin with the first binds
            as well; ``whole`` where the first ones were most of them.
    """

    pods: int
    seconds: float
    whole: float
    samples: Sequence[float]
    spread: Spread
    average: float
    basis: str


def throughput(began: float, written: float, ended: float, seen: Seen) -> Throughput:
    """Figures of what was seen.

    Args:
        began: when counting began; the samples are taken from here.
        written: when the first measured pod was written.
        ended: when counting ended.
    """
    pods = sum(count for _, count in seen)
    seconds = seen[-1][0] - written if seen else 0.0
    whole = pods / seconds if seconds > 0 else 0.0
    taken = samples(began, ended, seen)
    spread = spread_of(taken)
    if spread.average is not None and len(taken) >= ENOUGH_SAMPLES:
        return Throughput(pods, seconds, whole, taken, spread, spread.average, "samples")
    if seen and 2 * seen[0][1] < pods and (running_s := seen[-1][0] - seen[0][0]) > 0:
        average = (pods - seen[0][1]) / running_s
        return Throughput(pods, seconds, whole, taken, spread, average, "from the first bind")
    return Throughput(pods, seconds, whole, taken, spread, whole, "whole run")


def samples(began: float, ended: float, seen: Seen) -> list[float]:
    """Pods a second in each second but the first that had any."""
    found: list[float] = []
    total, last, skipped, started, position = 0, 0, 0, False, 0
    for tick in range(1, int((ended - began) / SAMPLE_S) + 1):
        while position < len(seen) and seen[position][0] <= began + tick * SAMPLE_S:
            total += seen[position][1]
            position += 1
        if not started:
            started, last = total > 0, total
        elif total == last:
            skipped += 1
        else:
            rate = (total - last) / (SAMPLE_S * (skipped + 1))
            found += [rate] * (skipped + 1)
            last, skipped = total, 0
    return found


def spread_of(figures: Sequence[float]) -> Spread:
    """Average and percentiles, each one of the figures."""
    if not figures:
        return Spread()
    ordered = sorted(figures)

    def at(percent: int) -> float:
        return ordered[math.ceil(len(ordered) * percent / 100) - 1]

    return Spread(sum(ordered) / len(ordered), at(50), at(90), at(95), at(99))


@dataclass(frozen=True, slots=True)
class Stretch:
    """What was measured from one start of counting to its end.

    Attributes:
        name: of the operation in the file, ``""`` for createPods with collectMetrics.
        began, ended: monotonic times; seen: (monotonic time, pods bound since the last).
        written: when the first measured pod was written.
        writing_s: how long writing the pods took.
    """

    name: str
    throughput: Throughput
    began: float
    written: float
    ended: float
    seen: Sequence[tuple[float, int]]
    writing_s: float


@dataclass(frozen=True, slots=True)
class Hooks:
    """Told about the course of a workload.

    Attributes:
        goal: what is waited for, and how many pods of it; progress: how many there are.
        measuring: a stretch begins; measured: it has ended.
        check: called while waiting; raises when the system is no longer well.
    """

    goal: Callable[[str, int], None] = lambda what, total: None
    progress: Callable[[int], None] = lambda count: None
    measuring: Callable[[], None] = lambda: None
    measured: Callable[[], None] = lambda: None
    check: Callable[[], None] = lambda: None


@dataclass(slots=True)
class _Counting:
    """Counting that is under way."""

    name: str
    counter: Counter
    began: float
    written: float = 0.0
    writing_s: float = 0.0


class Meter:
    """Measures one stretch at a time.

    Attributes:
        stretches: those that have ended.
    """

    def __init__(self, follower: Follower, hooks: Hooks) -> None:
        self._follower = follower
        self._hooks = hooks
        self._counting: _Counting | None = None
        self.stretches: list[Stretch] = []

    def begin(self, name: str, namespaces: Sequence[str], selector: Mapping[str, str]) -> None:
        """Count binds from here on.

        Raises:
            ConfigError: something is counted already.
        """
        if self._counting is not None:
            raise ConfigError("metrics are collected already; stopCollectingMetrics comes first")
        self._hooks.measuring()
        counter = self._follower.count(frozenset(namespaces), selector)
        self._counting = _Counting(name, counter, time.monotonic())

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Pods are written in this block."""
        began = time.monotonic()
        counting = self._counting
        if counting is not None and not counting.written:
            counting.written = began
        yield
        if counting is not None:
            counting.writing_s += time.monotonic() - began

    def end(self) -> None:
        """Stop counting.

        Raises:
            ConfigError: nothing is counted.
        """
        counting, self._counting = self._counting, None
        if counting is None:
            raise ConfigError("stopCollectingMetrics without startCollectingMetrics")
        ended = time.monotonic()
        self._follower.end(counting.counter)
        self._hooks.measured()
        seen, written = counting.counter.seen, counting.written or counting.began
        found = throughput(counting.began, written, ended, seen)
        self.stretches.append(Stretch(counting.name, found, counting.began, written, ended, seen, counting.writing_s))
