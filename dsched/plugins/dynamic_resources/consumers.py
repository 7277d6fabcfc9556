"""Who uses which claims: the pods that claims are reserved for, and the pods on nodes that name them.

It is kept for preemption that frees devices (gate ``DschedDevicePreemption``): a claim gives its devices back once all
who use it are gone. A pod that was placed and is not bound yet is on its node, and not in ``reservedFor``.

Not every claim does. One that is reserved for a pod group keeps them as long as the group is there. One without the
finalizer, which whoever else gave it its devices has not set, keeps them, unless it goes with its pod.

Source: pkg/controller/resourceclaim/controller.go ``syncClaim``.
"""

from collections.abc import Collection, Set

from dsched.framework.table import NodeTable
from dsched.model.meta import PodUid
from dsched.model.resource_claims import ClaimConsumer
from dsched.plugins.dynamic_resources import pod_claims
from dsched.plugins.dynamic_resources.objects import KnownClaim, controller

_Use = tuple[PodUid, int, tuple[str, ...], tuple[str, ...]]
"""A pod on a node, its priority, the claims that it names, and those that are reserved for it."""


class Consumers:
    """The claims of pods, and the pods of claims."""

    def __init__(self) -> None:
        self._reserved: dict[str, frozenset[str]] = {}
        self._returned: set[str] = set()
        self._owned: dict[str, str] = {}
        self._named: dict[str, set[PodUid]] = {}
        self._reserved_of: dict[str, set[str]] = {}
        self._named_of: dict[PodUid, tuple[str, ...]] = {}
        self._on_row: dict[int, frozenset[_Use]] = {}
        self._at: tuple[object, ...] = ()
        self._position = 0

    def take(self, key: str, claim: KnownClaim | None) -> bool:
        """What a claim says of whom it is reserved for, None where there is no such claim any more; whether that is
        news."""
        told = self._take_fate(key, claim)
        now = frozenset() if claim is None else frozenset(each.uid for each in _pods(claim))
        before = self._reserved.get(key, frozenset())
        if now == before:
            return told
        for uid in before - now:
            self._reserved_of[uid].discard(key)
            if not self._reserved_of[uid]:
                del self._reserved_of[uid]
        for uid in now - before:
            self._reserved_of.setdefault(uid, set()).add(key)
        self._reserved[key] = now
        if not now:
            del self._reserved[key]
        return True

    def look(self, table: NodeTable) -> Set[str]:
        """Look at the pods on nodes, where these have changed; returns the claims whose users there are others now. Not
        to be called while a table is changed for the sake of argument."""
        at = table, table.layout
        rows = table.changed_since(self._position) if at == self._at else None
        if rows is None:
            rows = [*range(len(table)), *(row for row in self._on_row if row >= len(table))]
        now = {row: self._uses(table, row) for row in rows}
        moved: set[_Use] = set()
        for row in rows:
            moved |= self._on_row.get(row, frozenset()) ^ now[row]
        for row in rows:
            self._forget(self._on_row.pop(row, frozenset()) - now[row])
        for row, uses in now.items():
            self._remember(row, uses)
        self._at, self._position = at, table.position
        return {key for _, _, named, reserved in moved for key in (*named, *reserved)}

    def without(self, pods: Collection[str]) -> list[str]:
        """The claims that nobody uses any more when these pods are gone, sorted."""
        gone = frozenset(pods)
        keys = {key for uid in gone for key in (*self._reserved_of.get(uid, ()), *self._named_of.get(PodUid(uid), ()))}
        return sorted(key for key in keys if self._unused(key, gone) and self._given_back(key, gone))

    def absent(self, table: NodeTable) -> frozenset[str]:
        """Those that claims are reserved for and that are on no node: pods that are gone, mostly, whose claims will be
        given back."""
        return frozenset(uid for uid in self._reserved_of if table.node_of(PodUid(uid)) is None)

    def _unused(self, key: str, gone: frozenset[str]) -> bool:
        return self._reserved.get(key, frozenset()) <= gone and self._named.get(key, set()) <= gone

    def _given_back(self, key: str, gone: frozenset[str]) -> bool:
        return key in self._returned or self._owned.get(key) in gone

    def _take_fate(self, key: str, claim: KnownClaim | None) -> bool:
        """Take in whether a claim gives its devices back at all, and with which pod it goes; whether that is news."""
        before = key in self._returned, self._owned.get(key)
        self._returned.discard(key)
        self._owned.pop(key, None)
        if claim is not None:
            owner = controller(claim.record)
            for_pods = len(_pods(claim)) == len(claim.record.status.reserved_for)
            if for_pods and (claim.protected or claim.record.metadata.deletion_timestamp):
                self._returned.add(key)
            if for_pods and owner is not None and owner.kind == "Pod":
                self._owned[key] = owner.uid
        return before != (key in self._returned, self._owned.get(key))

    def _uses(self, table: NodeTable, row: int) -> frozenset[_Use]:
        if row >= len(table):
            return frozenset()
        found = []
        for pod in table.pods[row].values():
            named = tuple(pod_claims.keys_of(pod.pod)) if pod.pod.spec.resource_claims else ()
            reserved = tuple(sorted(self._reserved_of.get(pod.uid, ())))
            if named or reserved:
                found.append((pod.uid, pod.priority, named, reserved))
        return frozenset(found)

    def _forget(self, uses: Collection[_Use]) -> None:
        for uid, _, named, _ in uses:
            self._named_of.pop(uid, None)
            for key in named:
                users = self._named.get(key, set())
                users.discard(uid)
                if not users:
                    self._named.pop(key, None)

    def _remember(self, row: int, uses: frozenset[_Use]) -> None:
        if uses:
            self._on_row[row] = uses
        for uid, _, named, _ in uses:
            self._named_of[uid] = named
            for key in named:
                self._named.setdefault(key, set()).add(uid)


def _pods(claim: KnownClaim) -> list[ClaimConsumer]:
    """The pods that a claim is reserved for."""
    return [each for each in claim.record.status.reserved_for if each.resource == "pods"]
