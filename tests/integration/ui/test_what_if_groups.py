"""What if, for a pod group: what the page and its API say of it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dsched import emulation
from dsched.config import feature_gates
from dsched.plugins import profiles
from dsched.state import keys, leader_config
from dsched.state.client import Store
from dsched.state.leader_config import LeaderConfig
from tests.integration.ui.conftest import Page
from tests.manifests import apply, group_manifest, node_manifest, pod_manifest
from tests.schemas import checked

GATES = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}
RACK = "example.com/rack"


@pytest.fixture(autouse=True)
def grouped(store: Store) -> Iterator[None]:
    """A system whose leader has pod groups."""
    store.redis.set(store.key(keys.EPOCH.name), 1)
    version, gates = emulation.written(feature_gates.features(feature_gates.NEWEST, GATES))
    leader_config.publish(store, LeaderConfig(1, "123456789abc", "standalone", version=version, gates=gates))
    yield
    profiles.emulate(feature_gates.UNSAID)


def proposed(count: int) -> str:
    containers = [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]
    group = group_manifest("shop/train", 4, schedulingConstraints={"topology": [{"key": RACK}]})
    pods: list[Any] = [
        pod_manifest(f"shop/train-{n}", containers=containers, schedulingGroup={"podGroupName": "train"})
        for n in range(count)
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [group, *pods]})


@pytest.fixture
def racks(store: Store, tmp_path: Path) -> None:
    apply(store, tmp_path, *(node_manifest(name, labels={RACK: name[0]}) for name in ("a0", "b0", "b1")))


def test_where_a_proposed_group_would_go_and_what_the_other_rack_lacks(page: Page, racks: None) -> None:
    answer = page.post("/api/what-if", content=proposed(4)).json()
    (group,) = answer["groups"]
    assert (group["key"], group["placed"], group["pods"], group["ending"]) == ("shop/train", 4, 4, "scheduled")
    told = checked(json.dumps(answer["group_explanation"]), "podgroup-v1")
    assert (told["chosen"], [each["name"] for each in told["placements"]]) == ("b", ["b", "a"])
    shown = page.post("/what-if", data={"manifest": proposed(4)}).text
    assert "Why pod group shop/train" in shown and "b (chosen)" in shown
    assert "minCount (4) cannot be satisfied: 2 scheduled, 1 remaining" in shown


def test_a_group_that_lacks_pods_says_so(page: Page, racks: None) -> None:
    shown = page.post("/what-if", data={"manifest": proposed(3)}).text
    assert "It is gated by GangScheduling: waiting for minCount pods from a gang" in shown
