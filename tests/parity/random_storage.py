"""Random clusters with storage: volumes here and there, claims bound, to be bound and to be made for, drivers that take
only so much, and pods that want all of it."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName
from dsched.model.node import Node
from dsched.model.pod import Pod
from tests.builders import make_node, make_pod, make_term
from tests.storage import (
    HOSTNAME,
    ZONE,
    csi,
    make_attachment,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_volume,
    put,
)

Json = dict[str, Any]

DRIVERS = ("disk.example.com", "ebs.csi.aws.com")
ZONES = ("a", "b", "c")
CLAIMS = [f"c{number}" for number in range(8)]
VOLUMES = [f"pv{number}" for number in range(8)]
CLASSES = {
    "local": make_class("local"),
    "made": make_class("made", DRIVERS[0]),
    "zonal": make_class("zonal", DRIVERS[0], topologies=[{ZONE: ["a", "b"]}]),
    "now": make_class("now", DRIVERS[0], "Immediate"),
}
INLINE: tuple[Json, ...] = (
    {"gcePersistentDisk": {"pdName": "shared"}},
    {"gcePersistentDisk": {"pdName": "shared", "readOnly": True}},
    {"awsElasticBlockStore": {"volumeID": "vol-1"}},
    {"iscsi": {"iqn": "iqn.2026", "targetPortal": "t", "lun": 0}},
    {"emptyDir": {}},
)


@dataclass
class Storage:
    """A cluster, as the objects it consists of.

    Attributes:
        placed: pods on nodes; waiting: pods without.
    """

    nodes: list[Node]
    objects: dict[tuple[str, str], Json] = field(default_factory=dict)
    placed: list[tuple[str, Pod]] = field(default_factory=list)
    waiting: list[Pod] = field(default_factory=list)

    def snapshot(self) -> Snapshot:
        """A snapshot of its own."""
        snapshot = Snapshot()
        for node in self.nodes:
            snapshot.table.set_node(node)
        for name, pod in self.placed:
            snapshot.table.add_pod(PodInfo(pod), NodeName(name))
        put(snapshot, *self.objects.values())
        return snapshot

    def add(self, value: Json) -> Json:
        self.objects[value["kind"], value["metadata"]["name"]] = value
        return value


def random_storage(rng: Random, nodes: int, waiting: int) -> Storage:
    cluster = Storage([random_node(rng, number) for number in range(nodes)])
    for value in (*CLASSES.values(), make_driver(DRIVERS[0], storage_capacity=rng.random() < 0.5)):
        cluster.add(value)
    for zone in ZONES[:2]:
        cluster.add(make_capacity(f"room-{zone}", "made", rng.choice(["1Gi", "100Gi"]), {ZONE: zone}))
    for node in cluster.nodes:
        if rng.random() < 0.7:
            cluster.add(random_csi_node(rng, node.name))
    for name in VOLUMES:
        cluster.add(random_volume(rng, name, cluster))
    for name in CLAIMS:
        if rng.random() < 0.9:
            bind(cluster, random_claim(rng, name))
    if rng.random() < 0.5:
        cluster.add(make_attachment("va", rng.choice(cluster.nodes).name, rng.choice(VOLUMES), rng.choice(DRIVERS)))
    for number in range(rng.randrange(2 * nodes)):
        cluster.placed.append((rng.choice(cluster.nodes).name, random_pod(rng, f"placed{number}")))
    cluster.waiting = [random_pod(rng, f"pod{number}") for number in range(waiting)]
    return cluster


def random_node(rng: Random, number: int) -> Node:
    labels = {HOSTNAME: f"n{number}"} | ({ZONE: rng.choice(ZONES)} if rng.random() < 0.9 else {})
    return make_node(f"n{number}", cpu=rng.choice(["1", "4"]), pods=rng.choice([2, 110]), labels=labels)


def random_csi_node(rng: Random, name: str) -> Json:
    limits = {driver: rng.choice([None, 0, 1, 2, 3]) for driver in rng.sample(DRIVERS, rng.choice([1, 2]))}
    return make_csi_node(name, limits, migrated=rng.choice(["", "kubernetes.io/aws-ebs"]))


def random_volume(rng: Random, name: str, cluster: Storage) -> Json:
    at = [node.name for node in cluster.nodes if rng.random() < 0.5]
    kind = rng.random()
    facts: Json = {"class_name": rng.choice(["local", "made", ""])}
    if kind < 0.5:
        facts["at"] = at
    elif kind < 0.7:
        facts["terms"] = [make_term(f"{ZONE} In {rng.choice(ZONES)}")]
    if kind > 0.4:
        facts["csi"] = csi(rng.choice(DRIVERS), f"handle-{name}")
    if rng.random() < 0.4:
        facts["labels"] = {ZONE: rng.choice(["a", "b", "a__b"])}
    return make_volume(name, rng.choice(["1Gi", "10Gi", "20Gi"]), version=str(rng.randrange(1, 999)), **facts)


def random_claim(rng: Random, name: str) -> Json:
    volume = rng.choice(VOLUMES) if rng.random() < 0.5 else ""
    return make_claim(
        f"shop/{name}",
        rng.choice(["1Gi", "5Gi"]),
        class_name=rng.choice([*CLASSES, "absent"]),
        volume=volume,
        modes=[rng.choice(["ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"])],
        version=str(rng.randrange(1, 999)),
    )


def bind(cluster: Storage, claim: Json) -> None:
    """Add a claim; a volume that it names knows of it, unless it is another's."""
    name = claim["spec"].get("volumeName")
    volume = cluster.objects.get(("PersistentVolume", name)) if name else None
    if volume is not None:
        if "claimRef" in volume["spec"]:
            return
        reference = {part: claim["metadata"][part] for part in ("namespace", "name", "uid")}
        spec = {**volume["spec"], "claimRef": reference}
        cluster.add({**volume, "spec": spec, "status": {"phase": "Bound"}})
    cluster.add(claim)


