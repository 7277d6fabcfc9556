"""The soak: for an hour, or as long as asked for, faults of all kinds, several of them in a run, and the scenarios
between them. Runs are numbered; a run is done again by its scenario (0 for mixed faults) and its seed."""

import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence

from tests.faults import harm, rediskill
from tests.faults.arena import LEASE_S
from tests.faults.scenario import KUBERNETES, STANDALONE, Run, Scenario

MIXED_SHARE = 0.6


def runs(scenarios: Sequence[Scenario], first: int, until: float) -> Iterator[tuple[Scenario, int]]:
    """Mixed runs and runs of the scenarios, in turns that the first seed determines, until the time is up. Several of
    one arena come in a row, so that systems are not exchanged all the time."""
    rng = random.Random(f"soak-{first}")
    seed = first
    while time.monotonic() < until:
        batch = [MIXED if rng.random() < MIXED_SHARE else rng.choice(scenarios) for _ in range(12)]
        planned = [(scenario, seed + number) for number, scenario in enumerate(batch)]
        seed += len(batch)
        for scenario, number in sorted(planned, key=lambda run: (run[0].arena(run[1]), run[0].fresh, run[0].options)):
            if time.monotonic() >= until:
                return
            yield scenario, number


def inject(run: Run) -> None:
    """Three to six faults, one after the other, some while another one lasts."""
    for _ in range(run.rng.randint(3, 6)):
        run.pause(0.2, 0.8)
        run.rng.choice(FAULTS)(run)
    run.pause(0.3, 1.0)


def _kill(run: Run) -> None:
    if run.rng.random() < 0.3:
        harm.kill_leader(run)
    else:
        harm.send(run, run.rng.choice(harm.PARTS[1:]))


def _terminate(run: Run) -> None:
    harm.send(run, run.rng.choice(("leader", "standby", "binder", "evaluator")), signal.SIGTERM)


def _stop(run: Run) -> None:
    """For a moment, or for longer than the lease."""
    found = harm.victims(run, run.rng.choice(harm.PARTS))
    if found:
        pid = run.rng.choice(found)
        run.arena.halt(pid)
        run.note("SIGSTOP")
        time.sleep(run.rng.choice((0.3, 0.8, 1.3 * LEASE_S)))
        run.arena.go_on(pid)


def _reset(run: Run) -> None:
    run.arena.proxy.reset()
    run.note("connections to redis reset")


def _slow(run: Run) -> None:
    run.arena.proxy.latency_s = run.rng.choice((0.005, 0.02, 0.1))
    run.note("latency of redis")
    run.pause(0.3, 0.8)
    run.arena.proxy.latency_s = 0.0


def _pause_redis(run: Run) -> None:
    run.arena.redis.execute_command("CLIENT", "PAUSE", run.rng.choice((100, 500, 1500)))
    run.note("CLIENT PAUSE")


def _restart_redis(run: Run) -> None:
    if run.rng.random() < 0.5:
        rediskill.keep_everything(run)
        run.pause(0.0, 0.5)
    rediskill.restart(run, away_s=run.rng.choice((0.0, 0.5, 1.5)))


def _break_api(run: Run) -> None:
    """Of standalone clusters there is none: their connections are reset."""
    if run.arena.kind != KUBERNETES:
        _reset(run)
        return
    method, path = run.rng.choice((("POST", "/binding"), ("PATCH", "/status"), ("GET", "/pods/")))
    what = run.rng.choice(({"status": 500}, {"status": 429}, {"drop": "before"}, {"drop": "after"}))
    run.arena.api.fault(method, path, times=run.rng.randint(1, 6), **what)
    run.note("API server fails")


FAULTS: tuple[Callable[[Run], None], ...] = (
    *(_kill, _kill, _kill, _terminate, _stop, _stop),
    *(_reset, _slow, _pause_redis, _restart_redis, _break_api),
)

MIXED = Scenario(
    0,
    "Several faults at once, drawn at random",
    "The sum of what the single faults cost; nothing is lost and nothing happens twice",
    inject,
    (STANDALONE, KUBERNETES),
    goal_s=90.0,
)
