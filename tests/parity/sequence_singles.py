"""Pods by themselves in a sequence, with the gates that are on by default, made by chance: what their specs may say
besides resources and what pods of groups ask for, what nodes have of that, and nodes that others promise them.
"""

import copy
from collections.abc import Sequence
from random import Random
from typing import Any

from dsched.manifests import defaulting, kinds
from tests.parity import sequence_sizes
from tests.parity.sequence_devices import Happening

Json = dict[str, Any]

IMAGES = {"small.example.com/app:1": 30 << 20, "big.example.com/model:2": 900 << 20, "vast.example.com/data:3": 3 << 30}
FEATURES = (
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
    "VolumeBindMountOptions",
)
"""What kubelets declare and some pods need."""
TAINTS = ("NoSchedule", "NoSchedule", "PreferNoSchedule", "NoExecute")
NUMBER = "number"
"""A label of nodes that is a number."""
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class Singles:
    """What differs between pods, and between nodes.

    Args:
        nodes: as they are; those that come later are added there.
        older: it is for releases that do not count the node that a gated pod was promised.
    """

    def __init__(self, chance: Random, nodes: list[Json], *, older: bool = False) -> None:
        self._chance, self._nodes, self._older = chance, nodes, older
        self._declares = chance.random() < 0.5
        self._seen: set[str] = set()
        for node in nodes:
            self.dress_node(node)

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def dress_node(self, node: Json) -> None:
        """Images, what its kubelet declares, and a number."""
        chance, status = self._chance, node["status"]
        status["images"] = self._images()
        if self._declares:
            status["declaredFeatures"] = self._declared()
        node["metadata"]["labels"][NUMBER] = str(chance.randint(1, 9))

    def _images(self) -> list[Json]:
        chance = self._chance
        there = chance.sample(sorted(IMAGES), chance.choice([0, 1, 1, 2, 3]))
        return [{"names": [name, f"{name}@sha256:{'0' * 8}"], "sizeBytes": IMAGES[name]} for name in there]

    def _declared(self) -> list[str]:
        return sorted(name for name in FEATURES if self._chance.random() < 0.6)

    def happening(self) -> Happening:
        """A node becomes another in some way."""
        chance = self._chance
        place = chance.randrange(len(self._nodes))
        node = self._nodes[place] = copy.deepcopy(self._nodes[place])
        how = chance.choice(["images", "features", "taints", "taints", "number"])
        if how == "images":
            node["status"]["images"] = self._images()
        elif how == "features" and self._declares:
            node["status"]["declaredFeatures"] = self._declared()
        elif how == "number":
            node["metadata"]["labels"][NUMBER] = str(chance.randint(1, 9))
        else:
            taints = [
                {"key": key, "value": chance.choice(["v", "w"]), "effect": chance.choice(TAINTS)}
                for key in ("own", "other")
                if chance.random() < 0.5
            ]
            node["spec"] = {**node.get("spec", {}), "taints": taints}
        return {"nodes": [node]}

    # -- pods ----------------------------------------------------------------------------------------------------------

    def dress(self, pods: Sequence[Json]) -> None:
        """Pods of one template ask for something else than resources, most of them."""
        chance = self._chance
        kinds_of = [
            self._asks_for_images,
            self._needs_features,
            self._has_more_containers,
            self._has_overhead,
            self._takes_ports,
            self._compares_labels,
            self._tolerates,
            self._matches_labels,
            self._fits_a_node_by_name,
        ]
        chosen = chance.sample(kinds_of, chance.choice([0, 1, 1, 2]))
        seed = chance.randrange(1 << 32)
        for pod in pods:
            if chance.random() < 0.85:
                for each in chosen:
                    each(Random(seed), pod)
                defaulting.fill_in(kinds.POD, pod)
                sequence_sizes.cover_containers(pod["spec"])

    def _asks_for_images(self, chance: Random, pod: Json) -> None:
        pod["spec"]["containers"][0]["image"] = chance.choice(sorted(IMAGES))

    def _needs_features(self, chance: Random, pod: Json) -> None:
        container = pod["spec"]["containers"][0]
        how = chance.choice(FEATURES)
        if how == FEATURES[0]:
            codes = {"operator": "In", "values": [1]}
            container["restartPolicy"] = "Never"
            container["restartPolicyRules"] = [{"action": "RestartAllContainers", "exitCodes": codes}]
        elif how == FEATURES[1]:
            if not container.get("ports"):
                pod["spec"] |= {"hostNetwork": True, "hostUsers": False}
        else:
            pod["spec"].setdefault("volumes", []).append({"name": "scratch", "emptyDir": {}})
            container["volumeMounts"] = [{"name": "scratch", "mountPath": "/scratch", "bindMountOptions": ["noexec"]}]

    def _has_more_containers(self, chance: Random, pod: Json) -> None:
        spec = pod["spec"]
        for number in range(chance.choice([1, 1, 2])):
            size = chance.randrange(50, 1500)
            asked = {"requests": {"cpu": f"{size}m", "memory": f"{size // 2}Mi"}} if chance.random() < 0.8 else {}
            made: Json = {"name": f"more-{number}", "image": chance.choice(sorted(IMAGES)), "resources": asked}
            if chance.random() < 0.7:
                made |= {"restartPolicy": "Always"} if chance.random() < 0.4 else {}
                spec.setdefault("initContainers", []).append(made)
            else:
                spec["containers"].append(made)

    def _has_overhead(self, chance: Random, pod: Json) -> None:
        pod["spec"]["overhead"] = {"cpu": f"{chance.randrange(10, 400)}m", "memory": "64Mi"}

    def _takes_ports(self, chance: Random, pod: Json) -> None:
        container = pod["spec"]["containers"][0]
        if pod["spec"].get("hostNetwork") or container.get("ports"):
            return
        made: Json = {"containerPort": 80, "hostPort": chance.choice([8080, 8080, 9090])}
        made |= {"protocol": chance.choice(["TCP", "UDP"])} if chance.random() < 0.5 else {}
        made |= {"hostIP": chance.choice(["10.0.0.1", "10.0.0.2", "0.0.0.0"])} if chance.random() < 0.5 else {}
        container["ports"] = [made]

    def _compares_labels(self, chance: Random, pod: Json) -> None:
        """Requirements of every operator, on labels that some nodes have."""
        wanted = [
            {"key": NUMBER, "operator": "Gt", "values": [str(chance.randint(1, 7))]},
            {"key": NUMBER, "operator": "Lt", "values": [str(chance.randint(3, 9))]},
            {"key": NUMBER, "operator": "NotIn", "values": [str(chance.randint(1, 9)), "5"]},
            {"key": "rack", "operator": "Exists"},
            {"key": "rack", "operator": "DoesNotExist"},
            {"key": "rack", "operator": "NotIn", "values": ["r1"]},
        ]
        terms = [{"matchExpressions": chance.sample(wanted, chance.choice([1, 1, 2]))} for _ in range(2)]
        affinity = pod["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
        if chance.random() < 0.6 and REQUIRED not in affinity:
            affinity[REQUIRED] = {"nodeSelectorTerms": terms[: chance.choice([1, 2])]}
        elif PREFERRED not in affinity:
            affinity[PREFERRED] = [
                {"weight": weight, "preference": term}
                for weight, term in zip(chance.sample(range(1, 101), 2), terms, strict=True)
            ]

    def _tolerates(self, chance: Random, pod: Json) -> None:
        made = [
            {"key": "own", "operator": "Equal", "value": chance.choice(["v", "w"])},
            {"key": "other", "operator": "Exists", "effect": chance.choice(TAINTS)},
            {"operator": "Exists"},
            {"key": "own", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
        ]
        pod["spec"]["tolerations"] = chance.sample(made, chance.choice([1, 2]))

    def _matches_labels(self, chance: Random, pod: Json) -> None:
        """Terms of affinity whose selectors take or leave out pods with the same label."""
        if "podAntiAffinity" in pod["spec"].get("affinity", {}):
            return
        selector = {"matchExpressions": [{"key": "app", "operator": chance.choice(["Exists", "In", "NotIn"])}]}
        if selector["matchExpressions"][0]["operator"] != "Exists":
            selector["matchExpressions"][0]["values"] = ["web", "g0"]
        term: Json = {"topologyKey": chance.choice(["kubernetes.io/hostname", "rack"]), "labelSelector": selector}
        key = chance.choice(["matchLabelKeys", "mismatchLabelKeys", ""])
        term |= {key: ["version"]} if key else {}
        where = [term] if chance.random() < 0.5 else [{"weight": chance.randint(1, 100), "podAffinityTerm": term}]
        rule = PREFERRED if "weight" in where[0] else REQUIRED
        pod["spec"].setdefault("affinity", {})["podAntiAffinity"] = {rule: where}

    def _fits_a_node_by_name(self, chance: Random, pod: Json) -> None:
        name = chance.choice(self._nodes)["metadata"]["name"]
        pod["spec"]["nodeSelector"] = {"kubernetes.io/hostname": name}

    # -- promises of others --------------------------------------------------------------------------------------------

    def coming(self, pods: Sequence[Json]) -> list[Json]:
        """Pods as they come: somebody has promised some of them a node, which may not be there."""
        found = []
        for pod in pods:
            new = pod["metadata"]["uid"] not in self._seen and not pod["spec"].get("nodeName")
            if self._older and "schedulingGates" in pod["spec"]:
                new = False
            self._seen.add(pod["metadata"]["uid"])
            if new and self._chance.random() < 0.12:
                pod = {**pod, "status": {**pod.get("status", {}), "nominatedNodeName": self.promised()}}
            found.append(pod)
        return found

    def promised(self) -> str:
        """A node, or one that is not there."""
        names = [node["metadata"]["name"] for node in self._nodes]
        return str(self._chance.choice([*names, *names, "nowhere"]))
