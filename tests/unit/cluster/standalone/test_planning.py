"""What may change about a pod that exists."""

from typing import Any

import pytest

from dsched.cluster.standalone.planning import forbidden

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ZONE_A = {"key": "zone", "operator": "In", "values": ["a"]}
HUGE, MORE = {"cpu": "1", "hugepages-2Mi": "2Mi"}, {"cpu": "1", "hugepages-2Mi": "4Mi"}
FAST = {"key": "disk", "operator": "Exists"}


def spec(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", "image": "a", "resources": {}}], **fields}


def whole(**amounts: str) -> dict[str, Any]:
    """What a pod requests as a whole."""
    return {"requests": amounts}


def affinity(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}}}


GATES = [{"name": "a"}, {"name": "b"}]
TOLERATION = {"key": "a", "operator": "Exists"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (spec(), spec()),
        (spec(schedulingGates=GATES), spec(schedulingGates=GATES[1:])),
        (spec(schedulingGates=GATES), spec()),
        (spec(), spec(tolerations=[TOLERATION])),
        (spec(), spec(containers=[{"name": "main", "image": "b", "resources": {"requests": {"cpu": 1}}}])),
        (spec(schedulingGates=GATES), spec(schedulingGates=GATES, nodeSelector={"a": "b"})),
        (spec(schedulingGates=GATES), spec(affinity=affinity([ZONE_A]))),
        (spec(schedulingGates=GATES, affinity=affinity([ZONE_A])), spec(affinity=affinity([ZONE_A, FAST]))),
        (spec(resources=whole(cpu="1", memory="1Gi")), spec(resources=whole(cpu="2", memory="1Gi"))),
        (spec(), spec(resources=whole(cpu="2"))),
    ],
)
def test_allowed(old: dict[str, Any], new: dict[str, Any]):
    assert forbidden(old, new) == []


@pytest.mark.parametrize(
    ("old", "new", "fields"),
    [
        (spec(), spec(schedulingGates=GATES), ["schedulingGates"]),
        (spec(tolerations=[TOLERATION]), spec(), ["tolerations"]),
        (spec(), spec(nodeName="n1", priority=5), ["nodeName", "priority"]),
        (spec(), spec(nodeSelector={"a": "b"}), ["nodeSelector"]),
        (spec(), spec(affinity=affinity([ZONE_A])), ["affinity"]),
        (spec(), spec(containers=[{"name": "other", "image": "a", "resources": {}}]), ["containers"]),
        (spec(), spec(containers=[*spec()["containers"], {"name": "more"}]), ["containers"]),
        (spec(schedulingGates=GATES, nodeSelector={"a": "b"}), spec(nodeSelector={"a": "c"}), ["nodeSelector"]),
        (spec(schedulingGates=GATES, affinity=affinity([ZONE_A])), spec(affinity=affinity([FAST])), ["affinity"]),
        (
            spec(schedulingGates=GATES, affinity=affinity([ZONE_A])),
            spec(affinity=affinity([FAST, ZONE_A])),
            ["affinity"],
        ),
        (spec(schedulingGates=GATES, affinity=affinity([])), spec(affinity=affinity([FAST])), ["affinity"]),
        (spec(schedulingGates=GATES, affinity=affinity([ZONE_A])), spec(), ["affinity"]),
        (spec(schedulingGates=GATES, affinity=affinity([FAST])), spec(affinity=affinity([FAST], [FAST])), ["affinity"]),
        (spec(schedulingGates=GATES), spec(affinity={"podAffinity": {REQUIRED: []}}), ["affinity"]),
        (spec(resources=whole(cpu="1")), spec(), ["resources"]),
        (spec(resources=whole(cpu="1", memory="1Gi")), spec(resources=whole(cpu="1")), ["resources"]),
        (spec(resources=whole(**HUGE)), spec(resources=whole(**MORE)), ["resources"]),
    ],
)
def test_forbidden(old: dict[str, Any], new: dict[str, Any], fields: list[str]):
    assert forbidden(old, new) == fields
