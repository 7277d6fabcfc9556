"""PreBind: what is written, and what is waited for."""

from collections.abc import Mapping, Sequence
from typing import Any

from dsched.framework.interface import Code, Status
from dsched.model.claim_requests import ClaimWrite, CreatedClaim, ExtendedClaim
from dsched.model.meta import PodKey, PodUid
from dsched.model.resource_claims import Allocation
from dsched.plugins.dynamic_resources import binding
from dsched.plugins.dynamic_resources.pre_bind_metrics import PreBindMetrics
from dsched.plugins.dynamic_resources.reserved import Errand
from tests.devices import asking, make_claim, result
from tests.unit.plugins.dynamic_resources.judging import features

POD, UID = PodKey("default/web"), PodUid("uid-web")
WAITING = result("d0", bindingConditions=["Attached"], bindingFailureConditions=["Broken"])


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
    return binding.bind([errand], cluster, now_ms, timeout_s, told or PreBindMetrics("default-scheduler", features()))[
        0
    ]


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
    assert said(bind(errand(waits=True), cluster, 600_000, 600)) == (Code.ERROR, "device binding timeout: claim=mine")
    assert bind(errand(waits=True), Cluster(waiting_claim("Attached")), 0, 600) is None


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
