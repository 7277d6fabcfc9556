"""The leader is killed at a chosen point between two scripts, one point a seed."""

from tests.faults import points
from tests.faults.harm import LeaderKill, Point
from tests.faults.proxy import When
from tests.faults.scenario import KUBERNETES, STANDALONE, Run, Scenario

POINTS = (
    Point("before pop", points.POP, When.REQUEST),
    Point("between pop and reserve", points.POP, When.REPLY),
    Point("before reserve", points.RESERVE, When.REQUEST),
    Point("between reserve and hand-out", points.RESERVE, When.REPLY),
    Point("at hand-out", points.HAND_OUT, When.REQUEST),
    Point("between hand-out and bind", points.HAND_OUT, When.REPLY),
    Point("before confirm", points.CONFIRM, When.REQUEST),
    Point("after confirm", points.CONFIRM, When.REPLY),
)


def inject(run: Run) -> None:
    """kill -9 right at the point."""
    point = POINTS[run.seed // 2 % len(POINTS)]
    run.pause(0.3, 1.2)
    kill = LeaderKill(run, point, lambda answer: not answer.startswith(points.NOTHING_POPPED))
    kill.wait(20)
    run.notes.append(str(run.arena.standing().moving))
    kill.wait_for_next()
    run.pause(0.3, 0.6)


SCENARIO = Scenario(
    1,
    "The leader is killed in the middle of a batch",
    "Pods wait until the standby leads (at most the lease and a second); each is bound once, attempts are kept",
    inject,
    (STANDALONE, KUBERNETES),
)
