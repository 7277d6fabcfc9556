"""Reservations as text, and what is no such text."""

import pytest

from dsched.errors import StateError
from dsched.model.meta import PodUid
from dsched.state.reservations import Reservation, parse, texts

UID = PodUid("uid-a")


def test_a_reservation_reads_as_it_is_written():
    found = parse(UID, "ns/a n1 7 binding 3 1700000000000")
    assert found == Reservation(UID, "ns/a", "n1", 7, "binding", 3, 1_700_000_000_000)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ns/a n1 7 binding 3",
        "ns/a n1 7 binding 3 17 more",
        "ns/a n1 seven binding 3 17",
        "ns/a  n1 7 binding 3 17",
    ],
)
def test_what_is_no_reservation_is_named(text):
    with pytest.raises(StateError, match=r"reservation uid-a: .* is not 'NS/NAME NODE EPOCH STATE ATTEMPT SINCE_MS'"):
        parse(UID, text)


def test_amounts_go_as_text_for_lua_counts_in_doubles():
    assert texts({"memory": 2**63 - 1, "cpu": 0}) == {"memory": "9223372036854775807", "cpu": "0"}
