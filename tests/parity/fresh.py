"""Clusters that chance has made, and what a leader of some version decides about the pods that wait in them."""

import dataclasses
import random
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from dsched.config import Features
from dsched.model import tape
from dsched.model.meta import key_of
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.plugins import profiles, registry
from dsched.recording import simulated
from dsched.simulation.from_manifests import ManifestCluster
from tests.builders import make_node, make_pod, make_term
from tests.parity import fresh_devices

Json = dict[str, Any]

NOW_MS = 1_700_000_000_000
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
APPS = ("web", "cache", "batch")
IMAGES = {"registry/web:1": 900 << 20, "registry/cache:1": 300 << 20}


def decisions(chance: random.Random, features: Features, at_least: int) -> Iterator[list[tape.Line]]:
    """Recordings, one of each cluster, until so many decisions are in them."""
    decided = 0
    while decided < at_least:
        lines = recording(chance, features)
        decided += sum(len(line.choices) for line in lines if isinstance(line, tape.Decided))
        yield lines


def recording(chance: random.Random, features: Features) -> list[tape.Line]:
    """What is decided in one cluster."""
    plugins = registry.intree()
    configured = profiles.configuration(None, plugins, features)
    given = cluster(chance)
    if chance.random() < 0.3:
        given = _with_devices(chance, given, network=features.since(36))
    return simulated.lines(configured, plugins, given, NOW_MS, chance.randrange(1 << 30))


def cluster(chance: random.Random) -> ManifestCluster:
    """A few nodes, pods on them, and pods that wait."""
    nodes = [node(chance, number) for number in range(chance.randint(2, 14))]
    there = range(chance.randint(0, 4 * len(nodes)))
    bound = [pod(chance, f"there-{number}", chance.choice(nodes).name) for number in there]
    pending = [pod(chance, f"new-{number}") for number in range(chance.randint(10, 60))]
    others = [("Namespace", name, {"metadata": {"name": name}}) for name in ("a", "b")]
    others += [_budget(chance, number) for number in range(chance.randint(0, 2))]
    return ManifestCluster(tuple(nodes), tuple(bound), tuple(pending), tuple(others))


def _with_devices(chance: random.Random, given: ManifestCluster, *, network: bool) -> ManifestCluster:
    """With devices on the nodes, and pods that ask for them."""
    pending, claims = _asking_for_devices(chance, given.pending)
    offered = fresh_devices.offered(chance, [each.name for each in given.nodes], network=network)
    return dataclasses.replace(given, pending=tuple(pending), others=(*given.others, *offered, *claims))


def _asking_for_devices(chance: random.Random, pods: Sequence[Pod]) -> tuple[list[Pod], list[fresh_devices.Other]]:
    """Some of the pods name a claim, their own or one that they share; some ask for an extended resource."""
    shared = {namespace: fresh_devices.claim(chance, f"{namespace}/shared") for namespace in "ab"}
    claims, found = list(shared.values()), []
    for each in pods:
        draw = chance.random()
        if draw < 0.1:
            each = _naming(each, shared[each.metadata.namespace])
        elif draw < 0.6:
            own = fresh_devices.claim(chance, f"{each.key}-claim")
            claims.append(own)
            each = _naming(each, own)
        elif draw < 0.7:
            each = _with_extended(each, chance.randint(1, 2))
        found.append(each)
    return found, [("ResourceClaim", key_of(each), each) for each in claims]


def _naming(pod: Pod, claim: Json) -> Pod:
    value = msgspec.to_builtins(pod)
    value["spec"]["resourceClaims"] = [{"name": "devices", "resourceClaimName": claim["metadata"]["name"]}]
    return msgspec.convert(value, Pod)


def _with_extended(pod: Pod, amount: int) -> Pod:
    value = msgspec.to_builtins(pod)
    value["spec"]["containers"][0].setdefault("resources", {}).setdefault("requests", {})[fresh_devices.EXTENDED] = str(
        amount
    )
    return msgspec.convert(value, Pod)


def node(chance: random.Random, number: int) -> Node:
    name = f"n{number:02}"
    labels = {HOST: name, ZONE: chance.choice("xyz")} | ({"disk": "ssd"} if chance.random() < 0.3 else {})
    taints = chance.choice([(), (), (), ("spot=yes:NoSchedule",), ("slow=:PreferNoSchedule",)])
    images = {image: size for image, size in IMAGES.items() if chance.random() < 0.4}
    cpu, memory = chance.choice([2, 4, 8]), chance.choice(["4Gi", "8Gi", "16Gi"])
    return make_node(
        name, cpu, memory, labels=labels, taints=taints, images=images, unschedulable=chance.random() < 0.05
    )


def pod(chance: random.Random, name: str, node: str = "") -> Pod:
    app = chance.choice(APPS)
    spec: Json = {}
    if chance.random() < 0.2:
        spec["topologySpreadConstraints"] = [_spread(chance, app)]
    affinity = _pod_affinity(chance, app)
    labels = {"app": app} | ({"track": chance.choice("ab")} if chance.random() < 0.3 else {})
    made = make_pod(
        f"{chance.choice('ab')}/{name}",
        chance.choice([None, "100m", "500m", 1, 2]),
        chance.choice([None, "256Mi", "1Gi", "3Gi"]),
        image=chance.choice(["", *IMAGES]),
        node=node,
        priority=chance.choice([0, 0, 0, 10, 100]),
        labels=labels,
        ports=[8080]
        if not node and chance.random() < 0.05
        else [],  # of two there, kube-scheduler forgets both at once
        tolerations=chance.choice([(), (), ("spot",), ("slow:PreferNoSchedule",)]),
        node_selector={"disk": "ssd"} if chance.random() < 0.1 else {},
        preferred=[(chance.randint(1, 100), make_term(f"{ZONE} In {chance.choice('xyz')}"))][: chance.random() < 0.2],
        spec=spec,
        status={"startTime": _started(chance)} if node and chance.random() < 0.8 else {},
    )
    return made if not affinity else _with_affinity(made, affinity)


def _started(chance: random.Random) -> str:
    return f"2023-11-14T{chance.randrange(20):02}:{chance.randrange(60):02}:{chance.randrange(60):02}Z"


def _spread(chance: random.Random, app: str) -> Json:
    return {
        "maxSkew": chance.randint(1, 3),
        "topologyKey": chance.choice([ZONE, HOST]),
        "whenUnsatisfiable": chance.choice(["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": {"matchLabels": {"app": app}},
    }


def _pod_affinity(chance: random.Random, app: str) -> Json:
    term = {
        "topologyKey": chance.choice([ZONE, HOST]),
        "labelSelector": {"matchLabels": {"app": chance.choice([app, *APPS])}},
    }
    weighted = {"weight": chance.randint(1, 100), "podAffinityTerm": term}
    kind = chance.choice(["podAffinity", "podAntiAffinity"])
    draw = chance.random()
    if draw < 0.1:
        return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    if draw < 0.25:
        return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}
    return {}


def _with_affinity(pod: Pod, affinity: Json) -> Pod:
    value = msgspec.to_builtins(pod)
    value["spec"]["affinity"] = {**(value["spec"].get("affinity") or {}), **affinity}
    return msgspec.convert(value, Pod)


def _budget(chance: random.Random, number: int) -> tuple[str, str, Json]:
    namespace, name = chance.choice("ab"), f"budget-{number}"
    value = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": chance.choice(APPS)}}},
        "status": {"disruptionsAllowed": chance.randint(0, 2)},
    }
    return "PodDisruptionBudget", f"{namespace}/{name}", value
