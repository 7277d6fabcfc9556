"""Tables side by side: everything that scheduling sees of the leader's, and of a replica's."""

from typing import Any

from dsched.framework.snapshot import Snapshot
from dsched.framework.table import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, NodeTable
from dsched.state.node_log import Replica
from tests.unit.framework.shards import replica_of

RESOURCES = (CPU, MEMORY, EPHEMERAL_STORAGE, "nvidia.com/gpu", "example.com/thing")
KINDS = ("Namespace", "Service")
IMAGES = ("nginx", "redis")
ASKED = ("zone", "disk", "nobody-has-it")


def seen(snapshot: Snapshot) -> dict[str, Any]:
    """What plugins can read, as plain values; rows in order. Asks for the labels of `ASKED`."""
    table = snapshot.table
    assert set(table.resources) <= set(RESOURCES)
    return {
        "names": list(table.names),
        "index": dict(table.index),
        "labels of nodes": [node.metadata.labels for node in table.nodes],
        "allocatable": {name: table.allocatable(name).tolist() for name in RESOURCES},
        "requested": {name: table.requested(name).tolist() for name in RESOURCES},
        "nonzero": {name: table.nonzero_requested(name).tolist() for name in (CPU, MEMORY)},
        "pod count": table.pod_count.tolist(),
        "allowed pods": table.allowed_pods.tolist(),
        "unschedulable": table.unschedulable.tolist(),
        "taints": [table.taint_sets[number] for number in table.taint_set.tolist()],
        "labels": {key: _labels(table, key) for key in ASKED},
        "ports": {row: dict(ports) for row, ports in table.ports.items()},
        "images": {name: _image(table, name) for name in IMAGES},
        "pods": [[(uid, info.pod, info.demand) for uid, info in pods.items()] for pods in table.pods],
        "infos": [_without_zeros(info.allocatable) for info in table.infos(range(len(table)))],
        "placed": [(node, info.uid) for node, info in table.placed()],
        "others": {kind: dict(snapshot.others(kind)) for kind in KINDS},
    }


def recounted(table: NodeTable) -> dict[str, Any]:
    """The columns that are sums, added up anew from the pods on each row."""
    demands = [[info.demand for info in pods.values()] for pods in table.pods]
    ports = [[port for demand in row for port in demand.ports] for row in demands]
    return {
        "requested": {name: [sum(each.requests.get(name, 0) for each in row) for row in demands] for name in RESOURCES},
        "nonzero": {
            CPU: [sum(each.nonzero_cpu for each in row) for row in demands],
            MEMORY: [sum(each.nonzero_memory for each in row) for row in demands],
        },
        "pod count": [len(row) for row in demands],
        "ports": {row: {port: used.count(port) for port in used} for row, used in enumerate(ports) if used},
    }


def _labels(table: NodeTable, key: str) -> list[str | None]:
    column = table.label(key)
    return [column.values[number] for number in column.ids[: len(table)].tolist()]


def _without_zeros(amounts: dict[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in amounts.items() if amount or name == PODS}


def assert_same(replica: Replica, version: int, snapshot: Snapshot, parts: frozenset[int] | None = None) -> None:
    """The replica, brought up to the version, has this snapshot, or these parts of it."""
    replica.catch_up(version, parts)
    assert seen(replica.snapshot) == seen(snapshot if parts is None else replica_of(snapshot, parts))


def _image(table: NodeTable, name: str) -> tuple[int, list[int]] | None:
    image = table.images.get(name)
    return None if image is None else (image.size, table.serials.searchsorted(sorted(image.sizes)).tolist())
