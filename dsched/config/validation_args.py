"""What has to hold of the completed arguments of the in-tree plugins.

Each check takes the path of the arguments and the arguments, and returns error lines, ``FIELD.PATH: what``.

Source: kubernetes v1.37 pkg/scheduler/apis/config/validation/validation_pluginargs.go; component-helpers
scheduling/corev1/nodeaffinity/nodeaffinity.go and apimachinery pkg/labels/selector.go for the node affinity.
"""

import re
from collections.abc import Callable, Mapping

from dsched.config import durations, names
from dsched.config.decode import Wire
from dsched.config.feature_gates import Features
from dsched.config.fields import child, duplicate, forbidden, index, invalid, required, unsupported

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")
_INTEGER = re.compile(r"[-+]?[0-9]+")
_INT64 = range(-(2**63), 2**63)
Check = Callable[[str, Wire, Features], list[str]]

RATIO = "RequestedToCapacityRatio"
SCORING_STRATEGIES = ("LeastAllocated", "MostAllocated", RATIO)
_WHEN_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_MAX_UTILIZATION = 100
_MAX_SHAPE_SCORE = 10
_MAX_WEIGHT = 100


def node_affinity(path: str, args: Wire, features: Features) -> list[str]:
    """Terms without any requirement, and preferences of weight zero, are skipped.

    Source: ``ValidateNodeAffinityArgs``, ``NewNodeSelector``, ``NewPreferredSchedulingTerms``. The paths inside a
    preference lack its field ``preference``, as upstream's do.
    """
    affinity = args["addedAffinity"] or {}
    found = []
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    place = f"{child(path, 'addedAffinity')}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    for position, term in enumerate(required.get("nodeSelectorTerms") or ()):
        found += _term(index(place, position), term)
    place = f"{child(path, 'addedAffinity')}.preferredDuringSchedulingIgnoredDuringExecution"
    for position, preferred in enumerate(affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()):
        if preferred["weight"] != 0:
            found += _term(index(place, position), preferred["preference"])
    return found


def _term(path: str, term: Wire) -> list[str]:
    """Source: ``newNodeSelectorTerm``."""
    found = []
    for position, requirement in enumerate(term["matchExpressions"] or ()):
        found += _expression(index(f"{path}.matchExpressions", position), requirement)
    for position, requirement in enumerate(term["matchFields"] or ()):
        found += _field(index(f"{path}.matchFields", position), requirement)
    return found


def _expression(path: str, requirement: Wire) -> list[str]:
    """Source: ``nodeSelectorRequirementsAsSelector``; labels ``NewRequirement``."""
    key, operator, values = requirement["key"], requirement["operator"], requirement["values"] or []
    if operator not in _OPERATORS:
        return [unsupported(f"{path}.operator", operator, _OPERATORS)]
    found = []
    if problems := names.qualified_name_problems(key):
        found.append(invalid(f"{path}.key", key, "; ".join(problems)))
    found += _value_count(f"{path}.values", operator, values)
    for position, text in enumerate(values):
        found += _value(index(f"{path}.values", position), key, operator, text)
    return found


def _value(path: str, key: str, operator: str, text: str) -> list[str]:
    """Source: labels ``NewRequirement``, ``validateLabelValue``."""
    found = []
    if operator in ("Gt", "Lt") and not _is_int64(text):
        found.append(invalid(path, text, "for 'Gt', 'Lt' operators, the value must be an integer"))
    if problems := names.label_value_problems(text):
        found.append(invalid(f"{path}[{key}]", text, "; ".join(problems)))
    return found


def _value_count(path: str, operator: str, values: list[str]) -> list[str]:
    """Source: labels ``NewRequirement``."""
    if operator in ("In", "NotIn") and not values:
        return [invalid(path, values, "for 'in', 'notin' operators, values set can't be empty")]
    if operator in ("Exists", "DoesNotExist") and values:
        return [invalid(path, values, "values set must be empty for exists and does not exist")]
    if operator in ("Gt", "Lt") and len(values) != 1:
        return [invalid(path, values, "for 'Gt', 'Lt' operators, exactly one value is required")]
    return []


def _is_int64(text: str) -> bool:
    return len(text) < 100 and _INTEGER.fullmatch(text) is not None and int(text) in _INT64


def _field(path: str, requirement: Wire) -> list[str]:
    """Source: ``nodeSelectorRequirementsAsFieldSelector``."""
    if requirement["operator"] not in _FIELD_OPERATORS:
        return [unsupported(f"{path}.operator", requirement["operator"], _FIELD_OPERATORS)]
    if len(requirement["values"] or ()) != 1:
        return [invalid(f"{path}.values", requirement["values"], "must have one element")]
    return []


