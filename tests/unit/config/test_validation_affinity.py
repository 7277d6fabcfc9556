from typing import Any

import pytest

from tests.unit.config.files import paths, with_args

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def problems(affinity: dict[str, Any]) -> list[str]:
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
    assert problems({REQUIRED: terms}) == [f"{prefix}.{path}" for path in at]
    prefix = f"{PREFERRED}[0].matchExpressions[0]"
    preferred = [{"weight": 1, "preference": {"matchExpressions": [requirement]}}]
    assert problems({PREFERRED: preferred}) == [f"{prefix}.{path}" for path in at]


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
    assert problems({REQUIRED: terms}) == [f"{REQUIRED}.nodeSelectorTerms[0].matchFields[0].{path}" for path in at]


def test_a_preference_without_weight_is_not_looked_at():
    bad = {"matchExpressions": [{"key": "a", "operator": "Is"}]}
    assert problems({PREFERRED: [{"weight": 0, "preference": bad}, {"weight": 101, "preference": {}}]}) == []
