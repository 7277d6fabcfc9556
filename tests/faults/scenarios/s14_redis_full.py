"""Redis has no memory left, or no disk, so that it refuses writes; or each of its answers takes half a second."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.faults import waits
from tests.faults.scenario import STANDALONE, Run, Scenario
from tests.full_disk import full_disk

LATENCY_S = 0.25
"""Each way."""


@contextmanager
def full_memory(run: Run) -> Iterator[None]:
    """Half of what it uses is all that it may use."""
    used = int(run.arena.redis.info("memory")["used_memory"])
    run.arena.redis.config_set("maxmemory", max(used // 2, 1_000_000))
    try:
        yield
    finally:
        run.arena.redis.config_set("maxmemory", 0)


def inject(run: Run) -> None:
    """One after the other, seed by seed: no memory, slow, no disk."""
    run.pause(0.3, 1.2)
    if run.seed % 3 == 1:
        run.arena.proxy.latency_s = LATENCY_S
        run.note("Redis slow by 500 ms")
        run.pause(4.0, 8.0)
        run.arena.proxy.latency_s = 0.0
        waits.go_on(run, "Redis is fast again")
        return
    with full_disk(run.arena.server) if run.seed % 3 else full_memory(run):
        run.note("Redis full")
        run.pause(2.0, 7.0)
    run.pause(0.2, 0.5)
    waits.go_on(run, "Redis has room again")


SCENARIO = Scenario(
    14,
    "Redis is full (its memory, or its disk), or answers half a second late",
    "Full: nothing is scheduled or applied until there is room, dsched status and the log say why; slow: all is slow",
    inject,
    (STANDALONE,),
    goal_s=90.0,
)
