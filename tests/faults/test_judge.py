"""The judge finds what is wrong in a history, and nothing in one that is right."""

import pytest

from tests.faults.history import ADDED, BOUND, DELETED, LOST, MODIFIED, Entry, History
from tests.faults.judge import HEARD_S, LATE_S, Judge, gone_back, told_twice
from tests.manifests import node_manifest, pod_manifest


def node(at: float, change: str = ADDED, cpu: str = "1", **spec: object) -> Entry:
    value = {**node_manifest("n1", cpu=cpu), "spec": spec}
    return Entry(at, round(at * 10), change, "Node", "n1", "node-1", None if change == DELETED else value)


def pod(at: float, name: str = "a", change: str = ADDED, *, cpu: str = "600m", **spec: object) -> Entry:
    value = pod_manifest(f"default/{name}", uid=name, **spec)
    value["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    found = None if change == DELETED else value
    return Entry(at, round(at * 10), change, "Pod", f"default/{name}", name, found)


def bound(at: float, name: str = "a", to: str = "n1") -> Entry:
    return Entry(at, round(at * 10), BOUND, "Pod", f"default/{name}", name, None, to)


def judged(*entries: Entry, deleted: tuple[str, ...] = (), ordered: bool = True) -> list[str]:
    return Judge(deleted, ordered=ordered).judge(entries).breaches


def test_a_history_in_order_is_right():
    history = [node(0), pod(1), bound(2), pod(3, change=DELETED), pod(4, "b"), bound(5, "b")]
    assert judged(*history, deleted=("a",)) == []


WRONG = {
    "bound more than once": [node(0), pod(1), bound(2), bound(3)],
    "there is no such pod": [node(0), pod(1), pod(2, change=DELETED), bound(3)],
    "although it is gated": [node(0), pod(1, schedulingGates=[{"name": "wait"}]), bound(2)],
    "which is not there": [node(0), pod(1), node(2, DELETED), bound(3)],
    "against its taint": [node(0, unschedulable=True), pod(1), bound(2)],
    "against its node selector": [node(0), pod(1, nodeSelector={"zone": "north"}), bound(2)],
    "cpu 6/5 of 1": [node(0), pod(1), pod(2, "b"), bound(3), bound(4, "b")],
}


@pytest.mark.parametrize("what", WRONG)
def test_a_bind_that_must_not_be_is_found(what: str):
    found = judged(*WRONG[what], deleted=("a",))
    assert any(what in breach for breach in found), found


def test_a_bind_is_held_against_what_the_node_was_since_the_pod_is_there():
    cordoned = node(2, MODIFIED, unschedulable=True)
    assert judged(node(0), pod(1), cordoned, bound(3)) == []
    assert judged(node(0), cordoned, pod(2.5), bound(3)) != []
    assert judged(node(0), pod(1), cordoned, bound(2.1 + LATE_S)) != []


def test_an_api_server_binds_to_a_node_that_went_a_moment_ago():
    history = [node(0), pod(1), node(2, DELETED), bound(3)]
    assert judged(*history, ordered=False) == []


@pytest.mark.parametrize("change", [node(10, DELETED), node(10, MODIFIED, unschedulable=True)])
def test_of_an_api_server_one_may_hear_of_a_pod_before_an_older_change_of_a_node(change: Entry):
    later = [pod(10 + HEARD_S - 0.5), bound(20)]
    assert judged(node(0), change, *later, ordered=False) == []
    assert judged(node(0), change, *later) != []
    assert judged(node(0), change, pod(10 + HEARD_S + 0.5), bound(20), ordered=False) != []


def test_what_others_placed_meanwhile_is_not_our_fault():
    foreign = pod(2, "theirs", nodeName="n1")
    foreign = Entry(2, 20, ADDED, "Pod", foreign.key, foreign.uid, foreign.object, "n1")
    assert judged(node(0), pod(1), foreign, bound(3)) == []
    assert judged(node(0), foreign, pod(2.5), bound(3)) != []


def test_who_is_deleted_by_nobody_must_have_made_room_for_a_better_one():
    victim = Entry(3, 30, DELETED, "Pod", "default/a", "a", None, "", "PreemptionByScheduler")
    assert judged(node(0), pod(1), bound(2), pod(2.5, "b", priority=10), victim) == []
    assert judged(node(0), pod(1), bound(2), pod(2.5, "b"), victim) != []


def test_what_a_cluster_has_lost_did_not_happen():
    history = History()
    for entry in (node(0), pod(1), bound(2), Entry(3, 10, LOST), bound(4)):
        history.add(entry)
    assert judged(*history.entries()) == []
    assert history.bound == {"a": "n1"}


def test_numbers_that_go_back_and_events_that_come_twice_are_found():
    assert gone_back([(0, 1), (1, 2), (2, 2)], "x") == []
    assert gone_back([(0, 2), (1, 1)], "x") == ["x: 2, then 1"]
    assert told_twice({"a": 1, "b": 2}, exactly=False, bound=["a", "b", "c"]) != []
    assert told_twice({"a": 1}, exactly=True, bound=["a", "c"]) == ["I2 c: bound, and not told so"]