def default_preemption(path: str, args: Wire, features: Features) -> list[str]:
    """Source: ``ValidateDefaultPreemptionArgs``."""
    percentage, absolute = args["minCandidateNodesPercentage"], args["minCandidateNodesAbsolute"]
    percentage_path = child(path, "minCandidateNodesPercentage")
    absolute_path = child(path, "minCandidateNodesAbsolute")
    found = []
    if not 0 <= percentage <= 100:
        found.append(invalid(percentage_path, percentage, "not in valid range [0, 100]"))
    if absolute < 0:
        found.append(invalid(absolute_path, absolute, "not in valid range [0, inf)"))
    if percentage == 0 and absolute == 0:
        what = "cannot be zero at the same time as"
        found.append(invalid(percentage_path, percentage, f"{what} minCandidateNodesAbsolute"))
        found.append(invalid(absolute_path, absolute, f"{what} minCandidateNodesPercentage"))
    return found


def inter_pod_affinity(path: str, args: Wire, features: Features) -> list[str]:
    """Source: ``ValidateInterPodAffinityArgs``."""
    weight = args["hardPodAffinityWeight"]
    if 0 <= weight <= _MAX_WEIGHT:
        return []
    return [invalid(child(path, "hardPodAffinityWeight"), weight, "not in valid range [0, 100]")]


def balanced_allocation(path: str, args: Wire, features: Features) -> list[str]:
    """Source: ``ValidateNodeResourcesBalancedAllocationArgs``."""
    found = []
    seen: set[str] = set()
    for position, resource in enumerate(args["resources"]):
        place = index(child(path, "resources"), position)
        if resource["name"] in seen:
            found.append(duplicate(f"{place}.name", resource["name"]))
        seen.add(resource["name"])
        if resource["weight"] != 1:
            found.append(invalid(f"{place}.weight", resource["weight"], "must be 1"))
    return found


def pod_topology_spread(path: str, args: Wire, features: Features) -> list[str]:
    """Source: ``ValidatePodTopologySpreadArgs``."""
    constraints = args["defaultConstraints"] or []
    found = _defaulting_type(child(path, "defaultingType"), args["defaultingType"], bool(constraints))
    seen: set[tuple[str, str]] = set()
    for position, constraint in enumerate(constraints):
        place = index(child(path, "defaultConstraints"), position)
        found += _constraint(place, constraint)
        identity = constraint["topologyKey"], constraint["whenUnsatisfiable"]
        if identity in seen:
            found.append(duplicate(place, f"{{{identity[0]}, {identity[1]}}}"))
        seen.add(identity)
    return found


def _defaulting_type(path: str, kind: str, has_constraints: bool) -> list[str]:
    """Source: ``validateDefaultingType``."""
    if kind not in ("System", "List"):
        return [unsupported(path, kind, ("System", "List"))]
    if kind == "System" and has_constraints:
        return [invalid(path, kind, "when .defaultConstraints are not empty")]
    return []


def _constraint(path: str, constraint: Wire) -> list[str]:
    """Source: ``ValidatePodTopologySpreadArgs``, ``validateTopologyKey``, ``validateWhenUnsatisfiable``."""
    found = []
    if constraint["maxSkew"] <= 0:
        found.append(invalid(f"{path}.maxSkew", constraint["maxSkew"], "not in valid range (0, inf)"))
    if not constraint["topologyKey"]:
        found.append(required(f"{path}.topologyKey", "can not be empty"))
    else:
        found += _label_name(f"{path}.topologyKey", constraint["topologyKey"])
    action = constraint["whenUnsatisfiable"]
    if not action:
        found.append(required(f"{path}.whenUnsatisfiable", "can not be empty"))
    elif action not in _WHEN_UNSATISFIABLE:
        found.append(unsupported(f"{path}.whenUnsatisfiable", action, _WHEN_UNSATISFIABLE))
    if constraint["labelSelector"] is not None:
        what = "constraint must not define a selector, as they deduced for each pod"
        found.append(forbidden(f"{path}.labelSelector", what))
    return found


def _label_name(path: str, name: str) -> list[str]:
    return [invalid(path, name, what) for what in names.qualified_name_problems(name)]


def volume_binding(path: str, args: Wire, features: Features) -> list[str]:
    """Without the feature StorageCapacityScoring any shape is refused, even an empty one.

    Source: ``ValidateVolumeBindingArgsWithOptions``.
    """
    found = []
    if args["bindTimeoutSeconds"] < 0:
        what = "invalid BindTimeoutSeconds, should not be a negative value"
        found.append(invalid(child(path, "bindTimeoutSeconds"), args["bindTimeoutSeconds"], what))
    if features.enabled("StorageCapacityScoring"):
        return found + _shape(child(path, "shape"), args["shape"] or [])
    if args["shape"] is not None:
        what = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        found.append(invalid(child(path, "shape"), args["shape"], what))
    return found


