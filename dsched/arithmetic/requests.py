"""What a pod requests, in the four ways that scheduling asks it.

Quantities are added exactly, in nano units, and rounded up once per pod and resource.

=====================  =================  ==========  ========================  =========================
asked by               in-place resizes   pod level   defaults for containers   function
=====================  =================  ==========  ========================  =========================
usage of a node        yes                yes         no                        `usage`
usage, for scores      yes                yes         for what is missing       `nonzero_usage`
NodeResourcesFit       no                 yes         no                        `requested`
its score              no                 no          100m and 200Mi            `scoring_requests`
=====================  =================  ==========  ========================  =========================

NodeResourcesBalancedAllocation asks for `real_requests`: as `usage`, any resource name.

Source: k8s.io/component-helpers resource/helpers.go ``PodRequests``; pkg/scheduler/framework/types.go
``CalculateResource``.
"""

from collections.abc import Mapping

from dsched.model import names, quantity
from dsched.model.pod import Container, ContainerStatus, Pod
from dsched.model.quantity import Quantity

CPU, MEMORY, EPHEMERAL_STORAGE = "cpu", "memory", "ephemeral-storage"
CORE_RESOURCES = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})

DEFAULT_REQUESTS: Mapping[str, int] = {CPU: quantity.nano("100m"), MEMORY: quantity.nano("200Mi")}
"""What scores count for a container without a request, in nano units. Source: pkg/scheduler/util/pod_resources.go."""

Amounts = dict[str, int]
"""Resource name to nano units, or, where a function says so, to amounts as in `dsched.model.quantity.amount`."""

RESIZE_PENDING = "PodResizePending"
"""Condition of a pod whose resize has not been taken up."""


def usage(pod: Pod) -> Amounts:
    """What a pod takes up on its node, a resize under way included: amounts, zero requests left out.

    Source: ``NodeInfo.update``.
    """
    return _counted(_pod_requests(pod, from_status=True, pod_level=True))


def nonzero_usage(pod: Pod) -> tuple[int, int]:
    """Milli-CPU and bytes of memory that a pod takes up in the eyes of scores.

    Every container, init containers and sidecars too, counts 100m and 200Mi for what it does not request; an explicit
    zero stays zero. Under pod-level requests only resources that nobody requests get the default.

    Source: ``PodInfo.CalculateResource``, ``getNonMissingContainerRequests``.
    """
    defaults = DEFAULT_REQUESTS
    if _has_pod_level(pod):
        real = _pod_requests(pod, from_status=True, pod_level=True)
        defaults = {name: nano for name, nano in defaults.items() if name not in real}
    nanos = _pod_requests(pod, from_status=True, pod_level=True, defaults=defaults)
    return _amount(CPU, nanos.get(CPU, 0)), _amount(MEMORY, nanos.get(MEMORY, 0))


def requested(pod: Pod) -> Amounts:
    """What the pod to be scheduled needs free on a node: amounts, zero requests left out.

    Source: pkg/scheduler/framework/plugins/noderesources/fit.go ``computePodResourceRequest``.
    """
    return _counted(_pod_requests(pod, from_status=False, pod_level=True))


def scoring_requests(pod: Pod) -> Amounts:
    """What the pod to be scheduled adds to a node in the score of NodeResourcesFit: amounts by any name.

    Containers count 100m and 200Mi for what they do not request; pod-level requests are not looked at (the scorer is
    built without that option).

    Source: noderesources/resource_allocation.go ``calculatePodResourceRequest``, fit.go ``NewFit``.
    """
    return _amounts(_pod_requests(pod, from_status=False, pod_level=False, defaults=DEFAULT_REQUESTS))


def real_requests(pod: Pod) -> Amounts:
    """What the pod to be scheduled adds to a node in the score of NodeResourcesBalancedAllocation: amounts by any name.

    Source: noderesources/resource_allocation.go ``calculatePodResourceRequest`` with ``useRequested``.
    """
    return _amounts(_pod_requests(pod, from_status=True, pod_level=True))


def takes_part(resource: str, amount: int) -> bool:
    """Whether a configured resource takes part in the score of a pod that requests so much of it: CPU, memory and
    ephemeral storage always, an extended resource only where it is requested.

    Source: noderesources/resource_allocation.go ``calculateResourceAllocatableRequest``.
    """
    return resource in CORE_RESOURCES or (amount != 0 and names.is_scalar_resource(resource))


