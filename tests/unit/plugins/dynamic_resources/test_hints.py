"""Events that wake pods which wait for devices."""

from typing import Any

import pytest

from dsched.framework.interface import Action, Resource
from tests.builders import make_node
from tests.devices import asking, make_claim, make_class, make_slice, result, taint_rule
from tests.unit.plugins.dynamic_resources.judging import claiming, cluster, framework, generated, plugin
from tests.unit.plugins.hints import queues

FREE = make_claim("default/mine", asking())
HELD = make_claim("default/mine", asking(), allocated=[result("d0")])
OTHER = make_claim("default/other", asking())
OTHER_HELD = make_claim("default/other", asking(), allocated=[result("d0")])
LABELLED = {**FREE, "metadata": {**FREE["metadata"], "labels": {"a": "b"}}}


@pytest.mark.parametrize(
    ("old", "new", "helps"),
    [
        (None, FREE, True),
        (None, OTHER, False),
        (FREE, LABELLED, False),
        (FREE, HELD, True),
        (OTHER_HELD, OTHER, True),
        (OTHER, OTHER_HELD, False),
    ],
)
def test_claims_that_come_and_change(old: Any, new: Any, helps: bool) -> None:
    found = plugin(framework(cluster(FREE, OTHER)))
    action = Action.ADD if old is None else Action.UPDATE
    assert queues(found, claiming("mine"), Resource.RESOURCE_CLAIM, action, old, new) is helps


def test_a_pod_that_still_lacks_a_claim_is_left_alone() -> None:
    found = plugin(framework(cluster(OTHER)))
    assert not queues(found, claiming("mine"), Resource.RESOURCE_CLAIM, Action.UPDATE, OTHER_HELD, OTHER)


def test_claims_that_go_count_since_1_37() -> None:
    found = plugin(framework(cluster(FREE)))
    assert queues(found, claiming("mine"), Resource.RESOURCE_CLAIM, Action.DELETE, OTHER_HELD)
    assert not queues(found, claiming("mine"), Resource.RESOURCE_CLAIM, Action.DELETE, OTHER)
    before = plugin(framework(cluster(FREE), 36))
    assert not queues(before, claiming("mine"), Resource.RESOURCE_CLAIM, Action.DELETE, OTHER_HELD)


def test_nodes_by_labels_and_resources() -> None:
    found, pod = plugin(framework(cluster(FREE))), claiming("mine")
    plain, labelled, larger = make_node(), make_node(labels={"a": "b"}), make_node(cpu="8")
    assert queues(found, pod, Resource.NODE, Action.ADD, None, plain)
    assert queues(found, pod, Resource.NODE, Action.UPDATE, plain, labelled)
    assert queues(found, pod, Resource.NODE, Action.UPDATE, plain, larger)
    assert not queues(found, pod, Resource.NODE, Action.UPDATE, plain, make_node(taints=["a=b:NoSchedule"]))


def test_classes_slices_and_rules() -> None:
    found, pod = plugin(framework(cluster(FREE))), claiming("mine")
    assert queues(found, pod, Resource.DEVICE_CLASS, Action.ADD, None, make_class())
    assert queues(found, pod, Resource.RESOURCE_SLICE, Action.UPDATE, make_slice(), make_slice("n1", ["d0"]))
    assert queues(found, pod, Resource.DEVICE_TAINT_RULE, Action.DELETE, taint_rule("r"))


def test_the_pod_gets_its_generated_claim() -> None:
    pod, claim = generated("web", make_claim("default/web-c", asking()))
    unnamed, _ = generated("web", make_claim("default/elsewhere", asking()))
    snapshot = cluster(claim)
    found = plugin(framework(snapshot))
    assert queues(found, pod, Resource.POD, Action.UPDATE, unnamed, pod)
    assert not queues(found, pod, Resource.POD, Action.UPDATE, pod, pod)
    assert not queues(found, pod, Resource.POD, Action.UPDATE, pod, unnamed)
