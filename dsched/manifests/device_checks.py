"""Checks of devices and claims for them: slices, device classes, taint rules, claims and templates of claims.

Expressions are compiled as the newest version does: one that an older version does not take fails the pods that would
need it.

Source: kubernetes v1.37 pkg/apis/resource/validation/validation.go; k8s.io/api resource/v1/types.go for the sizes.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from dsched.manifests import resource_checks, shapes, syntax
from dsched.manifests.problems import Report, distinct, said
from dsched.manifests.selector_checks import labels, node_selector, one_of
from dsched.model import quantity
from dsched.model.claim_requests import MOST_CONSUMERS
from dsched.model.devices import (
    EQUAL,
    EXISTS,
    NO_EXECUTE,
    NO_SCHEDULE,
    CapacityPolicy,
    CapacityRange,
    CounterConsumption,
    CounterSet,
    Device,
    DeviceCapacity,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    ResourceSlice,
    ResourceSliceSpec,
)
from dsched.model.pod import NodeSelector
from dsched.model.quantity import Quantity
from dsched.model.resource_claims import (
    ALL,
    EXACT_COUNT,
    MOST_DEVICES,
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceRequirements,
    DeviceSelector,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
)

MODES = (EXACT_COUNT, ALL)
EFFECTS = (NO_SCHEDULE, NO_EXECUTE, "None")
OPERATORS = (EQUAL, EXISTS)
ATTRIBUTE_TYPES = ("bool", "int", "string", "version", "bools", "ints", "strings", "versions")

DEVICES, DEVICES_WITH_MORE = 128, 64
"""Devices of a slice; with taints, counters or lists of values."""
ENTRIES, VALUES = 32, 48
"""Attributes and capacities of a device together; values of its attributes."""
COUNTER_SETS, COUNTERS, SETS_CONSUMED = 8, 32, 2
REQUESTS, ALTERNATIVES, CONSTRAINTS, CONFIGURATIONS, SELECTORS = MOST_DEVICES, 8, 32, 32, 32
TAINTS, CONDITIONS, OPTIONS = 16, 4, 10
EXPRESSION, TEXT, IDENTIFIER = 10 * 1024, 64, 32

_C_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VERSION_PART = r"(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_VERSION = re.compile(
    rf"(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){{2}}(?:-{_VERSION_PART}(?:\.{_VERSION_PART})*)?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)

_COMPILED = 1024
BOUNDS = ("min", "max", "step")


# -- slices and what taints devices ------------------------------------------------------------------------------------


def resource_slice(given: ResourceSlice, report: Report) -> None:
    """Check a slice of a pool."""
    spec = given.spec
    said(syntax.driver(spec.driver), "spec.driver", report)
    _pool(spec.pool.name, "spec.pool.name", report)
    if spec.pool.resource_slice_count <= 0:
        report("spec.pool.resourceSliceCount", f"{spec.pool.resource_slice_count} is not greater than zero")
    if spec.pool.generation < 0:
        report("spec.pool.generation", f"{spec.pool.generation} is negative")
    told = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
    places = (spec.node_name, spec.node_selector, spec.all_nodes, spec.per_device_node_selection)
    _one_place(dict(zip(told, places, strict=True)), "spec", report)
    if spec.node_selector is not None and len(spec.node_selector.node_selector_terms) > 1:
        report("spec.nodeSelector.nodeSelectorTerms", "has to be exactly one term")
    if spec.shared_counters and spec.devices:
        report("spec", "sharedCounters and devices exclude each other")
    _list(spec.devices, DEVICES_WITH_MORE if _has_more(spec) else DEVICES, "spec.devices", report)
    distinct((each.name for each in spec.devices), "spec.devices", report, "name")
    for index, device in enumerate(spec.devices):
        _device(device, bool(spec.per_device_node_selection), f"spec.devices[{index}]", report)
    _list(spec.shared_counters, COUNTER_SETS, "spec.sharedCounters", report)
    distinct((each.name for each in spec.shared_counters), "spec.sharedCounters", report, "name")
    for index, counters in enumerate(spec.shared_counters):
        _counter_set(counters, f"spec.sharedCounters[{index}]", report)


def taint_rule(given: DeviceTaintRule, report: Report) -> None:
    """Check a taint that somebody else than the driver gives."""
    tainted = given.spec.device_selector
    if tainted is not None:
        if tainted.driver is not None:
            said(syntax.driver(tainted.driver), "spec.deviceSelector.driver", report)
        if tainted.pool is not None:
            _pool(tainted.pool, "spec.deviceSelector.pool", report)
        if tainted.device is not None:
            said(syntax.dns_label(tainted.device), "spec.deviceSelector.device", report)
    _taint(given.spec.taint, "spec.taint", report)


def _has_more(spec: ResourceSliceSpec) -> bool:
    return any(
        device.taints
        or device.consumes_counters
        or any(kind.endswith("s") for value in device.attributes.values() for kind in value)
        for device in spec.devices
    )


def _device(device: Device, placed_by_itself: bool, path: str, report: Report) -> None:
    said(syntax.dns_label(device.name) if device.name else "is missing", f"{path}.name", report)
    if len(device.attributes) + len(device.capacity) > ENTRIES:
        report(path, f"has more than {ENTRIES} attributes and capacities")
    values = [value for each in device.attributes.values() for value in each.values()]
    if sum(len(value) if isinstance(value, list) else 1 for value in values) > VALUES:
        report(path, f"has more than {VALUES} values of attributes")
    for name, attribute in device.attributes.items():
        _name_with_domain(name, f"{path}.attributes", report)
        _attribute(attribute, f"{path}.attributes.{name}", report)
    for name, capacity in device.capacity.items():
        _name_with_domain(name, f"{path}.capacity", report)
        _capacity(capacity, bool(device.allow_multiple_allocations), f"{path}.capacity.{name}", report)
    _list(device.taints, TAINTS, f"{path}.taints", report)
    for index, taint in enumerate(device.taints):
        _taint(taint, f"{path}.taints[{index}]", report)
    _list(device.consumes_counters, SETS_CONSUMED, f"{path}.consumesCounters", report)
    distinct((each.counter_set for each in device.consumes_counters), f"{path}.consumesCounters", report, "counterSet")
    for index, consumed in enumerate(device.consumes_counters):
        _consumption(consumed, f"{path}.consumesCounters[{index}]", report)
    places = {"nodeName": device.node_name, "nodeSelector": device.node_selector, "allNodes": device.all_nodes}
    if placed_by_itself:
        _one_place(places, path, report)
    elif any(place is not None for place in places.values()):
        report(path, f"{', '.join(places)} are only for slices with perDeviceNodeSelection")
    _binding_conditions(device, path, report)


def _capacity(given: DeviceCapacity, shared: bool, path: str, report: Report) -> None:
    value = given.get("value", 0)
    said(syntax.any_amount(value), f"{path}.value", report)
    policy = given.get("requestPolicy")
    if policy is None:
        return
    path = f"{path}.requestPolicy"
    if not shared:
        report(path, "is only for devices with allowMultipleAllocations")
    amounts = _amounts_of(policy)
    for name, amount in amounts.items():
        said(syntax.any_amount(amount), f"{path}.{name}", report)
    values, span, default = policy.get("validValues", []), policy.get("validRange"), policy.get("default")
    if not (values or span is not None) or any(syntax.any_amount(each) for each in (value, *amounts.values())):
        return
    if values and span is not None:
        report(path, "validValues and validRange exclude each other")
    elif default is None:
        report(f"{path}.default", "is missing")
    elif span is None:
        _valid_values(values, default, value, f"{path}.validValues", report)
    elif "min" not in span:
        report(f"{path}.validRange.min", "is missing")
    else:
        _valid_range(span, default, value, f"{path}.validRange", report)


def _amounts_of(policy: CapacityPolicy) -> dict[str, Quantity]:
    """The amounts that a policy names, by their place in it."""
    found = {f"validValues[{index}]": each for index, each in enumerate(policy.get("validValues", []))}
    bounds: Mapping[str, Any] = policy.get("validRange", {})
    found |= {f"validRange.{name}": bounds[name] for name in BOUNDS if name in bounds}
    return found | ({"default": policy["default"]} if "default" in policy else {})


def _valid_values(values: Sequence[Quantity], default: Quantity, most: Quantity, path: str, report: Report) -> None:
    """Source: ``validateRequestPolicyValidValues``."""
    _list(values, OPTIONS, path, report)
    nanos = [quantity.nano(each) for each in values]
    for index, (value, nano) in enumerate(zip(values, nanos, strict=True)):
        if index and nano < nanos[index - 1]:
            report(f"{path}[{index}]", f'"{value}" is less than the value before it')
        if nano > quantity.nano(most):
            report(f"{path}[{index}]", f'"{value}" is more than there is, "{most}"')
    distinct((str(quantity.value(each)) for each in values), path, report)
    if quantity.nano(default) not in nanos:
        report(path, f'the default, "{default}", is not among them')


def _valid_range(span: CapacityRange, default: Quantity, most: Quantity, path: str, report: Report) -> None:
    """Source: ``validateRequestPolicyRange``."""
    least, largest, step = span["min"], span.get("max"), span.get("step")
    for name, value, what, bound in (
        ("min", least, "more than there is", most),
        ("max", largest, "more than there is", most),
        ("min", least, "more than max", largest),
        ("default", default, "more than max", largest),
    ):
        if value is not None and bound is not None and quantity.nano(value) > quantity.nano(bound):
            report(f"{path}.{name}", f'"{value}" is {what}, "{bound}"')
    if quantity.nano(default) < quantity.nano(least):
        report(f"{path}.default", f'"{default}" is less than min, "{least}"')
    if step is None:
        return
    if quantity.nano(step) <= 0:
        report(f"{path}.step", f'"{step}" is not greater than zero')
        return
    if quantity.nano(least) + quantity.nano(step) > quantity.nano(most):
        report(f"{path}.step", f'"{step}" above min is more than there is, "{most}"')
    for name, value in (("default", default), ("max", largest)):
        if value is not None and (quantity.value(value) - quantity.value(least)) % quantity.value(step):
            report(f"{path}.step", f'{name}, "{value}", is not min and a number of steps of "{step}"')


def _binding_conditions(device: Device, path: str, report: Report) -> None:
    wanted, failed = device.binding_conditions, device.binding_failure_conditions
    for conditions, name in ((wanted, "bindingConditions"), (failed, "bindingFailureConditions")):
        _list(conditions, CONDITIONS, f"{path}.{name}", report)
        distinct(conditions, f"{path}.{name}", report)
        for index, condition in enumerate(conditions):
            said(syntax.qualified_name(condition), f"{path}.{name}[{index}]", report)
    if both := set(wanted) & set(failed):
        report(f"{path}.bindingFailureConditions", f"{', '.join(sorted(both))} is among bindingConditions, too")
    if bool(wanted) != bool(failed):
        report(path, "bindingConditions and bindingFailureConditions go together")


def _attribute(attribute: Mapping[str, Any], path: str, report: Report) -> None:
    if len(attribute) != 1:
        report(path, f"has to be exactly one of {', '.join(ATTRIBUTE_TYPES)}")
        return
    ((kind, given),) = attribute.items()
    if given == []:
        report(f"{path}.{kind}", "is empty")
    for value in given if isinstance(given, list) else [given]:
        if kind in ("string", "strings", "version", "versions") and len(value.encode()) > TEXT:
            report(f"{path}.{kind}", f"is longer than {TEXT} bytes")
        elif kind in ("version", "versions") and not _VERSION.fullmatch(value):
            report(f"{path}.{kind}", f'"{value}" is not a version as semver.org has them')


def _counter_set(given: CounterSet, path: str, report: Report) -> None:
    said(syntax.dns_label(given.name) if given.name else "is missing", f"{path}.name", report)
    _counters({name: counter.value for name, counter in given.counters.items()}, path, report)


def _consumption(given: CounterConsumption, path: str, report: Report) -> None:
    said(syntax.dns_label(given.counter_set) if given.counter_set else "is missing", f"{path}.counterSet", report)
    _counters({name: counter.value for name, counter in given.counters.items()}, path, report)


def _counters(given: Mapping[str, Any], path: str, report: Report) -> None:
    if not given:
        report(f"{path}.counters", "is missing")
    if len(given) > COUNTERS:
        report(f"{path}.counters", f"has {len(given)} entries, more than {COUNTERS}")
    for name, amount in given.items():
        said(syntax.dns_label(name), f"{path}.counters", report)
        said(syntax.any_amount(amount), f"{path}.counters.{name}.value", report)


def _one_place(places: Mapping[str, Any], path: str, report: Report) -> None:
    """Where devices can be used is said once."""
    given = {name: value for name, value in places.items() if value is not None}
    if len(given) != 1:
        report(path, f"exactly one of {', '.join(places)} has to be given")
    for name, value in given.items():
        if isinstance(value, NodeSelector):
            node_selector(value, f"{path}.{name}", report)
        elif isinstance(value, str):
            said(syntax.subdomain(value), f"{path}.{name}", report)
        elif not value:
            report(f"{path}.{name}", "has to be true where it is given")


def _taint(taint: DeviceTaint, path: str, report: Report) -> None:
    said(syntax.qualified_name(taint.key) if taint.key else "is missing", f"{path}.key", report)
    said(syntax.label_value(taint.value), f"{path}.value", report)
    one_of(taint.effect, EFFECTS, f"{path}.effect", report)


# -- claims ------------------------------------------------------------------------------------------------------------


def claim(given: ResourceClaim, report: Report) -> None:
    """Check a claim, and what its status says of the devices that it has."""
    _claim_spec(given.spec, "spec", report)
    _status(given.status, report)


def claim_template(given: shapes.ClaimTemplate, report: Report) -> None:
    """Check a template of claims."""
    if given.spec.metadata.labels:
        labels(given.spec.metadata.labels, "spec.metadata.labels", report)
    for key in given.spec.metadata.annotations:
        said(syntax.qualified_name(key), "spec.metadata.annotations", report)
    _claim_spec(given.spec.spec, "spec.spec", report)


def device_class(given: DeviceClass, report: Report) -> None:
    """Check a class of devices."""
    _selectors(given.spec.selectors, "spec.selectors", report)
    _list(given.spec.config, CONFIGURATIONS, "spec.config", report)
    for index, configuration in enumerate(given.spec.config):
        _opaque(configuration.opaque, f"spec.config[{index}].opaque", report)
    name = given.spec.extended_resource_name
    if name is not None and (syntax.qualified_name(name) or not resource_checks.is_extended(name)):
        report("spec.extendedResourceName", f'"{name}" is no name of an extended resource')


def _claim_spec(spec: ResourceClaimSpec, path: str, report: Report) -> None:
    devices, path = spec.devices, f"{path}.devices"
    _list(devices.requests, REQUESTS, f"{path}.requests", report)
    distinct((each.name for each in devices.requests), f"{path}.requests", report, "name")
    for index, request in enumerate(devices.requests):
        _request(request, f"{path}.requests[{index}]", report)
    named = _request_names(devices)
    _list(devices.constraints, CONSTRAINTS, f"{path}.constraints", report)
    for index, constraint in enumerate(devices.constraints):
        _constraint(constraint, named, f"{path}.constraints[{index}]", report)
    _list(devices.config, CONFIGURATIONS, f"{path}.config", report)
    for index, configuration in enumerate(devices.config):
        _references(configuration.requests, named, f"{path}.config[{index}].requests", report)
        _opaque(configuration.opaque, f"{path}.config[{index}].opaque", report)


def _request_names(devices: DeviceClaim) -> frozenset[str]:
    """What constraints and configurations may refer to."""
    alternatives = {f"{each.name}/{sub.name}" for each in devices.requests for sub in each.first_available}
    return frozenset({each.name for each in devices.requests} | alternatives)


def _request(request: DeviceRequest, path: str, report: Report) -> None:
    said(syntax.dns_label(request.name) if request.name else "is missing", f"{path}.name", report)
    if (request.exactly is None) == (not request.first_available):
        report(path, "exactly one of exactly, firstAvailable has to be given")
        return
    if request.exactly is not None:
        _requirements(request.exactly, f"{path}.exactly", report)
    _list(request.first_available, ALTERNATIVES, f"{path}.firstAvailable", report)
    distinct((each.name for each in request.first_available), f"{path}.firstAvailable", report, "name")
    for index, alternative in enumerate(request.first_available):
        place = f"{path}.firstAvailable[{index}]"
        said(syntax.dns_label(alternative.name) if alternative.name else "is missing", f"{place}.name", report)
        _requirements(alternative, place, report)


def _requirements(given: DeviceRequirements, path: str, report: Report) -> None:
    name = given.device_class_name
    said(syntax.subdomain(name) if name else "is missing", f"{path}.deviceClassName", report)
    _selectors(given.selectors, f"{path}.selectors", report)
    if one_of(given.allocation_mode or EXACT_COUNT, MODES, f"{path}.allocationMode", report):
        if given.allocation_mode == ALL and given.count not in (0, 1):
            report(f"{path}.count", "is not to be given with allocationMode All")
        elif given.allocation_mode != ALL and given.count < 0:
            report(f"{path}.count", f"{given.count} is not greater than zero")
    for index, toleration in enumerate(given.tolerations):
        _toleration(toleration, f"{path}.tolerations[{index}]", report)
    for capacity, amount in (given.capacity.requests if given.capacity is not None else {}).items():
        said(syntax.any_amount(amount), f"{path}.capacity.requests.{capacity}", report)


def _toleration(given: DeviceToleration, path: str, report: Report) -> None:
    if given.key:
        said(syntax.qualified_name(given.key), f"{path}.key", report)
    if one_of(given.operator or EQUAL, OPERATORS, f"{path}.operator", report):
        if given.operator == EXISTS and given.value:
            report(f"{path}.value", f"has to be empty for operator {EXISTS}")
        else:
            said(syntax.label_value(given.value), f"{path}.value", report)
    if given.effect:
        one_of(given.effect, EFFECTS, f"{path}.effect", report)


def _selectors(given: Sequence[DeviceSelector], path: str, report: Report) -> None:
    _list(given, SELECTORS, path, report)
    for index, selector in enumerate(given):
        if selector.cel is None or not selector.cel.expression:
            report(f"{path}[{index}].cel.expression", "is missing")
        elif len(selector.cel.expression) > EXPRESSION:
            report(f"{path}[{index}].cel.expression", f"is longer than {EXPRESSION} characters")
        else:
            said(_uncompiled(selector.cel.expression), f"{path}[{index}].cel.expression", report)


@lru_cache(_COMPILED)
def _uncompiled(expression: str) -> str:
    """Why an expression does not compile; ``""`` where it does."""
    from dsched import cel  # commands that read no devices do without

    try:
        cel.DeviceSelector(expression)
    except cel.CompileError as error:
        return f"does not compile: {error}"
    return ""


def _constraint(given: DeviceConstraint, named: frozenset[str], path: str, report: Report) -> None:
    _references(given.requests, named, f"{path}.requests", report)
    attributes = {"matchAttribute": given.match_attribute, "distinctAttribute": given.distinct_attribute}
    told = {name: value for name, value in attributes.items() if value is not None}
    if len(told) != 1:
        report(path, "exactly one of matchAttribute, distinctAttribute has to be given")
    for name, value in told.items():
        domain, slash, _ = value.rpartition("/")
        if not slash:
            report(f"{path}.{name}", f'"{value}" names no domain: expected DOMAIN/NAME')
        elif domain != domain.lower():  # other than where a device has the attribute
            report(f"{path}.{name}", f'"{value}" has capitals before the name')
        _name_with_domain(value, f"{path}.{name}", report)


def _references(given: Sequence[str], named: frozenset[str], path: str, report: Report) -> None:
    distinct(given, path, report)
    for index, name in enumerate(given):
        if name not in named:
            report(f"{path}[{index}]", f'"{name}" is no request of the claim, nor an alternative, REQUEST/NAME')


def _opaque(given: Mapping[str, Any] | None, path: str, report: Report) -> None:
    if given is None:
        report(path, "is missing")
    else:
        driver = given.get("driver")
        said(syntax.driver(driver if isinstance(driver, str) else ""), f"{path}.driver", report)
        if not isinstance(given.get("parameters"), dict):
            report(f"{path}.parameters", "expected an object")


def _status(status: ResourceClaimStatus, report: Report) -> None:
    if status.reserved_for and status.allocation is None:
        report("status.reservedFor", "is only for claims with an allocation")
    _list(status.reserved_for, MOST_CONSUMERS, "status.reservedFor", report)
    distinct((each.uid for each in status.reserved_for), "status.reservedFor", report, "uid")
    for index, consumer in enumerate(status.reserved_for):
        for value, name in ((consumer.resource, "resource"), (consumer.name, "name"), (consumer.uid, "uid")):
            if not value:
                report(f"status.reservedFor[{index}].{name}", "is missing")
    if status.allocation is None:
        return
    path = "status.allocation.devices.results"
    _list(status.allocation.devices.results, MOST_DEVICES, path, report)
    for index, device in enumerate(status.allocation.devices.results):
        said(syntax.driver(device.driver), f"{path}[{index}].driver", report)
        _pool(device.pool, f"{path}[{index}].pool", report)
        said(syntax.dns_label(device.device) if device.device else "is missing", f"{path}[{index}].device", report)
    if status.allocation.node_selector is not None:
        node_selector(status.allocation.node_selector, "status.allocation.nodeSelector", report)


# -- words -------------------------------------------------------------------------------------------------------------


def _pool(name: str, path: str, report: Report) -> None:
    """Names of pools are parts that are DNS subdomains, between slashes."""
    if not name or len(name) > syntax.MAX_SUBDOMAIN:
        report(path, f"is longer than {syntax.MAX_SUBDOMAIN} characters" if name else "is missing")
    else:
        said(next((wrong for part in name.split("/") if (wrong := syntax.subdomain(part))), ""), path, report)


def _name_with_domain(text: str, path: str, report: Report) -> None:
    """Names of attributes and capacities: ``name``, or ``domain/name``."""
    domain, slash, name = text.rpartition("/")
    if slash:
        said(syntax.driver(domain), path, report)
    if len(name) > IDENTIFIER or not _C_IDENTIFIER.fullmatch(name):
        report(path, f'"{text}" is no name: letters, digits and "_", no digit first, at most {IDENTIFIER} characters')


def _list(given: Sequence[Any], most: int, path: str, report: Report) -> None:
    if len(given) > most:
        report(path, f"has {len(given)} entries, more than {most}")
