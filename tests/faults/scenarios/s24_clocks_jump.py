"""The wall clocks of leaders and workers jump by an hour, ahead or back; some stay so, as on hosts that disagree."""

import os
import time
from pathlib import Path

from tests.faults.history import PREFIX
from tests.faults.scenario import KUBERNETES, STANDALONE, Run, Scenario

CLOCKS = Path(__file__).parents[1] / "clocks"
HOUR_S = 3600.0
PARTS = ("leader-1", "leader-2", "evaluator-1", "evaluator-2", "binder-1", "binder-2")
SILENT_AFTER_MS = 10_000


def inject(run: Run) -> None:
    """One clock after the other jumps; at the end all jump back."""
    folder = run.arena.folder / "clocks"
    folder.mkdir(exist_ok=True)
    before = run.arena.epoch()
    try:
        for part in run.rng.sample(PARTS, 4):
            run.pause(0.2, 0.6)
            path = folder / f"{part}.new"
            path.write_text(str(run.rng.choice((-HOUR_S, HOUR_S))))
            path.rename(folder / part)
            run.note("clock jumps by an hour")
        run.pause(2.0, 3.0)
        if run.seed % 2:
            _workers_are_not_silent(run)
    finally:
        for path in folder.glob("*"):
            path.unlink()
    run.pause(0.3, 0.8)
    run.require(run.arena.epoch() == before, f"I5 epoch {before}, then {run.arena.epoch()}: clocks changed the leader")


def _workers_are_not_silent(run: Run) -> None:
    """What workers write of themselves is compared with clocks of other hosts."""
    for name, text in run.arena.redis.hgetall(PREFIX + "workers").items():
        ago_ms = time.time() * 1000 - int(text.split(" ")[1])
        run.require(abs(ago_ms) < SILENT_AFTER_MS, f"I9 {name} says that it was seen {ago_ms / 1000:.0f} s ago")


SCENARIO = Scenario(
    24,
    "The wall clock of a leader or a worker jumps by an hour, or hosts disagree by as much",
    "Nothing: leases, backoff and signs of life go by Redis' clock and by clocks that do not jump",
    inject,
    (STANDALONE, KUBERNETES),
    variables={"PYTHONPATH": os.pathsep.join([str(CLOCKS), *filter(None, [os.environ.get("PYTHONPATH")])])},
)
