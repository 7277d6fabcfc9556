"""Messages to the binders come twice: at once, to two binders in parallel, and once more when all is over. So do their
reports; and a binder dies after it has bound and before it has told.
"""

import os
import signal
import socket
import time
from contextlib import suppress

from tests.faults import points
from tests.faults.proxy import When
from tests.faults.scenario import KUBERNETES, STANDALONE, Run, Scenario


def inject(run: Run) -> None:
    """What the leader pushes onto the binders' list is pushed again, and what binders report is reported again."""
    seen: list[bytes] = []
    reports = _reports(run)
    leading = run.arena.leading()
    for _ in range(run.rng.randint(4, 8)):
        run.pause(0.05, 0.3)
        request = run.arena.proxy.tap(
            points.HAND_OUT, When.REQUEST, lambda pid: None, wanted=lambda pid, _: pid in leading
        )
        if not request.fired.wait(5):
            continue
        seen.append(request.data)
        for _ in range(run.rng.randint(1, 2)):
            again(run, request.data, "bind message delivered again")
    run.require(seen, "no bind message was seen")
    run.pause(0.5, 1.0)
    for data in run.rng.sample(seen, len(seen)):
        again(run, data, "bind message delivered again")
    for data in run.rng.sample(reports, len(reports)):
        again(run, data, "report of binds delivered again")
    run.pause(0.2, 0.5)


def _reports(run: Run) -> list[bytes]:
    """What binders tell the leader; the last one is killed instead."""
    found: list[bytes] = []
    for last in (False, False, True):
        binders = run.arena.forked("binder")
        report = run.arena.proxy.tap(
            points.REPORT,
            When.REQUEST,
            _kill if last else lambda pid: None,
            cut=last,
            wanted=lambda pid, _, binders=binders: pid in binders,
        )
        run.churn.pods(3)
        if not report.fired.wait(10):
            continue
        if last:
            run.note("kill -9 binder before it reports")
        else:
            found.append(report.data)
    return found


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def again(run: Run, data: bytes, what: str) -> None:
    """Send the very same commands to Redis once more."""
    with socket.create_connection(("127.0.0.1", run.arena.server.port), 5) as connection:
        connection.sendall(data)
        connection.settimeout(5)
        connection.recv(1024)
    run.note(what)
    time.sleep(0.01)


SCENARIO = Scenario(
    8,
    "The same bind message is delivered twice, in parallel, to two binders, and again later",
    "Nothing: one bind wins, the other finds the pod bound; each pod is told once",
    inject,
    (STANDALONE, KUBERNETES),
)
