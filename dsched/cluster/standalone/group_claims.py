"""Which pod groups have claims for devices, and which of their pods are there, for who sees to claims.

A group's claims are reserved for the group, not for its pods. They lose their devices when the group is gone: once none
of its pods is there any more, as upstream keeps a PodGroup until then.

Source: pkg/controller/resourceclaim/controller.go ``enqueuePodGroup``, ``syncPodGroup``;
pkg/controller/scheduling/podgroupprotection/podgroup_protection_controller.go.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from dsched.model.meta import PodKey, from_builtins
from dsched.model.pod import Pod, PodResourceClaim

Object = Mapping[str, Any]


class Groups:
    """The groups of a cluster, as far as claims are concerned."""

    def __init__(self) -> None:
        self._objects: dict[str, Object] = {}
        self._members: dict[str, set[str]] = {}
        """Group to the uids of its pods with claims that are not over."""
        self._group_of: dict[str, str] = {}
        self._leaving: dict[str, set[str]] = {}
        """Group to uids under which it is gone, while pods of it are there."""
        self._waiting: dict[str, set[PodKey]] = {}

    def come(self, key: str, group: Object) -> set[PodKey]:
        """A group is there, or has changed; returns its pods that waited for that."""
        self._objects[key] = group
        return self._waiting.pop(key, set())

    def gone(self, key: str, uid: str) -> set[str]:
        """A group is no more; returns its uid when nobody uses its claims any more."""
        known = self._objects.get(key)
        if known is not None and _uid(known) == uid:
            del self._objects[key]
        return self.over([(key, uid)])

    def over(self, suspects: Iterable[tuple[str, str]]) -> set[str]:
        """Of groups, by key and uid, the uids of those that use claims no more."""
        found = set()
        for key, uid in suspects:
            there = self._objects.get(key)
            if there is not None and _uid(there) == uid:
                continue
            if self._members.get(key):
                self._leaving.setdefault(key, set()).add(uid)
            else:
                found.add(uid)
        return found

    def joined(self, pod: Pod) -> None:
        """A pod with claims is there."""
        if pod.spec.scheduling_group is not None:
            self._members.setdefault(pod.group_key, set()).add(pod.uid)
            self._group_of[pod.uid] = pod.group_key

    def left(self, uid: str) -> set[str]:
        """A pod is over; returns the uids of its group, if that is gone and nobody uses its claims any more."""
        key = self._group_of.pop(uid, None)
        if key is None:
            return set()
        self._members[key].discard(uid)
        if self._members[key]:
            return set()
        del self._members[key]
        return self._leaving.pop(key, set())

    def wait(self, key: str, pod: PodKey) -> None:
        """A pod needs to know how a claim of its group is called."""
        self._waiting.setdefault(key, set()).add(pod)

    def get(self, key: str) -> Object | None:
        """The group, None where it is not there."""
        return self._objects.get(key)

    def wants(self, key: str) -> bool:
        """Whether a claim of the group has yet to be made from a template."""
        group = self._objects.get(key)
        return group is not None and any(name not in named(group) for name in templates(group))


def named(group: Object) -> dict[str, str | None]:
    """The claims that were made for a group, by what its spec calls them."""
    listed = (group.get("status") or {}).get("resourceClaimStatuses") or ()
    return {each["name"]: each.get("resourceClaimName") for each in listed}


def templates(group: Object) -> dict[str, str]:
    """The templates of which claims are made for a group, by what its spec calls these."""
    entries = group["spec"].get("resourceClaims") or ()
    return {
        each["name"]: each["resourceClaimTemplateName"] for each in entries if each.get("resourceClaimTemplateName")
    }


def shares(group: Object, entry: Object) -> bool:
    """Whether a claim that a pod names is its group's. Source: resourceclaim.go ``BindTo``."""
    wanted = from_builtins(dict(entry), PodResourceClaim)
    entries = group["spec"].get("resourceClaims") or ()
    return any(from_builtins(each, PodResourceClaim) == wanted for each in entries)


def _uid(group: Object) -> str:
    return str(group["metadata"].get("uid", ""))
