"""Claims in a simulation: made from templates, given devices, given back."""

from pathlib import Path
from typing import Any

import pytest

from dsched import config
from dsched.plugins import registry
from dsched.simulation.explanation import explain
from dsched.simulation.from_manifests import given
from dsched.simulation.live_cluster import LiveCluster
from dsched.simulation.outcome import Ending, Outcome
from dsched.simulation.placing import Simulation
from tests.devices import asking, make_claim, make_class, make_slice, result
from tests.manifests import loaded, node_manifest, pod_manifest
from tests.unit.plugins.dynamic_resources.judging import features

NOW_MS = 1_700_000_000_000
Json = dict[str, Any]
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one", "namespace": "default"},
    "spec": {"spec": {"devices": {"requests": [asking()]}}},
}
CLUSTER = [node_manifest("n1"), node_manifest("n2"), make_class("gpu"), make_slice("n1", ["d0", "d1"])]


def pod(name: str, *, template: str = "", claim: str = "", **spec: Any) -> Json:
    source = {"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim}
    return pod_manifest(f"default/{name}", resourceClaims=[{"name": "gpu", **source}], **spec)


@pytest.fixture
def simulation(tmp_path: Path) -> Any:
    def begin(*objects: Json) -> Simulation:
        configured = config.default(features(37))
        return Simulation(configured, registry.intree(), given(loaded(tmp_path, *objects), NOW_MS), NOW_MS, 0)

    return begin


def endings(outcome: Outcome) -> dict[str, tuple[Ending, str]]:
    return {each.key.partition("/")[2]: (each.ending, each.node) for each in outcome.pods}


def run(simulated: Simulation) -> Outcome:
    return simulated.run(lambda decision, version: None)


def test_pods_of_a_template_get_a_claim_each_until_devices_run_out(simulation: Any) -> None:
    simulated = simulation(*CLUSTER, TEMPLATE, *(pod(f"web-{n}", template="one") for n in range(3)))
    found = endings(run(simulated))
    assert [ending for ending, _ in found.values()].count(Ending.PLACED) == 2
    assert [ending for ending, _ in found.values()].count(Ending.UNSCHEDULABLE) == 1
    claims = simulated.memory.snapshot.others("ResourceClaim").values()
    allocated = [claim["status"]["allocation"] for claim in claims if (claim.get("status") or {}).get("allocation")]
    assert sorted(each["devices"]["results"][0]["device"] for each in allocated) == ["d0", "d1"]


def test_a_shared_claim_ties_its_pods_to_one_node(simulation: Any) -> None:
    simulated = simulation(
        *CLUSTER, make_claim("default/both", asking()), pod("a", claim="both"), pod("b", claim="both")
    )
    assert endings(run(simulated)) == {"a": (Ending.PLACED, "n1"), "b": (Ending.PLACED, "n1")}
    claim = simulated.memory.snapshot.others("ResourceClaim")["default/both"]
    assert sorted(each["name"] for each in claim["status"]["reservedFor"]) == ["a", "b"]


def test_more_pods_than_a_claim_takes_are_not_bound(simulation: Any) -> None:
    crowd = [{"resource": "pods", "name": f"other-{n}", "uid": f"uid-other-{n}"} for n in range(255)]
    shared = make_claim("default/full", asking(), allocated=[result("d0")], reservedFor=crowd)
    simulated = simulation(*CLUSTER, shared, pod("a", claim="full"), pod("b", claim="full"))
    outcome = run(simulated)
    assert endings(outcome) == {"a": (Ending.PLACED, "n1"), "b": (Ending.FAILED, "")}
    (refused,) = [each for each in outcome.pods if each.ending is Ending.FAILED]
    assert refused.message == (
        'running PreBind plugin "DynamicResources": add reservation to claim default/full: ResourceClaim.resource.'
        'k8s.io "full" is invalid: status.reservedFor: Too many: 257: must have at most 256 items'
    )
    assert [each.key for each in simulated.memory.snapshot.table.info(0).pods] == ["default/a"]


def test_without_its_template_a_pod_waits(simulation: Any) -> None:
    assert endings(run(simulation(*CLUSTER, pod("web", template="gone")))) == {"web": (Ending.GATED, "")}


def test_a_claim_is_made_for_extended_resources(simulation: Any) -> None:
    by_class = make_class("gpu", extendedResourceName="example.com/gpu")
    web = pod_manifest("default/web")
    amounts = {"example.com/gpu": "1"}
    web["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    simulated = simulation(*CLUSTER[:2], by_class, CLUSTER[3], web)
    assert endings(run(simulated)) == {"web": (Ending.PLACED, "n1")}
    (claim,) = simulated.memory.snapshot.others("ResourceClaim").values()
    assert claim["status"]["allocation"]["devices"]["results"][0]["device"] == "d0"


def test_an_evicted_pod_gives_its_devices_back(simulation: Any) -> None:
    low = pod("low", template="one", priority=0)
    low["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "3"}}
    simulated = simulation(*CLUSTER, TEMPLATE, low)
    run(simulated)
    uid = next(info.uid for _, info in simulated.memory.snapshot.table.placed())
    freed, gone = simulated._claims.gone(uid)
    assert (freed.new["status"], gone.new) == ({}, None), "who waits for devices hears of the first"
    assert not simulated.memory.snapshot.others("ResourceClaim")


def test_explanations_tell_of_devices(simulation: Any) -> None:
    simulated = simulation(*CLUSTER, TEMPLATE, pod("web", template="one"))
    pending = simulated._queue.pop()
    standing = LiveCluster(simulated.memory, pending.info.pod)
    found = explain(config.default(features(37)), registry.intree(), standing)
    assert found.chosen == "n1"
    (refused,) = (node for node in found.nodes if node.name == "n2")
    assert refused.rejection is not None
    assert (refused.rejection.plugin, refused.rejection.message) == ("DynamicResources", "cannot allocate all claims")
