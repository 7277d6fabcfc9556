"""Where pods stand, against what their records say."""

import dataclasses

import pytest

from dsched.fsck import one_place
from dsched.scheduler.ports import QueueName
from dsched.state.standings import Member, Standing
from tests.unit.fsck.seeing import VERSION, a_pod, reservation, standing, told, view

QUEUES = ("active", "backoff", "unschedulable", "gated", "inflight")


@pytest.mark.parametrize("queue", QUEUES)
def test_a_pod_stands_where_its_record_says(queue):
    assert told(one_place.check(view(a_pod(), standings={"shop/web": standing(queue)}))) == []


@pytest.mark.parametrize("state", ["reserved", "binding"])
def test_a_reserved_pod_stands_in_no_queue(state):
    seen = view(a_pod(), standings={"shop/web": standing("reserved")}, reservations=[reservation(state=state)])
    assert told(one_place.check(seen)) == []


def test_a_waiting_pod_stands_in_its_queue_and_is_reserved():
    standings = {"shop/web": standing("waiting")}
    held = [reservation(state="waiting")]
    assert told(one_place.check(view(a_pod(), standings=standings, reservations=held))) == []
    assert told(one_place.check(view(a_pod(), standings=standings))) == [
        "I1 shop/web: its record says waiting, but nothing is reserved for it"
    ]
    alone = view(a_pod(), standings={"shop/web": standing("waiting", places=())}, reservations=held)
    assert told(one_place.check(alone)) == ["I1 shop/web: its record says waiting, but is not in that queue"]


@pytest.mark.parametrize("extra", [queue for queue in QUEUES if queue != "backoff"])
def test_two_places(extra):
    seen = view(a_pod(), standings={"shop/web": standing("backoff", places=("backoff", extra))})
    first, second = sorted(("backoff", extra), key=list(QueueName).index)
    assert told(one_place.check(seen)) == [f"I1 shop/web: stands in {first} and in {second}"]


def test_a_queued_pod_that_is_reserved_stands_in_two_places():
    seen = view(a_pod(), standings={"shop/web": standing("active")}, reservations=[reservation()])
    assert told(one_place.check(seen)) == ["I1 shop/web: stands in active and in reserved"]


def test_a_pod_in_another_place_than_its_record_says():
    seen = view(a_pod(), standings={"shop/web": standing("gated", places=("active",))})
    assert told(one_place.check(seen)) == ["I1 shop/web: stands in active, its record says gated"]


@pytest.mark.parametrize("queue", ["backoff", "inflight", "reserved"])
def test_a_record_of_a_pod_that_stands_nowhere(queue):
    seen = view(a_pod(), standings={"shop/web": standing(queue, places=())})
    assert told(one_place.check(seen)) == [f"I1 shop/web: its record says {queue}, but it stands nowhere"]


def test_the_active_queue_holds_a_pod_once_and_in_its_turn():
    once = standing("active")
    other = dataclasses.replace(once, members=[Member(QueueName.ACTIVE, "earlier shop/web", 0)])
    assert told(one_place.check(view(a_pod(), standings={"shop/web": other}))) == [
        "I1 shop/web: stands in active as 'earlier shop/web', its record says 'turn shop/web'"
    ]
    twice = dataclasses.replace(once, members=[*once.members, *other.members])
    assert told(one_place.check(view(a_pod(), standings={"shop/web": twice}))) == [
        "I1 shop/web: stands in active 2 times: earlier shop/web, turn shop/web"
    ]


def test_an_entry_without_a_record():
    entry = Standing({}, [Member(QueueName.GATED, "shop/web", 0)], "4 4-1")
    assert told(one_place.check(view(a_pod(), standings={"shop/web": entry}))) == [
        "I1 shop/web: stands in gated and in inflight and has no record"
    ]


def test_a_record_without_its_pod_is_a_breach_once_the_leader_has_heard_of_it():
    (gone,) = one_place.check(view(standings={"shop/web": standing()}))
    assert (str(gone), gone.heard) == ("I1 shop/web: has a record, and there is no such pod", VERSION)
    (other,) = one_place.check(view(a_pod(uid="new"), standings={"shop/web": standing()}))
    assert (str(other), other.heard) == ("I1 shop/web: has a record of uid uid-web, the pod has uid new", VERSION)


def test_a_pod_that_is_over_has_no_record():
    pod = a_pod(finished=True)
    (found,) = one_place.check(view(pod, standings={"shop/web": standing()}))
    assert (str(found), found.heard) == ("I1 shop/web: has finished and has a record still", VERSION)
    assert told(one_place.check(view(pod))) == []


def test_a_pod_that_is_being_deleted_may_stand_in_the_queue_and_need_not():
    pod = a_pod(deleting=True)
    assert told(one_place.check(view(pod, standings={"shop/web": standing()}))) == []
    assert told(one_place.check(view(pod))) == []


def test_a_pending_pod_of_ours_has_a_place_once_the_leader_has_taken_it_in():
    (found,) = one_place.check(view(a_pod(version=77)))
    assert (str(found), found.heard) == ("I1 shop/web: is pending and stands nowhere", 77)


def test_pods_of_others_and_bound_pods_need_no_place():
    assert told(one_place.check(view(a_pod(scheduler="other"), a_pod("shop/db", node="n1")))) == []


def test_where_no_cluster_is_kept_only_places_are_compared():
    seen = view(standings={"shop/web": standing(), "shop/db": standing("active", key="shop/db", places=())}, version=0)
    assert told(one_place.check(seen)) == ["I1 shop/db: its record says active, but it stands nowhere"]
