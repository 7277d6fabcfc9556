"""Every process is asked to stop, one after the other, while there is work; sometimes the whole system at once."""

import signal

from tests.faults import harm
from tests.faults.arena import UP
from tests.faults.scenario import KUBERNETES, STANDALONE, Run, Scenario


def inject(run: Run) -> None:
    """A rolling restart, or (one seed of four) ``dsched down`` and ``dsched up``."""
    run.pause(0.3, 0.8)
    if run.seed % 8 in (6, 7):
        run.arena.system.down()
        run.note("dsched down")
        run.arena.system.up(*UP, *run.arena.options)
        run.pause(0.3, 0.6)
        return
    parts = ["leader", "binder", "evaluator", "standby"]
    run.rng.shuffle(parts)
    for part in parts:
        if part == "leader":
            harm.wait_for_standby(run)  # else the time is that of starting one
        pid = harm.send(run, part, signal.SIGTERM)
        if part == "leader":
            run.measure("leader asked to stop (SIGTERM)")
        harm.wait_until_gone(pid)
        run.pause(0.1, 0.4)
        if part in ("leader", "standby"):
            harm.wait_for_standby(run)


SCENARIO = Scenario(
    25,
    "Every process is asked to stop (SIGTERM) under load: a rolling restart, or everything down and up",
    "A standby leads within 0.2 to 1 s; pods wait while everything is down; each is told once that it was scheduled",
    inject,
    (STANDALONE, KUBERNETES),
)
