"""Writing claims for devices in standalone mode, as PreBind and PostFilter ask for it.

A claim is written only if it is as it was read, a batch a script; one that was changed meanwhile is looked at again. So
two binders may write the same claim at once, and one binder twice: what stands there already is left alone. Killed
between two batches, what was written stays and is found by whoever asks again. A claim and its name in the pod's status
are written together (``claims_make``).

*Devices are given to whom they are reserved for*: the script that writes an allocation looks whether the pod still
holds the devices (`dsched.state.devices`). A binder that comes too late, when the reservation has ended and somebody
else may have them, is refused.
"""

import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from dsched.clock import Clock
from dsched.cluster import claims, sound
from dsched.cluster.claims import Need, Refused
from dsched.cluster.standalone import keys, stored
from dsched.cluster.standalone.objects import Objects, read_object
from dsched.cluster.standalone.stored import Object
from dsched.manifests import kinds
from dsched.model.claim_requests import ClaimDeletion, ClaimRelease, ClaimWrite, CreatedClaim, ExtendedClaim
from dsched.model.meta import PodKey
from dsched.state import client, pieces
from dsched.state import keys as state_keys
from dsched.state.client import Store, Value
from dsched.state.scripts import Script

ATTEMPTS = 20
"""How often claims that keep changing are looked at again."""
NAMES = 5
"""How many names are tried for a new claim, where others have them."""

CLAIM = kinds.RESOURCE_CLAIM
PUT_KEYS = state_keys.names(keys.VERSION, keys.LOG, keys.objects(CLAIM), state_keys.EPOCH, state_keys.DEVICES)
MAKE_KEYS = state_keys.names(
    keys.VERSION, keys.LOG, keys.objects(kinds.POD), keys.STATE, keys.STATUS, keys.objects(CLAIM), state_keys.EPOCH
)

GROUP_KEYS = state_keys.names(
    keys.VERSION, keys.LOG, keys.objects(kinds.POD_GROUP), keys.objects(CLAIM), state_keys.EPOCH
)


class AboutClaim(Protocol):
    """A request about the claim ``namespace/name``."""

    @property
    def key(self) -> str: ...


Found = Object | Refused | None
"""A claim as it was read, or why it cannot be."""
Request = TypeVar("Request", bound=AboutClaim)
Becomes = Callable[[Object | None, Request], Object | None]
"""What a claim becomes; None leaves it as it is. Raises Refused."""
CHANGED, LOST = "changed", "lost"
"""Why a claim was not written."""
GONE: Object = {"gone": True}
"""What a claim becomes that is deleted."""


class Leaving(NamedTuple):
    """A user's request to delete a claim."""

    key: str


class FoundPod(NamedTuple):
    """A pod as it was looked at."""

    key: PodKey
    value: Object
    state: stored.PodState


