"""Pods with claims for devices in standalone mode, from a template to a bound pod: a leader and a binder over Redis."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsched import config
from dsched.cluster.interface import Binding, BindOutcome, BindVerdict
from dsched.cluster.standalone.objects import Objects
from dsched.errors import StaleEpoch
from dsched.manifests import kinds
from dsched.model.meta import NodeName
from dsched.model.resource_claims import RESOURCE_CLAIM
from dsched.state.client import Store
from dsched.state.devices import read_ledger
from tests.devices import make_slice
from tests.integration.leader.binders.working import Working, device_class, pod, template
from tests.integration.leader.rig import Rig
from tests.manifests import Json, group_manifest, node_manifest, pod_manifest
from tests.unit.scheduler.grouped import features

A, B, C = "default/a", "default/b", "default/c"


def sharing(key: str) -> Json:
    value = pod_manifest(key)
    value["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "shared"}]
    return value


def shared() -> Json:
    spec = template()["spec"]["spec"]
    metadata = {"name": "shared", "namespace": "default"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec}


def refused(binding: Binding) -> BindOutcome:
    """As an admission webhook has it."""
    return BindOutcome(binding.key, binding.uid, BindVerdict.REFUSED, message="not here")


def stop_before_the_claim(
    working: Working, monkeypatch: Any, meanwhile: Callable[[Callable[[], list[str]]], list[str]]
) -> None:
    """The binder is stopped right before it writes its claim; ``meanwhile`` has it go on."""
    cluster = working.binder._cluster
    write = cluster.allocate_claims

    def stopped(writes: Any) -> list[str]:
        monkeypatch.setattr(cluster, "allocate_claims", write)
        return meanwhile(lambda: list(write(writes)))

    monkeypatch.setattr(cluster, "allocate_claims", stopped)


@pytest.fixture
def rig(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setenv("DSCHED_REDIS_URL", store.url)
    found = Rig(store, tmp_path, monkeypatch)
    found.apply(node_manifest("n1"), device_class(), template(), make_slice("n1", ["gpu-0", "gpu-1"]))
    return found


@pytest.fixture
def working(rig: Rig) -> Working:
    return Working(rig)


def test_a_pod_gets_a_claim_devices_and_its_node(rig: Rig, working: Working) -> None:
    rig.apply(pod(A))
    requests = working.decide()
    (holds,) = read_ledger(working.store).held.values()
    assert list(holds.values()) == [{"gpu.example.com/n1/gpu-0": 1}]
    assert working.bind(requests) == {A: "bound"}
    working.rest()
    assert rig.node_of(A) == "n1"
    assert working.devices() == {"a": ["gpu-0"]}
    working.healthy()


def test_each_pod_gets_its_own_and_the_rest_waits(rig: Rig, working: Working) -> None:
    rig.apply(pod(A), pod(B), pod(C))
    working.rest()
    assert sorted(working.devices().values()) == [["gpu-0"], ["gpu-1"]]
    (waiting,) = [key for key in (A, B, C) if not rig.node_of(key)]
    assert rig.condition(waiting)[0] == "Unschedulable"
    working.healthy()
    first = next(key for key in (A, B, C) if key != waiting)
    rig.delete_pod(first)
    working.rest()
    assert rig.node_of(waiting) == "n1", "the device that was given back is given away again"
    assert len(working.devices()) == 2
    working.healthy()


def test_pods_share_a_claim(rig: Rig, working: Working) -> None:
    rig.apply(shared(), sharing(A), sharing(B))
    working.rest()
    working.rest()
    assert (rig.node_of(A), rig.node_of(B)) == ("n1", "n1")
    assert working.devices() == {"shared": ["gpu-0"]}
    working.healthy()


def test_a_binder_may_run_twice(rig: Rig, working: Working) -> None:
    rig.apply(pod(A))
    requests = working.decide()
    assert working.bind(requests) == {A: "bound"}
    assert working.bind(requests) == {A: "bound"}
    working.led.settle()
    working.rest()
    assert working.devices() == {"a": ["gpu-0"]}
    working.healthy()


def test_a_leader_dies_with_devices_in_flight(rig: Rig, working: Working) -> None:
    rig.apply(pod(A))
    late = working.decide()
    working.lead()
    assert working.led.place(A) == "active"
    assert read_ledger(working.store).held == {}
    with pytest.raises(StaleEpoch):
        working.bind(late)
    working.rest()
    assert rig.node_of(A) == "n1"
    working.healthy()


def test_a_binder_that_is_late_gives_nothing_away(rig: Rig, working: Working, monkeypatch: Any) -> None:
    """It is stopped between its first look and the claim; meanwhile another leader may give the devices away."""
    rig.apply(template(2), pod(A))
    (request,) = working.decide()

    def meanwhile(write: Callable[[], list[str]]) -> list[str]:
        working.lead()
        assert working.led.place(A) == "active"
        return write()

    stop_before_the_claim(working, monkeypatch, meanwhile)
    outcomes = working.binder.run(request)
    assert [outcome.verdict for outcome in outcomes] == ["rejected"]
    assert "are no longer held for its pod" in outcomes[0].message
    assert working.devices() == {}
    working.rest()
    assert working.devices() == {"a": ["gpu-0", "gpu-1"]}
    working.healthy()


def test_a_binder_that_is_late_changes_no_claim_that_the_next_leader_has_listed(
    rig: Rig, working: Working, monkeypatch: Any
) -> None:
    """The next leader would not know of it when it decides for the first time."""
    rig.apply(pod(A))
    (request,) = working.decide()
    lists = rig.cluster.list

    def meanwhile(write: Callable[[], list[str]]) -> list[str]:
        told: list[str] = []

        def lists_before(*words: Any) -> Any:
            listing = lists(*words)
            told.extend(write())
            return listing

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rig.cluster, "list", lists_before)
            working.lead()
        return told

    stop_before_the_claim(working, monkeypatch, meanwhile)
    (outcome,) = working.binder.run(request)
    assert "are no longer held for its pod" in outcome.message
    assert working.devices() == {}
    working.rest()
    assert working.devices() == {"a": ["gpu-0"]}
    working.healthy()


def test_what_a_binder_writes_while_a_reservation_ends_is_not_taken_for_free(
    rig: Rig, working: Working, monkeypatch: Any
) -> None:
    """Its node has no place for the pod any more, and the binder is about to write its claim."""
    rig.apply(pod(A))
    (request,) = working.decide()
    tracker = working.led.term.binding
    release = tracker._reservations.release

    def meanwhile(write: Callable[[], list[str]]) -> list[str]:
        told: list[str] = []

        def releases_after(releases: Any) -> Any:
            told.extend(write())
            return release(releases)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tracker._reservations, "release", releases_after)
            tracker.give_up(tracker.on_node(NodeName("n1")), "it is too small")
        return told

    stop_before_the_claim(working, monkeypatch, meanwhile)
    working.binder.run(request)
    (claim,) = Objects(working.store).all_of(kinds.RESOURCE_CLAIM)
    assert working.devices() == {"a": ["gpu-0"]}
    known = working.led.term.memory.cache.snapshot.others(RESOURCE_CLAIM)
    assert known == {"default/" + claim["metadata"]["name"]: claim}


def test_a_bind_that_fails_after_the_claim_was_written(rig: Rig, working: Working) -> None:
    """The leader has not heard of the claim when the reservation ends: its device is not given to another pod."""
    rig.apply(make_slice("n1", ["gpu-0"]), pod(A))
    (request,) = working.decide()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(working.binder._cluster, "bind", lambda bindings: [refused(each) for each in bindings])
        assert working.bind([request]) == {A: "refused"}
    working.led.settle()
    assert working.led.place(A) == "backoff"
    assert read_ledger(working.store).held == {}
    (claim,) = Objects(working.store).all_of(kinds.RESOURCE_CLAIM)
    assert (claim["status"]["reservedFor"], working.devices()) == ([], {"a": ["gpu-0"]})
    rig.apply(pod(B))
    working.rest()
    assert rig.condition(B)[1].startswith("0/1 nodes are available: 1 cannot allocate all claims.")
    working.later()
    assert (rig.node_of(A), rig.node_of(B)) == ("n1", "")
    working.healthy()


def test_a_member_of_a_group_whose_bind_was_refused_is_in_its_claim_again(rig: Rig) -> None:
    """It is decided at once, before the watch has told that it was taken out."""
    rig.configuration = config.default(features())
    working = Working(rig)
    rig.apply(group_manifest("default/train", None), pod(A, priority=0, schedulingGroup={"podGroupName": "train"}))
    (request,) = working.decide()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(working.binder._cluster, "bind", lambda bindings: [refused(each) for each in bindings])
        assert working.bind([request]) == {A: "refused"}
    working.rest()
    assert rig.node_of(A) == "n1"
    (claim,) = Objects(working.store).all_of(kinds.RESOURCE_CLAIM)
    assert [each["name"] for each in claim["status"]["reservedFor"]] == ["a"]
    working.healthy()


@pytest.mark.parametrize("leads", [False, True], ids=["so does the leader", "the leader lives"])
def test_a_binder_dies_between_claim_and_bind(rig: Rig, working: Working, leads: bool) -> None:
    rig.apply(pod(A))
    (request,) = working.decide()
    cluster = working.binder._cluster

    def dies(bindings: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "bind", dies)
        with pytest.raises(KeyboardInterrupt):
            working.binder.run(request)
    assert working.devices() == {"a": ["gpu-0"]}
    if leads:
        rig.clock.sleep(60)
        working.rest()
        assert rig.node_of(A) == "n1"
    else:
        working.lead()
        working.rest()
        assert rig.node_of(A) == "n1"
    assert working.devices() == {"a": ["gpu-0"]}
    working.healthy()


def test_a_driver_withdraws_a_device_while_it_is_promised(rig: Rig, working: Working) -> None:
    rig.apply(pod(A))
    requests = working.decide()
    rig.apply(make_slice("n1", ["gpu-1"], generation=2))
    working.bind(requests)
    working.rest()
    assert rig.node_of(A) == "n1"
    assert working.devices() == {"a": ["gpu-0"]}, "as upstream: what was decided stands"
    working.healthy()


def test_a_claim_is_deleted_while_its_pod_waits(rig: Rig, working: Working) -> None:
    rig.apply(shared(), sharing(A), sharing(B), make_slice("n1", []))
    working.rest()
    working.rig._applier.delete(kinds.RESOURCE_CLAIM, ["default/shared"])
    working.rest()
    rig.apply(make_slice("n1", ["gpu-0"], generation=3))
    working.rest()
    assert rig.node_of(A) == ""
    rig.apply(shared())
    working.rest()
    working.rest()
    assert (rig.node_of(A), rig.node_of(B)) == ("n1", "n1")
    working.healthy()
