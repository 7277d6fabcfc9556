"""Random clusters and pods from a seed: a few classes of pods, all that the plugins in tree look at."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model.meta import NodeName
from dsched.model.node import Node
from dsched.model.pod import Pod
from tests.builders import make_node, make_pod, make_term

GPU, FPGA = "nvidia.com/gpu", "example.com/fpga"

SCHEDULERS = ("default-scheduler", "packing", "ratio", "added", "unscored")
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    postFilter: {disabled: [{name: "*"}]}
- schedulerName: packing
  plugins:
    multiPoint: {enabled: [{name: NodeResourcesFit, weight: 7}, {name: ImageLocality, weight: 3}]}
    postFilter: {disabled: [{name: "*"}]}
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 2}, {name: nvidia.com/gpu, weight: 5}]}
- schedulerName: ratio
  plugins:
    postFilter: {disabled: [{name: "*"}]}
  pluginConfig:
  - name: NodeResourcesFit
    args:
      ignoredResources: [example.com/fpga]
      scoringStrategy:
        type: RequestedToCapacityRatio
        resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]
        requestedToCapacityRatio: {shape: [{utilization: 0, score: 1}, {utilization: 60, score: 10}]}
- schedulerName: added
  plugins:
    postFilter: {disabled: [{name: "*"}]}
  pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: Exists}]}]
        preferredDuringSchedulingIgnoredDuringExecution:
        - {weight: 9, preference: {matchExpressions: [{key: zone, operator: In, values: [a]}]}}
- schedulerName: unscored
  plugins:
    score: {disabled: [{name: "*"}]}
    postFilter: {disabled: [{name: "*"}]}
    preScore: {disabled: [{name: "*"}]}
    multiPoint: {disabled: [{name: NodeAffinity}, {name: TaintToleration}, {name: NodeResourcesFit},
      {name: NodeResourcesBalancedAllocation}, {name: ImageLocality}, {name: PodTopologySpread},
      {name: InterPodAffinity}, {name: VolumeBinding}]}
    filter: {enabled: [{name: NodeAffinity}, {name: TaintToleration}, {name: NodeResourcesFit}]}
    preFilter: {enabled: [{name: NodeAffinity}, {name: NodeResourcesFit}]}
"""

_TAINTS = ("a:NoSchedule", "b=1:NoExecute", "c:PreferNoSchedule", "d=1:PreferNoSchedule")
_TOLERATIONS = ("a", "b=1:NoExecute", "c", "node.kubernetes.io/unschedulable")
_APP: dict[str, Any] = {"matchLabels": {"app": "web"}}
_NEAR = {"topologyKey": "zone", "labelSelector": _APP}
_SPREAD = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "labelSelector": _APP}
_SPREADS: tuple[list[Any], ...] = (
    [],
    [],
    [],
    [{**_SPREAD, "whenUnsatisfiable": "DoNotSchedule"}],
    [{**_SPREAD, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}],
    [{**_SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}, {**_NEAR, "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule"}],
)
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
_COMPANY: tuple[dict[str, Any], ...] = (
    {},
    {},
    {},
    {},
    {"podAffinity": {_REQUIRED: [_NEAR]}},
    {"podAntiAffinity": {_REQUIRED: [{**_NEAR, "topologyKey": "disk"}]}},
    {"podAffinity": {_PREFERRED: [{"weight": 7, "podAffinityTerm": _NEAR}]}},
    {"podAntiAffinity": {_PREFERRED: [{"weight": 3, "podAffinityTerm": {**_NEAR, "topologyKey": "disk"}}]}},
)
_PORTS: tuple[list[str], ...] = ([], [], [], ["80"], ["127.0.0.1:80"], ["81/UDP", "82"])


@dataclass
class RandomCluster:
    """Nodes, the pods on them, and pods that wait.

    Attributes:
        placed: (node, pod) in the order they joined.
    """

    nodes: list[Node]
    placed: list[tuple[str, Pod]]
    waiting: list[Pod] = field(default_factory=list)

    def snapshot(self, nodes: Iterable[Node] | None = None) -> Snapshot:
        """A snapshot of its own, nodes in the order given."""
        table = NodeTable()
        for node in self.nodes if nodes is None else nodes:
            table.set_node(node)
        for name, pod in self.placed:
            table.add_pod(PodInfo(pod), NodeName(name))
        return Snapshot(table)


