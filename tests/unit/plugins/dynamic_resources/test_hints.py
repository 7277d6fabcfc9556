"""Events that wake pods which wait for devices."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dsched.clock import ManualClock
from dsched.framework.interface import Action, ClusterEvent, Resource
from dsched.framework.pod_info import PodInfo
from dsched.scheduler.hints import Hints
from dsched.scheduler.ports import QueueName
from dsched.scheduler.queue import Backoff, PendingPods
from tests.builders import make_node
from tests.devices import asking, make_claim, make_class, make_slice, result, taint_rule
from tests.unit.framework.frameworks import NAME
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


ABOUT_D0, ABOUT_D1 = taint_rule("r", device="d0"), taint_rule("r", device="d1")
SINCE = {
    **ABOUT_D0,
    "spec": {**ABOUT_D0["spec"], "taint": {**ABOUT_D0["spec"]["taint"], "timeAdded": "2026-01-01T00:00:00Z"}},
}
BY_LABEL = {**ABOUT_D0, "metadata": {"name": "r", "labels": {"a": "b"}}}


@pytest.mark.parametrize(
    ("old", "new", "helps"),
    [
        (None, taint_rule("r"), True),
        (None, ABOUT_D0, True),
        (None, taint_rule("r", pool="elsewhere"), False),
        (None, taint_rule("r", driver="other.example.com"), False),
        (None, ABOUT_D1, False),
        (None, {**ABOUT_D0, "spec": {"taint": ABOUT_D0["spec"]["taint"]}}, False),
        (ABOUT_D0, None, True),
        (ABOUT_D1, None, False),
        (ABOUT_D1, ABOUT_D0, True),
        (ABOUT_D0, ABOUT_D1, True),
        (ABOUT_D0, taint_rule("r", "NoExecute", device="d0"), True),
        (ABOUT_D1, taint_rule("r", "NoExecute", device="d1"), False),
        (ABOUT_D0, BY_LABEL, False),
        (ABOUT_D0, SINCE, True),
        (ABOUT_D0, {"metadata": {"name": "r"}}, True),
        ({"metadata": {"name": "r"}}, ABOUT_D1, False),
        (ABOUT_D0, taint_rule("r", pool="n1"), False),
    ],
)
def test_rules_where_they_change_the_taints_of_a_device(old: Any, new: Any, helps: bool) -> None:
    """The only device there is, d0 of the pool n1, is what they are about."""
    found = plugin(framework(cluster(FREE, make_slice("n1", ["d0"]), make_slice("empty", []))))
    action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE
    assert queues(found, claiming("mine"), Resource.DEVICE_TAINT_RULE, action, old, new) is helps


def test_what_was_said_of_one_rule_is_not_said_of_the_next() -> None:
    found, pod = plugin(framework(cluster(FREE, make_slice("n1", ["d0"])))), claiming("mine")
    assert queues(found, pod, Resource.DEVICE_TAINT_RULE, Action.ADD, None, ABOUT_D0)
    assert not queues(found, pod, Resource.DEVICE_TAINT_RULE, Action.ADD, None, ABOUT_D1)
    assert queues(found, pod, Resource.DEVICE_TAINT_RULE, Action.DELETE, ABOUT_D0)


def test_rules_are_nothing_to_a_version_that_does_not_read_them() -> None:
    """The gate is off until 1.36."""
    found = plugin(framework(cluster(FREE, make_slice("n1", ["d0"])), 36))
    assert not queues(found, claiming("mine"), Resource.DEVICE_TAINT_RULE, Action.ADD, None, ABOUT_D0)


def test_the_pod_gets_its_generated_claim() -> None:
    pod, claim = generated("web", make_claim("default/web-c", asking()))
    unnamed, _ = generated("web", make_claim("default/elsewhere", asking()))
    snapshot = cluster(claim)
    found = plugin(framework(snapshot))
    assert queues(found, pod, Resource.POD, Action.UPDATE, unnamed, pod)
    assert not queues(found, pod, Resource.POD, Action.UPDATE, pod, pod)
    assert not queues(found, pod, Resource.POD, Action.UPDATE, pod, unnamed)


def held(name: str, *, taken: bool) -> Any:
    return make_claim(f"default/{name}", asking(), allocated=[result("d0")] if taken else [])


EVENTS = st.tuples(st.sampled_from(["mine", "other", "web-c", "elsewhere"]), st.booleans(), st.booleans())


@given(
    events=st.lists(EVENTS, min_size=1, max_size=4),
    action=st.sampled_from(Action),
    version=st.sampled_from([34, 35, 36, 37]),
)
def test_looking_at_the_pods_that_name_a_claim_is_looking_at_all(
    events: list[tuple[str, bool, bool]], action: Action, version: int
) -> None:
    owned, claim = generated("web", make_claim("default/web-c", asking()))
    unnamed, _ = generated("late", make_claim("default/late-c", asking()))
    pods = [claiming("mine"), claiming("other"), claiming("web-c"), owned, unnamed]
    pods = [replace(pod, metadata=replace(pod.metadata, name=f"p{at}")) for at, pod in enumerate(pods)]
    made = framework(cluster(FREE, OTHER, claim), version)
    pending = PendingPods(ManualClock(), Backoff())
    for pod in pods:
        queued = pending.add(PodInfo(pod), made)
        pending.requeued(queued, made, frozenset({"DynamicResources"}))
        pending.placed(queued, QueueName.UNSCHEDULABLE)
    hints, everywhere = Hints({NAME: made}), Hints({NAME: made})
    everywhere._named.clear()
    for name, before, after in events:
        old, new = held(name, taken=before), held(name, taken=after)
        event = ClusterEvent(
            Resource.RESOURCE_CLAIM,
            action,
            None if action is Action.ADD else old,
            None if action is Action.DELETE else new,
        )
        assert [pod.key for pod in hints.helped(event, pending)] == [
            pod.key for pod in everywhere.helped(event, pending)
        ]
