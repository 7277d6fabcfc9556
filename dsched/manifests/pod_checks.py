"""Checks of pods.

Source: kubernetes v1.37 pkg/apis/core/validation/validation.go (ValidatePodSpec, validateContainers,
validateInitContainers, validateContainerPorts, validateSchedulingGates, validatePodResourceClaims).
"""

from collections.abc import Sequence

from msgspec.structs import replace

from dsched.manifests import placement_checks, resource_checks, storage_checks, syntax
from dsched.manifests.problems import Report, distinct, said
from dsched.manifests.selector_checks import labels, one_of
from dsched.model import quantity
from dsched.model.pod import Container, ContainerPort, Pod, PodResourceClaim, PodSpec, PodStatus

PROTOCOLS = ("TCP", "UDP", "SCTP")
RESTART_POLICIES = ("Always", "OnFailure", "Never")
PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
POLICIES = ("PreemptLowerPriority", "Never")
_MAX_PORT = 65535


def spec(given: PodSpec, report: Report) -> None:
    """Check a pod's spec as written, before defaults are filled in."""
    _containers(given, report)
    _steering(given, report)
    _gates(given, report)
    resource_claims(given.resource_claims, report)
    _group(given, report)
    said(syntax.scheduler_name(given.scheduler_name) if given.scheduler_name else "", "spec.schedulerName", report)
    _whole(given, report)
    storage_checks.pod_volumes(given.volumes, report)
    resource_checks.amounts(given.overhead, "spec.overhead", report)
    if given.preemption_policy:
        one_of(given.preemption_policy, POLICIES, "spec.preemptionPolicy", report)


def status(given: PodStatus, report: Report) -> None:
    """Check a pod's status as written."""
    if given.phase:
        one_of(given.phase, PHASES, "status.phase", report)


def _steering(spec: PodSpec, report: Report) -> None:
    if spec.node_name:
        said(syntax.subdomain(spec.node_name), "spec.nodeName", report)
    if spec.node_selector:
        labels(spec.node_selector, "spec.nodeSelector", report)
    if spec.affinity is not None:
        placement_checks.affinity(spec.affinity, "spec.affinity", report)
    placement_checks.tolerations(spec.tolerations, "spec.tolerations", report)
    placement_checks.spread(spec.topology_spread_constraints, "spec.topologySpreadConstraints", report)


def _gates(spec: PodSpec, report: Report) -> None:
    distinct((gate.name for gate in spec.scheduling_gates), "spec.schedulingGates", report, "name")
    for index, gate in enumerate(spec.scheduling_gates):
        wrong = syntax.qualified_name(gate.name) if gate.name else "is missing"
        said(wrong, f"spec.schedulingGates[{index}].name", report)
    if spec.scheduling_gates and spec.node_name:
        report("spec.nodeName", "cannot be set before all schedulingGates are removed")


def _group(spec: PodSpec, report: Report) -> None:
    """The pod group. Source: ``validateSchedulingGroup``."""
    if spec.scheduling_group is not None:
        name = spec.scheduling_group.pod_group_name
        said(syntax.subdomain(name) if name else "is missing", "spec.schedulingGroup.podGroupName", report)


def _containers(spec: PodSpec, report: Report) -> None:
    if not spec.containers:
        report("spec.containers", "has to name at least one container")
    seen: set[str] = set()
    together: set[tuple[str, str, int]] = set()
    for containers, path in ((spec.containers, "spec.containers"), (spec.init_containers, "spec.initContainers")):
        for index, container in enumerate(containers):
            place = f"{path}[{index}]"
            _container(container, place, seen, report)
            _ports(container.ports, f"{place}.ports", spec.host_network, report)
            taken = together if containers is spec.containers else set()  # init containers run one by one
            _host_ports(container.ports, f"{place}.ports", spec.host_network, taken, report)


def _container(container: Container, path: str, seen: set[str], report: Report) -> None:
    wrong = syntax.dns_label(container.name) if container.name else "is missing"
    if wrong or container.name in seen:
        report(f"{path}.name", wrong or f'"{container.name}" is given twice')
    seen.add(container.name)
    if container.restart_policy is not None:
        one_of(container.restart_policy, RESTART_POLICIES, f"{path}.restartPolicy", report)
    resource_checks.requirements(container.resources, f"{path}.resources", report)