def random_pod(rng: Random, name: str) -> Pod:
    volumes: list[Json] = [
        {"persistentVolumeClaim": {"claimName": claim}} for claim in rng.sample(CLAIMS, rng.choice([0, 1, 1, 2]))
    ]
    volumes += rng.sample(INLINE, rng.choice([0, 0, 1]))
    named = [{"name": f"v{at}", **volume} for at, volume in enumerate(volumes)]
    return make_pod(f"shop/{name}", cpu="500m", priority=rng.choice([0, 10]), spec={"volumes": named})


def random_change(rng: Random, cluster: Storage, snapshot: Snapshot, number: int) -> None:
    """Something happens, to the cluster and to the snapshot that follows it."""
    draw, table = rng.random(), snapshot.table
    if draw < 0.25:
        pod, node = random_pod(rng, f"new{number}"), rng.choice(cluster.nodes).name
        cluster.placed.append((node, pod))
        table.add_pod(PodInfo(pod), node)
    elif draw < 0.45 and cluster.placed:
        _, pod = cluster.placed.pop(rng.randrange(len(cluster.placed)))
        table.remove_pod(pod.uid)
    elif draw < 0.55:
        place = rng.randrange(len(cluster.nodes))
        cluster.nodes[place] = random_node(rng, place)
        table.set_node(cluster.nodes[place])
    elif draw < 0.65:
        put(snapshot, cluster.add(random_csi_node(rng, rng.choice(cluster.nodes).name)))
    elif draw < 0.75:
        put(snapshot, cluster.add(random_volume(rng, rng.choice(VOLUMES), cluster)))
    elif draw < 0.9:
        bind(cluster, random_claim(rng, rng.choice(CLAIMS)))
        put(snapshot, *cluster.objects.values())
    elif (gone := rng.choice(list(cluster.objects)))[0] in ("VolumeAttachment", "CSINode", "PersistentVolumeClaim"):
        del cluster.objects[gone]
        snapshot.drop(gone[0], f"shop/{gone[1]}" if gone[0] == "PersistentVolumeClaim" else gone[1])
    else:
        put(
            snapshot,
            cluster.add(make_attachment("va", rng.choice(cluster.nodes).name, rng.choice(VOLUMES), DRIVERS[0])),
        )