def scaled_down(old: Pod, new: Pod) -> bool:
    """Whether a pod requests less of anything than before, or no longer names it.

    Source: pkg/scheduler/framework/events.go ``extractPodScaleDown``, which compares milli-units of every resource.
    """
    before = _pod_requests(old, from_status=True, pod_level=True)
    after = _pod_requests(new, from_status=True, pod_level=True)
    return any(name not in after or quantity.milli(nano) > quantity.milli(after[name]) for name, nano in before.items())


def _amount(resource: str, nanos: int) -> int:
    return quantity.saturated(quantity.amount(resource, nanos))


def _amounts(nanos: Amounts) -> Amounts:
    return {name: _amount(name, nano) for name, nano in nanos.items()}


def _counted(nanos: Amounts) -> Amounts:
    """Amounts of the resources that scheduling counts, without zeros."""
    return {
        name: _amount(name, nano)
        for name, nano in nanos.items()
        if nano > 0 and (name in CORE_RESOURCES or names.is_scalar_resource(name))
    }


def _pod_requests(
    pod: Pod, *, from_status: bool, pod_level: bool, defaults: Mapping[str, int] | None = None
) -> Amounts:
    """Nano units that a pod requests: containers, pod-level requests in their stead, overhead on top.

    Args:
        from_status: count what running containers hold, where their status says so.
        pod_level: let pod-level requests replace the containers' sum.
        defaults: requests of containers that do not name the resource.
    """
    total = _containers(pod, from_status, defaults or {})
    if pod_level and _has_pod_level(pod):
        total.update({name: nano for name, nano in _nanos(pod.spec.resources.requests).items() if _pod_level(name)})
    _add(total, _nanos(pod.spec.overhead))
    return total


def _containers(pod: Pod, from_status: bool, defaults: Mapping[str, int]) -> Amounts:
    """The most that the containers need at any time.

    Containers and sidecars (init containers that restart always) run side by side. Each other init container runs
    beside the sidecars that were started before it.
    """
    held = _statuses(pod) if from_status else {}
    running: Amounts = {}
    for container in pod.spec.containers:
        _add(running, {**defaults, **_container(pod, container, held)})
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in pod.spec.init_containers:
        if container.restart_policy == "Always":
            needs = {**defaults, **_container(pod, container, held)}
            _add(running, needs)
            _add(sidecars, needs)
            _raise(starting, sidecars)
        else:
            needs = {**defaults, **_nanos(container.resources.requests)}
            _add(needs, sidecars)
            _raise(starting, needs)
    _raise(running, starting)
    return running


def _container(pod: Pod, container: Container, held: Mapping[str, ContainerStatus]) -> Amounts:
    """What a container needs; during a resize the most of what it asks for, was promised and has.

    Source: ``determineContainerReqs``.
    """
    spec = _nanos(container.resources.requests)
    status = held.get(container.name)
    if status is None or status.resources is None:
        return spec
    needs = {} if _resize_infeasible(pod) else spec
    _raise(needs, _nanos(status.resources.requests))
    _raise(needs, _nanos(status.allocated_resources))
    return needs


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    return {status.name: status for status in (*pod.status.container_statuses, *pod.status.init_container_statuses)}


def _resize_infeasible(pod: Pod) -> bool:
    """Whether the node can never grant the pending resize, so that what the spec asks for does not count."""
    pending = next((each for each in pod.status.conditions if each.type == RESIZE_PENDING), None)
    return pending is not None and pending.reason == "Infeasible"


def _pod_level(resource: str) -> bool:
    """Whether a resource can be requested for the pod as a whole (``IsSupportedPodLevelResource``)."""
    return resource in (CPU, MEMORY) or resource.startswith(names.HUGE_PAGES_PREFIX)


def _has_pod_level(pod: Pod) -> bool:
    return any(_pod_level(name) for name in pod.spec.resources.requests)


def _nanos(quantities: Mapping[str, Quantity]) -> Amounts:
    return {name: quantity.nano(text) for name, text in quantities.items()}


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, nano in more.items():
        total[name] = total.get(name, 0) + nano


def _raise(highest: Amounts, other: Mapping[str, int]) -> None:
    """Take the greater of both, resource by resource."""
    for name, nano in other.items():
        if name not in highest or nano > highest[name]:
            highest[name] = nano
