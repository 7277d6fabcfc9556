"""A node is deleted, cordoned, made smaller, or exchanged for another of its name while pods are reserved on it."""

from collections import Counter
from typing import Any

from tests.faults import points
from tests.faults.churn import manifest, wait_for
from tests.faults.history import PREFIX
from tests.faults.proxy import When
from tests.faults.scenario import KUBERNETES, STANDALONE, Run, Scenario
from tests.faults.standalone import NotNow

Json = dict[str, Any]

WAYS = ("deleted", "cordoned", "shrunk", "exchanged")


def inject(run: Run) -> None:
    """Binders do not reach Redis, so that reservations pile up; then the node with the most of them changes. What was
    made smaller is made as large again at the end: nobody takes back the pods that were bound there before."""
    shrunk: list[Json] = []
    for number in range(2):
        way = WAYS[(run.seed + number) % len(WAYS)]
        run.pause(0.2, 0.6)
        tap = run.arena.proxy.tap(points.BIND_BEGIN, When.REQUEST, lambda _: None)
        tap.fired.wait(5)
        binders = [*run.arena.running("binder"), *run.arena.forked("binder")]
        run.arena.proxy.hold(binders)  # not stopped: who is stopped right before its POST is the subject of 3
        run.churn.pods(12)
        wait_for(lambda: bool(_reserved(run)), 10)
        found = _reserved(run).most_common(1)
        nodes = {node["metadata"]["name"]: node for node in run.churn.nodes()}
        if found and found[0][0] in nodes:
            try:
                _change(run, nodes[found[0][0]], way)
                run.note(f"node {way} with pods reserved on it")
                shrunk += [nodes[found[0][0]]] if way == "shrunk" else []
            except NotNow as error:
                run.notes.append(str(error))
        run.pause(0.0, 1.0)
        run.arena.proxy.heal()
        run.pause(0.3, 0.8)
    names = {node["metadata"]["name"] for node in run.churn.nodes()}
    for node in shrunk:
        if node["metadata"]["name"] in names:
            run.churn.put_nodes(manifest(node))


def _reserved(run: Run) -> Counter[str]:
    return Counter(text.split(" ")[1] for text in run.arena.redis.hvals(PREFIX + "reservations"))


def _change(run: Run, node: Json, way: str) -> None:
    plain = manifest(node, **{"unschedulable": True} if way == "cordoned" else {})
    name = plain["metadata"]["name"]
    if way in ("deleted", "exchanged"):
        run.churn.delete_node(name)
        run.pause(0.0, 0.1)
        run.churn.collect()
    if way == "shrunk":
        plain["status"] = {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "4"}}
    if way != "deleted":
        run.churn.put_nodes(plain)


SCENARIO = Scenario(
    17,
    "A node is deleted, cordoned, made smaller or exchanged while pods are reserved on it",
    "Pods that have no room there any more are decided again; of a bind on its way to an API server see below",
    inject,
    (STANDALONE, KUBERNETES),
)
