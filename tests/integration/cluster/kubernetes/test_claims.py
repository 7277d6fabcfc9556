"""Claims for devices at an API server: in spite of faults, and only while their pod holds the devices."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from dsched.cluster.claims import Need
from dsched.cluster.kubernetes.access import Access
from dsched.cluster.kubernetes.cluster import Kubernetes
from dsched.model.claim_requests import FINALIZER, ExtendedClaim
from tests.contract.device_claims import KEY, UID, WEB, WEB_UID, claim, devices, extended, now, users, write
from tests.contract.systems import AtAnApiServer
from tests.integration.cluster.kubernetes.fake_api import FakeApi
from tests.manifests import pod_manifest


@pytest.fixture
def system(api: FakeApi) -> Iterator[AtAnApiServer]:
    found = AtAnApiServer(api)
    found.put(claim(), pod_manifest(WEB, uid=WEB_UID))
    yield found
    found.close()


@pytest.mark.parametrize("path", ["resourceclaims/gpus$", "resourceclaims/gpus/status$"])
@pytest.mark.parametrize("fault", [{"status": 409}, {"status": 503}, {"drop": "before"}, {"drop": "after"}], ids=str)
def test_claims_are_given_in_spite_of_faults(system: AtAnApiServer, path: str, fault: dict[str, Any]) -> None:
    system.api.fault("PUT", path, **fault)
    assert system.cluster.allocate_claims([write("gpu-0")]) == [""]
    assert (devices(system), users(system)) == (["gpu-0"], [WEB_UID])


def test_a_fault_at_one_claim_holds_up_no_other(system: AtAnApiServer) -> None:
    other = claim()
    other["metadata"] |= {"name": "others", "uid": "claim-2"}
    system.put(other)
    wanted = [write("gpu-0"), replace(write("gpu-1"), key="default/others", uid="claim-2")]
    system.api.fault("PUT", "resourceclaims/gpus/status$", status=409)
    system.api.fault("PUT", "resourceclaims/others$", status=422)
    assert system.cluster.allocate_claims(wanted) == [
        "",
        "resourceclaim default/others cannot be written: a fault (422)",
    ]
    assert devices(system) == ["gpu-0"]
    assert system.cluster.allocate_claims(wanted) == ["", ""]


@pytest.mark.parametrize(("method", "path"), [("POST", "resourceclaims$"), ("PATCH", "pods/web/status$")])
def test_claims_are_made_in_spite_of_faults(system: AtAnApiServer, method: str, path: str) -> None:
    system.api.fault(method, path, drop="after")
    made = system.cluster.create_claim(extended())
    assert made.problem == ""
    assert len(system.api.all("resourceclaims")) == 2
    system.api.fault(method, path, status=403)
    again: Callable[[ExtendedClaim], Any] = system.another().create_claim
    assert (method == "POST") is (again(extended()) == made), "what stands is not made again, what is owed is said"


def test_who_comes_too_late_gives_nothing_away(system: AtAnApiServer) -> None:
    asked: list[Need] = []
    late = Kubernetes(Access(system.api.kubeconfig()), holds=lambda need: bool(asked.append(need)))
    system.opened.append(late)
    (told,) = late.allocate_claims([write("gpu-0")])
    assert told == f"the devices of resourceclaim {KEY} are no longer held for its pod"
    assert "finalizers" not in now(system)["metadata"]
    assert asked == [Need(WEB_UID, [UID, WEB_UID], ["gpu.example.com/n1/gpu-0"])]
    assert system.cluster.allocate_claims([write("gpu-0")]) == [""]
    assert late.allocate_claims([write("gpu-0")]) == [""], "what is written already needs no reservation"


def test_a_refusal_is_said(system: AtAnApiServer) -> None:
    system.api.fault("PUT", "resourceclaims/gpus/status$", status=422)
    (told,) = system.cluster.allocate_claims([write("gpu-0")])
    assert told == f"resourceclaim {KEY} cannot be written: a fault (422)"
    assert now(system)["metadata"]["finalizers"] == [FINALIZER], "the next attempt goes on from here"
    assert system.cluster.allocate_claims([write("gpu-0")]) == [""]


def test_a_claim_that_is_being_deleted_gets_nothing(system: AtAnApiServer) -> None:
    leaving = {**now(system)["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x"]}
    system.put({**now(system), "metadata": leaving})
    assert system.cluster.allocate_claims([write("gpu-0")]) == [f"claim {KEY} got deleted in the meantime"]
