"""What a request takes of a device's capacity.

The answers are those of upstream's own functions of 1.37.2: structured/internal/incubating/consumable_capacity_test.go,
and its allocator where the quantities are odd.
"""

from typing import Any

import pytest

from dsched.plugins.dynamic_resources.allocation import capacity as shares
from dsched.plugins.dynamic_resources.allocation.failures import AllocationError
from tests.devices import capacity

Json = dict[str, Any]

BYTES = {"min": "1Gi", "max": "16Gi", "step": "1Gi"}


@pytest.mark.parametrize(
    ("requested", "offered", "taken"),
    [
        (None, capacity("40Gi"), "40Gi"),
        (None, capacity("40Gi", default="4Gi"), "4Gi"),
        ("10Gi", capacity("40Gi"), "10Gi"),
        ("1.5Gi", capacity("40Gi"), "1536Mi"),
        ("500Mi", capacity("40Gi", default="1Gi", validRange=BYTES), "1Gi"),
        ("1500Mi", capacity("40Gi", default="1Gi", validRange=BYTES), "2Gi"),
        ("2Gi", capacity("40Gi", default="1Gi", validRange=BYTES), "2Gi"),
        ("1500Mi", capacity("40Gi", default="1Gi", validRange={"min": "1Gi"}), "1500Mi"),
        ("3", capacity("40", default="2", validValues=["2", "4"]), "4"),
        ("5", capacity("40", default="2", validValues=["2", "4"]), "5"),
        ("1200m", capacity("4", default="1", validRange={"min": "500m", "step": "250m"}), "1250m"),
        ("1800m", capacity("4", default="1", validRange={"min": "500m", "step": "500m"}), "2"),
    ],
)
def test_taken(requested: str | None, offered: Json, taken: str) -> None:
    requests = {} if requested is None else {"m": requested}
    assert shares.consumption(requests, {"m": offered}, fractional=True) == {"m": taken}


@pytest.mark.parametrize(
    ("requested", "policy", "allowed"),
    [
        ("2Gi", {"default": "1Gi", "validRange": BYTES}, True),
        ("17Gi", {"default": "1Gi", "validRange": BYTES}, False),
        ("5", {"default": "2", "validValues": ["2", "4"]}, False),
        ("4", {"default": "2", "validValues": ["2", "4"]}, True),
        ("1", {"default": "1"}, True),
    ],
)
def test_allowed(requested: str, policy: Json, allowed: bool) -> None:
    capacities: Any = {"m": capacity("40Gi", **policy)}
    assert shares.allowed({"m": requested}, capacities, fractional=True) == allowed


def test_a_device_without_the_capacity_is_not_asked() -> None:
    assert not shares.allowed({"other": "1"}, {"m": {"value": "1"}}, fractional=True)


@pytest.mark.parametrize("fractional", [True, False])
def test_fractions_count_in_milli_units_where_they_may(fractional: bool) -> None:
    capacities: Any = {"m": capacity("4", default="1", validRange={"min": "500m", "step": "500m"})}
    taken = shares.consumption({"m": "1200m"}, capacities, fractional=fractional)
    assert taken == {"m": "1500m" if fractional else "2"}


@pytest.mark.parametrize(
    ("requested", "limits", "message"),
    [
        ("18446744073709551616", {"min": "1", "step": "100u"}, "request 18446744073709551616 exceeds MaxInt64"),
        ("9223372036854775807", {"min": "2", "step": "9223372036854775807"}, "up to the next step passes MaxInt64"),
        ("100u", {"min": "0", "step": "1m"}, "request 100u is not a representable milli value"),
        ("-1", None, 'capacity "m": capacity value is negative'),
    ],
)
def test_what_cannot_be_asked_for(requested: str, limits: Json | None, message: str) -> None:
    capacities: Any = {"m": capacity("4", default="1", validRange=limits) if limits else capacity("4")}
    with pytest.raises(AllocationError, match=message):
        shares.consumption({"m": requested}, capacities, fractional=True)


def test_what_is_left() -> None:
    capacities: Any = {"m": capacity("2Gi"), "n": capacity("1")}
    taken = shares.amounts({"m": "1Gi", "n": "1"})
    assert shares.left(capacities, taken, {"m": taken["m"]})
    assert not shares.left(capacities, taken, taken)
