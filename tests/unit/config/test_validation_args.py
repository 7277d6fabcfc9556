from typing import Any

import pytest

from tests.unit.config.files import paths, with_args

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def problems(plugin: str, **args: Any) -> list[str]:
    stage, *found = paths(with_args(plugin, **args)) or [""]
    assert stage == ("" if not found else "profile" if plugin == "NodeResourcesFit" else "validation")
    return [path.removeprefix("profiles[0].pluginConfig[0].args.") for path in found]


@pytest.mark.parametrize(
    ("args", "at"),
    [
        ({"minCandidateNodesPercentage": 0}, []),
        ({"minCandidateNodesPercentage": -1}, ["minCandidateNodesPercentage"]),
        ({"minCandidateNodesPercentage": 101}, ["minCandidateNodesPercentage"]),
        ({"minCandidateNodesAbsolute": -1}, ["minCandidateNodesAbsolute"]),
        (
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            ["minCandidateNodesAbsolute", "minCandidateNodesPercentage"],
        ),
    ],
)
def test_default_preemption(args: dict[str, Any], at: list[str]):
    assert problems("DefaultPreemption", **args) == at


@pytest.mark.parametrize(("weight", "good"), [(0, True), (100, True), (-1, False), (101, False)])
def test_inter_pod_affinity(weight: int, good: bool):
    assert problems("InterPodAffinity", hardPodAffinityWeight=weight) == ([] if good else ["hardPodAffinityWeight"])


@pytest.mark.parametrize(
    ("resources", "at"),
    [
        ([{"name": "bad name"}, {"name": ""}], []),
        ([{"name": "cpu", "weight": 2}], ["resources[0].weight"]),
        ([{"name": "cpu"}, {"name": "cpu", "weight": -1}], ["resources[1].name", "resources[1].weight"]),
    ],
)
def test_balanced_allocation(resources: list[dict[str, Any]], at: list[str]):
    assert problems("NodeResourcesBalancedAllocation", resources=resources) == at


GOOD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}


@pytest.mark.parametrize(
    ("changes", "at"),
    [
        ({}, []),
        ({"nodeAffinityPolicy": "Whatever", "minDomains": -1, "matchLabelKeys": ["!"]}, []),
        ({"maxSkew": 0}, ["maxSkew"]),
        ({"topologyKey": ""}, ["topologyKey"]),
        ({"topologyKey": "example.com/"}, ["topologyKey"] * 2),
        ({"whenUnsatisfiable": ""}, ["whenUnsatisfiable"]),
        ({"whenUnsatisfiable": "Never"}, ["whenUnsatisfiable"]),
        ({"labelSelector": {}}, ["labelSelector"]),
        ({"labelSelector": None}, []),
    ],
)
def test_spread_constraints(changes: dict[str, Any], at: list[str]):
    found = problems("PodTopologySpread", defaultingType="List", defaultConstraints=[GOOD | changes])
    assert found == [f"defaultConstraints[0].{path}" for path in at]


def test_spread_defaulting():
    assert problems("PodTopologySpread", defaultConstraints=[GOOD]) == ["defaultingType"]
    assert problems("PodTopologySpread", defaultingType="Other", defaultConstraints=[GOOD]) == ["defaultingType"]
    repeated = [GOOD, GOOD | {"whenUnsatisfiable": "ScheduleAnyway"}, GOOD | {"maxSkew": 2}, GOOD]
    assert problems("PodTopologySpread", defaultingType="List", defaultConstraints=repeated) == [
        "defaultConstraints[2]",
        "defaultConstraints[3]",
    ]


def test_volume_binding_takes_no_shape_not_even_an_empty_one():
    assert problems("VolumeBinding", bindTimeoutSeconds=0, shape=None) == []
    assert problems("VolumeBinding", shape=[]) == ["shape"]
    assert problems("VolumeBinding", bindTimeoutSeconds=-1, shape=[{}]) == ["bindTimeoutSeconds", "shape"]


def test_dynamic_resources():
    assert problems("DynamicResources", filterTimeout="0s") == []
    assert problems("DynamicResources", filterTimeout="-1ns") == ["filterTimeout"]


def test_ignored_resources():
    found = problems("NodeResourcesFit", ignoredResources=["cpu", "a/"], ignoredResourceGroups=["Bad_Group", "a/b", ""])
    assert found == [
        "ignoredResourceGroups[1]",
        *["ignoredResourceGroups[2]"] * 2,
        *["ignoredResources[1]"] * 2,
    ]


