"""Attempts, times, and pods in flight."""

import dataclasses

import pytest

from dsched.fsck import nothing_lost
from tests.unit.fsck.seeing import EPOCH, NOW_MS, a_pod, reservation, standing, told, view


def check(queue, *, reservations=(), leader="leader-1", **record):
    seen = view(a_pod(), standings={"shop/web": standing(queue, **record)}, reservations=reservations, leader=leader)
    return told(nothing_lost.check(seen))


def test_a_new_pod_has_no_attempts_yet():
    assert check("active", attempts=None, first_ms=None, last_ms=None) == []


@pytest.mark.parametrize("queue", ["inflight", "reserved", "waiting", "unschedulable"])
def test_who_has_been_tried_has_attempts(queue):
    assert check(queue) == []
    assert check(queue, attempts=0) == ["I4 shop/web: has been tried, and its record counts 0 attempts"]


def test_a_time_of_an_attempt_without_attempts():
    assert check("active", attempts=0) == ["I4 shop/web: has been tried, and its record counts 0 attempts"]


def test_attempts_without_times():
    assert check("backoff", first_ms=None) == ["I4 shop/web: its record counts 1 attempts and has no first_ms"]


def test_the_first_attempt_is_not_later_than_the_latest():
    assert check("backoff", first_ms=NOW_MS, last_ms=NOW_MS) == []
    assert check("backoff", first_ms=NOW_MS + 1, last_ms=NOW_MS) == [
        f"I4 shop/web: its first attempt ({NOW_MS + 1} ms) is later than its latest ({NOW_MS} ms)"
    ]


def test_a_number_that_is_none():
    assert check("backoff", attempts="many") == ["I4 shop/web: attempts of its record is 'many', not a number"]


def test_a_reservation_is_of_the_latest_attempt():
    assert check("reserved", attempts=3, reservations=[reservation(attempt=3)]) == []
    assert check("reserved", attempts=2, reservations=[reservation(attempt=3)]) == [
        "I4 shop/web: was reserved at attempt 3, its record counts 2"
    ]


@pytest.mark.parametrize(("leader", "breaches"), [("leader-1", 1), ("", 0)])
def test_in_flight_under_an_epoch_that_is_over(leader, breaches):
    entry = dataclasses.replace(standing("inflight"), inflight=f"{EPOCH - 1} {EPOCH - 1}-7")
    found = told(nothing_lost.check(view(a_pod(), standings={"shop/web": entry}, leader=leader)))
    assert found == ["I4 shop/web: is in flight under epoch 3, and epoch 4 leads"][:breaches]


def test_an_entry_that_cannot_be_read():
    entry = dataclasses.replace(standing("inflight"), inflight="soon")
    assert told(nothing_lost.check(view(a_pod(), standings={"shop/web": entry}))) == [
        "I4 shop/web: is in flight as 'soon', which is not 'EPOCH BATCH'"
    ]
