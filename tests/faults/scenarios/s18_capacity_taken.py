"""Somebody else takes the room between the reservation and the bind: static pods, pods of another scheduler, a second
dsched."""

from collections import Counter

from tests.acceptance.system import System
from tests.faults import points
from tests.faults.history import PREFIX
from tests.faults.proxy import When
from tests.faults.scenario import KUBERNETES, STANDALONE, Run, Scenario
from tests.faults.standalone import NotNow

RIVAL = ("--leaders", "1", "--evaluators", "1", "--binders", "1")
TOLD = "does another scheduler answer to the same schedulerName?"


def inject(run: Run) -> None:
    """Every fourth seed it is another dsched, which there can be only where the cluster is not in its Redis."""
    (_another if run.arena.kind == KUBERNETES and run.seed % 4 == 1 else _static)(run)


def _another(run: Run) -> None:
    """A second dsched of another name answers to the same schedulerName for a while. Each pod is bound once; nodes may
    be overcommitted, since neither knows what the other has reserved."""
    run.tolerates += (f"I3 s{SCENARIO.number}-{run.seed}-n", f"fsck I3 s{SCENARIO.number}-{run.seed}-n")
    rival = System(run.arena.folder / f"rival-{run.seed}", run.arena.server.url, "rival")
    try:
        rival.up(*RIVAL, "--cluster", "kubernetes", "--kubeconfig", run.arena.api.kubeconfig())
        run.note("another dsched")
        for _ in range(6):
            run.pause(0.2, 0.5)
            run.churn.pods(6)
    finally:
        rival.end()
    logs = (run.arena.folder / "data" / "logs").glob("leader-*.log")
    run.require(any(TOLD in log.read_text() for log in logs), "nobody was told that there is another scheduler")


def _static(run: Run) -> None:
    """At the answer to the reserve script, pods that have a node already are put where most is reserved. They go at the
    end: two schedulers that do not know of each other can put too much on a node, and none of them can undo it."""
    taken: list[str] = []
    try:
        for _ in range(4):
            run.pause(0.1, 0.4)
            tap = run.arena.proxy.tap(points.RESERVE, When.REPLY, lambda _: taken.extend(_take(run)))
            run.churn.pods(4)
            tap.fired.wait(10)
        run.pause(0.5, 1.5)
    finally:
        run.churn.delete_pods(*taken)
    run.require(taken, "nothing was reserved while somebody looked")


def _take(run: Run) -> list[str]:
    held = Counter(text.split(" ")[1] for text in run.arena.redis.hvals(PREFIX + "reservations"))
    nodes = {node["metadata"]["name"] for node in run.churn.nodes()}
    made = [
        run.churn.pod(cpu="2", plain=True, nodeName=name, schedulerName="another")
        for name, _ in held.most_common(2)
        if name in nodes
    ]
    try:
        run.arena.put("Pod", *made)
    except NotNow:
        return []
    run.note("room taken by somebody else", len(made))
    return [f"default/{pod['metadata']['name']}" for pod in made]


SCENARIO = Scenario(
    18,
    "Somebody else takes the room between reservation and bind",
    "Pods on their way may make the node too full, which only its kubelet can put right; the log tells of a rival",
    inject,
    (STANDALONE, KUBERNETES),
)
