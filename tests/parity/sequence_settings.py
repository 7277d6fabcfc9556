"""Configurations for sequences, made by chance: profiles whose plugins are told, weighed and left out otherwise."""

from collections.abc import Callable
from random import Random
from typing import Any

Json = dict[str, Any]

ANOTHER = "another"
"""The second profile, where there are two."""
CARD = "example.com/card"
"""A resource of some nodes besides CPU and memory."""
PATIENCE_S = (2, 4, 9, 30)
"""None of them 5, for which kube-scheduler looks for claims that it has made, on the clock on the wall."""
LEFT_OUT = (
    "DefaultPreemption",
    "InterPodAffinity",
    "NodePorts",
    "NodeResourcesBalancedAllocation",
    "NodeUnschedulable",
    "PodTopologySpread",
    "TaintToleration",
)


def configuration(*profiles: Json, **more: Any) -> Json:
    """A KubeSchedulerConfiguration with these profiles."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": list(profiles),
        **more,
    }


TWO_PROFILES = configuration({"schedulerName": "default-scheduler"}, {"schedulerName": ANOTHER})


def another(chance: Random, zone: str, rack: str) -> Json:
    """One or two profiles, each of which differs from the default in a few things."""
    names = ["default-scheduler", ANOTHER][: chance.choice([1, 1, 2])]
    profiles = [_profile(chance, name, zone, rack) for name in names]
    more: Json = {}
    if chance.random() < 0.3:
        more = {"podInitialBackoffSeconds": chance.choice([1, 2, 5]), "podMaxBackoffSeconds": chance.choice([5, 10])}
    return configuration(*profiles, **more)


def impatient(chance: Random, config: Json | None, *, devices: bool) -> Json:
    """The same, but that binds wait for a few seconds only: for volumes, or for devices."""
    name, args = (
        ("DynamicResources", {"bindingTimeout": f"{chance.choice(PATIENCE_S)}s"})
        if devices
        else ("VolumeBinding", {"bindTimeoutSeconds": chance.choice(PATIENCE_S)})
    )
    found = config or configuration({"schedulerName": "default-scheduler"})
    told = [{"name": name, "args": args}]
    profiles = [{**each, "pluginConfig": each.get("pluginConfig", []) + told} for each in found["profiles"]]
    return {**found, "profiles": profiles}


def sampling(chance: Random) -> Json:
    """How many nodes are looked at differs: of everybody, and of each of two profiles."""
    profiles: list[Json] = [{"schedulerName": "default-scheduler"}, {"schedulerName": ANOTHER}]
    for each in profiles:
        if chance.random() < 0.5:
            each["percentageOfNodesToScore"] = chance.choice([0, 1, 90, 95, 100])
    return configuration(*profiles, percentageOfNodesToScore=chance.choice([0, 0, 5, 92, 98, 100]))


def _profile(chance: Random, name: str, zone: str, rack: str) -> Json:
    args: list[tuple[str, Callable[[Random, str, str], Json]]] = [
        ("NodeResourcesFit", _fit),
        ("NodeResourcesBalancedAllocation", lambda chance, *_: {"resources": _weighed(chance)}),
        ("InterPodAffinity", _affinity),
        ("PodTopologySpread", _spread),
        ("NodeAffinity", _added),
        ("DefaultPreemption", _preemption),
    ]
    taken = chance.sample(args, chance.randint(1, 3))
    found: Json = {
        "schedulerName": name,
        "pluginConfig": [{"name": plugin, "args": made(chance, zone, rack)} for plugin, made in taken],
    }
    if chance.random() < 0.3:
        found["plugins"] = {"multiPoint": {"disabled": [{"name": each} for each in chance.sample(LEFT_OUT, 2)]}}
    elif chance.random() < 0.3:
        weighed = [("NodeResourcesFit", chance.randint(1, 5)), ("TaintToleration", chance.randint(1, 9))]
        points = {"enabled": [{"name": each, "weight": weight} for each, weight in weighed]}
        found["plugins"] = {"score": {"disabled": [{"name": each} for each, _ in weighed], **points}}
    return found


def _weighed(chance: Random) -> list[Json]:
    names = chance.choice([["cpu"], ["memory"], ["cpu", "memory"], ["cpu", "memory", CARD]])
    return [{"name": each, "weight": 1} for each in names]


def _fit(chance: Random, *_: str) -> Json:
    kind = chance.choice(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"])
    resources = [{**each, "weight": chance.randint(1, 5)} for each in _weighed(chance)]
    strategy: Json = {"type": kind, "resources": resources}
    if kind == "RequestedToCapacityRatio":
        middle = {"utilization": chance.randint(20, 80), "score": chance.randint(0, 10)}
        ends = [{"utilization": at, "score": chance.randint(0, 10)} for at in (0, 100)]
        strategy["requestedToCapacityRatio"] = {"shape": [ends[0], middle, ends[1]]}
    ignored = {"ignoredResources": [CARD]} if chance.random() < 0.2 else {}
    return {"scoringStrategy": strategy, **ignored}


def _affinity(chance: Random, *_: str) -> Json:
    return {
        "hardPodAffinityWeight": chance.choice([0, 10, 100]),
        "ignorePreferredTermsOfExistingPods": chance.random() < 0.5,
    }


def _spread(chance: Random, zone: str, rack: str) -> Json:
    """They hold for pods of the service that there is, see `service`."""
    if chance.random() < 0.2:
        return {"defaultingType": "List", "defaultConstraints": []}
    some = [
        {"maxSkew": chance.randint(1, 2), "topologyKey": key, "whenUnsatisfiable": how}
        for key, how in ((rack, "DoNotSchedule"), (zone, "ScheduleAnyway"))
        if chance.random() < 0.7
    ]
    return {"defaultingType": "List", "defaultConstraints": some}


def _added(chance: Random, _: str, rack: str) -> Json:
    among = {"matchExpressions": [{"key": rack, "operator": "In", "values": chance.sample(["r0", "r1", "r2"], 2)}]}
    if chance.random() < 0.5:
        return {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [among]}}}
    wish = [{"weight": chance.randint(1, 100), "preference": among}]
    return {"addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wish}}


def _preemption(chance: Random, *_: str) -> Json:
    percentage = chance.choice([0, 10, 100])
    return {"minCandidateNodesPercentage": percentage, "minCandidateNodesAbsolute": chance.randint(1, 100)}


def service(name: str) -> Json:
    """Of the pods with the label ``app=NAME``."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-service-{name}"},
        "spec": {"selector": {"app": name}},
    }