def _whole(spec: PodSpec, report: Report) -> None:
    """Check what is given for the pod as a whole, against what its containers need together.

    Source: ``validatePodResources``, ``validatePodResourceConsistency``.
    """
    given, path = spec.resources, "spec.resources"
    if not given.requests and not given.limits:
        return
    from dsched.arithmetic import requests  # hardly any pod needs it

    resource_checks.requirements(given, path, report)
    for part, amounts in (("requests", given.requests), ("limits", given.limits)):
        for name in amounts:
            if not requests.is_pod_level(name):
                report(f"{path}.{part}.{name}", "is only for containers")
    containers = (*spec.containers, *spec.init_containers)
    if not all(resource_checks.readable(each) for each in (given, *(container.resources for container in containers))):
        return
    for name, needed in requests.of_containers(Pod(spec=_requesting(spec))).items():
        part, amounts = ("requests", given.requests) if name in given.requests else ("limits", given.limits)
        if name in amounts and needed > quantity.nano(amounts[name]):
            report(f"{path}.{part}.{name}", f'"{amounts[name]}" is less than what the containers request together')
    for index, container in enumerate(spec.containers):
        for name, limit in container.resources.limits.items():
            if name in given.limits and quantity.nano(limit) > quantity.nano(given.limits[name]):
                place = f"spec.containers[{index}].resources.limits.{name}"
                report(place, f'"{limit}" is more than the limit of the pod, "{given.limits[name]}"')


def _requesting(spec: PodSpec) -> PodSpec:
    """A pod's spec, in which a container's limit is its request too where it has no other."""

    def requesting(container: Container) -> Container:
        resources = container.resources
        return replace(container, resources=replace(resources, requests={**resources.limits, **resources.requests}))

    return replace(
        spec,
        containers=[requesting(each) for each in spec.containers],
        init_containers=[requesting(each) for each in spec.init_containers],
    )


def _ports(ports: Sequence[ContainerPort], path: str, host_network: bool, report: Report) -> None:
    for index, port in enumerate(ports):
        place = f"{path}[{index}]"
        if not 1 <= port.container_port <= _MAX_PORT:
            report(f"{place}.containerPort", f"{port.container_port} is not between 1 and {_MAX_PORT}")
        if not 0 <= port.host_port <= _MAX_PORT:
            report(f"{place}.hostPort", f"{port.host_port} is not between 1 and {_MAX_PORT}")
        elif host_network and port.host_port not in (0, port.container_port):
            report(f"{place}.hostPort", "has to equal containerPort when hostNetwork is true")
        if port.protocol:
            one_of(port.protocol, PROTOCOLS, f"{place}.protocol", report)


def _host_ports(
    ports: Sequence[ContainerPort], path: str, host_network: bool, taken: set[tuple[str, str, int]], report: Report
) -> None:
    for index, port in enumerate(ports):
        number = port.host_port or (port.container_port if host_network else 0)
        if number == 0:
            continue
        use = (port.protocol or "TCP", port.host_ip, number)
        if use in taken:
            report(f"{path}[{index}].hostPort", f"{number} is taken by another port of this pod")
        taken.add(use)


def resource_claims(claims: Sequence[PodResourceClaim], report: Report) -> None:
    """Check the claims for devices that a pod or a pod group names: each has a name of its own, and names a claim or a
    template.

    Source: pkg/apis/scheduling/v1beta1/zz_generated.validations.go ``Validate_PodGroupResourceClaim``, v1.37.
    """
    distinct((claim.name for claim in claims), "spec.resourceClaims", report, "name")
    for index, claim in enumerate(claims):
        path = f"spec.resourceClaims[{index}]"
        said(syntax.dns_label(claim.name) if claim.name else "is missing", f"{path}.name", report)
        names = {
            "resourceClaimName": claim.resource_claim_name,
            "resourceClaimTemplateName": claim.resource_claim_template_name,
        }
        if sum(name is not None for name in names.values()) != 1:
            report(path, f"exactly one of {', '.join(names)} has to be given")
        for field, name in names.items():
            if name is not None and (wrong := syntax.subdomain(name)):
                report(f"{path}.{field}", wrong)
