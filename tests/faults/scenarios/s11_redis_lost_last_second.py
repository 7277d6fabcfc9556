"""Redis comes back without the last second (appendfsync everysec), or a replica that lacks it takes over."""

from tests.faults import rediskill
from tests.faults.scenario import KUBERNETES, STANDALONE, Run, Scenario


def inject(run: Run) -> None:
    """One or the other."""
    run.pause(0.5, 1.2)
    run.highest = run.arena.epoch()
    if run.seed // 2 % 2:
        folder = run.arena.folder / f"replica-{run.arena.runs}"
        rediskill.fail_over(run, folder, behind_s=run.rng.uniform(0.1, 1.0), read_only_s=run.rng.uniform(0.0, 0.5))
    else:
        rediskill.restart(run, away_s=run.rng.uniform(0.0, 1.0), loses_s=run.rng.uniform(0.1, 1.0))
    run.pause(1.0, 2.0)


def after(run: Run) -> list[str]:
    """Whoever leads now does so under no epoch that was there before the loss."""
    now = run.arena.epoch()
    return [] if now >= run.highest else [f"I5 the epoch was {run.highest} before the loss and is {now} now"]


SCENARIO = Scenario(
    11,
    "Redis restarts without its last second, or fails over to a replica that lacks it",
    "Kubernetes: nothing is lost, decisions pause for a moment; standalone: what was applied and bound in that second",
    inject,
    (KUBERNETES, STANDALONE),
    after=after,
)
