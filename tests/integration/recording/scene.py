"""A cluster in which all kinds of things happen, by chance."""

import random
from typing import Any

from dsched.cluster.interface import BindVerdict
from dsched.framework.interface import Code, PermitResult, Status
from dsched.leader.term import PROMISES_EVERY_S
from dsched.manifests.kinds import POD
from tests.integration.leader.rig import Led, Rig
from tests.manifests import Json, node_manifest, other_manifest, pod_manifest

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
PATIENCE_S = 20.0
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: {percentage}
profiles:
- plugins:
    multiPoint: {{enabled: [{{name: Couple}}]}}
"""


class Couple:
    """Pods with the label ``couple`` wait for another one with the same; who is turned away takes the other along."""

    name = "Couple"

    def __init__(self, args: Any, handle: Any) -> None:
        self._handle = handle

    def _others(self, pod: Any) -> list[Any]:
        couple = pod.pod.metadata.labels.get("couple")
        waiting = self._handle.waiting_pods()
        return [other for other in waiting if couple and other.pod.pod.metadata.labels.get("couple") == couple]

    def reserve(self, state: Any, pod: Any, node: Any) -> None:
        return None

    def unreserve(self, state: Any, pod: Any, node: Any) -> None:
        for other in self._others(pod):
            if other.pod.uid != pod.uid:
                other.reject(self.name, "the other one was turned away")

    def permit(self, state: Any, pod: Any, node: Any) -> PermitResult:
        others = self._others(pod)
        for other in others:
            other.allow(self.name)
        lonely = "couple" in pod.pod.metadata.labels and not others
        return PermitResult(Status(Code.WAIT), PATIENCE_S) if lonely else PermitResult()


def make_node(name: str, **more: str) -> Json:
    """A node in one of three zones."""
    return node_manifest(name, labels={HOST: name, ZONE: f"z{int(name[1:]) % 3}"}, **more)


def make_pod(
    key: str, cpu: str = "1", priority: int = 0, labels: dict[str, str] | None = None, uid: str = "", **spec: Any
) -> Json:
    """A pod that asks for CPU."""
    containers = [{"name": "m", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    return pod_manifest(key, labels=labels, uid=uid, containers=containers, priority=priority, **spec)


class Scene:
    """Things that happen around one leader after the other."""

    def __init__(self, rig: Rig, chance: random.Random, *, nodes: int = 0) -> None:
        self.rig = rig
        self.chance = chance
        self.nodes: list[str] = []
        self.count = 0
        storage = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
        rig.apply(other_manifest("StorageClass", "storage.k8s.io/v1", "local", **storage))
        self.more_nodes(nodes or 2)
        self.led: Led = rig.lead()

    def act(self) -> None:
        """Do something."""
        often = (self.more_pods, self.decide, self.work)
        rare = (self.more_nodes, self.delete_pod, self.delete_node, self.change_node, self.foreign, self.refuse)
        self.chance.choice((*often, *often, *often, *rare, self.time, self.relabel, self.behind, self.claim))()

    def more_nodes(self, most: int = 0) -> None:
        """New ones."""
        for _ in range(most or self.chance.randint(1, 3)):
            self.count += 1
            self.nodes.append(f"n{self.count}")
            self.rig.apply(make_node(self.nodes[-1], cpu=str(self.chance.choice((2, 4, 8)))))

    def more_pods(self) -> None:
        """New ones, of all kinds."""
        for _ in range(self.chance.randint(1, 6)):
            self.count += 1
            self.rig.apply(self._pod(f"shop/p{self.count}"))

    def _pod(self, key: str) -> Json:
        app = self.chance.choice(("a", "b"))
        labels = {"app": app}
        spec: dict[str, Any] = {}
        match = {"matchLabels": {"app": app}}
        kind = self.chance.randrange(8)
        if kind == 0:
            spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": match}
            spec["topologySpreadConstraints"] = [spread]
        elif kind == 1:
            term = [{"labelSelector": match, "topologyKey": HOST}]
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}
        elif kind == 2:
            spec["schedulingGates"] = [{"name": "example.com/later"}]
        elif kind == 3:
            labels["couple"] = self.chance.choice(("x", "y"))
        cpu = str(self.chance.choice((1, 1, 2, 4)))
        return make_pod(key, cpu, self.chance.choice((0, 0, 0, 5, 9)), labels, _uid(key), **spec)

    def claim(self) -> None:
        """A pod that needs a volume, and a volume that one node can reach."""
        self.count += 1
        name, node = f"c{self.count}", self.chance.choice(self.nodes or ["none"])
        term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [node]}]}
        spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
        volume = {"capacity": {"storage": "1Gi"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}
        claim = other_manifest(
            "PersistentVolumeClaim", "v1", name, spec={**spec, "resources": {"requests": {"storage": "1Gi"}}}
        )
        claim["metadata"]["namespace"] = "shop"
        self.rig.apply(other_manifest("PersistentVolume", "v1", name, spec={**spec, **volume}), claim)
        volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": name}}]
        self.rig.apply(make_pod(f"shop/{name}", uid=_uid(f"shop/{name}"), volumes=volumes))

    def decide(self) -> None:
        """A turn of the leader's loop."""
        self.led.turn()

    def work(self) -> None:
        """A binder does what it was asked."""
        for request in self.led.requests():
            self.rig.binder.work(request)
        self.led.turn()

    def refuse(self) -> None:
        """A bind fails for good, or nobody knows what became of it."""
        for request in self.led.requests():
            self.rig.binder.says(request, self.chance.choice((BindVerdict.REFUSED, BindVerdict.UNKNOWN)))
        self.led.turn()

    def behind(self) -> None:
        """A node changes behind the leader's back, so that a reservation on it is refused."""
        if self.nodes:
            name = self.rig.store.key(f"node:{self.chance.choice(self.nodes)}")
            if self.rig.store.redis.exists(name):
                self.rig.store.redis.hincrby(name, "version", 1)
                self.rig.store.redis.hincrby(name, "object", 1)
        self.more_pods()
        self.led.turn()

    def delete_pod(self) -> None:
        """Somebody deletes a pod."""
        there = [pod.key for pod in self.rig.cluster.list().pods]
        if there:
            self.rig.delete_pod(self.chance.choice(sorted(there)))

    def delete_node(self) -> None:
        """A node goes."""
        if self.nodes and self.chance.random() < 0.4:
            self.rig.delete_node(self.nodes.pop(self.chance.randrange(len(self.nodes))))

    def change_node(self) -> None:
        """A node becomes larger or smaller."""
        if self.nodes:
            name = self.chance.choice(self.nodes)
            self.rig.apply(make_node(name, cpu=str(self.chance.choice((1, 4, 8)))))

    def foreign(self) -> None:
        """Somebody else binds a pod of ours, whether the leader has a place for it or not."""
        waiting = [
            pod.key
            for pod in self.rig.cluster.list().pods
            if not pod.node_name and not pod.spec.scheduling_gates and not pod.spec.volumes
        ]
        if waiting and self.nodes:
            self.rig.bind_foreign(self.chance.choice(sorted(waiting)), self.chance.choice(self.nodes))

    def relabel(self) -> None:
        """A bound pod gets other labels."""
        there = [found for found in self.rig.cluster.list().pods if found.node_name]
        if there:
            found = self.chance.choice(sorted(there, key=lambda each: each.key))
            (shown,) = self.rig._objects.get(POD, [found.key])
            assert shown is not None
            shown["metadata"]["labels"] = {"app": self.chance.choice(("a", "b"))}
            self.rig.apply(shown)

    def time(self) -> None:
        """Time passes: pauses, promises and the patience of Permit end."""
        self.rig.clock.advance(self.chance.choice((1.0, PROMISES_EVERY_S, PATIENCE_S + 1, 400.0)))
        self.led.turn()

    def change_leader(self) -> None:
        """Another one takes over."""
        self.led = self.rig.lead()


def _uid(key: str) -> str:
    """The same in each run: who is chosen among equals follows from it."""
    return f"uid-{key.partition('/')[2]}"
