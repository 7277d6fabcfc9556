"""Random clusters of pods with claims of their own and claims that they share, where drivers take only so much."""

from random import Random
from typing import Any

from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName
from dsched.model.pod import Pod
from tests.builders import make_node, make_pod, make_term
from tests.parity.random_storage import CLASSES, DRIVERS, INLINE, ZONES, Storage
from tests.storage import (
    HOSTNAME,
    ZONE,
    csi,
    make_attachment,
    make_claim,
    make_csi_node,
    make_driver,
    make_volume,
    put,
)

Json = dict[str, Any]

EPHEMERAL = "made-for-it"


class Claims:
    """A cluster and its supply of claims, each of which means one of a few things.

    Attributes:
        names: of claims that there are, or were.
    """

    def __init__(self, rng: Random, nodes: int) -> None:
        self.rng = rng
        self.cluster = Storage([make_node(f"n{at}", cpu="64", labels=_labels(rng, at)) for at in range(nodes)])
        self.names: list[str] = []
        for value in (*CLASSES.values(), make_driver(DRIVERS[0])):
            self.cluster.add(value)
        self.cluster.objects["CSIDriver", DRIVERS[1]] = _needed(make_driver(DRIVERS[1]))
        for node in self.cluster.nodes:
            if rng.random() < 0.9:
                self.cluster.add(self._csi_node(node.name))

    def _csi_node(self, name: str) -> Json:
        limits = {driver: self.rng.choice([None, 1, 2, 3, 5]) for driver in DRIVERS if self.rng.random() < 0.9}
        return make_csi_node(name, limits, migrated=self.rng.choice(["", "kubernetes.io/aws-ebs"]))

    def claim(self) -> str:
        """The name of another claim, or of one that is there, with what goes with it."""
        rng = self.rng
        if self.names and rng.random() < 0.2:
            return rng.choice(self.names[-4:] if rng.random() < 0.5 else self.names)
        name = f"c{len(self.names)}"
        self.names.append(name)
        draw = rng.random()
        if draw < 0.04:
            return name  # there is none
        if draw < 0.12:
            self.cluster.add(make_claim(f"shop/{name}", class_name=rng.choice(["made", "local", "now"])))
            return name
        volume = f"pv-{name}"
        if draw < 0.18 and len(self.names) > 1:  # another claim's volume, or none
            volume = f"pv-{rng.choice(self.names)}"
        once = "ReadWriteOncePod" if rng.random() < 0.08 else "ReadWriteOnce"
        claim = make_claim(f"shop/{name}", class_name="", volume=volume, modes=[once])
        self.cluster.add(claim)
        if volume == f"pv-{name}" and rng.random() < 0.97:
            self.cluster.add(self._volume(volume, claim))
        return name

    def _volume(self, name: str, claim: Json) -> Json:
        rng, facts = self.rng, dict[str, Any]()
        handle = "handle" if rng.random() < 0.05 else f"handle-{name}"
        kind = rng.random()
        if kind < 0.6:
            facts["csi"] = csi(DRIVERS[0] if rng.random() < 0.8 else DRIVERS[1], handle)
        elif kind < 0.9:
            facts["awsElasticBlockStore"] = {"volumeID": handle}
        if rng.random() < 0.15:
            facts["terms"] = [make_term(f"{ZONE} In {rng.choice(ZONES)}")]
        if rng.random() < 0.15:
            facts["labels"] = {ZONE: rng.choice(["a", "b", "a__b"])}
        return make_volume(name, class_name="", claim=claim, **facts)

    def pod(self, name: str) -> Pod:
        """A pod of one of a few kinds, its claims told apart by name."""
        rng = self.rng
        volumes: list[Json] = [
            {"persistentVolumeClaim": {"claimName": self.claim()}} for _ in range(rng.choice([1, 1, 1, 2, 0]))
        ]
        if rng.random() < 0.04:
            volumes.append(rng.choice(INLINE))
        if rng.random() < 0.04:
            volumes.append({"ephemeral": {}})
        named = [{"name": f"v{at}", **volume} for at, volume in enumerate(volumes)]
        labels = {"signature": name}
        pod = make_pod(f"shop/{name}", cpu="500m", priority=rng.choice([0, 10]), labels=labels, spec={"volumes": named})
        if any("ephemeral" in volume for volume in volumes) and rng.random() < 0.7:
            made = f"{name}-v{len(named) - 1}"
            self.names.append(made)
            claim = make_claim(f"shop/{made}", class_name="", volume=f"pv-{made}", owner=pod)
            self.cluster.add(claim)
            self.cluster.add(self._volume(f"pv-{made}", claim))
        return pod

    def change(self, snapshot: Snapshot, number: int) -> None:
        """Something happens, to the cluster and to the snapshot that follows it."""
        rng, cluster, table = self.rng, self.cluster, snapshot.table
        draw = rng.random()
        if draw < 0.2:
            pod, node = self.pod(f"new{number}"), rng.choice(cluster.nodes).name
            cluster.placed.append((node, pod))
            table.add_pod(PodInfo(pod), node)
        elif draw < 0.45 and cluster.placed:
            _, pod = cluster.placed.pop(rng.randrange(len(cluster.placed)))
            table.remove_pod(pod.uid)
        elif draw < 0.5:
            place = rng.randrange(len(cluster.nodes))
            cluster.nodes[place] = make_node(f"n{place}", cpu="64", labels=_labels(rng, place))
            table.set_node(cluster.nodes[place])
        elif draw < 0.6:
            cluster.add(self._csi_node(rng.choice(cluster.nodes).name))
        elif draw < 0.8 and self.names:
            self._change_claim(rng.choice(self.names), snapshot)
        elif draw < 0.9 and self.names:
            name = f"pv-{rng.choice(self.names)}"
            cluster.add(make_attachment(f"va{number % 3}", rng.choice(cluster.nodes).name, name, DRIVERS[0]))
        self.tell(snapshot)

    def _change_claim(self, name: str, snapshot: Snapshot) -> None:
        rng, cluster = self.rng, self.cluster
        key = ("PersistentVolumeClaim", name)
        draw = rng.random()
        if draw < 0.3 and key in cluster.objects:
            del cluster.objects[key]
            snapshot.drop(key[0], f"shop/{name}")
        elif draw < 0.5:
            other = rng.choice(self.names)
            cluster.add(make_claim(f"shop/{name}", class_name="", volume=f"pv-{other}"))
        elif draw < 0.6 and key in cluster.objects:
            cluster.add(make_claim(f"shop/{name}", class_name="", volume=f"pv-{name}", modes=["ReadWriteOncePod"]))
        elif draw < 0.75 and ("PersistentVolume", f"pv-{name}") in cluster.objects:
            del cluster.objects["PersistentVolume", f"pv-{name}"]
            snapshot.drop("PersistentVolume", f"pv-{name}")
        elif key in cluster.objects:
            cluster.add(self._volume(f"pv-{name}", cluster.objects[key]))

    def tell(self, snapshot: Snapshot) -> None:
        """Bring the snapshot's objects up to date, as a watch does: what has not changed stays the same object."""
        for value in self.cluster.objects.values():
            metadata = value["metadata"]
            key = f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else metadata["name"]
            if snapshot.others(value["kind"]).get(key) is not value:
                put(snapshot, value)


def random_claims(rng: Random, nodes: int, placed: int = 0, waiting: int = 0) -> Claims:
    found = Claims(rng, nodes)
    cluster = found.cluster
    for number in range(placed):
        cluster.placed.append((NodeName(rng.choice(cluster.nodes).name), found.pod(f"placed{number}")))
    cluster.waiting = [found.pod(f"pod{number}") for number in range(waiting)]
    return found


def _labels(rng: Random, at: int) -> dict[str, str]:
    return {HOSTNAME: f"n{at}"} | ({ZONE: rng.choice(ZONES)} if rng.random() < 0.9 else {})


def _needed(driver: Json) -> Json:
    return {**driver, "spec": {**driver["spec"], "preventPodSchedulingIfMissing": True}}
