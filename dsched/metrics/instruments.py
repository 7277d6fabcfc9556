"""How metrics are declared: a counter, a histogram or a gauge, and which processes export it.

A process exports a metric only when it is one of its exporters: the metrics of all processes are declared in all of
them, and zeros that mean nothing would be misread.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

Exporter = Literal["leader", "evaluator", "binder"]
LEADER: tuple[Exporter, ...] = ("leader",)
EVALUATOR: tuple[Exporter, ...] = ("evaluator",)
BINDER: tuple[Exporter, ...] = ("binder",)
WORKERS: tuple[Exporter, ...] = ("evaluator", "binder")
ALL: tuple[Exporter, ...] = (*LEADER, *WORKERS)

GaugeMode = Literal["all", "livemax", "liveall", "max", "mostrecent"]


@dataclass(frozen=True, slots=True)
class Declared:
    """A metric as it is documented.

    Attributes:
        name: as it is exported, ``_total`` included.
        exporters: the processes that export it.
        buckets: upper bounds of a histogram's buckets, ``+Inf`` left out.
    """

    name: str
    type: str
    help: str
    labels: tuple[str, ...]
    exporters: tuple[Exporter, ...]
    buckets: tuple[float, ...] = ()


DECLARED: dict[str, Declared] = {}
"""Every metric by name."""


class BatchHistogram(Histogram):
    """A histogram that can be told of a whole batch at once."""

    def observe_many(self, value: float, count: int) -> None:
        """As ``count`` calls of ``observe(value)``; for a labelled histogram, call it on ``labels(…)``."""
        self._sum.inc(value * count)
        self._buckets[bisect_left(self._upper_bounds, value)].inc(count)

    def add(self, tally: "Tally") -> None:
        """Take over what was counted elsewhere, with the same buckets."""
        self._sum.inc(tally.total)
        for number, count in enumerate(tally.counts):
            if count:
                self._buckets[number].inc(count)


class Tally:
    """A histogram's counts on their way: one thread's, without locks.

    Attributes:
        counts: observations by bucket, the one without an upper bound last.
        total: the sum of what was observed.
    """

    __slots__ = ("counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0


@dataclass(frozen=True, slots=True)
class Scraped:
    """A metric whose values are looked up when somebody asks for them."""

    name: str
    type: Literal["gauge", "counter"]
    help: str
    labels: tuple[str, ...]

    def family(self) -> GaugeMetricFamily | CounterMetricFamily:
        """An empty family; add to it what there is."""
        kind = GaugeMetricFamily if self.type == "gauge" else CounterMetricFamily
        return kind(self.name, self.help, labels=self.labels)


def counter(name: str, help_: str, labels: Sequence[str] = (), exporters: tuple[Exporter, ...] = LEADER) -> Counter:
    """Declare a counter; its name ends in ``_total``."""
    _declare(Declared(name, "counter", help_, tuple(labels), exporters))
    return Counter(name, help_, labels)


def gauge(
    name: str,
    help_: str,
    labels: Sequence[str] = (),
    exporters: tuple[Exporter, ...] = LEADER,
    mode: GaugeMode = "livemax",
) -> Gauge:
    """Declare a gauge; ``mode`` says how the values of a worker's processes become one."""
    _declare(Declared(name, "gauge", help_, tuple(labels), exporters))
    return Gauge(name, help_, labels, multiprocess_mode=mode)


def histogram(
    name: str,
    help_: str,
    labels: Sequence[str] = (),
    *,
    buckets: Sequence[float],
    exporters: tuple[Exporter, ...] = LEADER,
) -> BatchHistogram:
    """Declare a histogram."""
    _declare(Declared(name, "histogram", help_, tuple(labels), exporters, tuple(buckets)))
    return BatchHistogram(name, help_, labels, buckets=buckets)


def scraped(
    name: str,
    help_: str,
    labels: Sequence[str] = (),
    exporters: tuple[Exporter, ...] = LEADER,
    type_: Literal["gauge", "counter"] = "gauge",
) -> Scraped:
    """Declare a metric that a collector looks up."""
    _declare(Declared(name, type_, help_, tuple(labels), exporters))
    return Scraped(name, type_, help_, tuple(labels))


def exponential(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Bucket bounds, each ``factor`` times the one before; as kube-scheduler's ``ExponentialBuckets``, which multiplies
    step by step, so that the ``le`` labels are the same to the digit."""
    bounds = [first]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)


def _declare(metric: Declared) -> None:
    DECLARED[metric.name] = metric
