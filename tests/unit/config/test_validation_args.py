from typing import Any

import pytest

from tests.unit.config.files import paths, with_args


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
