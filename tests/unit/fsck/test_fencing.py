"""Epochs that were never given."""

import dataclasses

from dsched.fsck import fencing
from tests.unit.fsck.seeing import EPOCH, a_pod, reservation, standing, told, view


def test_the_present_epoch_and_older_ones_were_given():
    entry = dataclasses.replace(standing("inflight"), inflight=f"{EPOCH} {EPOCH}-1")
    held = [reservation(key="shop/db", epoch=EPOCH - 1)]
    assert told(fencing.check(view(a_pod(), standings={"shop/web": entry}, reservations=held))) == []


def test_in_flight_under_an_epoch_to_come():
    entry = dataclasses.replace(standing("inflight"), inflight="5 5-1")
    assert told(fencing.check(view(a_pod(), standings={"shop/web": entry}))) == [
        "I5 shop/web: is in flight under epoch 5, the present one is 4"
    ]


def test_reserved_under_an_epoch_to_come():
    assert told(fencing.check(view(a_pod(), reservations=[reservation(epoch=5)]))) == [
        "I5 shop/web: is reserved under epoch 5, the present one is 4"
    ]


def test_the_lease_is_of_the_present_epoch():
    assert told(fencing.check(view(lease_epoch=3))) == ["I5 leader: leader-1 leads under epoch 3, the present one is 4"]
    assert told(fencing.check(view(leader=""))) == []
