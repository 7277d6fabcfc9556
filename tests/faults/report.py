"""Figures of many runs, for people and as JSON."""

import platform
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from tests.faults.driver import Outcome
from tests.faults.scenario import Scenario

Json = dict[str, Any]


def summary(outcomes: Sequence[Outcome]) -> Json:
    """All there is to say, as JSON."""
    faults: Counter[str] = Counter()
    for outcome in outcomes:
        faults.update(outcome.faults)
    return {
        "machine": f"{platform.machine()} {platform.system()} {platform.release()} Python {platform.python_version()}",
        "runs": len(outcomes),
        "failed": sum(bool(outcome.breaches) for outcome in outcomes),
        "breaches": sum(len(outcome.breaches) for outcome in outcomes),
        "pods": sum(outcome.pods for outcome in outcomes),
        "binds": sum(outcome.binds for outcome in outcomes),
        "evicted": sum(outcome.evicted for outcome in outcomes),
        "faults": dict(sorted(faults.items())),
        "without_decisions_ms": {what: spread(values) for what, values in gaps(outcomes).items()},
        "each": [asdict(outcome) for outcome in outcomes],
    }


def gaps(outcomes: Iterable[Outcome]) -> dict[str, list[int]]:
    """All measured times, by what happened."""
    found: dict[str, list[int]] = {}
    for outcome in outcomes:
        for what, values in outcome.gaps_ms.items():
            found.setdefault(what, []).extend(values)
    return dict(sorted(found.items()))


def spread(values: Sequence[int]) -> Json:
    """Number, median, 95th percentile and maximum."""
    ordered = sorted(values)
    return {
        "runs": len(ordered),
        "median": ordered[len(ordered) // 2],
        "p95": ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))],
        "max": ordered[-1],
    }


def table(outcomes: Sequence[Outcome], scenarios: dict[int, Scenario]) -> Table:
    """A line a scenario."""
    made = Table("#", "scenario", "runs", "failed", "pods", "binds", "faults", "settled s", "run s")
    for number in sorted({outcome.scenario for outcome in outcomes}):
        mine = [outcome for outcome in outcomes if outcome.scenario == number]
        title = scenarios[number].title if number in scenarios else "mixed"
        faults = sum(sum(outcome.faults.values()) for outcome in mine)
        made.add_row(
            str(number),
            title,
            str(len(mine)),
            str(sum(bool(outcome.breaches) for outcome in mine)),
            str(sum(outcome.pods for outcome in mine)),
            str(sum(outcome.binds for outcome in mine)),
            str(faults),
            f"{_mean([outcome.settled_s for outcome in mine]):.1f}",
            f"{_mean([outcome.took_s for outcome in mine]):.1f}",
        )
    return made


def times(outcomes: Sequence[Outcome]) -> Table:
    """Time without decisions."""
    made = Table("without decisions after", "runs", "median ms", "p95 ms", "max ms")
    for what, values in gaps(outcomes).items():
        made.add_row(what, *(str(value) for value in spread(values).values()))
    return made


def lines(scenarios: Iterable[Scenario]) -> list[str]:
    """The table of ``docs/reliability.md``."""
    head = ["| # | what happens | what the user sees |", "|---|---|---|"]
    return head + [f"| {each.number} | {each.title} | {each.sees} |" for each in scenarios]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
