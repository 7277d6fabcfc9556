"""Clusters made of conformance vectors: nodes and pods of one, pods of several, each with parts of others put into it.

The recorded answers say nothing about these; kube-scheduler's own framework does.
"""

import copy
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from dsched.conformance import vectors
from dsched.conformance.decisions import OTHER_KINDS
from dsched.manifests import kinds
from dsched.model import meta
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.simulation.from_manifests import ManifestCluster

Json = dict[str, Any]
Case = Mapping[str, Any]

GRAFTED, TIGHT, CARRIED = 0.5, 0.4, 0.3
"""How many pods and nodes have parts of others; how often there is little room; and which part of one is taken."""
OWN = ("nodeName", "schedulerName", "resourceClaims", "schedulingGates", "schedulingGroup")
"""What stays with the pod of a vector."""
NODE_PARTS = {"spec": ("taints", "unschedulable"), "status": ("allocatable", "images", "declaredFeatures")}
HOST = "kubernetes.io/hostname"
EXTENDED = "resource.kubernetes.io/extended-resource-claim"


@cache
def cases(folder: Path) -> dict[str, list[Case]]:
    """By family, those of decisions about pods."""
    found: dict[str, list[Case]] = {}
    for path in vectors.files([folder]):
        for each in vectors.read(path):
            if "pod" in each.case:
                found.setdefault(each.family, []).append(each.case)
    return found


class Crossing:
    """A cluster, and the configuration to decide with.

    Attributes:
        config: None for the default one.
    """

    def __init__(self, chance: random.Random, known: Mapping[str, Sequence[Case]]) -> None:
        self._chance, self._known = chance, known
        family = chance.choice(sorted(known))
        self._cases = [chance.choice(known[family])]
        self._cases += [self._case(family if chance.random() < 0.8 else "") for _ in range(chance.randint(1, 9))]
        configs = [each["config"] for each in self._cases if each.get("config")]
        self.config: Json | None = chance.choice(configs) if configs else None
        base = self._cases[0]
        self._nodes = {each["metadata"]["name"]: copy.deepcopy(each) for each in base.get("nodes") or ()}
        there = [copy.deepcopy(each) for each in base.get("pods") or () if each["spec"]["nodeName"] in self._nodes]
        waiting = list(self._waiting({_key(each) for each in there}))
        for node in self._nodes.values():
            self._graft_node(node)
        for pod in (*there, *waiting):
            self._graft(pod)
        if chance.random() < TIGHT:
            there = self._tighten(there, waiting)
        self._there, self._pending = there, waiting
        _tell_apart([*there, *waiting])

    def cluster(self, scheduler: str) -> ManifestCluster:
        """As it is told to a leader.

        Args:
            scheduler: whose the pods are that wait.
        """
        for pod in self._pending:
            pod["spec"]["schedulerName"] = scheduler
        return ManifestCluster(
            tuple(meta.from_builtins(each, Node) for each in self._nodes.values()),
            tuple(meta.from_builtins(each, Pod) for each in self._there),
            tuple(meta.from_builtins(each, Pod) for each in self._pending),
            tuple(self._others()),
        )

    def _case(self, family: str = "") -> Case:
        return self._chance.choice(self._known[family or self._chance.choice(sorted(self._known))])

    def _waiting(self, taken: set[str]) -> Iterator[Json]:
        """The pods of the cases. One that names its node does not wait in a cluster."""
        for number, case in enumerate(self._cases):
            pod = copy.deepcopy(case["pod"])
            if _key(pod) in taken:
                pod["metadata"]["name"] += f"-{number}"
            if _key(pod) not in taken and not pod["spec"].get("nodeName"):
                taken.add(_key(pod))
                yield pod

    def _others(self) -> Iterator[tuple[str, str, Json]]:
        """Objects besides. Who publishes a pool, and who has which of its devices, is said by one case alone."""
        met: set[tuple[str, str]] = set()
        for case in self._cases:
            for field, kind in OTHER_KINDS.items():
                for each in case.get(field) or ():
                    metadata = each["metadata"]
                    key = kinds.BY_NAME[kind].key(metadata.get("namespace") or "default", metadata["name"])
                    if (kind, key) in met or (case is not self._cases[0] and _is_of_one_cluster(kind, each)):
                        continue
                    met.add((kind, key))
                    if kind == "ResourceClaim":
                        each = {**each, "metadata": {**metadata, "uid": f"uid-of-{key}"}}
                    yield kind, key, each

    # -- parts of others -----------------------------------------------------------------------------------------------

    def _graft(self, pod: Json) -> None:
        chance, claims = self._chance, pod["spec"].get("resourceClaims")
        if chance.random() >= GRAFTED or (claims and pod["spec"].get("nodeName")):
            return
        case = self._case()
        other = copy.deepcopy(chance.choice([case["pod"], *(case.get("pods") or ())]))
        for name, part in other["spec"].items():
            if name not in OWN and chance.random() < CARRIED:
                pod["spec"][name] = part
        if chance.random() < CARRIED:
            pod["metadata"]["labels"] = other["metadata"].get("labels") or {}
        names = {each["name"] for each in claims or ()}
        for container in (*(pod["spec"].get("containers") or ()), *(pod["spec"].get("initContainers") or ())):
            resources = container.get("resources") or {}
            if resources.get("claims"):
                resources["claims"] = [each for each in resources["claims"] if each["name"] in names]

    def _graft_node(self, node: Json) -> None:
        others = self._case().get("nodes")
        if self._chance.random() >= GRAFTED or not others:
            return
        other = copy.deepcopy(self._chance.choice(others))
        for part, names in NODE_PARTS.items():
            for name in names:
                if name in (other.get(part) or {}) and self._chance.random() < CARRIED:
                    node[part] = {**(node.get(part) or {}), name: other[part][name]}
        if self._chance.random() < CARRIED:
            labels = {name: text for name, text in (other["metadata"].get("labels") or {}).items() if name != HOST}
            node["metadata"]["labels"] = (node["metadata"].get("labels") or {}) | labels

    def _tighten(self, there: list[Json], waiting: Sequence[Json]) -> list[Json]:
        """Leave few nodes, small ones, and pods of many priorities; the pods that are left there."""
        chance = self._chance
        for name in chance.sample(sorted(self._nodes), max(0, len(self._nodes) - chance.randint(1, 4))):
            del self._nodes[name]
        left = [each for each in there if each["spec"]["nodeName"] in self._nodes]
        for pod in (*left, *waiting):
            if chance.random() < 0.5:
                pod["spec"]["priority"] = chance.choice([0, 0, 5, 10, 100, 1000])
        for node in self._nodes.values():
            if (node.get("status") or {}).get("allocatable") and chance.random() < 0.6:
                node["status"]["allocatable"]["cpu"] = chance.choice(["500m", "1", "1500m", "2", "3"])
        return left


def _is_of_one_cluster(kind: str, each: Json) -> bool:
    if kind == "ResourceClaim":
        made = (each["metadata"].get("annotations") or {}).get(EXTENDED)
        return bool(made or (each.get("status") or {}).get("allocation"))
    return kind == "ResourceSlice"


def _key(pod: Json) -> str:
    return f"{pod['metadata'].get('namespace') or 'default'}/{pod['metadata']['name']}"


def _tell_apart(pods: Sequence[Json]) -> None:
    """No two have the same uid."""
    met: set[str] = set()
    for number, pod in enumerate(pods):
        uid = pod["metadata"].get("uid")
        if not uid or uid in met:
            pod["metadata"]["uid"] = f"uid-of-another-{number}"
        met.add(pod["metadata"]["uid"])
