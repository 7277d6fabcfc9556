"""Quantities that are legal one by one and that no number of 64 bits holds together."""

from typing import Any

import numpy as np

from dsched.framework.pod_info import PodInfo
from dsched.framework.table import NodeTable
from dsched.model.meta import NodeName
from dsched.model.quantity import LARGEST, saturated
from dsched.state.usage import Usage, read_usage
from tests.acceptance import processes
from tests.attacks.attack import Stand, attack
from tests.builders import make_node, make_pod
from tests.integration.state.support import take_over
from tests.manifests import Json, node_manifest, pod_manifest

RESOURCES = ("cpu", "memory", "ephemeral-storage", "hugepages-1Gi", "example.com/gpu")
EXACTLY = ("1", "7Ei", "8Ei", "9223372036854775807", "4611686018427387904", "9007199254740993", "1m")


def asking(name: str, memory: str, **spec: Any) -> Json:
    """A pod that asks for memory alone."""
    containers = [{"name": "main", "image": "nginx", "resources": {"requests": {"memory": memory}}}]
    return pod_manifest(f"shop/{name}", containers=containers, **spec)


@attack(
    "two pods that name their node and ask for 8Ei of memory each; a node that offers 8Ei",
    sees="the node counts as full until a pod goes; fsck names node, resource and pods, status the node",
)
def two_pods_of_8ei(stand: Stand) -> None:
    system = stand.system()
    system.apply(
        node_manifest("n1", labels={"name": "n1"}),
        node_manifest("n2", memory="8Ei"),
        asking("first", "8Ei", nodeName="n1"),
        asking("second", "8Ei", nodeName="n1"),
    )
    told = {"node": "n1", "resource": "memory", "requested": str(2 * LARGEST)}
    processes.wait_until("status tells of it", lambda: system.status()["state"]["beyond"] == [told])
    epoch = system.status()["state"]["epoch"]
    assert f"node n1 counts as full: its pods request {2 * LARGEST} of memory" in system.ask("status")
    small = [asking(f"small-{number}", stand.rng.choice(["1", "64Mi", "3Gi"])) for number in range(5)]
    system.apply(*small, asking("pinned", "1", nodeSelector={"name": "n1"}))
    system.settle()
    nodes = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in system.get("pods")}
    assert {nodes[f"small-{number}"] for number in range(5)} == {"n2"}
    assert nodes["pinned"] is None
    found = system.run("fsck", *system.where())
    assert found.returncode == 0, found
    assert f"n1: its pods request {2 * LARGEST} of memory (shop/first {LARGEST}, shop/second {LARGEST})" in found.stderr
    for words in (["top", "--once"], ["describe", "node", "n1"], ["get", "nodes"]):
        system.ask(*words, "-o", "json")
        system.ask(*words)
    system.told("delete", "pod", "first", "-n", "shop")
    processes.wait_until("nothing is beyond 64 bits", lambda: system.status()["state"]["beyond"] == [])
    system.told("delete", "pod", "second", "-n", "shop")
    system.told("wait", "--for", "scheduled", "-A", "--timeout", "60")
    assert system.status()["state"]["epoch"] == epoch
    assert system.ask("fsck").startswith("clean")


@attack(
    "pods with any legal amounts that come and go in any order on one node",
    sees="sums in memory and in Redis are exact at any time, and read as the largest number where they are beyond it",
)
def amounts_come_and_go(stand: Stand) -> None:
    store, table, n1 = stand.store(), NodeTable(), NodeName("n1")
    usage = Usage(store, take_over(store))
    table.set_node(make_node("n1"))
    usage.set(n1, table.info(0).allocatable)
    there: list[PodInfo] = []
    for number in range(10 * stand.rounds):
        if there and stand.rng.random() < 0.45:
            gone = there.pop(stand.rng.randrange(len(there)))
            table.remove_pod(gone.uid)
            usage.subtract(n1, {**gone.demand.requests, "pods": 1})
        else:
            asked = {name: stand.rng.choice(EXACTLY) for name in stand.rng.sample(RESOURCES, stand.rng.randint(0, 5))}
            pod = PodInfo(make_pod(f"shop/p{number}", requests=asked))
            there.append(pod)
            table.add_pod(pod, n1)
            usage.add(n1, {**pod.demand.requests, "pods": 1})
        if number % 20:
            continue
        usage.flush()
        wanted = {name: sum(pod.demand.requests.get(name, 0) for pod in there) for name in RESOURCES}
        fields = read_usage(store, n1)
        for name, exact in wanted.items():
            assert table.info(0).charged.get(name, 0) == exact == int(fields.get(f"used.{name}", 0))
            assert table.requested(name).tolist() == [saturated(exact)]
        assert np.all(table.nonzero_requested("memory") >= 0)
