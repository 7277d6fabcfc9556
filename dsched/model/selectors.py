"""Label selectors: parsed once, then asked of labels, or of one label's value where a table keeps values apart.

Source: k8s.io/apimachinery pkg/labels/selector.go and pkg/apis/meta/v1/helpers.go ``LabelSelectorAsSelector``.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dsched.errors import SelectorError
from dsched.model import names
from dsched.model.meta import LabelSelector, LabelSelectorRequirement

IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GREATER, LESS = "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"
LABEL_OPERATORS = frozenset({IN, NOT_IN, EXISTS, DOES_NOT_EXIST})
"""Operators of label selectors."""
NODE_OPERATORS = LABEL_OPERATORS | {GREATER, LESS}
"""Operators of node selector terms."""

_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")
_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Requirement:
    """``key operator values``; `bound` is the one value of Gt and Lt."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()
    bound: int = 0

    def admits(self, value: str | None) -> bool:
        """Whether an object whose label has this value (None: no such label) meets the requirement.

        NotIn is met by a missing label. Gt and Lt want a 64-bit integer.
        """
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        number = None if value is None else int64(value)
        if number is None:
            return False
        return number > self.bound if self.operator == GREATER else number < self.bound


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that all have to be met; without any it matches everything, unless it is `NOTHING`."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet every requirement."""
        return not self.nothing and all(each.admits(labels.get(each.key)) for each in self.requirements)

    @property
    def everything(self) -> bool:
        """Whether it restricts nothing (``Empty`` in the source)."""
        return not self.nothing and not self.requirements


EVERYTHING = Selector()
NOTHING = Selector(nothing=True)


def label_selector(record: LabelSelector | None) -> Selector:
    """Parse a label selector: an absent one matches nothing, an empty one everything.

    Raises:
        SelectorError: an operator, a key or a value is not legal.
    """
    if record is None:
        return NOTHING
    equals = [LabelSelectorRequirement(key, IN, [value]) for key, value in record.match_labels.items()]
    return Selector(tuple(requirement(each) for each in (*equals, *record.match_expressions)))


def keys_of(record: LabelSelector | None) -> frozenset[str]:
    """Keys of the labels at which a label selector looks, legal or not."""
    if record is None:
        return frozenset()
    return frozenset(record.match_labels).union(each.key for each in record.match_expressions)


def labels_equal(wanted: Mapping[str, str]) -> Selector:
    """A selector for exactly these labels, taken as they are (``SelectorFromSet``); none match everything."""
    return Selector(tuple(Requirement(key, IN, frozenset({value})) for key, value in wanted.items()))


def requirement(record: LabelSelectorRequirement, operators: Collection[str] = LABEL_OPERATORS) -> Requirement:
    """Parse one requirement.

    Raises:
        SelectorError: it breaks a rule of ``labels.NewRequirement``.
    """
    problem = _problem(record, operators)
    if problem:
        raise SelectorError(f'requirement on label "{record.key}": {problem}')
    bound = int(record.values[0]) if record.operator in (GREATER, LESS) else 0
    return Requirement(record.key, record.operator, frozenset(record.values), bound)


def int64(text: str) -> int | None:
    """The 64-bit integer that text is in decimal digits with or without a sign, None when it is none."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    number = int(match[1] + match[2])
    return number if number in _INT64 else None


def _problem(record: LabelSelectorRequirement, operators: Collection[str]) -> str:
    """What is wrong with a requirement, "" for nothing."""
    operator, values = record.operator, record.values
    if operator not in operators:
        return f'operator "{operator}" is none of {", ".join(sorted(operators))}'
    if not names.is_qualified_name(record.key):
        return "the key is not a legal label key"
    if operator in (IN, NOT_IN) and not values:
        return f"{operator} needs at least one value"
    if operator in (EXISTS, DOES_NOT_EXIST) and values:
        return f"{operator} takes no values, found {values}"
    if operator in (GREATER, LESS) and (len(values) != 1 or int64(values[0]) is None):
        return f"{operator} needs exactly one value, a 64-bit integer, found {values}"
    wrong = next((value for value in values if not names.is_label_value(value)), None)
    return "" if wrong is None else f'"{wrong}" is not a legal label value'
