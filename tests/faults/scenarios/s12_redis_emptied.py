"""Redis is emptied while everything runs."""

from tests.faults.scenario import KUBERNETES, STANDALONE, Run, Scenario


def inject(run: Run) -> None:
    """FLUSHALL; in standalone mode the user applies everything anew."""
    run.pause(0.5, 1.5)
    run.highest = run.arena.epoch()
    run.lossy = True
    run.arena.redis.flushall()
    run.note("FLUSHALL")
    run.measure("redis emptied")
    if run.arena.kind == STANDALONE:
        run.churn.put_nodes(*run.churn.nodes())
        run.churn.pods(10)
    run.pause(2.0, 3.0)


def after(run: Run) -> list[str]:
    """Whoever leads now does so under an epoch that was never there before."""
    now = run.arena.epoch()
    return [] if now > run.highest else [f"I5 the epoch was {run.highest} before Redis was emptied and is {now} now"]


SCENARIO = Scenario(
    12,
    "Redis is emptied (FLUSHALL, or a new volume) while everything runs",
    "Kubernetes: the leader starts over from the API server, attempts count from 0; standalone: all objects are gone",
    inject,
    (KUBERNETES, STANDALONE),
    after=after,
)
