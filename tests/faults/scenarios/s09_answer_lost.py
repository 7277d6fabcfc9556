"""The cluster binds, and the answer is lost: whoever asked cannot know."""

from tests.faults import points
from tests.faults.proxy import When
from tests.faults.scenario import KUBERNETES, STANDALONE, Run, Scenario


def inject(run: Run) -> None:
    """Connections are closed after the bind was carried out."""
    if run.arena.kind == KUBERNETES:
        for _ in range(run.rng.randint(3, 6)):
            times = run.rng.randint(1, 8)
            run.arena.api.fault("POST", "/binding", drop="after", times=times)
            run.note("answer to a bind lost", times)
            run.pause(0.2, 0.5)
    else:
        for _ in range(run.rng.randint(2, 4)):
            tap = run.arena.proxy.tap(points.BIND, When.REPLY, lambda pid: None, cut=True)
            if tap.fired.wait(5):
                run.note("answer to a bind lost")
            run.pause(0.1, 0.4)


SCENARIO = Scenario(
    9,
    "A bind is carried out and its answer is lost",
    "Nothing: the pod is read again and found bound, and told once that it was scheduled",
    inject,
    (KUBERNETES, STANDALONE),
)
