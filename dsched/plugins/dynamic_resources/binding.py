"""PreBind: claims get their devices written, and the pod is let wait until these are ready.

All of it may be asked twice: the cluster leaves alone what stands there already.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go ``PreBind``, ``bindClaim``,
``isPodReadyForBinding``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec.structs import replace

from dsched.framework.interface import Code, Status
from dsched.model.claim_requests import ClaimWrite, CreatedClaim, ExtendedClaim
from dsched.model.resource_claims import RESOURCE_CLAIM, ResourceClaim
from dsched.plugins.dynamic_resources import held_claims
from dsched.plugins.dynamic_resources.reserved import Errand
from dsched.plugins.object_views import decoded


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


def bind(errand: Errand, cluster: ClaimCluster, now_ms: int, timeout_s: float) -> Status | None:
    """Write what has to be written, and look whether the devices are ready; Wait while they are not."""
    writes, waits = list(errand.writes), list(errand.waits)
    if errand.extended is not None:
        created = cluster.create_claim(errand.extended)
        if created.problem:
            return _error(f"create claim for extended resources: {created.problem}")
        writes.append(
            ClaimWrite(created.key, created.uid, errand.extended.pod, errand.extended.pod_uid, errand.devices)
        )
        if waits:
            waits.append(created.key)
    if errand.stamped:
        writes = [replace(each, stamped=True) for each in writes]
    problem = next(filter(None, cluster.allocate_claims(writes)), "") if writes else ""
    if problem:
        return _error(problem)
    return _readiness(waits, cluster, errand.since_ms, now_ms, timeout_s) if waits else None


def _readiness(
    keys: Sequence[str], cluster: ClaimCluster, since_ms: int, now_ms: int, timeout_s: float
) -> Status | None:
    for key, raw in zip(keys, cluster.get_objects(RESOURCE_CLAIM, keys), strict=True):
        if raw is None:
            return _error(f'could not find ResourceClaim "{key}"')
        claim = decoded(raw, ResourceClaim)
        found = held_claims.readiness(claim)
        if found.failure:
            return _error(found.failure)
        if not found.ready:
            if held_claims.overdue(claim, now_ms, timeout_s) or now_ms - since_ms >= timeout_s * 1000:
                return _error(f"device binding timeout: claim={claim.metadata.name}")
            return Status(Code.WAIT, (f"waiting for binding conditions of resourceclaim {key}",))
    return None


def _error(text: str) -> Status:
    return Status(Code.ERROR, (text,))
