"""Claims that have devices: where these can be used, whether they are ready, and when they are given up."""

from datetime import UTC, datetime
from typing import Any

import pytest

from dsched.model.meta import from_builtins
from dsched.model.resource_claims import ResourceClaim
from dsched.plugins.dynamic_resources.held_claims import HeldClaim, given_up, overdue, readiness
from tests.builders import make_node, make_term
from tests.devices import asking, make_claim, result

GIVEN = "2026-01-01T00:00:00Z"
NOW_MS = int(datetime(2026, 1, 1, 0, 10, tzinfo=UTC).timestamp() * 1000)


def claim(conditions: list[tuple[str, str]] | None, *, binding: tuple[str, ...] = ("Attached",)) -> ResourceClaim:
    """A claim with a device that waits for its conditions; None where its driver has said nothing yet."""
    device = result("d0", bindingConditions=list(binding), bindingFailureConditions=["Broken"])
    told = [{"type": kind, "status": status, "reason": "Why", "message": "so"} for kind, status in conditions or ()]
    said = {"driver": device["driver"], "pool": device["pool"], "device": "d0", "conditions": told}
    found = make_claim("default/mine", asking(), allocated=[device], devices=[] if conditions is None else [said])
    found["status"]["allocation"]["allocationTimestamp"] = GIVEN
    return from_builtins(found, ResourceClaim)


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [(None, False), ([], False), ([("Attached", "False")], False), ([("Attached", "True")], True)],
)
def test_every_condition_has_to_hold(conditions: list[tuple[str, str]] | None, ready: bool) -> None:
    assert readiness(claim(conditions)).ready is ready


def test_a_device_without_conditions_is_ready() -> None:
    assert readiness(claim(None, binding=())).ready


def test_a_failure_comes_before_all_else() -> None:
    found = readiness(claim([("Attached", "True"), ("Broken", "True")]))
    assert not found.ready
    assert found.failure == 'device binding failed: claim=mine, reason=Why, message="so"'
    assert given_up(claim([("Broken", "True")]), 0, 600)


@pytest.mark.parametrize(("timeout_s", "late"), [(599, True), (600, True), (601, False)])
def test_devices_that_are_not_ready_in_time(timeout_s: float, late: bool) -> None:
    assert overdue(claim([]), NOW_MS, timeout_s) is late
    assert given_up(claim([]), NOW_MS, timeout_s) is late
    assert not given_up(claim([("Attached", "True")]), NOW_MS, timeout_s)
    assert not overdue(claim([], binding=()), NOW_MS, timeout_s)


def test_the_node_selector_of_an_allocation() -> None:
    found: dict[str, Any] = make_claim("default/mine", asking(), allocated=[result("d0")])
    everywhere = from_builtins(found, ResourceClaim)
    found["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [make_term("zone In a")]}
    in_a = from_builtins(found, ResourceClaim)
    assert everywhere.status.allocation is not None and in_a.status.allocation is not None
    node = make_node("n1", labels={"zone": "b"})
    assert HeldClaim(everywhere, everywhere.status.allocation).reaches(node)
    assert not HeldClaim(in_a, in_a.status.allocation).reaches(node)
