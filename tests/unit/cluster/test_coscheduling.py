"""What a cluster tells of groups of scheduler-plugins, as the scheduler sees it."""

from typing import Any

from dsched.cluster import coscheduling
from dsched.cluster.interface import Change, Event, Listing
from dsched.model.coscheduling import LABEL
from dsched.model.pod import Pod
from tests.builders import make_node, make_pod


def group(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "shop"}, "spec": spec}


def test_a_listing_has_both_and_of_one_name_that_of_kubernetes() -> None:
    foreign = [group("a", of="theirs"), group("b", of="theirs")]
    others = {"PodGroup": [group("b", of="ours")], coscheduling.FOREIGN: foreign, "Service": []}
    pods = [make_pod("shop/p", labels={LABEL: "a"}), make_pod("shop/q")]
    found = coscheduling.listing(Listing(7, pods, [make_node("n")], others))
    assert found.others == {"PodGroup": [group("b", of="ours"), group("a", of="theirs")], "Service": []}
    assert [pod.group_key for pod in found.pods] == ["shop/a", ""]
    assert (found.version, len(found.nodes)) == (7, 1)


def test_changes_are_of_pod_groups_unless_kubernetes_has_one_of_the_name() -> None:
    pod = make_pod("shop/p", labels={LABEL: "a"})
    given = [
        Event(Change.ADDED, "Pod", "shop/p", 1, "p", pod),
        Event(Change.DELETED, "Pod", "shop/q", 2, "q"),
        Event(Change.ADDED, coscheduling.FOREIGN, "shop/a", 3, "a", group("a")),
        Event(Change.ADDED, coscheduling.FOREIGN, "shop/b", 4, "b", group("b")),
    ]
    found = coscheduling.events(given, lambda key: key == "shop/b")
    told = [(event.kind, event.key) for event in found]
    assert told == [("Pod", "shop/p"), ("Pod", "shop/q"), ("PodGroup", "shop/a")]
    (first, *_) = found
    assert isinstance(first.object, Pod) and first.object.group_key == "shop/a"
