"""The claims of a pod: those it names, and those that were made for it.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go ``foreachPodResourceClaim``;
k8s.io/dynamic-resource-allocation resourceclaim/resourceclaim.go.
"""

from collections.abc import Callable
from typing import NamedTuple

from dsched.model.pod import Pod, PodResourceClaim
from dsched.plugins.dynamic_resources.objects import KnownClaim, controller

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


def claims_of(pod: Pod, find: Find, *, capital_pod: bool) -> PodClaims:
    """The claims that a pod names.

    Args:
        capital_pod: ``Pod`` is written large in what is said of owners (since 1.36).
    """
    found = []
    for entry in pod.spec.resource_claims:
        named = _name(pod, entry)
        if named is None:
            continue
        if named.problem:
            return PodClaims(problem=named.problem)
        key = f"{_namespace(pod)}/{named.name}"
        claim = find(key)
        if claim is None:
            return PodClaims(problem=f'could not find ResourceClaim "{key}"')
        if claim.record.metadata.deletion_timestamp:
            return PodClaims(problem=f'resourceclaim "{named.name}" is being deleted')
        if named.owned:
            owner = controller(claim.record)
            if owner is None or owner.uid != pod.metadata.uid:
                word = "Pod" if capital_pod else "pod"
                return PodClaims(
                    problem=f"ResourceClaim {key} was not created for {word} {pod.key} ({word} is not owner)"
                )
        found.append(claim)
    return PodClaims(tuple(found))


class _Named(NamedTuple):
    name: str = ""
    owned: bool = False
    problem: str = ""


def _name(pod: Pod, entry: PodResourceClaim) -> _Named | None:
    """The name of the claim behind an entry; None where the pod turned out to need none."""
    if entry.resource_claim_name is not None:
        return _Named(entry.resource_claim_name)
    who = f'pod "{pod.key}"'
    if entry.resource_claim_template_name is None:
        return _Named(problem=f'{who}, spec.resourceClaim "{entry.name}": none of the supported fields are set')
    for status in pod.status.resource_claim_statuses:
        if status.name == entry.name:
            name = status.resource_claim_name
            return None if name is None else _Named(name, owned=True)
    return _Named(problem=f"{who}: ResourceClaim not created yet")


def _namespace(pod: Pod) -> str:
    return pod.metadata.namespace or "default"
