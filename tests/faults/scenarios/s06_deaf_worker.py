"""A worker is alive and hears nothing: its connections to Redis stay open and nothing moves on them."""

from tests.faults import waits
from tests.faults.scenario import STANDALONE, Run, Scenario


def inject(run: Run) -> None:
    """One evaluator and one binder, parent and pool; the others have to do all the work."""
    run.pause(0.3, 1.0)
    deaf: list[int] = []
    for part in ("evaluator", "binder"):
        chosen = run.rng.choice(run.arena.running(part))
        deaf += [chosen, *_children(chosen)]
        run.note(f"{part} in a black hole")
    run.arena.proxy.hold(deaf)
    waits.go_on(run, "workers cut off")
    run.pause(2.0, 6.0)
    waits.go_on(run, "workers still cut off")


def _children(pid: int) -> list[int]:
    from tests.acceptance import processes

    return processes.children(pid)


SCENARIO = Scenario(
    6,
    "A worker is alive and hears nothing (its connections are black holes)",
    "The others do its work; what it had taken is looked up after 5 s; dsched status calls it silent after 10 s",
    inject,
    (STANDALONE,),
    options=("--mode", "distributed"),
    goal_s=90.0,
)
