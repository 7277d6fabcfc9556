"""The leader is killed while it makes room for a pod: before or after the promise, before or after the victims go."""

from tests.faults import points, stage, waits
from tests.faults.churn import wait_for
from tests.faults.harm import LeaderKill, Point
from tests.faults.proxy import When
from tests.faults.scenario import STANDALONE, Run, Scenario

VICTIMS = 4
NEEDED = 2
POINTS = (
    Point("before the promise", points.STATUS, When.REQUEST),
    Point("between promise and eviction", points.STATUS, When.REPLY),
    Point("before the eviction", points.EVICT, When.REQUEST),
    Point("after the eviction", points.EVICT, When.REPLY),
)


def inject(run: Run) -> None:
    """On a node of its own: four pods of priority 0 fill it, then one comes that needs the room of two."""
    rivals = run.seed // len(POINTS) % 2
    stage.put(run, VICTIMS)
    low = stage.pods(run, VICTIMS, "1", 0)
    run.require(wait_for(lambda: len(waits.bound(run, low)) == VICTIMS, 60), "the stage was not filled")
    run.churn.pausing.set()  # so that the next status and the next eviction are about the pod on the stage
    run.pause(1.0, 1.5)
    kill = LeaderKill(run, POINTS[run.seed % len(POINTS)])
    (high,) = stage.pods(run, 1, "2", 100_000)
    kill.wait(20)
    run.churn.pausing.clear()
    kill.wait_for_next()
    if rivals:  # somebody of still higher priority comes for the same room
        (higher,) = stage.pods(run, 1, "2", 200_000)
        run.require(wait_for(lambda: bool(waits.done(run, [higher])), 60), "I9 the higher pod was not placed")
    run.require(wait_for(lambda: bool(waits.done(run, [high])), 60), "I9 the pod that needed room was not placed")
    with run.arena.history.lock:
        left = [key for key in low if key in run.arena.history.pods]
    budget = NEEDED * (1 + rivals)
    run.require(len(left) >= VICTIMS - budget, f"I9 {VICTIMS - len(left)} pods were evicted where {budget} had to go")
    stage.clear(run, *low, high)


SCENARIO = Scenario(
    19,
    "The leader is killed while it makes room for a pod by preemption",
    "The next leader goes on from the promise on the pod, or makes it anew: no more pods are evicted than had to go",
    inject,
    (STANDALONE,),
)
