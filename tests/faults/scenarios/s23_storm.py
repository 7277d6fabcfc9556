"""Many pods at once, some of which fit nowhere, while nodes change all the time."""

import threading
from typing import Any

from tests.faults import waits
from tests.faults.history import PREFIX
from tests.faults.scenario import STANDALONE, Run, Scenario
from tests.faults.standalone import NotNow

PODS = 1000
HOPELESS = 200
"""Of them fit nowhere. The judge, in Python, looks at each bind."""
ROOM = 12
BEATS = 150
"""Nodes that change at each beat of the heart, several a second."""


def inject(run: Run) -> None:
    """The churn pauses; in the middle of it a pod of high priority comes."""
    run.pause(0.2, 0.5)
    run.churn.pausing.set()
    nodes = [_node(run, f"storm-{number}") for number in range(ROOM)]
    run.churn.put_nodes(*nodes)
    over = threading.Event()
    heart = threading.Thread(target=_beat, args=(run, nodes, over), daemon=True)
    heart.start()
    try:
        run.arena.redis.hset(PREFIX + "control:paused", "*", "0 the storm gathers")  # as dsched pause does
        size = 250
        for start in range(0, PODS, size):
            made = [
                run.churn.pod(cpu="500" if number % (PODS // HOPELESS) == 0 else "10m", plain=True, priority=0)
                for number in range(start, start + size)
            ]
            run.arena.put("Pod", *made)
        run.note("pods at once", PODS)
        run.arena.redis.delete(PREFIX + "control:paused")
        left = int(run.arena.redis.zcard(PREFIX + "queue:active"))
        waits.go_on(run, "in the storm", 3)
        after = int(run.arena.redis.zcard(PREFIX + "queue:active"))
        run.notes.append(f"{left} pods waited when pods of high priority came, {after} when those were bound")
        run.require(after > left // 4, "pods of high priority were bound after most of those that waited")
    finally:
        run.arena.redis.delete(PREFIX + "control:paused")
        over.set()
        heart.join()
        run.churn.pausing.clear()


def _node(run: Run, name: str) -> dict[str, Any]:
    made = run.churn.node(name)
    made["spec"], made["status"] = {}, {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "250"}}
    return dict(made)


def _beat(run: Run, nodes: list[dict[str, Any]], over: threading.Event) -> None:
    """Heartbeats, as kubelets write them: a label changes and nothing else."""
    for number in range(BEATS):
        for node in nodes:
            node["metadata"]["labels"]["beat"] = str(number)
        try:
            run.arena.put("Node", *nodes)
            run.note("heartbeats", len(nodes))
        except NotNow:
            return
        if over.wait(0.05):
            return


SCENARIO = Scenario(
    23,
    "Thousands of pods at once, many of which fit nowhere, while nodes change all the time",
    "A queue that gets shorter; pods of high priority are bound before those that wait",
    inject,
    (STANDALONE,),
    goal_s=180.0,
)
