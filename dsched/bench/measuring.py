"""Figures of one measured stretch, as upstream's throughput collector computes them.

Source: kubernetes v1.36 test/integration/scheduler_perf/util.go ``throughputCollector``: the pods bound are counted
every second; the first count is skipped; seconds without a bind are spread over by the next that has one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
        average: of the samples, where there are at least `ENOUGH_SAMPLES`; else ``whole``, as ``basis`` says.
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
    enough = len(taken) >= ENOUGH_SAMPLES
    average = spread.average if enough and spread.average is not None else whole
    return Throughput(pods, seconds, whole, taken, spread, average, "samples" if enough else "whole run")


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
