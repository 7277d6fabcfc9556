"""The leader is killed while it makes room for a pod: before or after the promise, before or after the victims go; with
an API server also while they take their time to go."""

from tests.faults import harm, points, stage, waits
from tests.faults.churn import wait_for
from tests.faults.harm import LeaderKill, Point
from tests.faults.proxy import When
from tests.faults.scenario import KUBERNETES, STANDALONE, Run, Scenario

VICTIMS = 4
NEEDED = 2
GRACE_S = 600
POINTS = (
    Point("before the promise", points.STATUS, When.REQUEST),
    Point("between promise and eviction", points.STATUS, When.REPLY),
    Point("before the eviction", points.EVICT, When.REQUEST),
    Point("after the eviction", points.EVICT, When.REPLY),
)


def inject(run: Run) -> None:
    """On a node of its own: four pods of priority 0 fill it, then one comes that needs the room of two."""
    stage.put(run, VICTIMS)
    low = stage.pods(run, VICTIMS, "1", 0, GRACE_S if run.arena.kind == KUBERNETES else 0)
    run.require(wait_for(lambda: len(waits.bound(run, low)) == VICTIMS, 60), "the stage was not filled")
    run.churn.pausing.set()  # so that the next status and the next eviction are about the pod on the stage
    run.pause(1.0, 1.5)
    (_slowly if run.arena.kind == KUBERNETES else _at_once)(run, low)


def _at_once(run: Run, low: list[str]) -> None:
    """The victims go when they are told to."""
    foreign_binds = run.seed // 2 // len(POINTS) % 2
    kill = LeaderKill(run, POINTS[run.seed // 2 % len(POINTS)])
    (high,) = stage.pods(run, 1, "2", 100_000)
    kill.wait(20)
    run.churn.pausing.clear()
    kill.wait_for_next()
    if foreign_binds:  # somebody of still higher priority comes for the same room
        (higher,) = stage.pods(run, 1, "2", 200_000)
        run.require(wait_for(lambda: bool(waits.done(run, [higher])), 60), "I9 the higher pod was not placed")
    run.require(wait_for(lambda: bool(waits.done(run, [high])), 60), "I9 the pod that needed room was not placed")
    with run.arena.history.lock:
        left = [key for key in low if key in run.arena.history.pods]
    budget = NEEDED * (1 + foreign_binds)
    run.require(len(left) >= VICTIMS - budget, f"I9 {VICTIMS - len(left)} pods were evicted where {budget} had to go")
    stage.clear(run, *low, high)


def _slowly(run: Run, low: list[str]) -> None:
    """They have ten minutes' grace. Until they are gone the pod keeps its promise, and nobody else has to go for it."""
    (high,) = stage.pods(run, 1, "2", 100_000)
    run.require(wait_for(lambda: len(_leaving(run)) == NEEDED, 60), "I9 nobody was asked to make room")
    asked = _leaving(run)
    harm.wait_for_new_leader(run, harm.send(run, "leader"))
    run.pause(2.0, 4.0)
    run.require(_leaving(run) == asked, f"I9 {asked} were to go, then {_leaving(run)}")
    promised = run.arena.api.get("pods", high).get("status", {}).get("nominatedNodeName")
    run.require(promised == stage.NAME, f"I9 the pod's promise is {promised}")
    run.require(not waits.bound(run, [high]), "I3 the pod was bound before its victims were gone")
    run.churn.pausing.clear()
    run.arena.delete("Pod", *asked)
    run.require(wait_for(lambda: bool(waits.done(run, [high])), 60), "I9 the pod that needed room was not placed")
    stage.clear(run, *low, high)


def _leaving(run: Run) -> set[str]:
    return {
        f"default/{pod['metadata']['name']}"
        for pod in run.arena.objects("Pod")
        if pod["metadata"].get("deletionTimestamp") and pod["spec"].get("nodeName") == stage.NAME
    }


SCENARIO = Scenario(
    19,
    "The leader is killed while it makes room for a pod by preemption",
    "The next leader goes on from the promise on the pod, or makes it anew: no more pods are evicted than had to go",
    inject,
    (STANDALONE, KUBERNETES),
)
