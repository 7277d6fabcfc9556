"""The checker finds what it is there to find."""

from fractions import Fraction
from typing import Any

import pytest

from tests.acceptance import checker

Json = dict[str, Any]
MESSAGE = "0/1 nodes are available: 1 Insufficient cpu."


def node(name: str = "n1", cpu: str = "4", pods: str = "110", model: str = "T4", **spec: Any) -> Json:
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": pods}
    return {
        "metadata": {"name": name, "labels": {"gpu-model": model}},
        "spec": spec,
        "status": {"allocatable": allocatable},
    }


def pod(on: str = "", cpu: str = "1", message: str = MESSAGE, port: int = 0, **spec: Any) -> Json:
    container = {"resources": {"requests": {"cpu": cpu}}, "ports": [{"hostPort": port}] if port else []}
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {
        "metadata": {"namespace": "default", "name": "p"},
        "spec": {"containers": [container], **({"nodeName": on} if on else {}), **spec},
        "status": {"conditions": [] if on else [condition]},
    }


def models(*names: str) -> Json:
    terms = [{"matchExpressions": [{"key": "gpu-model", "operator": "In", "values": list(names)}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeAffinity": required}


def problems(nodes: list[Json], pods: list[Json]) -> str:
    return "\n".join(checker.check(nodes, pods).problems)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("250m", Fraction(1, 4)),
        ("1.5Gi", 3 * 2**29),
        ("2e3", 2000),
        ("3k", 3000),
        (7, 7),
        (".5", Fraction(1, 2)),
        ("1E", 10**18),
    ],
)
def test_amounts(text: str, value: Fraction):
    assert checker.amount(text) == value


def test_a_sound_cluster():
    found = checker.check([node()], [pod(on="n1", cpu="3"), pod(cpu="1500m")])
    assert (found.problems, found.bound, found.pending) == ([], 1, 1)


def test_more_used_than_there_is():
    assert problems([node()], [pod(on="n1", cpu="3"), pod(on="n1", cpu="1001m")]) == "n1: cpu 4001/1000 of 4"
    assert problems([node(pods="1")], [pod(on="n1"), pod(on="n1")]) == "n1: pods 2 of 1"
    assert "host port" in problems([node()], [pod(on="n1", port=80), pod(on="n1", port=80)])


def test_what_the_node_does_not_have_at_all():
    wants = pod(on="n1")
    wants["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu-milli"] = "1"
    assert problems([node()], [wants]) == "n1: example.com/gpu-milli 1 of 0"


def test_bound_where_it_must_not_be():
    assert "node affinity" in problems([node()], [pod(on="n1", affinity=models("A10"))])
    assert "node selector" in problems([node()], [pod(on="n1", nodeSelector={"gpu-model": "A10"})])
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    assert "taint k" in problems([node(taints=[taint])], [pod(on="n1")])
    tolerated = pod(on="n1", tolerations=[{"key": "k", "operator": "Equal", "value": "v"}])
    assert problems([node(taints=[taint])], [tolerated]) == ""
    assert "unschedulable" in problems([node(unschedulable=True)], [pod(on="n1")])
    assert "not there" in problems([node()], [pod(on="n2")])


def test_pending_although_it_fits():
    assert "fits on n1" in problems([node()], [pod()])
    assert problems([node()], [pod(affinity=models("A10"))]) == ""
    assert problems([node()], [pod(schedulingGates=[{"name": "g"}])]) == ""


@pytest.mark.parametrize(("own", "justified"), [(9, True), (10, True), (11, False)])
def test_room_that_is_promised_to_a_pod_of_at_least_its_priority_is_not_free(own: int, justified: bool):
    promised = pod(cpu="3", priority=10)
    promised["status"]["nominatedNodeName"] = "n1"
    on, waits = pod(on="n1", cpu="2"), pod(cpu="2", priority=own)
    found = problems([node()], [on, promised, waits])
    assert (found == "") is justified
    assert justified or found.startswith("default/p: pending, but fits on n1: 0/1 nodes")


def test_a_pod_need_not_make_room_for_itself():
    promised = pod(cpu="3", priority=10)
    promised["status"]["nominatedNodeName"] = "n1"
    assert "fits on n1" in problems([node()], [promised])


@pytest.mark.parametrize("message", ["", "0/2 nodes are available: 2 Insufficient cpu.", "no nodes available"])
def test_pending_without_a_reason(message: str):
    assert "reason" in problems([node()], [pod(cpu="5", message=message)])


def test_what_it_does_not_know_it_refuses():
    with pytest.raises(ValueError, match="topologySpreadConstraints"):
        checker.check([node()], [pod(on="n1", topologySpreadConstraints=[{}])])
