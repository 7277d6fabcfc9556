"""Bound pods: in no queue, reserved nowhere else, scheduled once."""

import pytest

from dsched.cluster.standalone import stored
from dsched.fsck import bound_once, one_place
from dsched.fsck.view import Told
from dsched.scheduler.ports import QueueName
from dsched.state.standings import Member, Standing
from tests.unit.fsck.seeing import VERSION, a_pod, reservation, standing, told, view

ONCE = {"shop/web": Told(events=2, scheduled=1)}


def test_a_bound_pod():
    assert told(bound_once.check(view(a_pod(node="n1"), told=ONCE))) == []


def test_a_bound_pod_in_a_queue_is_a_breach_once_the_leader_has_heard_of_the_binding():
    seen = view(a_pod(node="n1"), standings={"shop/web": standing("backoff")})
    (found,) = bound_once.check(seen)
    assert (str(found), found.heard) == ("I2 shop/web: is bound to n1 and stands in backoff", VERSION)
    assert told(one_place.check(seen)) == []


def test_an_entry_of_a_bound_pod_without_a_record_is_told_once():
    entry = Standing({}, [Member(QueueName.UNSCHEDULABLE, "shop/web", 0)])
    seen = view(a_pod(node="n1"), standings={"shop/web": entry})
    (found,) = bound_once.check(seen)
    assert (str(found), found.heard) == ("I2 shop/web: is bound to n1 and stands in unschedulable", 0)
    assert told(one_place.check(seen)) == []


def test_a_record_of_an_earlier_pod_of_that_name_is_not_the_bound_ones():
    seen = view(a_pod(node="n1"), standings={"shop/web": standing("active", uid="uid-old")})
    assert told(bound_once.check(seen)) == []


def test_reserved_on_another_node():
    seen = view(a_pod(node="n1"), reservations=[reservation("n2")])
    (found,) = bound_once.check(seen)
    assert (str(found), found.heard) == ("I2 shop/web: is bound to n1 and reserved on n2", VERSION)


def test_reserved_on_its_own_node_is_not_bound_twice():
    seen = view(a_pod(node="n1"), standings={"shop/web": standing("reserved")}, reservations=[reservation("n1")])
    assert told(bound_once.check(seen)) == []


@pytest.mark.parametrize(("events", "scheduled", "count"), [(3, 2, "2 times"), (3, 0, None), (20, 0, "")])
def test_the_event_scheduled_is_there_once(events, scheduled, count):
    found = told(bound_once.check(view(a_pod(node="n1"), told={"shop/web": Told(events, scheduled)})))
    if count:
        assert found == [f"I2 shop/web: is bound to n1, and its events say {count} that it was scheduled"]
    elif count is None:
        assert found == ["I2 shop/web: is bound to n1, and no event says that it was scheduled"]
    else:  # so many events that the oldest may have been dropped
        assert found == []


def test_events_of_bindings_long_ago_have_expired():
    pod = a_pod(node="n1", ago_s=2 * 3600)
    assert told(bound_once.check(view(pod, told={"shop/web": Told(1, 0)}))) == []
    assert told(bound_once.check(view(pod))) == []


def test_a_pod_that_its_manifest_put_there_was_never_scheduled():
    pod = a_pod(node="n1", by_manifest=True)
    assert told(bound_once.check(view(pod, told={"shop/web": Told(1, 0)}))) == []


def test_events_are_kept_as_the_script_that_keeps_them_says():
    kept = (stored.SCRIPTS / "includes" / "pod_events.lua").read_text()
    assert f"EVENTS_KEPT = {bound_once.EVENTS_KEPT}\n" in kept
    assert f"EVENTS_EXPIRE_S = {bound_once.EVENTS_KEPT_MS // 1000}\n" in kept
