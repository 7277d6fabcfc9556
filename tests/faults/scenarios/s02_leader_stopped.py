"""The leader is stopped for longer than its lease, another one leads, and the old one wakes up."""

from tests.faults import harm
from tests.faults.arena import LEASE_S
from tests.faults.scenario import KUBERNETES, STANDALONE, Run, Scenario


def inject(run: Run) -> None:
    """SIGSTOP the leader for two leases, then SIGCONT."""
    run.pause(0.5, 1.5)
    (old,) = run.arena.leading()
    before = run.arena.epoch()
    run.arena.halt(old)
    run.note("SIGSTOP leader")
    run.measure("leader stopped")
    harm.wait_for_new_leader(run, old)
    run.pause(0.0, LEASE_S / 2)
    after = run.arena.epoch()
    run.require(after == before + 1, f"I5 the epoch went from {before} to {after} when the leader was stopped")
    run.arena.go_on(old)
    run.note("SIGCONT leader")
    run.pause(0.5, 1.0)
    run.require(run.arena.leading() != [old], "I5 the leader that had slept leads on")
    run.require(run.arena.epoch() == after, "I5 the leader that had slept took a new epoch while another one led")


SCENARIO = Scenario(
    2,
    "The leader is stopped for two leases, another leads, the old one goes on",
    "Pods wait until the standby leads (at most the lease and a second); what the old leader still tries is refused",
    inject,
    (STANDALONE, KUBERNETES),
)
