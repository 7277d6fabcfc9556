"""Claims for devices in a simulation: made from templates, written when pods are placed, given back when they go.

Everything takes effect at once. Devices are ready as soon as they are given.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dsched.clock import Clock
from dsched.cluster import claims
from dsched.cluster.standalone import claim_controller, stored
from dsched.cluster.standalone.claim_controller import Ended
from dsched.cluster.standalone.claims import GONE
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Action, ClusterEvent, Resource
from dsched.framework.snapshot import Snapshot
from dsched.manifests import kinds
from dsched.model.claim_requests import ClaimDeletion, ClaimRelease, ClaimWrite
from dsched.model.meta import PodUid
from dsched.model.volumes import key_of
from dsched.plugins.dynamic_resources.plugin import DynamicResources
from dsched.plugins.dynamic_resources.reserved import Errand

Object = dict[str, Any]

CLAIM, TEMPLATE = kinds.RESOURCE_CLAIM, kinds.RESOURCE_CLAIM_TEMPLATE
_NAMES = uuid.uuid5(uuid.NAMESPACE_URL, "dsched:simulation")


def with_claims(pod: Object, templates: Mapping[str, Mapping[str, Any]]) -> tuple[Object, list[Object]]:
    """A pod whose claims are named in its status, and those that had to be made from templates for it.

    Args:
        templates: by ``namespace/name``; a pod whose template is missing is left as it is.
    """
    status, metadata = pod.get("status") or {}, pod["metadata"]
    named = list(status.get("resourceClaimStatuses") or ())
    made: list[Object] = []
    for entry in pod["spec"].get("resourceClaims") or ():
        template = templates.get(f"{metadata.get('namespace') or 'default'}/{entry.get('resourceClaimTemplateName')}")
        if template is None or any(each["name"] == entry["name"] for each in named):
            continue
        claim = _from_template(metadata, entry["name"], template)
        made.append(claim)
        named.append({"name": entry["name"], "resourceClaimName": claim["metadata"]["name"]})
    return {**pod, "status": {**status, "resourceClaimStatuses": named}} if made else pod, made


class SimulatedClaims:
    """The claims of a cluster in memory. Every method returns what happened to claims."""

    def __init__(self, snapshot: Snapshot, clock: Clock) -> None:
        self._snapshot = snapshot
        self._clock = clock

    def bound(self, state: CycleState) -> list[ClusterEvent]:
        """A pod gets what Reserve left word of, all of it or nothing.

        Raises:
            Refused: a claim was changed behind the decision's back, or has too many pods.
        """
        if DynamicResources.name not in state.shared:
            return []
        errand = Errand.unpacked(state.shared[DynamicResources.name])
        becomes: list[tuple[str, Object]] = []
        now = stored.rfc3339(self._clock.now_ms())
        for write in errand.writes:
            becomes.append((write.key, claims.allocated(write.key, self._claim(write.key), write, now)))
        if errand.extended is not None:
            pod, claim = errand.extended, _identified(claims.made(errand.extended, 0))
            write = ClaimWrite(key_of(claim), claim["metadata"]["uid"], pod.pod, pod.pod_uid, errand.devices)
            becomes += [(write.key, claim), (write.key, claims.allocated(write.key, claim, write, now))]
        return [self._becomes(key, claim) for key, claim in becomes]

    def gone(self, pod: PodUid) -> list[ClusterEvent]:
        """A pod is gone: so are its claims, and shared ones are left to the others."""
        found: list[ClusterEvent] = []
        for key, claim in list(self._snapshot.others(CLAIM.name).items()):
            if any(user.uid == pod for user in claim_controller.users_of(claim)):
                found += self._settled(key, dict(claim), Ended(key, frozenset({pod})))
        return found

    def _settled(self, key: str, claim: Object, ended: Ended) -> Iterator[ClusterEvent]:
        """First it loses its devices, then it goes, as in a cluster."""
        while (left := claim_controller.settled(claim, ended)) != claim:
            yield self._becomes(key, None if left is GONE else left)
            if left is GONE:
                return
            claim = left

    def given_back(
        self, deallocations: Iterable[ClaimRelease], deletions: Sequence[ClaimDeletion]
    ) -> Iterator[ClusterEvent]:
        """PostFilter takes devices away."""
        for release in deallocations:
            left = claims.released(self._claim(release.key), release)
            if left is not None:
                yield self._becomes(release.key, left)
        for deletion in deletions:
            yield self._becomes(deletion.key, None)

    def _claim(self, key: str) -> Object | None:
        found = self._snapshot.others(CLAIM.name).get(key)
        return None if found is None else dict(found)

    def _becomes(self, key: str, claim: Object | None) -> ClusterEvent:
        old = self._claim(key)
        if claim is None:
            self._snapshot.drop(CLAIM.name, key)
            return ClusterEvent(Resource.RESOURCE_CLAIM, Action.DELETE, old=old)
        self._snapshot.put(CLAIM.name, key, claim)
        action = Action.ADD if old is None else Action.UPDATE
        return ClusterEvent(Resource.RESOURCE_CLAIM, action, old, claim)


def _from_template(pod: Mapping[str, Any], name: str, template: Mapping[str, Any]) -> Object:
    """The claim for a pod's purpose; its name depends on the pod's uid alone."""
    spec = template.get("spec") or {}
    prefix = claim_controller.generate_name(pod["name"], name)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod["name"], "uid": pod.get("uid", ""), "controller": True}
    metadata = {
        **(spec.get("metadata") or {}),
        "name": claims.generated_name(prefix, f"{pod.get('uid', '')} {name} 0"),
        "namespace": pod.get("namespace") or "default",
        "ownerReferences": [owner],
    }
    own = {"apiVersion": CLAIM.api_version, "kind": CLAIM.name, "metadata": metadata, "spec": spec.get("spec") or {}}
    return _identified(own)


def _identified(claim: Object) -> Object:
    """With a uid of its own."""
    uid = str(uuid.uuid5(_NAMES, f"{CLAIM.name} {key_of(claim)}"))
    return {**claim, "metadata": {**claim["metadata"], "uid": uid}}
