"""Devices that pods have to give up so that others find some: those that PostFilter takes from claims, and what
preemption that frees devices (gate ``DschedDevicePreemption``) supposes.

Where kube-scheduler picks one of several claims by chance, it is the first.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go ``deallocateOrDeletePodClaims``,
``PodGroupPostFilter``, ``deallocatePodGroupClaims``.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from dsched.engine.failed_attempt import FailedGroupAttempt
from dsched.framework import pod_groups
from dsched.framework.interface import Code, PodGroupPostFilterResult, Status, unschedulable
from dsched.framework.pod_info import PodInfo
from dsched.framework.table import NodeTable
from dsched.model.claim_requests import ClaimDeletion, ClaimRelease
from dsched.model.meta import PodUid
from dsched.model.pod_groups import PodGroup
from dsched.model.resource_claims import AllocatedDevice, Allocation, charged
from dsched.plugins.dynamic_resources import pod_claims
from dsched.plugins.dynamic_resources.allocation.failures import AllocationError, InvalidPools
from dsched.plugins.dynamic_resources.held_claims import HeldClaim
from dsched.plugins.dynamic_resources.inventory import Inventory
from dsched.plugins.dynamic_resources.judgement import Judgement, Otherwise
from dsched.plugins.dynamic_resources.objects import controller

GROUP_DONE = "deallocation and deletion of ResourceClaims completed"
"""Told whether there was anything to deallocate or not."""
GROUP_DEALLOCATED = "deallocation of PodGroup ResourceClaim completed"
GROUP_UNRESERVED = "ResourceClaim unreserved for PodGroup"


class Freed(NamedTuple):
    """What is done for a pod: one of the two, or nothing."""

    deallocation: ClaimRelease | None = None
    deletion: ClaimDeletion | None = None


class Looked(NamedTuple):
    """A pod of a group for which nodes were looked at.

    Attributes:
        judgement: None for a pod without claims.
        unavailable: its claims that made nodes unavailable.
    """

    pod: PodUid
    judgement: Judgement | None
    unavailable: tuple[HeldClaim, ...]


def for_pod(pod: PodUid, judgement: Judgement, unavailable: Iterable[HeldClaim], known: Inventory) -> Freed:
    """Take the devices of one claim away that nobody else uses, or delete the claim of the pod's extended resources."""
    held = _unused(unavailable, pod)
    if held is not None:
        return Freed(deallocation=_deallocation(held, pod))
    earlier = known.extended_claim(pod) if judgement.wish.extended is not None else None
    return Freed() if earlier is None else Freed(deletion=ClaimDeletion(earlier.key, earlier.uid))


def for_group(
    attempt: FailedGroupAttempt, looked: Sequence[Looked], known: Inventory, *, claims_of_groups: bool
) -> PodGroupPostFilterResult:
    """The same for each pod of a group; where that does nothing for one of them, one of the group's claims loses its
    devices, or the group.

    Args:
        claims_of_groups: gate ``DRAWorkloadResourceClaims``.
    """
    freed = [
        Freed() if each.judgement is None else for_pod(each.pod, each.judgement, each.unavailable, known)
        for each in looked
    ]
    found, status = None, unschedulable(GROUP_DONE)
    if claims_of_groups and Freed() in freed:
        found, failure = _of_group(attempt, looked, known)
        status = failure or status
    deallocations = [each.deallocation for each in (*freed, Freed(found)) if each.deallocation is not None]
    return PodGroupPostFilterResult(
        status,
        deallocations=tuple(dict.fromkeys(deallocations)),
        deleted_claims=tuple(each.deletion for each in freed if each.deletion is not None),
    )


def _of_group(
    attempt: FailedGroupAttempt, looked: Sequence[Looked], known: Inventory
) -> tuple[ClaimRelease | None, Status | None]:
    """What is taken away from the group's claims, and what is said of that. Nothing while any of its pods is on a
    node."""
    group = attempt.group
    if pod_groups.scheduled(attempt.snapshot.table, group.key):
        return None, None
    held = _unused((held for each in looked for held in each.unavailable), group.metadata.uid)
    if held is not None:
        return _deallocation(held, group.metadata.uid), unschedulable(GROUP_DEALLOCATED)
    try:
        reserved = _reserved(group, attempt, known)
    except LookupError as error:
        return None, Status(Code.ERROR, (str(error.args[0]),))
    return reserved, None if reserved is None else unschedulable(GROUP_UNRESERVED)


