"""The selector of default spread constraints."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model import selectors
from dsched.model.meta import OwnerReference
from dsched.model.pod import Pod
from dsched.model.selectors import Selector
from dsched.plugins.pod_topology_spread.default_selector import DefaultSelectors, default_selector
from tests.builders import make_pod

LABELS = {"app": "web", "tier": "x"}
WEB = {"app": "web"}
POD = PodInfo(make_pod("shop/web", labels=WEB))
SETS: Mapping[tuple[str, str], Any] = {
    ("ReplicaSet", "rs"): {"spec": {"selector": {"matchLabels": {"app": "web"}}}},
    ("ReplicaSet", "broken"): {"spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "In"}]}}},
    ("ReplicaSet", "bare"): {"spec": {}},
    ("StatefulSet", "ss"): {"spec": {"selector": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}}},
    ("ReplicationController", "rc"): {"spec": {"selector": {"tier": "x"}}},
    ("Deployment", "d"): {"spec": {"selector": {"matchLabels": {"app": "web"}}}},
}


def owned(*owners: OwnerReference) -> Pod:
    pod = make_pod(labels=LABELS)
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=list(owners)))


def found(pod: Pod, *services: Any) -> Selector:
    return default_selector(pod, [{"spec": {"selector": each}} for each in services], lambda *at: SETS.get(at))


def selected(selector: Selector) -> set[str]:
    """Which of some labels it matches; "everything" if it restricts nothing."""
    if selector.everything:
        return {"everything"}
    kinds = {"web": {"app": "web"}, "x": {"tier": "x"}, "both": LABELS}
    return {name for name, labels in kinds.items() if selector.matches(labels)}


@pytest.mark.parametrize(
    ("services", "matched"),
    [
        ([], {"everything"}),
        ([{"app": "web"}], {"web", "both"}),
        ([{"app": "web"}, {"tier": "x"}], {"both"}),
        ([{"app": "db"}], {"everything"}),
        ([None], {"everything"}),
        ([{}], {"everything"}),
        ([{}, {"app": "web"}], {"web", "both"}),
    ],
)
def test_services(services: list[Any], matched: set[str]) -> None:
    assert selected(found(make_pod(labels=LABELS), *services)) == matched


@pytest.mark.parametrize(
    ("version", "kind", "name", "matched"),
    [
        ("apps/v1", "ReplicaSet", "rs", {"web", "both"}),
        ("apps/v1", "ReplicaSet", "broken", {"everything"}),
        ("apps/v1", "ReplicaSet", "bare", {"everything"}),
        ("apps/v1", "ReplicaSet", "absent", {"everything"}),
        ("extensions/v1beta1", "ReplicaSet", "rs", {"everything"}),
        ("apps/v1", "StatefulSet", "ss", {"x", "both"}),
        ("v1", "ReplicationController", "rc", {"x", "both"}),
        ("apps/v1", "Deployment", "d", {"everything"}),
    ],
)
def test_controllers(version: str, kind: str, name: str, matched: set[str]) -> None:
    assert selected(found(owned(OwnerReference(version, kind, name, controller=True)))) == matched


def test_services_and_the_controller_together() -> None:
    by_set = owned(OwnerReference("apps/v1", "StatefulSet", "ss", controller=True))
    assert selected(found(by_set, {"app": "web"})) == {"both"}
    by_controller = owned(OwnerReference("v1", "ReplicationController", "rc", controller=True))
    assert selected(found(by_controller, {"app": "web"})) == {"both"}


def test_owners_that_do_not_control_do_not_count() -> None:
    assert selected(found(owned(OwnerReference("apps/v1", "ReplicaSet", "rs")))) == {"everything"}


def test_services_of_the_pods_namespace_as_they_come_and_go() -> None:
    snapshot, tested = Snapshot(), DefaultSelectors()
    assert tested.of(POD, snapshot).everything
    snapshot.put("Service", "other/web", {"spec": {"selector": WEB}})
    assert tested.of(POD, snapshot).everything
    snapshot.put("Service", "shop/web", {"spec": {"selector": WEB}})
    assert tested.of(POD, snapshot) == selectors.labels_equal(WEB)
    snapshot.drop("Service", "shop/web")
    assert tested.of(POD, snapshot).everything
    snapshot.put("Service", "shop/web", {"spec": {"selector": WEB}})
    assert not tested.of(POD, snapshot).everything
    snapshot.clear()
    assert tested.of(POD, snapshot).everything


def test_other_objects_change_nothing() -> None:
    snapshot, tested = Snapshot(), DefaultSelectors()
    snapshot.put("Service", "shop/web", {"spec": {"selector": WEB}})
    found = tested.of(POD, snapshot)
    snapshot.put("PersistentVolume", "pv", {})
    assert tested.of(POD, snapshot) is found
    assert tested.of(POD, Snapshot()).everything
