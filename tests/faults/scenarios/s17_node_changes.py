"""A node is deleted, cordoned, made smaller, or exchanged for another of its name while pods are reserved on it."""

from collections import Counter

from tests.faults import points
from tests.faults.churn import wait_for
from tests.faults.history import PREFIX
from tests.faults.proxy import When
from tests.faults.scenario import KUBERNETES, STANDALONE, Run, Scenario
from tests.faults.standalone import NotNow

WAYS = ("deleted", "cordoned", "shrunk", "exchanged")


def inject(run: Run) -> None:
    """Binders do not reach Redis, so that reservations pile up; then the node with the most of them changes."""
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
            except NotNow as error:
                run.notes.append(str(error))
        run.pause(0.0, 1.0)
        run.arena.proxy.heal()
        run.pause(0.3, 0.8)


def _reserved(run: Run) -> Counter[str]:
    return Counter(text.split(" ")[1] for text in run.arena.redis.hvals(PREFIX + "reservations"))


def _change(run: Run, node: dict[str, object], way: str) -> None:
    plain: dict[str, object] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {key: value for key, value in node["metadata"].items() if key in ("name", "labels")},  # type: ignore[attr-defined]
        "spec": dict(node["spec"]),  # type: ignore[call-overload]
        "status": node["status"],
    }
    name = str(plain["metadata"]["name"])  # type: ignore[index]
    if way in ("deleted", "exchanged"):
        run.churn.delete_node(name)
        run.pause(0.0, 0.1)
        run.churn.collect()
    if way == "cordoned":
        plain["spec"] = {**plain["spec"], "unschedulable": True}  # type: ignore[dict-item]
    if way == "shrunk":
        allocatable = {"cpu": "1", "memory": "1Gi", "pods": "4"}
        plain["status"] = {"allocatable": allocatable}
    if way != "deleted":
        run.churn.put_nodes(plain)


SCENARIO = Scenario(
    17,
    "A node is deleted, cordoned, made smaller or exchanged while pods are reserved on it",
    "Pods that no longer fit there are refused or released and decided again; none is bound to a node that is gone",
    inject,
    (STANDALONE, KUBERNETES),
)
