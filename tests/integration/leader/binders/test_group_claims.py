"""A pod group that shares devices, in standalone mode: from the group's template to bound pods, over Redis."""

from pathlib import Path
from typing import Any

import pytest

from dsched import config
from dsched.cluster.standalone.objects import Objects
from dsched.framework.runtime import Framework
from dsched.manifests import kinds
from dsched.model.pod import Pod
from dsched.state.client import Store
from dsched.state.devices import read_ledger
from tests.devices import make_slice
from tests.integration.leader.binders.test_device_claims import refused
from tests.integration.leader.binders.working import Working, device_class, pod, template
from tests.integration.leader.rig import Rig
from tests.manifests import Json, group_manifest, node_manifest
from tests.unit.scheduler.grouped import features

ENTRY = {"name": "gpu", "resourceClaimTemplateName": "gpu"}
PODS = [f"default/p{number}" for number in range(3)]


@pytest.fixture
def rig(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setenv("DSCHED_REDIS_URL", store.url)
    found = Rig(store, tmp_path, monkeypatch)
    found.configuration = config.default(features(claims=True))
    slices = [make_slice("n1", ["gpu-0"]), make_slice("n2", ["gpu-0"])]
    found.apply(node_manifest("n1"), node_manifest("n2"), device_class(), template(), *slices)
    return found


@pytest.fixture
def working(rig: Rig) -> Working:
    return Working(rig)


def group(count: int = 3) -> Json:
    return group_manifest(min_count=count, resourceClaims=[ENTRY])


def members(keys: list[str]) -> list[Json]:
    return [pod(key, schedulingGroup={"podGroupName": "train"}) for key in keys]


def claim(working: Working) -> Json:
    (found,) = Objects(working.store).all_of(kinds.RESOURCE_CLAIM)
    return dict(found)


def test_a_gang_is_placed_beside_the_device_that_it_shares(rig: Rig, working: Working) -> None:
    rig.apply(group(), *members(PODS))
    requests = working.decide()
    ledger = read_ledger(working.store)
    (device,) = [name for name in ledger.used if not name.startswith("sharers/")]
    assert ledger.used[device] == "1" and len(ledger.held) == 3
    working.bind(requests)
    working.rest()
    nodes = {rig.node_of(key) for key in PODS}
    assert len(nodes) == 1 and nodes != {""}
    assert [each["resource"] for each in claim(working)["status"]["reservedFor"]] == ["podgroups"]
    working.healthy()


def test_who_comes_later_uses_the_device_too(rig: Rig, working: Working) -> None:
    rig.apply(group(1), *members(PODS[:1]))
    working.rest()
    rig.apply(*members(PODS[1:]))
    working.later()
    assert len({rig.node_of(key) for key in PODS}) == 1 and rig.node_of(PODS[0])
    working.healthy()


def test_the_device_comes_back_with_the_group(rig: Rig, working: Working) -> None:
    rig.apply(group(), *members(PODS))
    working.rest()
    for key in PODS:
        rig.delete_pod(key)
    working.rest()
    assert working.devices(), "the group has it still"
    working.rig._applier.delete(kinds.POD_GROUP, ["default/train"])
    working.rest()
    working.rest()
    assert Objects(working.store).all_of(kinds.RESOURCE_CLAIM) == []
    working.healthy()


def test_a_member_whose_bind_fails_leaves_the_device_to_the_others(rig: Rig, working: Working) -> None:
    rig.apply(group(), *members(PODS))
    (first, *others) = working.decide()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(working.binder._cluster, "bind", lambda bindings: [refused(each) for each in bindings])
        working.bind([first])
    working.led.settle()
    working.bind(others)
    working.later()
    assert len({rig.node_of(key) for key in PODS}) == 1 and rig.node_of(PODS[0])
    assert len(claim(working)["status"]["reservedFor"]) == 1
    working.healthy()


def test_a_leader_dies_with_the_device_in_flight(rig: Rig, working: Working) -> None:
    rig.apply(group(), *members(PODS))
    working.decide()
    working.lead()
    assert read_ledger(working.store).held == {} and read_ledger(working.store).used == {}
    working.rest()
    assert len({rig.node_of(key) for key in PODS}) == 1 and rig.node_of(PODS[0])
    working.healthy()


def test_a_group_whose_device_is_on_a_node_without_room_finds_another(rig: Rig, working: Working) -> None:
    """A device of n1 was given to the claim; then n1 is full. Nobody runs, so the device is given back."""
    rig.apply(group(), *members(PODS))
    requests = working.decide()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(working.binder._cluster, "bind", lambda bindings: [refused(each) for each in bindings])
        working.bind(requests)
    working.led.settle()
    node = claim(working)["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]
    rig.apply(node_manifest(node, cpu="1m"))
    working.later()
    working.later()
    working.later()
    there = {rig.node_of(key) for key in PODS}
    assert len(there) == 1 and there != {""} and node not in there
    working.healthy()


def test_pods_that_wait_for_their_claim_are_not_all_asked_for_each_that_has_it(
    rig: Rig, working: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    ask = Framework.run_pre_enqueue

    def counted(self: Framework, pod: Pod) -> Any:
        asked.append(pod.key)
        return ask(self, pod)

    monkeypatch.setattr(Framework, "run_pre_enqueue", counted)
    rig.apply(group(1), *members([f"default/p{number}" for number in range(40)]))
    working.led.turns()
    working.led.turns()
    assert len(asked) < 40 * 8
