"""The claims of a pod: those it names, and those that were made for it.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go ``foreachPodResourceClaim``;
k8s.io/dynamic-resource-allocation resourceclaim/resourceclaim.go.
"""

from collections.abc import Callable
from typing import NamedTuple

from dsched.model.pod import Pod, PodResourceClaim
from dsched.model.pod_groups import API_GROUP, POD_GROUP, RESOURCE, PodGroup
from dsched.model.resource_claims import ClaimConsumer, ResourceClaim
from dsched.plugins.dynamic_resources.objects import KnownClaim, controller

GROUPS = "DRAWorkloadResourceClaims"
"""The gate of claims that are a pod group's."""

Find = Callable[[str], KnownClaim | None]
"""Claims by ``namespace/name``."""


class PodClaims(NamedTuple):
    """What was found.

    Attributes:
        claims: in the order of the pod's spec; those that the pod turned out not to need are left out.
        problem: why the pod cannot be scheduled yet; "" where it can. There are no claims then.
    """

    claims: tuple[KnownClaim, ...] = ()
    problem: str = ""


def claims_of(pod: Pod, find: Find, *, capital_pod: bool, groups: bool = False) -> PodClaims:
    """The claims that a pod names.

    Args:
        capital_pod: ``Pod`` is written large in what is said of owners (since 1.36).
        groups: a claim may be that of the pod's group (gate ``DRAWorkloadResourceClaims``).
    """
    found = []
    for entry in pod.spec.resource_claims:
        known = named(pod, entry)
        if known is None:
            continue
        if known.problem:
            return PodClaims(problem=known.problem)
        key = f"{_namespace(pod)}/{known.name}"
        claim = find(key)
        if claim is None:
            return PodClaims(problem=f'could not find ResourceClaim "{key}"')
        if claim.record.metadata.deletion_timestamp:
            return PodClaims(problem=f'resourceclaim "{known.name}" is being deleted')
        if known.owned and not _owns(pod, claim.record, groups=groups):
            word = "Pod" if capital_pod else "pod"
            told = f"{word} is not owner"
            if groups and pod.spec.scheduling_group is not None:
                told = f"neither Pod nor PodGroup {pod.spec.scheduling_group.pod_group_name} is the owner"
            return PodClaims(problem=f"ResourceClaim {key} was not created for {word} {pod.key} ({told})")
        found.append(claim)
    return PodClaims(tuple(found))


def _owns(pod: Pod, claim: ResourceClaim, *, groups: bool) -> bool:
    """Whether a claim was made for a pod, or for its group. Source: ``IsForPod``, ``isForPodGroupByPod``."""
    owner = controller(claim)
    if owner is None:
        return False
    named = pod.spec.scheduling_group
    of_group = groups and named is not None and (owner.kind, owner.name) == (POD_GROUP, named.pod_group_name)
    return owner.uid == pod.metadata.uid or (of_group and owner.api_version.startswith(f"{API_GROUP}/"))


def serves(claim: ResourceClaim, pod: Pod, *, groups: bool) -> bool:
    """Whether a pod may use a claim that has devices already, for itself or for its group.

    Args:
        groups: gate ``DRAWorkloadResourceClaims``.
    Source: ``IsReservedForPod``. The pod does not know the uid of its group.
    """
    group = pod.spec.scheduling_group.pod_group_name if groups and pod.spec.scheduling_group is not None else None
    return any(
        each.uid == pod.uid
        or (group is not None and (each.api_group, each.resource, each.name) == (API_GROUP, RESOURCE, group))
        for each in claim.status.reserved_for
    )


def consumers(pod: Pod, group: PodGroup | None) -> dict[str, ClaimConsumer]:
    """The claims of a pod, by ``namespace/name``, that are its group's; all others are its own.

    Source: ``podResourceClaimBindings``, ``BindTo``.
    """
    found: dict[str, ClaimConsumer] = {}
    for entry in pod.spec.resource_claims if group is not None else ():
        known = named(pod, entry)
        if group is not None and known is not None and group.shares(entry):
            found[f"{_namespace(pod)}/{known.name}"] = group.consumer
    return found


def keys_of(pod: Pod) -> list[str]:
    """The ``namespace/name`` of the claims that a pod names, as far as these are known; they need not be there."""
    found = [named(pod, entry) for entry in pod.spec.resource_claims]
    return [f"{_namespace(pod)}/{each.name}" for each in found if each is not None and each.name]


class Named(NamedTuple):
    """What the claim behind an entry is called, or why nobody can tell.

    Attributes:
        owned: it was made for the pod, and has to be its own.
    """

    name: str = ""
    owned: bool = False
    problem: str = ""


def named(pod: Pod, entry: PodResourceClaim) -> Named | None:
    """The name of the claim behind an entry; None where the pod turned out to need none."""
    if entry.resource_claim_name is not None:
        return Named(entry.resource_claim_name)
    who = f'pod "{pod.key}"'
    if entry.resource_claim_template_name is None:
        return Named(problem=f'{who}, spec.resourceClaim "{entry.name}": none of the supported fields are set')
    for status in pod.status.resource_claim_statuses:
        if status.name == entry.name:
            name = status.resource_claim_name
            return None if name is None else Named(name, owned=True)
    return Named(problem=f"{who}: ResourceClaim not created yet")


def _namespace(pod: Pod) -> str:
    return pod.metadata.namespace or "default"