def dynamic_resources(path: str, args: Wire, features: Features) -> list[str]:
    """With the features DRASchedulerFilterTimeout and DRAResourceClaimDeviceStatus on.

    Source: ``ValidateDynamicResourcesArgs``.
    """
    found = []
    if args["filterTimeout"] < 0:
        shown = durations.show(args["filterTimeout"])
        found.append(invalid(child(path, "filterTimeout"), shown, "must be zero or positive"))
    if args.get("bindingTimeout") is None:
        return found
    if not features.enabled("DRADeviceBindingConditions"):
        what = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
        found.append(forbidden(child(path, "bindingTimeout"), what))
    elif args["bindingTimeout"] < durations.SECOND:
        shown = durations.show(args["bindingTimeout"])
        found.append(invalid(child(path, "bindingTimeout"), shown, "must be at least 1 second"))
    return found


def node_resources_fit(path: str, args: Wire, features: Features) -> list[str]:
    """Source: ``ValidateNodeResourcesFitArgs``; plugins/noderesources/fit.go ``NewFit``, which calls it."""
    found = []
    for position, name in enumerate(args["ignoredResources"] or ()):
        found += _label_name(index(child(path, "ignoredResources"), position), name)
    for position, group in enumerate(args["ignoredResourceGroups"] or ()):
        place = index(child(path, "ignoredResourceGroups"), position)
        if "/" in group:
            found.append(invalid(place, group, "resource group name can't contain '/'"))
        found += _label_name(place, group)
    return found + _scoring_strategy(child(path, "scoringStrategy"), args["scoringStrategy"], features)


def _scoring_strategy(path: str, strategy: Wire, features: Features) -> list[str]:
    """Until v1.35 the shape is checked whatever the type is, since v1.36 another type must not have one; a ratio
    without one cannot be built.

    Source: ``ValidateNodeResourcesFitArgs``, ``validateResources``, ``validateFunctionShape``; fit.go
    ``nodeResourceStrategyTypeMap``, which reads the shape of a RequestedToCapacityRatio without asking.
    """
    found = []
    if strategy["type"] not in SCORING_STRATEGIES:
        found.append(unsupported(f"{path}.type", strategy["type"], SCORING_STRATEGIES))
    for position, resource in enumerate(strategy["resources"]):
        if not 0 < resource["weight"] <= _MAX_WEIGHT:
            what = f"resource weight of {resource['name']} not in valid range (0, 100]"
            found.append(invalid(f"{index(f'{path}.resources', position)}.weight", resource["weight"], what))
    ratio, place = strategy["requestedToCapacityRatio"], child(path, "requestedToCapacityRatio")
    if ratio is None:
        needs = strategy["type"] == RATIO
        return found + ([required(place, f"type {RATIO} needs a shape")] if needs else [])
    if features.since(36) and strategy["type"] != RATIO:
        return [*found, forbidden(place, f"must be nil when type is not {RATIO}")]
    return found + _shape(child(place if features.since(36) else path, "shape"), ratio["shape"] or [])


def _shape(path: str, shape: list[Wire]) -> list[str]:
    """Source: ``validateFunctionShape``; the first point out of order is reported, no further ones."""
    if not shape:
        return [required(path, "at least one point must be specified")]
    found = []
    for position in range(1, len(shape)):
        if shape[position - 1]["utilization"] >= shape[position]["utilization"]:
            what = "values must be sorted in increasing order"
            found.append(invalid(f"{index(path, position)}.utilization", shape[position]["utilization"], what))
            break
    for position, point in enumerate(shape):
        for key, most in (("utilization", _MAX_UTILIZATION), ("score", _MAX_SHAPE_SCORE)):
            if not 0 <= point[key] <= most:
                what = f"not in valid range [0, {most}]"
                found.append(invalid(f"{index(path, position)}.{key}", point[key], what))
    return found


CHECKED_WITH_CONFIGURATION: Mapping[str, Check] = {
    "DefaultPreemption": default_preemption,
    "DynamicResources": dynamic_resources,
    "InterPodAffinity": inter_pod_affinity,
    "NodeAffinity": node_affinity,
    "NodeResourcesBalancedAllocation": balanced_allocation,
    "PodTopologySpread": pod_topology_spread,
    "VolumeBinding": volume_binding,
}
"""Plugins whose arguments are checked whether or not a profile runs the plugin.

NodeResourcesFit is not among them: upstream files its check under the name "NodeResourcesFitArgs", which no plugin has,
so that it is left to the plugin's constructor.
"""

CHECKED_WHEN_BUILT: Mapping[str, Check] = {"NodeResourcesFit": node_resources_fit}
"""Plugins whose arguments are checked when a profile that runs the plugin is built."""
