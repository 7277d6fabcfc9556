"""Claims for devices of reserved pods: from the reservation, which holds the devices, to the claim that says who has
them.

Binders write claims; the leader hears of it by the watch. A reservation that ends without a bind may end before that,
so the claims are read and counted with as they are: what a binder has written is never taken for free. The pod is
taken out of them; their devices stay theirs, as upstream's Unreserve leaves them. They are read once more when the
reservation has ended: until then a binder could still write.

*Who may be killed*: a leader that is killed before a pod was taken out of its claims leaves it in there. It is pending
and finds its claims reserved for itself; where it is gone, who sees to claims takes it out.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go ``Unreserve``,
``deallocateOrDeletePodClaims``; extendeddynamicresources.go ``unreserveExtendedResourceClaim``.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dsched.cluster.interface import Cluster
from dsched.errors import ClusterUnavailable
from dsched.framework.interface import Action, ClusterEvent, Resource
from dsched.framework.pod_info import PodInfo
from dsched.leader.parts import LeaderMemory, StoredState
from dsched.log import logger
from dsched.model.claim_requests import ClaimDeletion, ClaimRelease, DeviceCharge
from dsched.model.meta import PodUid
from dsched.model.pod import Pod
from dsched.model.resource_claims import RESOURCE_CLAIM
from dsched.plugins.dynamic_resources import inventory
from dsched.plugins.dynamic_resources.objects import EXTENDED_CLAIM
from dsched.scheduler.decision import Decision
from dsched.state.devices import Devices

_log = logger(__name__)


class DeviceClaims:
    """For one epoch."""

    def __init__(self, state: StoredState, memory: LeaderMemory, cluster: Cluster) -> None:
        self._devices = Devices(state.lined, state.epoch)
        self._cache, self._events = memory.cache, memory.events
        self._cluster = cluster
        self._pods: dict[str, set[PodUid]] = {}
        """Who holds devices, a claim or a pod, to the reserved pods: several of a group, for a claim they share."""
        self._holders: dict[PodUid, list[str]] = {}
        self._unseen: set[str] = set()
        """Holders whose claims have not shown their devices; their pods may be bound by now."""
        self._shown: list[tuple[PodUid, str]] = []
        """Holders whose claims show their devices, and Redis has not been told."""

    def reserved(self, uid: PodUid, charges: Sequence[DeviceCharge]) -> None:
        """A pod holds devices from now on."""
        if charges:
            self._holders[uid] = [each.holder for each in charges]
            self._unseen.update(self._holders[uid])
            for holder in self._holders[uid]:
                self._pods.setdefault(holder, set()).add(uid)

    def ended(self, uid: PodUid) -> None:
        """The pod's reservation has ended, and holds nothing any more."""
        for holder in self._holders.pop(uid, ()):
            self._of(holder).discard(uid)
            if not self._of(holder):
                self._pods.pop(holder, None)

    def _of(self, holder: str) -> set[PodUid]:
        return self._pods.get(holder, set())

    def is_news(self, key: str, claim: Mapping[str, Any]) -> bool:
        """Whether a claim that the watch tells of is not known as it was later than that."""
        known = self._cache.snapshot.others(RESOURCE_CLAIM).get(key)
        return known is None or _version(known) <= _version(claim) or _uid(known) != _uid(claim)

    def taken_in(self, claim: Mapping[str, Any]) -> None:
        """A claim counts as it is now; where it shows the devices that were held for it, they are not held any more."""
        holder = _made_for(claim) or _uid(claim)
        if holder not in self._unseen or not (claim.get("status") or {}).get("allocation"):
            return
        self._unseen.discard(holder)
        inventory.look(self._cache.snapshot)
        self._shown += [(uid, holder) for uid in sorted(self._pods.pop(holder, ()))]

    def gone(self, claim: Mapping[str, Any] | None) -> None:
        """A claim is no more, whatever was held for it."""
        if claim is not None and _uid(claim) in self._unseen:
            self._unseen.discard(_uid(claim))
            inventory.look(self._cache.snapshot, gone=_uid(claim))

    def flush(self) -> None:
        """Tell Redis whose claims show their devices, without waiting for it."""
        shown, self._shown = self._shown, []
        if shown:
            self._devices.release_ahead(shown)

    def give_back(self, info: PodInfo, *, written: bool) -> bool:
        """A reservation is about to end without a bind: take the pod out of its claims. Says whether these have to be
        looked up when it has ended.

        Args:
            written: whether a binder may have written them.
        """
        holders = self._holders.get(info.uid, ())
        holding = bool(holders)
        self._unseen.difference_update(holder for holder in holders if self._of(holder) <= {info.uid})
        self.ended(info.uid)
        if not written or not (holding or any(_named(info.pod))):
            return False
        claims = self.look_up(info)
        releases = [ClaimRelease(key, _uid(claim), info.uid) for key, claim in claims.items() if not _made_for(claim)]
        if releases:
            self._tell(self._cluster.release_claims(releases))
        made = [ClaimDeletion(key, _uid(claim)) for key, claim in claims.items() if _made_for(claim) == info.uid]
        self._tell([self._cluster.delete_claim(each) for each in made])
        return True

    def carry_out(self, decisions: Sequence[Decision]) -> None:
        """Take devices away, and delete claims, as PostFilter has it for pods that have no node."""
        releases = [each for decision in decisions for each in decision.deallocations]
        if releases:
            self._tell(self._cluster.release_claims(releases))
        for decision in decisions:
            self._tell([self._cluster.delete_claim(each) for each in decision.deleted_claims])

    def look_up(self, info: PodInfo) -> dict[str, Mapping[str, Any]]:
        """Count with the pod's claims as they are now; none where the cluster cannot be asked."""
        try:
            claims = self._read(info)
        except ClusterUnavailable as error:
            extra = {"action": "release", "pod": info.key, "uid": info.uid, "error": str(error)}
            _log.warning("claims not looked up", extra=extra)
            return {}
        for key, claim in claims.items():
            self._take_in(key, claim)
        return claims

    def _read(self, info: PodInfo) -> dict[str, Mapping[str, Any]]:
        """The pod's claims as they are in the cluster, those that a binder has made among them."""
        (now,) = self._cluster.get_pods([info.key])
        pod = now if now is not None and now.uid == info.uid else info.pod
        keys = list(dict.fromkeys([*_named(info.pod), *_named(pod)]))
        found = zip(keys, self._cluster.get_objects(RESOURCE_CLAIM, keys), strict=True)
        return {key: claim for key, claim in found if claim is not None}

    def _take_in(self, key: str, claim: Mapping[str, Any]) -> None:
        """Count with a claim as it is now, if the watch has not told of it."""
        known = self._cache.snapshot.others(RESOURCE_CLAIM).get(key)
        if known is None or _version(known) < _version(claim):
            old = self._cache.put(RESOURCE_CLAIM, key, claim)
            inventory.look(self._cache.snapshot)
            action = Action.ADD if old is None else Action.UPDATE
            self._events.happened(ClusterEvent(Resource.RESOURCE_CLAIM, action, old, claim))

    def _tell(self, problems: Sequence[str]) -> None:
        for problem in problems:
            if problem:
                _log.warning("claim not given back", extra={"action": "release", "error": problem})


def _named(pod: Pod) -> Iterator[str]:
    """The claims that a pod has, by key, that of its extended resources among them."""
    yield from pod.named_claims
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        yield f"{pod.metadata.namespace or 'default'}/{extended.resource_claim_name}"


def _version(claim: Mapping[str, Any]) -> int:
    text = str(claim["metadata"].get("resourceVersion", ""))
    return int(text) if text.isdigit() else 0


def _uid(claim: Mapping[str, Any]) -> str:
    return str(claim["metadata"].get("uid", ""))


def _made_for(claim: Mapping[str, Any]) -> str:
    """Uid of the pod for whose extended resources a claim was made; empty for other claims."""
    metadata = claim["metadata"]
    if (metadata.get("annotations") or {}).get(EXTENDED_CLAIM) != "true":
        return ""
    return next((str(each.get("uid")) for each in metadata.get("ownerReferences") or () if each.get("controller")), "")
