"""The leader is killed at a chosen point between two scripts, one point a seed."""

import os
import signal
from contextlib import suppress

from tests.faults import harm, points
from tests.faults.proxy import When
from tests.faults.scenario import KUBERNETES, STANDALONE, Run, Scenario

POINTS = (
    ("before pop", points.POP, When.REQUEST),
    ("between pop and reserve", points.POP, When.REPLY),
    ("before reserve", points.RESERVE, When.REQUEST),
    ("between reserve and hand-out", points.RESERVE, When.REPLY),
    ("at hand-out", points.HAND_OUT, When.REQUEST),
    ("between hand-out and bind", points.HAND_OUT, When.REPLY),
    ("before confirm", points.CONFIRM, When.REQUEST),
    ("after confirm", points.CONFIRM, When.REPLY),
)


def inject(run: Run) -> None:
    """kill -9 right at the point."""
    name, marker, when = POINTS[run.seed // 2 % len(POINTS)]
    run.pause(0.3, 1.2)
    killed: list[int] = []

    def kill(pid: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    leading = run.arena.leading()
    tap = run.arena.proxy.tap(
        marker,
        when,
        kill,
        cut=when is When.REQUEST,
        wanted=lambda pid, answer: pid in leading and not answer.startswith(points.NOTHING_POPPED),
    )
    run.require(tap.fired.wait(20), f"the point was never reached: {name}")
    run.measure("leader killed")
    run.note(f"kill -9 leader {name}")
    run.notes.append(str(run.arena.standing().moving))
    if killed:
        harm.wait_for_new_leader(run, killed[0])
    run.pause(0.3, 0.6)


SCENARIO = Scenario(
    1,
    "The leader is killed in the middle of a batch",
    "Pods wait until the standby leads (at most the lease and a second); each is bound once, attempts are kept",
    inject,
    (STANDALONE, KUBERNETES),
)
