"""PreBind: what is written, what is waited for, and how kube-scheduler's metrics move."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client import REGISTRY

from dsched.framework.interface import Code, Status
from dsched.model.claim_requests import ClaimWrite, CreatedClaim, ExtendedClaim
from dsched.model.meta import PodKey, PodUid
from dsched.model.resource_claims import Allocation
from dsched.plugins.dynamic_resources import binding
from dsched.plugins.dynamic_resources.binding import PreBindMetrics
from dsched.plugins.dynamic_resources.reserved import Errand
from tests.devices import DRIVER, asking, make_claim, result
from tests.unit.plugins.dynamic_resources.judging import features

POD, UID = PodKey("default/web"), PodUid("uid-web")
WAITING = result("d0", bindingConditions=["Attached"], bindingFailureConditions=["Broken"])
NEW = "dynamic_resource_allocation_resourceclaim_creates_total"
OLD = "scheduler_resourceclaim_creates_total"
ALLOCATIONS = "scheduler_dra_bindingconditions_allocations_total"
WAITED = "scheduler_dra_bindingconditions_wait_duration_seconds"


class Cluster:
    """Notes what is asked; claims are as they are given."""

    def __init__(self, *claims: dict[str, Any], refusal: str = "", problem: str = "") -> None:
        self._claims = {f"default/{claim['metadata']['name']}": claim for claim in claims}
        self._refusal = refusal
        self._problem = problem
        self.written: list[ClaimWrite] = []
        self.created: list[ExtendedClaim] = []

    def get_objects(self, kind: str, keys: Sequence[str]) -> Sequence[Mapping[str, Any] | None]:
        return [self._claims.get(key) for key in keys]

    def allocate_claims(self, writes: Sequence[ClaimWrite]) -> Sequence[str]:
        self.written += writes
        return [self._refusal for _ in writes]

    def create_claim(self, wanted: ExtendedClaim) -> CreatedClaim:
        self.created.append(wanted)
        return CreatedClaim(problem=self._problem) if self._problem else CreatedClaim("default/made", "uid-made")


def waiting_claim(*conditions: str) -> dict[str, Any]:
    told = [{"type": each, "status": "True"} for each in conditions]
    said = {"driver": WAITING["driver"], "pool": "n1", "device": "d0", "conditions": told}
    return make_claim("default/mine", asking(), allocated=[WAITING], devices=[said])


def bind(
    errand: Errand, cluster: Cluster, now_ms: int, timeout_s: float, told: PreBindMetrics | None = None
) -> Status | None:
    told = told or PreBindMetrics("default-scheduler", features())
    (answer,) = binding.bind([errand], cluster, now_ms, timeout_s, told)
    return answer.status


def errand(*, waits: bool = False, extended: bool = False) -> Errand:
    write = ClaimWrite("default/mine", "uid-mine", POD, UID, Allocation())
    made = ExtendedClaim(POD, UID, {}) if extended else None
    devices = Allocation() if extended else None
    return Errand(
        [] if extended else [write], made, devices, ["default/mine"] * (waits and not extended), waits and extended
    )


def said(status: Status | None) -> tuple[Code, str] | None:
    return None if status is None else (status.code, status.message)


def test_claims_are_written() -> None:
    cluster = Cluster()
    assert bind(errand(), cluster, 0, 600) is None
    assert [write.key for write in cluster.written] == ["default/mine"]


def test_a_refusal_ends_the_attempt() -> None:
    assert said(bind(errand(), Cluster(refusal="got allocated elsewhere"), 0, 600)) == (
        Code.ERROR,
        "got allocated elsewhere",
    )


def test_the_claim_for_extended_resources_is_made_first() -> None:
    cluster = Cluster()
    assert bind(errand(extended=True), cluster, 0, 600) is None
    assert len(cluster.created) == 1
    assert [(write.key, write.uid) for write in cluster.written] == [("default/made", "uid-made")]
    failed = bind(errand(extended=True), Cluster(problem="quota"), 0, 600)
    assert said(failed) == (Code.ERROR, "create claim for extended resources: quota")


def test_devices_that_are_not_ready_are_waited_for() -> None:
    cluster = Cluster(waiting_claim())
    waits = bind(errand(waits=True), cluster, 599_999, 600)
    assert waits is not None and waits.code is Code.WAIT
    late = "device binding timeout: context deadline exceeded"
    assert said(bind(errand(waits=True), cluster, 600_000, 600)) == (Code.ERROR, late)
    assert bind(errand(waits=True), Cluster(waiting_claim("Attached")), 0, 600) is None


def test_a_claim_that_another_pod_got_too_long_ago_is_not_waited_for() -> None:
    claim = waiting_claim()
    claim["status"]["allocation"]["allocationTimestamp"] = "1970-01-01T00:00:00Z"
    just_decided = replace(errand(waits=True), since_ms=600_000)
    waits = bind(just_decided, Cluster(claim), 599_999, 600)
    assert waits is not None and waits.code is Code.WAIT
    assert said(bind(just_decided, Cluster(claim), 600_000, 600)) == (Code.ERROR, "device binding timeout: claim=mine")


def test_devices_that_fail_and_claims_that_go_end_the_attempt() -> None:
    failed = said(bind(errand(waits=True), Cluster(waiting_claim("Broken")), 0, 600))
    assert failed is not None and failed[1].startswith("device binding failed: claim=mine")
    gone = said(bind(errand(waits=True), Cluster(), 0, 600))
    assert gone == (Code.ERROR, 'could not find ResourceClaim "default/mine"')


def test_the_devices_of_a_claim_that_is_made_are_waited_for_too() -> None:
    made = make_claim("default/made", asking(), allocated=[WAITING])
    waits = bind(errand(waits=True, extended=True), Cluster(made), 0, 600)
    assert said(waits) == (Code.WAIT, "waiting for binding conditions of resourceclaim default/made")


def test_an_errand_travels_as_plain_data() -> None:
    for each in (errand(waits=True), errand(extended=True), errand(extended=True, waits=True)):
        assert Errand.unpacked(each.packed()) == each


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
    assert bind(made, Cluster(), 0, 600, PreBindMetrics("p", features())) is None
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
