"""The leader is killed while queues fill up to their limits, or a binder while it binds their pods."""

from typing import Any

from dsched.model.queues import LABEL
from tests.faults import harm, points, sites, waits
from tests.faults.churn import KEPT, wait_for
from tests.faults.harm import LeaderKill, Point
from tests.faults.proxy import When
from tests.faults.scenario import Run, Scenario
from tests.manifests import queue_manifest

PODS = 9
LIMITS = {"teams": 8, "red": 5}
"""Pods that queue teams may have, and red below it; blue has no limit of its own."""
CONFIGURATION = sites.HEAD + (
    "profiles:\n- schedulerName: default-scheduler\n  plugins:\n    multiPoint:\n"
    "      disabled: [{name: PrioritySort}, {name: DefaultPreemption}]\n      enabled: [{name: FairShare}]\n"
)
POINTS = (
    Point("before pods are popped", points.POP, When.REQUEST),
    Point("after pods were popped", points.POP, When.REPLY),
    Point("before the reservations", points.RESERVE, When.REQUEST),
    Point("after the reservations", points.RESERVE, When.REPLY),
    Point("before some are bound", points.HAND_OUT, When.REPLY),
    Point("after some were bound", points.CONFIRM, When.REPLY),
)


def inject(run: Run) -> None:
    """Two queues want more than they may have together; then some of their pods go, and others take their place."""
    names = {each: f"{each}-{run.seed}" for each in ("teams", "red", "blue")}
    run.arena.put("Queue", queue_manifest(names["teams"], resources=_limit("teams")))
    run.arena.put("Queue", queue_manifest(names["red"], names["teams"], resources=_limit("red")))
    run.arena.put("Queue", queue_manifest(names["blue"], names["teams"]))
    run.churn.pausing.set()
    run.pause(0.3, 0.6)
    number = run.seed % (len(POINTS) + 1)
    kill = LeaderKill(run, POINTS[number]) if number < len(POINTS) else None
    pods = {each: [_pod(run, names[each]) for _ in range(PODS)] for each in ("red", "blue")}
    keys = {each: [f"default/{pod['metadata']['name']}" for pod in found] for each, found in pods.items()}
    everybody = [key for found in keys.values() for key in found]
    try:
        for red, blue in zip(pods["red"], pods["blue"], strict=True):
            run.arena.put("Pod", red, blue)
            run.pause(0.0, 0.05)
        if kill is not None:
            kill.wait(30)
            kill.wait_for_next()
        else:
            harm.send(run, "binder")
        _full(run, keys)
        run.churn.delete_pods(*waits.bound(run, everybody)[:3])
        _full(run, keys)
    finally:
        run.churn.pausing.clear()
        run.churn.delete_pods(*everybody)
        run.arena.delete("Queue", *names.values())


def _full(run: Run, keys: dict[str, list[str]]) -> None:
    """Wait until no more pods may come in, and look meanwhile that no limit is exceeded."""

    def placed() -> int:
        red, blue = (len(waits.bound(run, keys[each])) for each in ("red", "blue"))
        run.require(red <= LIMITS["red"], f"I14 {red} pods of a queue with a limit of {LIMITS['red']} were bound")
        both = red + blue
        run.require(both <= LIMITS["teams"], f"I14 {both} pods below a limit of {LIMITS['teams']} were bound")
        return both

    full = wait_for(lambda: placed() == LIMITS["teams"], 60)
    run.require(full, f"{placed()} pods of queues that may have {LIMITS['teams']} were bound")


def _limit(queue: str) -> dict[str, Any]:
    return {"pods": {"limit": LIMITS[queue]}}


def _pod(run: Run, queue: str) -> dict[str, Any]:
    pod = run.churn.pod(cpu="50m", plain=True)
    pod["metadata"]["labels"] |= {KEPT: "yes", LABEL: queue}
    return pod


SCENARIO = Scenario(
    27,
    "The leader is killed while queues fill up to their limits, or a binder while it binds their pods",
    "No queue gets more than its limit, and all of it is used, by the next leader where need be",
    inject,
    options=("--config", sites.written("queues.yaml", CONFIGURATION)),
    goal_s=90.0,
)
