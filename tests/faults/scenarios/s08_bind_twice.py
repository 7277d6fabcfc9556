"""Messages to the binders come twice: at once, to two binders in parallel, and once more when all is over."""

import socket
import time

from tests.faults import points
from tests.faults.proxy import When
from tests.faults.scenario import KUBERNETES, STANDALONE, Run, Scenario


def inject(run: Run) -> None:
    """What the leader pushes onto the binders' list is pushed again."""
    seen: list[bytes] = []
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
            again(run, request.data)
    run.require(seen, "no bind message was seen")
    run.pause(0.5, 1.0)
    for data in run.rng.sample(seen, len(seen)):
        again(run, data)
    run.pause(0.2, 0.5)


def again(run: Run, data: bytes) -> None:
    """Send the very same commands to Redis once more."""
    with socket.create_connection(("127.0.0.1", run.arena.server.port), 5) as connection:
        connection.sendall(data)
        connection.settimeout(5)
        connection.recv(1024)
    run.note("bind message delivered again")
    time.sleep(0.01)


SCENARIO = Scenario(
    8,
    "The same bind message is delivered twice, in parallel, to two binders, and again later",
    "Nothing: one bind wins, the other finds the pod bound; each pod is told once",
    inject,
    (STANDALONE, KUBERNETES),
)