def points(*pairs: tuple[int, int]) -> dict[str, Any]:
    return {"shape": [{"utilization": utilization, "score": score} for utilization, score in pairs]}


@pytest.mark.parametrize(
    ("strategy", "at"),
    [
        ({"type": "MostAllocated"}, []),
        ({"type": ""}, ["type"]),
        ({}, ["type"]),
        ({"type": "Best", "resources": [{"name": "x", "weight": 101}]}, ["resources[0].weight", "type"]),
        ({"type": "LeastAllocated", "resources": [{"name": "bad name", "weight": 100}]}, []),
        ({"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": points((0, 0), (100, 10))}, []),
        ({"type": "RequestedToCapacityRatio"}, ["requestedToCapacityRatio"]),
        ({"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {}}, ["shape"]),
        ({"type": "LeastAllocated", "requestedToCapacityRatio": points((0, 0))}, []),
        (
            {"type": "LeastAllocated", "requestedToCapacityRatio": points((-1, 11))},
            ["shape[0].score", "shape[0].utilization"],
        ),
        (
            {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": points((50, 0), (50, 1), (40, 2))},
            ["shape[1].utilization"],
        ),
    ],
)
def test_scoring_strategy(strategy: dict[str, Any], at: list[str]):
    found = problems("NodeResourcesFit", scoringStrategy=strategy)
    assert found == [f"scoringStrategy.{path}" for path in at]


def affinity_problems(affinity: dict[str, Any]) -> list[str]:
    return [
        path.removeprefix("profiles[0].pluginConfig[0].args.addedAffinity.")
        for path in paths(with_args("NodeAffinity", addedAffinity=affinity))[1:]
    ]


@pytest.mark.parametrize(
    ("requirement", "at"),
    [
        ({"key": "a", "operator": "In", "values": ["b", ""]}, []),
        ({"key": "a", "operator": "Exists"}, []),
        ({"key": "a", "operator": "Gt", "values": ["5"]}, []),
        ({"key": "a", "operator": "Is", "values": []}, ["operator"]),
        ({"key": "bad key", "operator": "Is"}, ["operator"]),
        ({"key": "bad key", "operator": "In"}, ["key", "values"]),
        ({"key": "a", "operator": "DoesNotExist", "values": ["b"]}, ["values"]),
        ({"key": "a", "operator": "Lt", "values": []}, ["values"]),
        ({"key": "a", "operator": "Lt", "values": ["1", "2"]}, ["values"]),
        ({"key": "a", "operator": "Gt", "values": ["x"]}, ["values[0]"]),
        ({"key": "a", "operator": "Gt", "values": ["-6"]}, ["values[0][a]"]),
        ({"key": "a", "operator": "Gt", "values": [str(2**63)]}, ["values[0]"]),
        ({"key": "a", "operator": "NotIn", "values": ["b", "b c"]}, ["values[1][a]"]),
    ],
)
def test_expressions(requirement: dict[str, Any], at: list[str]):
    terms = {"nodeSelectorTerms": [{}, {"matchExpressions": [requirement]}]}
    prefix = f"{REQUIRED}.nodeSelectorTerms[1].matchExpressions[0]"
    assert affinity_problems({REQUIRED: terms}) == [f"{prefix}.{path}" for path in at]
    prefix = f"{PREFERRED}[0].matchExpressions[0]"
    preferred = [{"weight": 1, "preference": {"matchExpressions": [requirement]}}]
    assert affinity_problems({PREFERRED: preferred}) == [f"{prefix}.{path}" for path in at]


@pytest.mark.parametrize(
    ("requirement", "at"),
    [
        ({"key": "whatever", "operator": "In", "values": ["n1"]}, []),
        ({"key": "metadata.name", "operator": "Exists"}, ["operator"]),
        ({"key": "metadata.name", "operator": "NotIn", "values": ["a", "b"]}, ["values"]),
        ({"key": "metadata.name", "operator": "In"}, ["values"]),
    ],
)
def test_fields(requirement: dict[str, Any], at: list[str]):
    terms = {"nodeSelectorTerms": [{"matchFields": [requirement]}]}
    assert affinity_problems({REQUIRED: terms}) == [
        f"{REQUIRED}.nodeSelectorTerms[0].matchFields[0].{path}" for path in at
    ]


def test_a_preference_without_weight_is_not_looked_at():
    bad = {"matchExpressions": [{"key": "a", "operator": "Is"}]}
    assert affinity_problems({PREFERRED: [{"weight": 0, "preference": bad}, {"weight": 101, "preference": {}}]}) == []
