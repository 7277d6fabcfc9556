"""Redis comes back without the last second (appendfsync everysec), with all that it had acknowledged (always), or a
replica that lacks the last second takes over."""

from tests.faults import rediskill
from tests.faults.scenario import KUBERNETES, STANDALONE, Run, Scenario

CUT, FAIL_OVER, ALWAYS = range(3)


def inject(run: Run) -> None:
    """One of the three."""
    variant = run.seed // 2 % 3
    if variant == ALWAYS:
        rediskill.keep_everything(run)
    run.pause(0.5, 1.2)
    run.highest = run.arena.epoch()
    if variant == ALWAYS:
        rediskill.restart(run, away_s=run.rng.uniform(0.0, 1.0))
    elif variant == FAIL_OVER:
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
    "Redis restarts with all it has acknowledged or without its last second, or fails over to a replica that lacks it",
    "Kubernetes: nothing is lost, decisions pause for a moment; standalone: what was applied and bound in that second",
    inject,
    (KUBERNETES, STANDALONE),
    after=after,
)
