"""Decisions on vectors."""

from typing import Any

import pytest

from dsched.conformance import decisions
from dsched.errors import ConfigError
from dsched.plugins import registry
from tests.devices import asking, make_claim, make_class, make_slice

NODES = [
    {"metadata": {"name": name, "uid": name}, "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "9"}}}
    for name, cpu in (("n1", "4"), ("n2", "2"))
]


def pod(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "app", "resources": {"requests": {"cpu": cpu, "memory": "2Gi"}}}]
    return {
        "metadata": {"name": name, "namespace": "shop", "uid": name},
        "spec": {"schedulerName": "default-scheduler", "containers": containers, **spec},
    }


def case(**fields: Any) -> dict[str, Any]:
    return {"name": "test", "nodes": NODES, "pods": [], "pod": pod("web", "1"), **fields}


def only(*plugins: str) -> dict[str, Any]:
    """A configuration in which only these plugins and the ones that must be there run."""
    enabled = [{"name": name} for name in ("PrioritySort", "DefaultBinder", *plugins)]
    profile = {"plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }


FITS = {
    "name": "test",
    "filtered": {},
    "feasible": ["n1", "n2"],
    # cpu (4000-1000)/4000 = 75, (2000-1000)/2000 = 50; memory (8-2)/8 = 75 on both: 75, 62
    "scores": {"NodeResourcesFit": {"n1": 75, "n2": 62}},
    "totals": {"n1": 75, "n2": 62},
    "best": ["n1"],
}


def test_a_pod_that_fits() -> None:
    assert decisions.check(case(config=only("NodeResourcesFit")), FITS) == []


def test_running_pods_count() -> None:
    expect = {
        "filtered": {"n2": {"code": "Unschedulable", "plugin": "NodeResourcesFit", "reasons": ["Insufficient cpu"]}},
        "feasible": ["n1"],
        "scores": {"NodeResourcesFit": {"n1": 75}},
        "totals": {"n1": 75},
        "best": ["n1"],
    }
    crowded = case(config=only("NodeResourcesFit"), pods=[pod("old", "1500m", nodeName="n2")])
    assert decisions.check(crowded, expect) == []


def test_a_pod_that_fits_nowhere() -> None:
    short = {"plugin": "NodeResourcesFit", "reasons": ["Insufficient cpu"], "code": "UnschedulableAndUnresolvable"}
    expect = {
        "filtered": {"n1": short, "n2": short},
        "feasible": [],
        "scores": {},
        "totals": {},
        "best": [],
        "fitError": "0/2 nodes are available: 2 Insufficient cpu.",
        "unschedulablePlugins": ["NodeResourcesFit"],
    }
    assert decisions.check(case(pod=pod("web", "5")), expect) == []


def test_a_gated_pod_is_not_evaluated() -> None:
    gated = case(pod=pod("web", "5", schedulingGates=[{"name": "quota"}]))
    reason = "waiting for scheduling gates: [quota]"
    status = {"code": "UnschedulableAndUnresolvable", "plugin": "SchedulingGates", "reasons": [reason]}
    assert decisions.check(gated, {"preEnqueue": status, "feasible": [], "filtered": {}}) == []


def test_pre_filter_narrows_or_rejects() -> None:
    def named(*names: str) -> dict[str, Any]:
        fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in names]
        required = {"nodeSelectorTerms": [{"matchFields": fields}]}
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}

    narrowed = case(config=only("NodeAffinity", "NodeResourcesFit"), pod=pod("web", "1", affinity=named("n2")))
    expect = {"preFilterNodes": ["n2"], "feasible": ["n2"], "totals": {"n2": 62}, "best": ["n2"]}
    assert decisions.check(narrowed, expect | {"scores": {"NodeResourcesFit": {"n2": 62}}}) == []
    rejected = case(config=only("NodeAffinity"), pod=pod("web", "1", affinity=named("n1", "n2")))
    reason = "pod affinity terms conflict"
    status = {"code": "UnschedulableAndUnresolvable", "plugin": "NodeAffinity", "reasons": [reason]}
    fit_error = f"0/2 nodes are available: {reason}."
    expect = {"preFilter": status, "fitError": fit_error, "unschedulablePlugins": ["NodeAffinity"]}
    assert decisions.check(rejected, expect) == []


def test_a_missing_plugin_is_named_where_it_makes_a_difference() -> None:
    known = {name: factory for name, factory in registry.intree().items() if name != "NodeResourcesFit"}
    lines = decisions.check(case(config=only("NodeResourcesFit", "NodeName")), FITS, known)
    assert lines[-1] == "the profile was built without plugins that dsched does not have: NodeResourcesFit"
    assert "scores[NodeResourcesFit]: expected {'n1': 75, 'n2': 62}, found none" in lines


def test_a_preemption_that_is_expected_and_not_run_is_a_difference() -> None:
    lines = decisions.check(case(config=only("NodeResourcesFit")), FITS | {"preemption": {"nominated": {"": []}}})
    assert lines == ["preemption: expected {'nominated': {'': []}}, found None"]


def test_a_plugin_that_fails_is_named() -> None:
    preference = {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}}
    lines = decisions.check(case(pod=pod("web", "1", affinity=affinity)), FITS)
    assert lines[0].startswith("error: expected None, found {'plugin': 'NodeAffinity'") and '"Near" is none' in lines[0]


def test_devices_are_compared_one_by_one() -> None:
    objects = {
        "deviceClasses": [make_class()],
        "resourceSlices": [make_slice("n1", ["d0", "d1"])],
        "resourceClaims": [make_claim("shop/mine", asking())],
    }
    claiming = pod("web", "1", resourceClaims=[{"name": "gpu", "resourceClaimName": "mine"}])
    lines = decisions.check(case(pod=claiming, config=only("DynamicResources"), **objects), FITS)
    assert any(line.startswith("allocations[n1]: ") and "d0" in line and "d1" not in line for line in lines)


def test_other_objects_are_in_the_snapshot() -> None:
    objects = {
        "namespaces": [{"metadata": {"name": "shop"}}],
        "services": [{"metadata": {"name": "web", "namespace": "shop"}}],
        "csiNodes": [{"metadata": {"name": "n1"}}],
    }
    snapshot = decisions.cluster(case(**objects))
    assert list(snapshot.others("Namespace")) == ["shop"]
    assert list(snapshot.others("Service")) == ["shop/web"]
    assert list(snapshot.others("CSINode")) == ["n1"]


def test_a_configuration_that_is_refused() -> None:
    with pytest.raises(ConfigError):
        decisions.check(case(config={"kind": "Nonsense"}), FITS)
