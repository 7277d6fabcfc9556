"""What the leader tells about itself: its time by phase, and how long attempts took.

Percentiles come from the histogram's buckets, as upstream's metrics collector takes them.

Source: component-base/metrics/testutil ``Histogram.Quantile``.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from dsched.bench.results import Figures
from dsched.state import phases
from dsched.state.client import Store

PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class Leader:
    """Seconds by phase; attempts by result; attempts by the bucket that they fell into (its upper bound, seconds)."""

    phase_seconds: Mapping[str, float] = field(default_factory=dict)
    attempts: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    buckets: Mapping[float, int] = field(default_factory=dict)

    def since(self, before: "Leader") -> "Leader":
        """What came since."""
        return Leader(
            {name: round(now - before.phase_seconds.get(name, 0.0), 4) for name, now in self.phase_seconds.items()},
            {name: now - before.attempts.get(name, 0) for name, now in self.attempts.items()},
            self.seconds - before.seconds,
            {bound: now - before.buckets.get(bound, 0) for bound, now in self.buckets.items()},
        )

    def figures(self) -> Figures:
        """Average and percentiles in milliseconds."""
        total = sum(self.buckets.values())
        if not total:
            return Figures()
        return Figures(
            average=1000 * self.seconds / total,
            perc50=1000 * self._quantile(0.50),
            perc90=1000 * self._quantile(0.90),
            perc95=1000 * self._quantile(0.95),
            perc99=1000 * self._quantile(0.99),
        )

    def _quantile(self, share: float) -> float:
        """Linear within a bucket; of what is beyond the last finite bound, that bound."""
        bounds = sorted(self.buckets)
        rank = share * sum(self.buckets.values())
        below, lower = 0, 0.0
        for bound in bounds:
            inside = self.buckets[bound]
            if below + inside >= rank and inside:
                return lower if bound == float("inf") else lower + (bound - lower) * (rank - below) / inside
            below, lower = below + inside, bound if bound != float("inf") else lower
        return lower


def read(store: Store) -> Leader:
    """What the leader has written last."""
    written = phases.read(store)
    attempts = {name: sum(counts) for name, counts in written.attempts.items()}
    columns = map(sum, zip(*written.attempts.values(), strict=True))
    buckets = dict(zip((*written.bounds, float("inf")), columns, strict=False))
    return Leader(written.seconds, attempts, written.attempt_seconds, buckets)


def read_settled(store: Store) -> Leader:
    """The same, when the leader has told what it has just done: it writes now and then."""
    first, deadline = phases.read(store).written, time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and phases.read(store).written < first + 2:
        time.sleep(0.1)
    return read(store)
