"""Claims for devices at an API server, as PreBind and PostFilter ask for it.

A claim is written whole, as it was read but for what changes, with its resourceVersion: a compare-and-set, tried again
on a conflict. Finalizer and status are two requests, the finalizer first; killed between the two, the claim has a
finalizer and no devices, which the cluster's controller takes off again, or the next call goes on from.

Two binders may write the same claim at once: one of them gets a conflict, looks again, and finds what it wanted to
write. What is made has a name that both come to (`dsched.cluster.claims.made`), so that the second one finds it taken.

*Devices are given to whom they are reserved for*, which an API server does not see: Redis is asked right before an
allocation is written. What is left is a process that is paused between the two until the reservation has ended, as with
a late bind (`dsched.cluster.kubernetes.bindings`). ``dsched fsck`` tells of a device that two claims got that way.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go ``bindClaim``, ``Unreserve``,
``deallocateOrDeletePodClaims``; extendeddynamicresources.go ``createExtendedResourceClaimInAPI``, ``deleteClaim``,
``patchPodExtendedResourceClaimStatus``.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from dsched.cluster import claims
from dsched.cluster.claims import Need, Refused
from dsched.cluster.kubernetes import resources
from dsched.cluster.kubernetes.http import client
from dsched.cluster.kubernetes.http.client import Calls, ManyCalls, Outcome
from dsched.cluster.kubernetes.http.exchange import JSON, MERGE_PATCH, Answer, Request
from dsched.cluster.kubernetes.resources import Resource
from dsched.model import meta
from dsched.model.claim_requests import ClaimDeletion, ClaimRelease, ClaimWrite, CreatedClaim, ExtendedClaim

PATIENCE_S = 10.0
TOGETHER_S = 8.0
"""How long giving many claims their devices may take; below what a plugin may take."""
ATTEMPTS = 5
"""How often a claim that changes all the time is looked at again."""
NAMES = 5
"""How many names are tried for a new claim, where others have them."""

Object = dict[str, Any]
CLAIM = resources.DEVICE_CLAIM


class ClaimWriter:
    """Writes claims. Not for several threads at once.

    Args:
        made: requests one after the other; many: several at once.
        holds: whether devices are still reserved; it is looked right before an allocation is written.
    """

    def __init__(self, made: Calls, many: ManyCalls, holds: Callable[[Need], bool]) -> None:
        self._calls = made
        self._many = many
        self._holds = holds

    def allocate(self, writes: Sequence[ClaimWrite]) -> list[str]:
        """As `Cluster.allocate_claims`: many claims at once, what is wanted of one claim in one go."""
        batch = _Allocating(self._many, self._holds, writes)
        for _ in range(ATTEMPTS):
            if not batch.waiting:
                break
            batch.step()
        for key in batch.waiting:
            batch.refuse(key, f"resourceclaim {key} changed all the time")
        return batch.answers

    def release(self, release: ClaimRelease) -> str:
        """As `Cluster.release_claims`, of one."""

        def step() -> str | None:
            claim = self._read(CLAIM, release.key)
            wanted = claims.released(claim, release)
            if wanted is None or wanted == claim:
                return ""
            return None if self._put(release.key, wanted, "/status") is None else ""

        return self._until_it_stands(step, release.key)

    def delete(self, deletion: ClaimDeletion) -> str:
        """As `Cluster.delete_claim`."""

        def step() -> str | None:
            claim = self._read(CLAIM, deletion.key)
            if claim is None or claim["metadata"].get("uid") != deletion.uid:
                return ""
            unhindered = claims.without_finalizer(claim)
            if unhindered != claim and self._put(deletion.key, unhindered) is None:
                return None
            body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": deletion.uid}}
            outcome = self._make("DELETE", CLAIM.path(deletion.key), body)
            if client.succeeded(outcome) or _status(outcome) in (client.NOT_FOUND, client.CONFLICT):
                return ""
            return f"resourceclaim {deletion.key} cannot be deleted: {client.told(outcome)}"

        return self._until_it_stands(step, deletion.key)

    def create(self, wanted: ExtendedClaim) -> CreatedClaim:
        """As `Cluster.create_claim`: the claim, then its name in the pod's status; killed between the two, the next
        call finds the claim."""
        made: bool | None = None
        try:
            claim = self._named_by(wanted)
            if claim is None:
                made = False
                claim, made = self._made(wanted)
            if not claims.asks_alike(claim, wanted):
                raise Refused(f"pod {wanted.pod} has resourceclaim {meta.key_of(claim)}, which asks for something else")
            self._tell_pod(wanted, claim["metadata"]["name"])
        except Refused as refusal:
            return CreatedClaim(problem=str(refusal), made=made)
        return CreatedClaim(meta.key_of(claim), claim["metadata"]["uid"], made=made)

    def _named_by(self, wanted: ExtendedClaim) -> Object | None:
        """The claim that the pod's status names, if it is the pod's and stays."""
        pod = self._read(resources.POD, wanted.pod)
        if pod is None or pod["metadata"].get("uid") != wanted.pod_uid:
            raise Refused(f"pod {wanted.pod} does not exist any more")
        name = ((pod.get("status") or {}).get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
        found = self._read(CLAIM, f"{wanted.pod.partition('/')[0]}/{name}") if name else None
        return found if found is not None and claims.is_for(found, wanted.pod_uid) else None

    def _made(self, wanted: ExtendedClaim) -> tuple[Object, bool | None]:
        """The claim under the first name that no other claim has, and whether this call made it; None where an earlier
        one did."""
        for attempt in range(NAMES):
            claim = claims.made(wanted, attempt)
            path = f"{CLAIM.root}/namespaces/{claim['metadata']['namespace']}/{CLAIM.plural}"
            outcome = self._make("POST", path, claim)
            if isinstance(outcome, Answer) and client.succeeded(outcome):
                return msgspec.json.decode(outcome.body, type=dict[str, Any]), True
            if _status(outcome) != client.CONFLICT:
                raise Refused(f"resourceclaim {meta.key_of(claim)} cannot be made: {client.told(outcome)}")
            found = self._read(CLAIM, meta.key_of(claim))
            if found is not None and claims.is_for(found, wanted.pod_uid):
                return found, None
        raise Refused(f"the names for a resourceclaim of pod {wanted.pod} are all taken")

    def _tell_pod(self, wanted: ExtendedClaim, name: str) -> None:
        """The uid goes along: another pod of the name is not told."""
        status = {"extendedResourceClaimStatus": claims.extended_status(name, wanted)}
        patch = {"metadata": {"uid": wanted.pod_uid}, "status": status}
        outcome = self._make("PATCH", f"{resources.POD.path(wanted.pod)}/status", patch, MERGE_PATCH)
        if not client.succeeded(outcome):
            raise Refused(f"pod {wanted.pod} cannot be told of its resourceclaim {name}: {client.told(outcome)}")

    def _until_it_stands(self, step: Callable[[], str | None], key: str) -> str:
        """Do it until it is clear what became of it: ``""`` for done, else why not."""
        try:
            for _ in range(ATTEMPTS):
                answer = step()
                if answer is not None:
                    return answer
        except Refused as refusal:
            return str(refusal)
        return f"resourceclaim {key} changed all the time"

    def _read(self, resource: Resource, key: str) -> Object | None:
        """An object as it is now, whole; None for one that is not there."""
        outcome = self._calls.make(Request("GET", resource.path(key)), PATIENCE_S)
        if _status(outcome) == client.NOT_FOUND:
            return None
        if not isinstance(outcome, Answer) or outcome.status != 200:
            raise Refused(f"{resource.kind.lower()} {key} cannot be read: {client.told(outcome)}")
        return msgspec.json.decode(outcome.body, type=dict[str, Any])

    def _put(self, key: str, claim: Object, sub: str = "") -> Object | None:
        """Write a claim, or its status alone; gives it as it is then, None when it has changed meanwhile."""
        outcome = self._make("PUT", CLAIM.path(key) + sub, claim)
        if isinstance(outcome, Answer) and client.succeeded(outcome):
            return msgspec.json.decode(outcome.body, type=dict[str, Any])
        if _status(outcome) in (client.CONFLICT, client.NOT_FOUND):
            return None
        raise Refused(f"resourceclaim {key} cannot be written: {client.told(outcome)}")

    def _make(self, method: str, path: str, body: Object, content_type: str = JSON) -> Outcome:
        return self._calls.make(_request(method, path, body, content_type), PATIENCE_S)


class _Allocating:
    """Claims that are being given their devices.

    Attributes:
        answers: one a write, as `Cluster.allocate_claims` gives them.
        waiting: numbers of the writes about a claim, by its key, of claims that are not as they are to be yet.
    """

    def __init__(self, many: ManyCalls, holds: Callable[[Need], bool], writes: Sequence[ClaimWrite]) -> None:
        self._many = many
        self._holds = holds
        self._writes = writes
        self._until = time.monotonic() + TOGETHER_S
        self.answers = [""] * len(writes)
        self.waiting: dict[str, list[int]] = {}
        for number, write in enumerate(writes):
            self.waiting.setdefault(write.key, []).append(number)

    def step(self) -> None:
        """Look at the claims, write what they lack; those that somebody else changes meanwhile are left waiting."""
        before = self._read()
        after: dict[str, Object] = {}
        for key, claim in before.items():
            wanted = self._allocated(key, claim)
            if wanted is None or wanted == claim:
                del self.waiting[key]
            else:
                after[key] = wanted
        marked = {key: {**(before[key] or {}), "metadata": wanted["metadata"]} for key, wanted in after.items()}
        held = {key: claim for key, claim in marked.items() if claim == before[key]}
        held |= self._put({key: claim for key, claim in marked.items() if key not in held})
        ready = {key: {**after[key], "metadata": claim["metadata"]} for key, claim in held.items()}
        for key in self._put(ready, "/status"):
            del self.waiting[key]

    def refuse(self, key: str, why: str) -> None:
        """None of what is wanted of this claim is done, but for what was refused already."""
        for number in self.waiting[key]:
            self.answers[number] = self.answers[number] or why

    def _read(self) -> dict[str, Object | None]:
        """The claims as they are now, None for one that is not there; what is wanted of one that cannot be read is not
        done."""
        found: dict[str, Object | None] = {}
        wanted = list(self.waiting)
        for key, outcome in zip(wanted, self._make([Request("GET", CLAIM.path(key)) for key in wanted]), strict=True):
            if isinstance(outcome, Answer) and outcome.status == 200:
                found[key] = msgspec.json.decode(outcome.body, type=dict[str, Any])
            elif _status(outcome) == client.NOT_FOUND:
                found[key] = None
            else:
                self._end(key, f"resourceclaim {key} cannot be read: {client.told(outcome)}")
        return found

    def _allocated(self, key: str, claim: Object | None) -> Object | None:
        """The claim as all writes about it have it that are not refused; each that gives devices must hold them."""
        wanted = claim
        for number in self.waiting[key]:
            write = self._writes[number]
            self.answers[number] = ""
            try:
                after = claims.allocated(key, wanted, write, _now())
                need = claims.need(wanted, write)
                if need is not None and not self._holds(need):
                    raise Refused(claims.no_longer_held(key))
                wanted = after
            except Refused as refusal:
                self.answers[number] = str(refusal)
        return wanted

    def _put(self, wanted: Mapping[str, Object], sub: str = "") -> dict[str, Object]:
        """Write claims, or their status alone; gives those that are written as they are then. Who has changed meanwhile
        is left waiting."""
        requests = [_request("PUT", CLAIM.path(key) + sub, claim) for key, claim in wanted.items()]
        found: dict[str, Object] = {}
        for key, outcome in zip(wanted, self._make(requests), strict=True):
            if isinstance(outcome, Answer) and client.succeeded(outcome):
                found[key] = msgspec.json.decode(outcome.body, type=dict[str, Any])
            elif _status(outcome) not in (client.CONFLICT, client.NOT_FOUND):
                self._end(key, f"resourceclaim {key} cannot be written: {client.told(outcome)}")
        return found

    def _end(self, key: str, why: str) -> None:
        self.refuse(key, why)
        del self.waiting[key]

    def _make(self, requests: Sequence[Request]) -> list[Outcome]:
        return self._many.make(requests, self._until - time.monotonic()) if requests else []


def _request(method: str, path: str, body: Object, content_type: str = JSON) -> Request:
    return Request(method, path, msgspec.json.encode(body), content_type)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _status(outcome: Outcome) -> int:
    return outcome.status if isinstance(outcome, Answer) else 0
