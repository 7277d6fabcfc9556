"""PreBind: claims get their devices written, and the pod is let wait until these are ready.

All of it may be asked twice: the cluster leaves alone what stands there already.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go ``PreBind``, ``bindClaim``,
``isPodReadyForBinding``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple, Protocol

from msgspec.structs import replace

from dsched import metrics
from dsched.config import Features
from dsched.framework.interface import Code, Status
from dsched.model.claim_requests import ClaimWrite, CreatedClaim, ExtendedClaim
from dsched.model.meta import decoded
from dsched.model.resource_claims import RESOURCE_CLAIM, ResourceClaim
from dsched.plugins.dynamic_resources import held_claims
from dsched.plugins.dynamic_resources.reserved import Errand

TIMED_OUT = "device binding timeout"
Ending = Literal["success", "failure", "timeout", "error"]
"""How the wait for binding conditions ended: they are met, one says that the device failed, they were not met in time,
or nobody could tell."""


@dataclass(frozen=True, slots=True)
class PreBindMetrics:
    """Counts for the pods of a profile, under the names that the emulated version has.

    Source: dynamicresources.go ``PreBind``, extendeddynamicresources.go ``createExtendedResourceClaimInAPI``, of 1.35
    to 1.37.
    """

    profile: str
    features: Features

    def creation(self, made: bool | None) -> None:
        """A claim for extended resources was made, or could not be; None where nobody tried."""
        if made is None:
            return
        status = "success" if made else "failure"
        if self.features.since(37):
            metrics.CLAIMS_CREATED.labels(status, "false", "", "Pod").inc()
        elif self.features.since(35):
            metrics.CLAIMS_CREATED_BEFORE_1_37.labels(status).inc()

    def wait(self, claims: Iterable[ResourceClaim], ending: Ending, seconds: float) -> None:
        """A pod with these claims has waited so long, and no longer does. All its devices tell how long, those with
        binding conditions count."""
        if not self.features.since(36):
            return
        for claim in claims:
            allocation = claim.status.allocation
            for device in [] if allocation is None else allocation.devices.results:
                labels = self.profile, device.driver, ending
                metrics.BINDING_CONDITIONS_WAIT.labels(*labels).observe(seconds)
                if device.binding_conditions:
                    metrics.BINDING_CONDITIONS_ALLOCATIONS.labels(*labels).inc()


class ClaimCluster(Protocol):
    """What binding asks of the cluster."""

    def get_objects(self, kind: str, keys: Sequence[str]) -> Sequence[Mapping[str, Any] | None]:
        """Objects of a kind as they are now; None for one that is not there."""
        ...

    def allocate_claims(self, writes: Sequence[ClaimWrite]) -> Sequence[str]:
        """Give claims their devices and let pods use them; says of each why not, ``""`` for what is written."""
        ...

    def create_claim(self, wanted: ExtendedClaim) -> CreatedClaim:
        """Make the claim of a pod's extended resources and name it in the pod's status."""
        ...


class Answer(NamedTuple):
    """What PreBind says of one pod.

    Attributes:
        looked: whether everything is written, and devices were looked at that have to get ready, or had to before.
    """

    status: Status | None
    looked: bool = False


def bind(
    errands: Sequence[Errand], cluster: ClaimCluster, now_ms: int, timeout_s: float, told: PreBindMetrics
) -> list[Answer]:
    """Write what has to be written, all at once, and look whether the devices are ready: Wait while they are not. One
    answer an errand."""
    asked = [_claims(errand, cluster, told) for errand in errands]
    writes = [write for each in asked if not isinstance(each, Status) for write in each.writes]
    problems = iter(cluster.allocate_claims(writes) if writes else ())
    answers: list[Answer] = []
    for errand, each in zip(errands, asked, strict=True):
        if isinstance(each, Status):
            answers.append(Answer(each))
            continue
        # As many answers are taken as there are writes, whatever the first of them says.
        refused = [problem for problem in islice(problems, len(each.writes)) if problem]
        if refused:
            answers.append(Answer(_error(refused[0])))
        elif each.waits:
            answers.append(Answer(_wait(each.waits, cluster, errand.since_ms, now_ms, timeout_s, told), looked=True))
        else:
            answers.append(Answer(None))
    return answers


class _Asked(NamedTuple):
    """What an errand asks of the cluster: claims to be written, and keys of those whose devices have to be ready."""

    writes: Sequence[ClaimWrite]
    waits: Sequence[str]


def _claims(errand: Errand, cluster: ClaimCluster, told: PreBindMetrics) -> _Asked | Status:
    """Once the claim of the pod's extended resources is made; why it could not be."""
    writes, waits = list(errand.writes), list(errand.waits)
    if errand.extended is not None:
        created = cluster.create_claim(errand.extended)
        told.creation(created.made)
        if created.problem:
            return _error(f"create claim for extended resources: {created.problem}")
        writes.append(
            ClaimWrite(created.key, created.uid, errand.extended.pod, errand.extended.pod_uid, errand.devices)
        )
        if errand.waits_for_made:
            waits.append(created.key)
    if errand.stamped:
        writes = [replace(each, stamped=True) for each in writes]
    return _Asked(writes, waits)


class _Ended(NamedTuple):
    """The wait for a claim's devices is over.

    Attributes:
        problem: why they cannot be used; "" where they can.
    """

    how: Ending
    problem: str = ""


def _wait(
    keys: Sequence[str], cluster: ClaimCluster, since_ms: int, now_ms: int, timeout_s: float, told: PreBindMetrics
) -> Status | None:
    """Whether the devices of these claims are ready: nothing where they are, Wait while they are not."""
    found = cluster.get_objects(RESOURCE_CLAIM, keys)
    claims = {key: None if raw is None else decoded(raw, ResourceClaim) for key, raw in zip(keys, found, strict=True)}
    late = now_ms - since_ms >= timeout_s * 1000
    ended = _Ended("success")
    for key, claim in claims.items():
        now = _looked_at(key, claim, claim is not None and held_claims.overdue(claim, now_ms, timeout_s))
        if now is None and late:
            now = _Ended("timeout", f"{TIMED_OUT}: context deadline exceeded")
        if now is None:
            return Status(Code.WAIT, (f"waiting for binding conditions of resourceclaim {key}",))
        if now.problem:
            ended = now
            break
    there = [claim for claim in claims.values() if claim is not None]
    told.wait(there, ended.how, max(0, now_ms - since_ms) / 1000)
    return _error(ended.problem) if ended.problem else None


def _looked_at(key: str, claim: ResourceClaim | None, overdue: bool) -> _Ended | None:
    """None while the claim's devices are not ready, and need not be yet: another pod may have got them long ago."""
    if claim is None:
        return _Ended("error", f'could not find ResourceClaim "{key}"')
    found = held_claims.readiness(claim)
    if found.failure:
        return _Ended("failure", found.failure)
    if found.ready:
        return _Ended("success")
    return _Ended("timeout", f"{TIMED_OUT}: claim={claim.metadata.name}") if overdue else None


def _error(text: str) -> Status:
    return Status(Code.ERROR, (text,))