def _reserved(group: PodGroup, attempt: FailedGroupAttempt, known: Inventory) -> ClaimRelease | None:
    """The first claim of the group that has devices and is reserved for it, from which it is taken out.

    Raises:
        LookupError: a claim is not there; ``args[0]`` says it as upstream does.
    Source: ``NameFromPodGroup``, ``IsForPodGroup``.
    """
    namespace, pod = group.metadata.namespace or "default", attempt.pods[0].pod
    made = {each.name: each.resource_claim_name for each in group.status.resource_claim_statuses}
    for entry in group.spec.resource_claims:
        if entry.resource_claim_name is None and entry.name not in made:
            raise LookupError(f"PodGroup {group.key}: ResourceClaim not created yet")
        name = entry.resource_claim_name or made[entry.name]
        if name is None:
            continue
        claim = known.objects.claims.get(f"{namespace}/{name}")
        if claim is None:
            raise LookupError(f'could not find ResourceClaim "{namespace}/{name}"')
        owner = controller(claim.record)
        if entry.resource_claim_name is None and (owner is None or owner.uid != group.metadata.uid):
            continue
        if claim.allocation is not None and pod_claims.serves(claim.record, pod, groups=True):
            return ClaimRelease(claim.key, claim.uid, group.metadata.uid)
    return None


def _unused(unavailable: Iterable[HeldClaim], consumer: str) -> HeldClaim | None:
    """The first claim that nobody uses, or this consumer alone."""
    for held in unavailable:
        consumers = [each.uid for each in held.record.status.reserved_for]
        if not consumers or consumers == [consumer]:
            return held
    return None


def _deallocation(held: HeldClaim, consumer: str) -> ClaimRelease:
    return ClaimRelease(held.record.key, held.record.metadata.uid, consumer, deallocate=True)


def promised_devices(
    pods: Iterable[PodInfo],
    judgement: Callable[[PodInfo], Judgement | None],
    table: NodeTable,
    row: int,
    gone: frozenset[str],
) -> tuple[AllocatedDevice, ...]:
    """The devices that pods would get which a node was promised to: kept from pods of equal and lower priority.

    They are found one pod after the other, the most important first. What is promised is no allocation yet: it is found
    anew each time, with the devices that there are by then.

    A pod whose devices are not free yet gets those that it would have without the pods that are leaving, or else
    without all pods of lower priority. One that would have none even then keeps nothing from others.

    Args:
        judgement: of a pod's claims; None for one that wants no devices, or cannot have any.
        gone: pods that are gone for the sake of argument.
    """
    taken: tuple[AllocatedDevice, ...] = ()
    for pod in sorted(pods, key=lambda each: -each.priority):
        asked = judgement(pod)
        if asked is not None:
            taken += _promised_to(pod, asked, table, row, Otherwise(gone, taken))
    return taken


def _promised_to(
    pod: PodInfo, asked: Judgement, table: NodeTable, row: int, supposed: Otherwise
) -> tuple[AllocatedDevice, ...]:
    there = table.pods[row].values()
    leaving = frozenset(other.uid for other in there if other.pod.deleting)
    lower = frozenset(other.uid for other in there if other.priority < pod.priority)
    for more in (frozenset[str](), leaving, leaving | lower):
        try:
            found = asked.allocate(table, row, Otherwise(supposed.gone | more, supposed.taken))
        except (AllocationError, InvalidPools):
            return ()  # the pod will be told when it is tried itself
        if found is not None:
            return tuple(device for each in found[0] for device in charged(msgspec.convert(each, Allocation)))
    return ()


class Supposed:
    """Pods that a trial has put on its node, or taken off it, for the sake of argument.

    Attributes:
        gone: pods that are on the node and were taken off it.
        come: pods that were put there and are not: those that the node was promised to.
    """

    def __init__(self) -> None:
        self.gone: set[PodUid] = set()
        self.come: dict[PodUid, PodInfo] = {}

    @property
    def nothing(self) -> bool:
        """Whether the node is as it is."""
        return not (self.gone or self.come)

    def clone(self) -> "Supposed":
        """For a trial of its own (`CycleState.fork`)."""
        other = Supposed()
        other.gone, other.come = set(self.gone), dict(self.come)
        return other

    def add(self, pod: PodInfo) -> None:
        """A pod was put on the node."""
        if pod.uid in self.gone:
            self.gone.discard(pod.uid)
        else:
            self.come[pod.uid] = pod

    def remove(self, pod: PodInfo) -> None:
        """A pod was taken off the node."""
        if self.come.pop(pod.uid, None) is None:
            self.gone.add(pod.uid)
