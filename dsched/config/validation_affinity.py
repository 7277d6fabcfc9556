"""What has to hold of the node affinity in ``NodeAffinityArgs.addedAffinity``.

Source: kubernetes v1.34 pkg/scheduler/apis/config/validation/validation_pluginargs.go (``ValidateNodeAffinityArgs``),
component-helpers scheduling/corev1/nodeaffinity/nodeaffinity.go, apimachinery pkg/labels/selector.go.
"""

import re

from dsched.config import names
from dsched.config.decode import Wire
from dsched.config.feature_gates import Features
from dsched.config.fields import child, index, invalid, unsupported

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")
_INTEGER = re.compile(r"[-+]?[0-9]+")
_INT64 = range(-(2**63), 2**63)


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
