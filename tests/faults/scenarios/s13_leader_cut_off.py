"""The leader alone cannot reach Redis any more; the standby can."""

from tests.faults import harm
from tests.faults.arena import LEASE_S
from tests.faults.scenario import KUBERNETES, STANDALONE, Run, Scenario


def inject(run: Run) -> None:
    """A black hole or resets, for longer than the lease."""
    run.pause(0.5, 1.5)
    (old,) = run.arena.leading()
    before = run.arena.epoch()
    black = run.rng.random() < 0.5
    (run.arena.proxy.hold if black else run.arena.proxy.refuse)([old])
    run.note("leader cut off from redis (black hole)" if black else "leader cut off from redis (resets)")
    run.measure("leader cut off")
    harm.wait_for_new_leader(run, old)
    run.pause(0.0, LEASE_S)
    run.require(
        run.arena.epoch() == before + 1, f"I5 epoch {before}, then {run.arena.epoch()} after one change of leader"
    )
    run.arena.proxy.heal()
    run.pause(0.5, 1.0)
    run.require(run.arena.leading() != [old], "I5 the leader that was cut off leads on")


SCENARIO = Scenario(
    13,
    "The leader alone loses Redis, the standby does not",
    "Pods wait until the standby leads (at most the lease and a second); the old leader stands by when it is back",
    inject,
    (STANDALONE, KUBERNETES),
)
