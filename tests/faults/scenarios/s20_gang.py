"""The leader is killed between the members of a gang; with an API server, it refuses one of them."""

from tests.faults import gangs, points, waits
from tests.faults.churn import wait_for
from tests.faults.harm import LeaderKill, Point
from tests.faults.proxy import When
from tests.faults.scenario import KUBERNETES, STANDALONE, Run, Scenario

GANGS = 3
SIZE = 5
POINTS = (
    Point("between reservations", points.RESERVE, When.REPLY),
    Point("before all are let go", points.ALLOW, When.REQUEST),
    Point("after all were let go", points.ALLOW, When.REPLY),
    Point("before some are bound", points.HAND_OUT, When.REPLY),
    Point("after some were bound", points.CONFIRM, When.REPLY),
)


def inject(run: Run) -> None:
    """Where there is an API server, it refuses a member; else the leader is killed."""
    run.pause(0.2, 0.6)
    (_refused if run.arena.kind == KUBERNETES else _killed)(run)


def _refused(run: Run) -> None:
    """One member's bind is refused again and again when all have been let go: those that are bound wait for it."""
    gang = gangs.pods(run, "refused", SIZE)
    keys = [gangs.key(pod) for pod in gang]
    chosen = run.rng.choice(keys)
    name = chosen.partition("/")[2]
    run.churn.pausing.set()
    try:
        run.arena.api.fault("POST", f"/pods/{name}/binding", status=403, times=3)
        run.arena.put("Pod", *gang)
        rest = [key for key in keys if key != chosen]
        run.require(wait_for(lambda: len(waits.bound(run, rest)) == len(rest), 60), "I10 the others were not bound")
        run.note("bind of a member refused", 3)
        run.require(wait_for(lambda: len(waits.bound(run, keys)) == SIZE, 60), "I10 the member never joined its gang")
    finally:
        run.churn.pausing.clear()
        run.churn.delete_pods(*keys)


def _killed(run: Run) -> None:
    """At a point of the seed, while gangs wait for each other; one of them is never complete."""
    whole_ones = [gangs.pods(run, f"g{number}", SIZE) for number in range(GANGS)]
    lonely = gangs.pods(run, "lonely", SIZE, made=SIZE - 2)
    run.churn.pausing.set()  # it would delete nodes with members on them, and a gang that has lost one waits for it
    run.pause(0.3, 0.5)
    kill = LeaderKill(run, POINTS[run.seed % len(POINTS)])
    try:
        for gang in whole_ones:
            run.arena.put("Pod", *gang)
            run.pause(0.0, 0.2)
        run.arena.put("Pod", *lonely)
        kill.wait(30)
        kill.wait_for_next()
        keys = [gangs.key(pod) for gang in whole_ones for pod in gang]
        whole = wait_for(lambda: len(waits.bound(run, keys)) == len(keys), 90)
        counts = [len(waits.bound(run, [gangs.key(pod) for pod in gang])) for gang in whole_ones]
        run.require(whole, f"I10 gangs of {SIZE} that fit: {counts} members bound")
        run.require(
            not waits.bound(run, [gangs.key(pod) for pod in lonely]), "I10 members of an incomplete gang were bound"
        )
    finally:
        run.churn.pausing.clear()
        run.churn.delete_pods(*[gangs.key(pod) for gang in (*whole_ones, lonely) for pod in gang])


SCENARIO = Scenario(
    20,
    "The leader is killed between the members of a gang, or one of them is refused",
    "A gang is let go as a whole, by the next leader, or waits as a whole; one whose bind is refused is tried again",
    inject,
    (STANDALONE, KUBERNETES),
    options=gangs.OPTIONS,
    variables=gangs.VARIABLES,
    goal_s=90.0,
)
