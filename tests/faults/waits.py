"""Waiting for what the scheduler is expected to do while it is being harmed."""

from collections.abc import Iterable

from tests.faults.churn import wait_for
from tests.faults.scenario import Run

LONG_S = 60.0
"""Nothing here is a promise about time: those are measured. This only ends a wait for what never comes."""


def bound(run: Run, keys: Iterable[str]) -> list[str]:
    """Those of these pods that are bound."""
    with run.arena.history.lock:
        history = run.arena.history
        return [key for key in keys if (pod := history.pods.get(key)) and history.bound.get(pod["metadata"]["uid"])]


def done(run: Run, keys: Iterable[str]) -> list[str]:
    """Those that are bound, or were there and are gone: the churn deletes what it likes."""
    wanted = set(keys)
    seen = {each.key for each in run.arena.history.entries() if each.key in wanted}
    with run.arena.history.lock:
        gone = seen - run.arena.history.pods.keys()
    return [*bound(run, wanted - gone), *gone]


def go_on(run: Run, what: str, count: int = 5, deadline_s: float = LONG_S) -> None:
    """Pods that come now are bound now, whatever is broken; how long the first one took is measured."""
    run.measure(what)
    keys = run.churn.pods(count, priority=1000)
    run.require(
        wait_for(lambda: len(done(run, keys)) == len(keys), deadline_s),
        f"I9 {what}: new pods were not bound meanwhile",
    )
