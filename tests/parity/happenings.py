"""What may happen while a pod waits, made by chance: told to kube-scheduler's queue and asked of dsched's hints."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from dsched.framework.events import RESOURCES
from dsched.framework.interface import Action, ClusterEvent, Resource
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.judging.cluster import KINDS
from dsched.model.meta import NodeName
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.scheduler.nominations import released
from tests.parity import fresh, random_storage

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happens.

    Attributes:
        line: as the judging program is told of it.
        before: what it is told first, for it to happen to.
        event: as hints are asked about it.
    """

    line: Json
    event: ClusterEvent
    before: Sequence[Json] = ()


class Cluster:
    """A cluster that changes, and a snapshot that follows it.

    Attributes:
        pod: the one that waits.
        beginning: what the judging program is told first.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._stored = chance.random() < 0.5
        self._nodes: dict[NodeName, Node] = {}
        self._pods: dict[str, Pod] = {}
        self._others: dict[tuple[str, str], Json] = {}
        self._made = 0
        self.snapshot = Snapshot()
        self.beginning: list[Json] = []
        if self._stored:
            made = random_storage.random_storage(chance, chance.randint(1, 4), 1)
            self.pod = made.waiting[0]
            objects = list(made.objects.values())
            nodes, pods = made.nodes, [pod.on(NodeName(name)) for name, pod in made.placed]
        else:
            given = fresh.cluster(chance)
            self.pod = chance.choice(given.pending)
            objects = [{"kind": kind, **value} for kind, _, value in given.others]
            nodes, pods = list(given.nodes), list(given.bound)
        for value in objects:
            self.beginning.append({"set": self._put(value).line["set"]})
        for node in nodes:
            self.beginning.append({"set": self._set_node(node).line["set"]})
        for pod in pods:
            self.beginning.append({"set": self._set_pod(pod).line["set"]})

    def next(self) -> Happening:
        """The next thing that happens; cluster and snapshot have it already."""
        draw = self._chance.random()
        if draw < 0.35:
            return self._about_a_node()
        if draw < 0.65 or (draw < 0.9 and not self._others):
            return self._about_a_pod()
        if draw < 0.9:
            return self._about_an_object()
        return self._about_itself() if draw < 0.95 else self._promise_ended()

    def _about_a_node(self) -> Happening:
        chance = self._chance
        if self._nodes and chance.random() < 0.15:
            return self._node_gone(chance.choice(list(self._nodes)))
        if not self._nodes or chance.random() < 0.2:
            self._made += 1
            return self._set_node(self._new_node(50 + self._made))
        old = self._nodes[chance.choice(list(self._nodes))]
        other = self._new_node(0)
        part = chance.choice(["all", "labels", "taints", "cordon", "allocatable"])
        meta, spec, status = old.metadata, old.spec, old.status
        if part in ("all", "labels"):
            meta = replace(meta, labels={**other.metadata.labels, random_storage.HOSTNAME: old.name})
        if part in ("all", "taints"):
            spec = replace(spec, taints=other.spec.taints)
        if part in ("all", "cordon"):
            spec = replace(spec, unschedulable=not spec.unschedulable)
        if part in ("all", "allocatable"):
            status = replace(status, allocatable=other.status.allocatable)
        return self._set_node(replace(old, metadata=meta, spec=spec, status=status))

    def _new_node(self, number: int) -> Node:
        return random_storage.random_node(self._chance, number) if self._stored else fresh.node(self._chance, number)

    def _about_a_pod(self) -> Happening:
        chance = self._chance
        draw = chance.random()
        if self._pods and draw < 0.5:
            return self._pod_gone(chance.choice(list(self._pods)))
        if self._pods and draw < 0.75:
            old = self._pods[chance.choice(list(self._pods))]
            labels = fresh.pod(chance, "x").metadata.labels
            return self._set_pod(replace(old, metadata=replace(old.metadata, labels=labels)))
        self._made += 1
        node = chance.choice([*self._nodes, NodeName("n-unknown")])
        name = f"came-{self._made}"
        made = random_storage.random_pod(chance, name) if self._stored else fresh.pod(chance, name)
        return self._set_pod(made.on(node))

    def _about_an_object(self) -> Happening:
        chance = self._chance
        kind, key = chance.choice(list(self._others))
        if kind != "Namespace" and chance.random() < 0.3:
            return self._gone(kind, key)
        other = random_storage.random_storage(chance, 2, 1).objects
        same = [value for (its, _), value in other.items() if its == kind]
        old = self._others[kind, key]
        if not same:
            return self._put({**old, "metadata": {**old["metadata"], "labels": {"l": chance.choice("ab")}}})
        new = chance.choice(same)
        keeps = {part: old["metadata"][part] for part in ("name", "namespace", "uid") if part in old["metadata"]}
        return self._put({**new, "metadata": {**new["metadata"], **keeps}})

    def _about_itself(self) -> Happening:
        chance, old = self._chance, self.pod
        other = fresh.pod(chance, "x")
        value = msgspec.to_builtins(old)
        part = chance.choice(["labels", "tolerations", "requests"])
        if part == "labels":
            value["metadata"]["labels"] = other.metadata.labels
        elif part == "tolerations":
            added = msgspec.to_builtins(other.spec.tolerations)
            value["spec"]["tolerations"] = [*value["spec"].get("tolerations", []), *added]
        else:
            value["spec"]["containers"][0]["resources"] = {"requests": {"cpu": chance.choice(["50m", "3"])}}
        self.pod = msgspec.convert(value, Pod)
        return Happening({"becomes": self.pod}, ClusterEvent(Resource.POD, Action.UPDATE, old, self.pod))

    def _promise_ended(self) -> Happening:
        """A pod that was promised a node is deleted."""
        self._made += 1
        name, node = f"promised-{self._made}", self._chance.choice([*self._nodes, NodeName("n-unknown")])
        made = random_storage.random_pod(self._chance, name) if self._stored else fresh.pod(self._chance, name)
        promised = replace(made, status=replace(made.status, nominated_node_name=node))
        before = {"set": {"kind": "pods", "object": promised}}
        return Happening({"gone": {"kind": "pods", "key": made.key}}, released(PodInfo(made), node), [before])

    # -- changes -----------------------------------------------------------------------------------------------------

    def _set_node(self, node: Node) -> Happening:
        old = self._nodes.get(node.name)
        self._nodes[node.name] = node
        self.snapshot.table.set_node(node)
        action = Action.ADD if old is None else Action.UPDATE
        return _set("nodes", node, ClusterEvent(Resource.NODE, action, old, node))

    def _node_gone(self, name: NodeName) -> Happening:
        for key in [key for key, pod in self._pods.items() if pod.node_name == name]:
            self.snapshot.table.remove_pod(self._pods[key].uid)
        self.snapshot.table.remove_node(name)
        for pod in [pod for pod in self._pods.values() if pod.node_name == name]:
            self.snapshot.table.add_pod(PodInfo(pod), name)
        return _gone("nodes", name, ClusterEvent(Resource.NODE, Action.DELETE, old=self._nodes.pop(name)))

    def _set_pod(self, pod: Pod) -> Happening:
        old = self._pods.get(pod.key)
        self._pods[pod.key] = pod
        if old is not None:
            self.snapshot.table.remove_pod(old.uid)
        self.snapshot.table.add_pod(PodInfo(pod), pod.node_name)
        action = Action.ADD if old is None else Action.UPDATE
        return _set("pods", pod, ClusterEvent(Resource.ASSIGNED_POD, action, old, pod))

    def _pod_gone(self, key: str) -> Happening:
        old = self._pods.pop(key)
        self.snapshot.table.remove_pod(old.uid)
        return _gone("pods", key, ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, old=old))

    def _put(self, value: Json) -> Happening:
        kind, key = value["kind"], _key(value)
        old = self._others.get((kind, key))
        self._others[kind, key] = value
        self.snapshot.put(kind, key, value)
        return _set(KINDS[kind], value, _about(kind, Action.ADD if old is None else Action.UPDATE, old, value))

    def _gone(self, kind: str, key: str) -> Happening:
        old = self._others.pop((kind, key))
        self.snapshot.drop(kind, key)
        return _gone(KINDS[kind], key, _about(kind, Action.DELETE, old, None))


def _key(value: Mapping[str, Any]) -> str:
    namespace = value["metadata"].get("namespace", "")
    return f"{namespace}/{value['metadata']['name']}" if namespace else value["metadata"]["name"]


def _about(kind: str, action: Action, old: Json | None, new: Json | None) -> ClusterEvent:
    return ClusterEvent(RESOURCES.get(kind, Resource.PDB), action, old, new)


def _set(kind: str, value: object, event: ClusterEvent) -> Happening:
    return Happening({"set": {"kind": kind, "object": value}}, event)


def _gone(kind: str, key: str, event: ClusterEvent) -> Happening:
    return Happening({"gone": {"kind": kind, "key": key}}, event)
