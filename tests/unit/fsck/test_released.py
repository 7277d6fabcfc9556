"""Reservations: of whom, on what, for how long."""

import dataclasses

import pytest

from dsched.fsck import released
from dsched.fsck.findings import Kind
from dsched.model.meta import PodUid
from tests.unit.fsck.seeing import EPOCH, NOW_MS, VERSION, a_node, a_pod, reservation, standing, told, view

OLDEST_MS = 60_000


def check(*pods, held=None, nodes=None, record=None, **more):
    seen = view(
        *pods,
        nodes=[a_node()] if nodes is None else nodes,
        reservations=[held or reservation()],
        standings={"shop/web": standing("reserved", node="n1") if record is None else record},
        **more,
    )
    return list(released.check(seen, OLDEST_MS))


def test_a_reservation_of_a_pod_that_waits_to_be_bound():
    assert told(check(a_pod())) == []


@pytest.mark.parametrize(
    ("pods", "what"),
    [
        ((), "n1 is reserved for uid uid-web, and there is no such pod"),
        ((a_pod(uid="new"),), "n1 is reserved for uid uid-web, and the pod has uid new"),
        ((a_pod(finished=True),), "n1 is reserved for uid uid-web, which has finished"),
        ((a_pod(deleting=True),), "n1 is reserved for uid uid-web, which is being deleted"),
        ((a_pod(node="n1"),), "n1 is reserved for uid uid-web, which is bound there already"),
    ],
)
def test_a_reservation_that_nobody_wants_is_a_breach_once_the_leader_has_heard(pods, what):
    (found,) = check(*pods)
    assert (str(found), found.heard) == (f"I6 shop/web: {what}", VERSION)


def test_a_reservation_on_a_node_that_is_gone():
    (found,) = check(a_pod(), nodes=())
    assert (str(found), found.heard) == ("I6 shop/web: is reserved on n1, and there is no such node", VERSION)


def test_a_reservation_has_a_record_of_that_pod_and_node():
    other = standing("reserved", node="n2")
    assert told(check(a_pod(), record=other)) == ["I6 shop/web: is reserved on n1, its record says n2"]
    old = standing("reserved", node="n1", uid="uid-old")
    assert told(check(a_pod(), record=old)) == ["I6 shop/web: n1 is reserved for uid uid-web, which has no record"]


def test_without_a_cluster_only_the_record_is_asked_for():
    assert told(check(nodes=(), version=0)) == []
    assert told(check(nodes=(), version=0, record=standing("active", uid="uid-old"))) == [
        "I6 shop/web: n1 is reserved for uid uid-web, which has no record"
    ]


@pytest.mark.parametrize(("leader", "breaches"), [("leader-1", 1), ("", 0)])
def test_an_older_epoch_while_somebody_leads(leader, breaches):
    found = told(check(a_pod(), held=reservation(epoch=EPOCH - 1), leader=leader))
    assert found == ["I6 shop/web: is reserved under epoch 3, and epoch 4 leads"][:breaches]


def test_a_state_that_is_none():
    assert told(check(a_pod(), held=reservation(state="lost"))) == [
        "I6 shop/web: its reservation is in no known state: 'lost'"
    ]


@pytest.mark.parametrize(("more", "breaches"), [({}, 1), ({"idle": False}, 0), ({"leader": ""}, 0)])
def test_at_rest_no_reservation_is_old(more, breaches):
    assert told(check(a_pod(), held=reservation(ago_s=60), **more)) == []
    found = told(check(a_pod(), held=reservation(ago_s=61), **more))
    assert found == ["I6 shop/web: has been reserved on n1 for 61 s while there was nothing to decide"][:breaches]


@pytest.mark.parametrize(("late_s", "breaches"), [(-300, 0), (60, 0), (61, 1)])
def test_who_waits_for_permit_may_be_as_old_as_the_deadline(late_s, breaches):
    waits = standing("waiting", node="n1")
    waits.members[:] = [dataclasses.replace(each, score=NOW_MS - late_s * 1000) for each in waits.members]
    found = told(check(a_pod(), held=reservation(state="waiting", ago_s=900), record=waits))
    assert (
        found
        == ["I6 shop/web: has been past the deadline of Permit on n1 for 61 s while there was nothing to decide"][
            :breaches
        ]
    )


def test_a_reservation_that_cannot_be_read():
    (found,) = released.check(view(unreadable={PodUid("uid-web"): "n1"}), OLDEST_MS)
    assert (found.kind, str(found)) == (
        Kind.UID,
        "I6 uid-web: its reservation is 'n1', not 'NS/NAME NODE EPOCH STATE ATTEMPT SINCE_MS'",
    )
