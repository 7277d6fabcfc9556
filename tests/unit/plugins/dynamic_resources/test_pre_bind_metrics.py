"""kube-scheduler's metrics about devices move, under the names of the emulated version."""

from typing import Any

import pytest
from prometheus_client import REGISTRY

from dsched.model.claim_requests import ExtendedClaim
from dsched.plugins.dynamic_resources import binding
from dsched.plugins.dynamic_resources.pre_bind_metrics import PreBindMetrics
from dsched.plugins.dynamic_resources.reserved import Errand
from tests.devices import DRIVER, asking, make_claim, result
from tests.unit.plugins.dynamic_resources.judging import features
from tests.unit.plugins.dynamic_resources.test_binding import POD, UID, WAITING, Cluster, errand, waiting_claim

NEW = "dynamic_resource_allocation_resourceclaim_creates_total"
OLD = "scheduler_resourceclaim_creates_total"
ALLOCATIONS = "scheduler_dra_bindingconditions_allocations_total"
WAITED = "scheduler_dra_bindingconditions_wait_duration_seconds"


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def creations(status: str) -> tuple[float, float]:
    """Under the name of 1.37, and under that of 1.35."""
    return value(NEW, status=status, admin_access="false", owner_api_group="", owner_api_kind="Pod"), value(
        OLD, status=status
    )


def waits(profile: str, status: str, driver: str = DRIVER) -> tuple[float, float, float]:
    """Allocations, observations, and seconds."""
    labels = {"profile": profile, "driver": driver, "status": status}
    return value(ALLOCATIONS, **labels), value(f"{WAITED}_count", **labels), value(f"{WAITED}_sum", **labels)


@pytest.mark.parametrize(("minor", "more"), [(34, (0, 0)), (35, (0, 1)), (36, (0, 1)), (37, (1, 0))])
@pytest.mark.parametrize("made", [True, False])
def test_creations(minor: int, more: tuple[int, int], made: bool) -> None:
    status = "success" if made else "failure"
    before = creations(status)
    told = PreBindMetrics("p", features(minor))
    told.creation(made)
    told.creation(None)
    assert tuple(now - then for now, then in zip(creations(status), before, strict=True)) == more


def test_a_claim_that_was_there_is_not_counted_again() -> None:
    before = creations("success")
    made = Errand([], ExtendedClaim(POD, UID, {}))
    assert binding.bind([made], Cluster(), 0, 600, PreBindMetrics("p", features())) == [None]
    assert creations("success") == before


@pytest.mark.parametrize(
    ("profile", "claim", "now_ms", "status"),
    [
        ("met", waiting_claim("Attached"), 3_000, "success"),
        ("failed", waiting_claim("Broken"), 3_000, "failure"),
        ("late", waiting_claim(), 600_000, "timeout"),
    ],
)
def test_a_wait_that_is_over(profile: str, claim: dict[str, Any], now_ms: int, status: str) -> None:
    binding.bind([errand(waits=True)], Cluster(claim), now_ms, 600, PreBindMetrics(profile, features()))
    assert waits(profile, status) == (1, 1, now_ms / 1000)


def test_a_wait_that_goes_on_counts_nothing_yet_and_before_1_36_none_does() -> None:
    binding.bind([errand(waits=True)], Cluster(waiting_claim()), 3_000, 600, PreBindMetrics("on", features()))
    binding.bind(
        [errand(waits=True)], Cluster(waiting_claim("Attached")), 3_000, 600, PreBindMetrics("on", features(35))
    )
    assert waits("on", "success") == (0, 0, 0)


def test_every_device_tells_how_long_and_those_with_conditions_count() -> None:
    other = result("d1", driver="other.example.com")
    claim = make_claim(
        "default/mine", asking(), allocated=[WAITING, other], devices=waiting_claim("Attached")["status"]["devices"]
    )
    binding.bind([errand(waits=True)], Cluster(claim), 2_000, 600, PreBindMetrics("two", features()))
    assert waits("two", "success") == (1, 1, 2)
    assert waits("two", "success", "other.example.com") == (0, 1, 2)


def test_a_claim_that_is_gone_leaves_nothing_to_count() -> None:
    binding.bind([errand(waits=True)], Cluster(), 2_000, 600, PreBindMetrics("gone", features()))
    assert waits("gone", "error") == (0, 0, 0)