class ClaimWriter:
    """Writes claims. Every method raises RedisUnavailable while Redis does not answer.

    Args:
        log_length: about how many changes a watcher may be behind.

        epoch: of the leader that writes, which raises StaleEpoch once another leads; ``""`` for everybody else.
    """

    def __init__(self, store: Store, clock: Clock, log_length: int, epoch: str = "") -> None:
        self._store = store
        self._clock = clock
        self._log_length = log_length
        self._objects = Objects(store)
        self._put = Script(store, "claims_put", stored.SCRIPTS)
        self._make = Script(store, "claims_make", stored.SCRIPTS)
        self._make_of_group = Script(store, "group_claims_make", stored.SCRIPTS)
        self._epoch = epoch

    def allocate(self, writes: Sequence[ClaimWrite]) -> list[str]:
        """As `Cluster.allocate_claims`."""
        now = stored.rfc3339(self._clock.now_ms())
        return self.change(writes, lambda claim, write: claims.allocated(write.key, claim, write, now))

    def release(self, releases: Sequence[ClaimRelease]) -> list[str]:
        """As `Cluster.release_claims`."""
        return self.change(releases, claims.released)

    def delete(self, deletion: ClaimDeletion) -> str:
        """As `Cluster.delete_claim`."""

        def goes(claim: Object | None, deletion: ClaimDeletion) -> Object | None:
            return GONE if claim is not None and claim["metadata"]["uid"] == deletion.uid else None

        return self.change([deletion], goes)[0]

    def ask_to_go(self, wanted: Sequence[str]) -> list[bool]:
        """Delete claims as a user does: one that has devices is marked, and goes when nobody uses it any more. Says
        which were there."""
        now = stored.rfc3339(self._clock.now_ms())
        return [not answer for answer in self.change([Leaving(key) for key in wanted], partial(_leaving, now))]

    def create(self, wanted: ExtendedClaim) -> CreatedClaim:
        """As `Cluster.create_claim`."""
        for _ in range(ATTEMPTS):
            pod = self.look_at_pod(wanted.pod)
            if pod is None or pod.state.uid != wanted.pod_uid:
                return CreatedClaim(problem=f"pod {wanted.pod} does not exist any more")
            found = self._named_by(pod)
            if found is not None and claims.is_for(found, wanted.pod_uid):
                return _known(found, wanted)
            claim = self._unused(wanted)
            if claim is None:
                problem = f"the names for a resourceclaim of pod {wanted.pod} are all taken"
                return CreatedClaim(problem=problem, made=False)
            status = claims.extended_status(claim["metadata"]["name"], wanted)
            if not self.make([(pod, {"extendedResourceClaimStatus": status}, [claim])]):
                return CreatedClaim(_key(claim), claim["metadata"]["uid"], made=True)
        return CreatedClaim(problem=f"pod {wanted.pod} changed all the time", made=False)

    def change(self, requests: Sequence[Request], becomes: "Becomes[Request]") -> list[str]:
        """Change claims as requests have it, those about the same claim one after the other.

        Returns:
            One answer a request, in order: why not, ``""`` for what is as it should be.
        """
        answers = [""] * len(requests)
        waiting = list(enumerate(requests))
        for _ in range(ATTEMPTS):
            if not waiting:
                break
            waiting = self._once(waiting, becomes, answers)
        for number, request in waiting:
            answers[number] = f"resourceclaim {request.key} changed all the time"
        return answers

    def make(self, wanted: Sequence[tuple[FoundPod, Object, Sequence[Object]]]) -> set[str]:
        """Make claims that are not there, each pod's together with what is new in its status; returns the pods for
        which nothing was written, since they have changed or one of the claims is there.

        Args:
            wanted: a pod, the fields of its status that are new, and its claims, which get uid and time if they have
                none.
        """
        refused: set[str] = set()
        for batch in pieces.cut([self._packed(*each) for each in wanted], _size):
            pod_head, claim_head = stored.head(kinds.POD), stored.head(CLAIM)
            arguments: list[Value] = [self._epoch, self._log_length, pod_head, claim_head, pieces.packed(batch)]
            with client.reachable(self._store):
                found = self._make(MAKE_KEYS, arguments)
            refused |= {key.decode() for key in found}
        return refused

    def make_for_groups(self, wanted: Sequence[tuple[Object, Object, Sequence[Object]]]) -> set[str]:
        """As `make`, for pod groups: each with the fields of its status that are new, and its claims."""
        refused: set[str] = set()
        for batch in pieces.cut([self._group_packed(*each) for each in wanted], _size):
            group_head, claim_head = stored.head(kinds.POD_GROUP), stored.head(CLAIM)
            arguments: list[Value] = [self._epoch, self._log_length, group_head, claim_head, pieces.packed(batch)]
            with client.reachable(self._store):
                found = self._make_of_group(GROUP_KEYS, arguments)
            refused |= {key.decode() for key in found}
        return refused

    def look_at_pod(self, key: PodKey) -> FoundPod | None:
        """A pod as it is now; None for one that is not there or cannot be read."""
        return self.look_at_pods([key])[0]

    def look_at_pods(self, wanted: Sequence[PodKey]) -> list[FoundPod | None]:
        """Pods as they are now."""
        found: list[FoundPod | None] = []
        for key, raw in zip(wanted, self._objects.get_pods(wanted), strict=True):
            read = None if raw is None else sound.attempt(_pod, (key, raw[0], raw[1]), lambda error: None)
            found.append(read)
        return found

    def _once(
        self, waiting: Sequence[tuple[int, Request]], becomes: "Becomes[Request]", answers: list[str]
    ) -> list[tuple[int, Request]]:
        """Try once; returns those whose claim has changed meanwhile."""
        wanted = list(dict.fromkeys(request.key for _, request in waiting))
        before = dict(zip(wanted, self._read(wanted), strict=True))
        after = dict(before)
        for number, request in waiting:
            try:
                if isinstance(found := after[request.key], Refused):
                    raise found
                result = becomes(None if found is GONE else found, request)
            except Refused as refusal:
                answers[number] = str(refusal)
                continue
            if result is not None:
                after[request.key] = result
        needs: dict[str, list[Need]] = {key: [] for key in wanted}
        for _, request in waiting:
            if (need := _need(request, before[request.key])) is not None:
                needs[request.key].append(need)
        changes = [(key, before[key], after[key], needs[key]) for key in wanted if after[key] is not before[key]]
        refused = self._write(changes)
        for number, request in waiting:
            if refused.get(request.key) == LOST:
                answers[number] = claims.no_longer_held(request.key)
        return [(number, request) for number, request in waiting if refused.get(request.key) == CHANGED]

    def _read(self, wanted: Sequence[str]) -> list[Found]:
        found: list[Found] = []
        for key, json in zip(wanted, self._objects.get_json(CLAIM, wanted), strict=True):
            why: list[Exception] = []
            read = None if json is None else sound.attempt(read_object, (CLAIM, json), why.append)
            refusal = Refused(f"resourceclaim {key} cannot be read: {why[0]}") if why else None
            found.append(dict(read) if read is not None else refusal)
        return found

    def _write(self, changes: Sequence[tuple[str, Found, Found, Sequence[Need]]]) -> dict[str, str]:
        """Write what differs; returns CHANGED or LOST by claim for those that were not written."""
        packed: list[list[object]] = []
        for key, before, after, needs in changes:
            if isinstance(before, dict) and isinstance(after, dict) and before != after:
                metadata = before["metadata"]
                tail = b"" if after is GONE else stored.tail(after)
                packed.append([key, metadata["resourceVersion"], metadata["uid"], tail, list(needs)])
        refused: dict[str, str] = {}
        for batch in pieces.cut(packed, _size):
            arguments: list[Value] = [self._epoch, self._log_length, stored.head(CLAIM), pieces.packed(batch)]
            with client.reachable(self._store):
                replies = [reply.decode().partition(" ") for reply in self._put(PUT_KEYS, arguments)]
            refused |= {key: why for why, _, key in replies}
        return refused

    def _named_by(self, pod: FoundPod) -> Object | None:
        name = (pod.value.get("status", {}).get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
        found = self._read([CLAIM.key(pod.key.partition("/")[0], name)])[0] if name else None
        return found if isinstance(found, dict) else None

    def _unused(self, wanted: ExtendedClaim) -> Object | None:
        """The claim to be made, under the first of its names that is free."""
        tried = [claims.made(wanted, attempt) for attempt in range(NAMES)]
        there = self._objects.get_json(CLAIM, [_key(each) for each in tried])
        return next((each for each, json in zip(tried, there, strict=True) if json is None), None)

    def _packed(self, pod: FoundPod, status: Object, wanted: Sequence[Object]) -> list[object]:
        value = {**pod.value, "status": {**(pod.value.get("status") or {}), **status}}
        line = stored.state_line(value, pod.state.bound_to, pod.state.bound_ms)
        made = [[_key(each), each["metadata"]["uid"], stored.tail(each)] for each in map(self._complete, wanted)]
        return [pod.key, pod.state.version, pod.state.uid, pod.state.bound_to, line, stored.tail(value), made]

    def _group_packed(self, group: Object, status: Object, wanted: Sequence[Object]) -> list[object]:
        value = {**group, "status": {**(group.get("status") or {}), **status}}
        made = [[_key(each), each["metadata"]["uid"], stored.tail(each)] for each in map(self._complete, wanted)]
        metadata = group["metadata"]
        key = kinds.POD_GROUP.key(metadata["namespace"], metadata["name"])
        return [key, metadata["resourceVersion"], metadata["uid"], stored.tail(value), made]

    def _complete(self, claim: Object) -> Object:
        metadata = claim["metadata"]
        metadata.setdefault("uid", str(uuid.uuid4()))
        metadata.setdefault("creationTimestamp", stored.rfc3339(self._clock.now_ms()))
        return claim


def _pod(key: PodKey, raw: bytes, line: bytes) -> FoundPod:
    return FoundPod(key, msgspec.json.decode(raw, type=dict), stored.pod_state(line))


def _need(request: AboutClaim, before: Found) -> Need | None:
    return claims.need(before, request) if isinstance(request, ClaimWrite) and not isinstance(before, Refused) else None


def _leaving(now: str, claim: Object | None, request: Leaving) -> Object:
    if claim is None:
        raise Refused(f"resourceclaim {request.key} does not exist")
    metadata = claim["metadata"]
    if not metadata.get("finalizers"):
        return GONE
    return {**claim, "metadata": {"deletionTimestamp": now, **metadata}}


def _known(found: Object, wanted: ExtendedClaim) -> CreatedClaim:
    if not claims.asks_alike(found, wanted):
        return CreatedClaim(problem=f"pod {wanted.pod} has resourceclaim {_key(found)}, which asks for something else")
    return CreatedClaim(_key(found), found["metadata"]["uid"])


def _key(claim: Object) -> str:
    return CLAIM.key(claim["metadata"]["namespace"], claim["metadata"]["name"])


def _size(item: Sequence[object]) -> int:
    return sum(len(part) if isinstance(part, bytes) else _size(part) for part in item if isinstance(part, bytes | list))