def random_cluster(rng: Random, nodes: int, waiting: int, classes: int = 5) -> RandomCluster:
    """A cluster that is about to become full, so that some pods fit nowhere."""
    cluster = RandomCluster([random_node(rng, number) for number in range(nodes)], [])
    for number in range(rng.randrange(nodes)):
        name = rng.choice(cluster.nodes).name
        cluster.placed.append((name, random_pod(rng, f"placed{number}", random_class(rng, nodes))))
    drawn = [random_class(rng, nodes) for _ in range(classes)]
    cluster.waiting = [random_pod(rng, f"pod{number}", rng.choice(drawn)) for number in range(waiting)]
    return cluster


def random_node(rng: Random, number: int) -> Node:
    labels = {"kubernetes.io/hostname": f"node{number:03}"}
    labels |= {"zone": rng.choice("abc")} if rng.random() < 0.8 else {}
    labels |= {"disk": rng.choice(["ssd", "hdd", "9"])} if rng.random() < 0.6 else {}
    if rng.random() < 0.5:
        labels["topology.kubernetes.io/zone"] = rng.choice(["z1", "z2", "z3"])
    more: dict[str, Any] = {GPU: rng.randrange(5)} if rng.random() < 0.4 else {}
    more |= {FPGA: 1} if rng.random() < 0.2 else {}
    return make_node(
        f"node{number:03}",
        cpu=rng.choice(["2", "4", "3500m"]),
        memory=rng.choice(["4Gi", "8Gi", "9000M"]),
        pods=rng.choice([0, 3, 5, 110, 110]),
        allocatable=more,
        labels=labels,
        taints=rng.sample(_TAINTS, rng.choice([0, 0, 0, 1, 2])),
        unschedulable=rng.random() < 0.1,
        images={image: 400_000_000 for image in ("web:1", "log:latest") if rng.random() < 0.4},
    )


def random_class(rng: Random, nodes: int) -> dict[str, Any]:
    """What the pods of one class have in common: arguments of `make_pod`."""
    some = [f"node{rng.randrange(nodes + 2):03}" for _ in range(4)]
    required: list[Any] | None = rng.choice(
        [
            None,
            None,
            None,
            [make_term("disk Exists")],
            [make_term("zone In a b"), make_term("disk Gt 3")],
            [make_term(fields=[f"metadata.name In {name}"]) for name in some],
            [make_term("zone Exists", fields=[f"metadata.name In {some[0]}"])],
            [make_term(fields=["metadata.name In x", "metadata.name In y"])],
        ]
    )
    company = rng.choice(_COMPANY)
    if company:
        required = None
    return {
        "company": company,
        "spread": rng.choice(_SPREADS),
        "cpu": rng.choice([None, "100m", "500m", "1500m"]),
        "memory": rng.choice([None, "256Mi", "1Gi", "700M"]),
        "requests": rng.choice([{}, {}, {GPU: 1}, {FPGA: 1}]),
        "ports": rng.choice(_PORTS),
        "image": rng.choice(["web:1", "log", "other:9"]),
        "tolerations": rng.sample(_TOLERATIONS, rng.choice([0, 1, 2])),
        "node_selector": rng.choice([{}, {}, {}, {"zone": "a"}]),
        "required": required,
        "preferred": rng.choice(
            [(), () if company else [(3, make_term("zone In a b")), (5, make_term("disk Exists"))]]
        ),
        "labels": rng.choice([{}, {"app": "web"}]),
        "gates": rng.choice([(), (), (), (), ("example.com/later",)]),
        "scheduler": rng.choice(SCHEDULERS),
    }


def random_pod(rng: Random, name: str, of_class: dict[str, Any]) -> Pod:
    facts = dict(of_class)
    spec = {"schedulerName": facts.pop("scheduler"), "topologySpreadConstraints": facts.pop("spread")}
    company = facts.pop("company")
    if company:
        spec["affinity"] = company
    return make_pod(f"shop/{name}", priority=rng.choice([0, 0, 10]), spec=spec, **facts)


def random_change(rng: Random, table: NodeTable, number: int) -> None:
    """Change something in the table: a pod comes or goes, a node changes, now and then one comes or goes."""
    draw = rng.random()
    if not len(table):
        table.set_node(random_node(rng, 0))
    elif draw < 0.45:
        pod = random_pod(rng, f"new{number}", random_class(rng, len(table)))
        table.add_pod(PodInfo(pod), rng.choice(table.names))
    elif draw < 0.75:
        there = [pod.uid for _, pod in table.placed()]
        if there:
            table.remove_pod(rng.choice(there))
    elif draw < 0.93:
        table.set_node(random_node(rng, int(rng.choice(table.names)[4:])))
    elif draw < 0.97:
        table.set_node(random_node(rng, rng.randrange(400, 999)))
    else:
        table.remove_node(rng.choice(table.names))
