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

How a resize counts differs between versions; a process decides as one of them, see `follow`.

Source: k8s.io/component-helpers v0.37 resource/helpers.go ``PodRequests``, and of the versions before;
pkg/scheduler/framework/types.go ``CalculateResource``.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from dsched.model import names, quantity
from dsched.model.pod import Container, ContainerStatus, Pod
from dsched.model.quantity import Quantity

CPU, MEMORY, EPHEMERAL_STORAGE = "cpu", "memory", "ephemeral-storage"
CORE_RESOURCES = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})
PODS = "pods"
"""What each pod takes up one of."""

DEFAULT_REQUESTS: Mapping[str, int] = {CPU: quantity.nano("100m"), MEMORY: quantity.nano("200Mi")}
"""What scores count for a container without a request, in nano units. Source: pkg/scheduler/util/pod_resources.go."""

Amounts = dict[str, int]
"""Resource name to nano units, or, where a function says so, to amounts as in `dsched.model.quantity.amount`."""


class ResizeRules(NamedTuple):
    """How a resize under way counts.

    Attributes:
        apart: what is asked for, was promised and is held is added up over the containers each for itself, and the most
            of the three sums counts (since v1.37); before, the most of the three counts for each container.
        pod_level: what the status says of the pod as a whole counts (InPlacePodLevelResourcesVerticalScaling).
    """

    apart: bool = False
    pod_level: bool = False


_rules = ResizeRules()


def follow(rules: ResizeRules) -> bool:
    """Count by these rules from now on, in this process; False where they were followed already. What was counted
    before stays as it was."""
    global _rules
    changed, _rules = rules != _rules, rules
    return changed


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


def of_containers(pod: Pod) -> Amounts:
    """Nano units that the containers of a pod request together; what is requested for the pod as a whole left out.

    Source: k8s.io/component-helpers resource/helpers.go ``AggregateContainerRequests``.
    """
    return _containers(pod, False, {})


def is_pod_level(resource: str) -> bool:
    """Whether a resource can be requested for the pod as a whole (``IsSupportedPodLevelResource``)."""
    return resource in (CPU, MEMORY) or resource.startswith(names.HUGE_PAGES_PREFIX)


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
    total = (_held if from_status and _rules.apart else _containers)(pod, from_status, defaults or {})
    if pod_level and _has_pod_level(pod):
        total.update({name: nano for name, nano in _of_pod(pod, from_status).items() if is_pod_level(name)})
    _add(total, _nanos(pod.spec.overhead))
    return total


def _of_pod(pod: Pod, from_status: bool) -> Amounts:
    """Requests of the pod as a whole; during a resize the most of what is asked for, was promised and is held.

    Source: ``effectivePodLevelResources``; before v1.37 ``determineEffectiveRequests``, whose outcome only counts for
    resources that the spec names.
    """
    spec = _nanos(pod.spec.resources.requests)
    status = pod.status
    if not (from_status and _rules.pod_level) or status.resources is None:
        return spec
    needs: Amounts = {} if _resize_infeasible(pod) else dict(spec)
    _raise(needs, _nanos(status.resources.requests or {}))
    _raise(needs, _nanos(status.allocated_resources or {}))
    return needs if _rules.apart else {name: needs.get(name, 0) for name in spec}


def _held(pod: Pod, from_status: bool, defaults: Mapping[str, int]) -> Amounts:
    """The most of what the containers together ask for, were promised and hold; of the pod as a whole where its status
    says so.

    Source: ``AggregateContainerRequests`` since v1.37.
    """
    whole = pod.status.resources
    infeasible = _resize_infeasible(pod)
    needs = {} if infeasible else _containers(pod, False, defaults)
    granted, present = pod.status.allocated_resources, None if whole is None else whole.requests
    if _rules.pod_level and granted is not None and present is not None:
        _raise(needs, _nanos(granted))
        _raise(needs, _nanos(present))
        return needs
    statuses = _statuses(pod)

    def allocated(container: Container) -> Amounts:
        status = statuses.get(container.name)
        if status is not None and status.allocated_resources is not None:
            return _nanos(status.allocated_resources)
        return {} if infeasible else _nanos(container.resources.requests)

    def actuated(container: Container) -> Amounts:
        status = statuses.get(container.name)
        if status is not None and status.resources is not None and status.resources.requests is not None:
            return _nanos(status.resources.requests)
        return allocated(container)

    _raise(needs, _side_by_side(pod, allocated, allocated, defaults))
    _raise(needs, _side_by_side(pod, actuated, actuated, defaults))
    return needs


def _containers(pod: Pod, from_status: bool, defaults: Mapping[str, int]) -> Amounts:
    """What the containers need, each the most of what it asks for, was promised and holds where statuses count."""
    held = _statuses(pod) if from_status else {}

    def spec(container: Container) -> Amounts:
        return _nanos(container.resources.requests)

    return _side_by_side(pod, lambda container: _container(pod, container, held), spec, defaults)


def _side_by_side(
    pod: Pod,
    long: Callable[[Container], Amounts],
    short: Callable[[Container], Amounts],
    defaults: Mapping[str, int],
) -> Amounts:
    """The most that the containers need at any time.

    Containers and sidecars (init containers that restart always) run side by side. Each other init container runs
    beside the sidecars that were started before it.

    Args:
        long: what a container or a sidecar needs.
        short: what another init container needs.
        defaults: for what is not named.
    """
    running: Amounts = {}
    for container in pod.spec.containers:
        _add(running, {**defaults, **long(container)})
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in pod.spec.init_containers:
        if container.restart_policy == "Always":
            needs = {**defaults, **long(container)}
            _add(running, needs)
            _add(sidecars, needs)
            _raise(starting, sidecars)
        else:
            needs = {**defaults, **short(container)}
            _add(needs, sidecars)
            _raise(starting, needs)
    _raise(running, starting)
    return running


def _container(pod: Pod, container: Container, held: Mapping[str, ContainerStatus]) -> Amounts:
    """What a container needs; during a resize the most of what it asks for, was promised and has.

    Source: ``determineContainerReqs`` until v1.36.
    """
    spec = _nanos(container.resources.requests)
    status = held.get(container.name)
    if status is None or status.resources is None:
        return spec
    needs = {} if _resize_infeasible(pod) else spec
    _raise(needs, _nanos(status.resources.requests or {}))
    _raise(needs, _nanos(status.allocated_resources or {}))
    return needs


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    return {status.name: status for status in (*pod.status.container_statuses, *pod.status.init_container_statuses)}


def _resize_infeasible(pod: Pod) -> bool:
    """Whether the node can never grant the pending resize, so that what the spec asks for does not count."""
    return pod.pending_resize == "Infeasible"


def _has_pod_level(pod: Pod) -> bool:
    return any(is_pod_level(name) for name in pod.spec.resources.requests)


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
