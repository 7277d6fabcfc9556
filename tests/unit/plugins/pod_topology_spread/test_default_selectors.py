"""Default selectors of a snapshot's pods."""

from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model import selectors
from dsched.plugins.pod_topology_spread.default_selectors import DefaultSelectors
from tests.builders import make_pod

WEB = {"app": "web"}
POD = PodInfo(make_pod("shop/web", labels=WEB))


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
