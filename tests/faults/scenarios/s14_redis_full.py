"""Redis is full, so that it refuses every write that needs memory; or each of its answers takes half a second."""

from tests.faults import waits
from tests.faults.scenario import STANDALONE, Run, Scenario

LATENCY_S = 0.25
"""Each way."""


def inject(run: Run) -> None:
    """Full at even seeds, slow at odd ones."""
    run.pause(0.3, 1.2)
    if run.seed % 2:
        run.arena.proxy.latency_s = LATENCY_S
        run.note("Redis slow by 500 ms")
        run.pause(4.0, 8.0)
        run.arena.proxy.latency_s = 0.0
        waits.go_on(run, "Redis is fast again")
        return
    used = int(run.arena.redis.info("memory")["used_memory"])
    try:
        run.arena.redis.config_set("maxmemory", max(used // 2, 1_000_000))
        run.note("Redis full")
        run.pause(2.0, 7.0)
    finally:
        run.arena.redis.config_set("maxmemory", 0)
    run.pause(0.2, 0.5)
    waits.go_on(run, "Redis has room again")


SCENARIO = Scenario(
    14,
    "Redis is full (maxmemory), or answers half a second late",
    "Full: nothing is scheduled or applied until there is room, dsched status and the log say why; slow: all is slow",
    inject,
    (STANDALONE,),
    goal_s=90.0,
)
