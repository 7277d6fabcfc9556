"""What a call costs, in units.

cel-go: ``interpreter/runtimecost.go``, ``ext/lists.go``, ``ext/sets.go``; apiserver: ``pkg/cel/library/cost.go``.
Numbers are computed in doubles and rounded as there, so that the limit strikes at the same place.
"""

from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

from dsched.cel.environment import CEL_GO_0_29
from dsched.cel.library.formats import pattern_size
from dsched.cel.values import Cidr, Format, MapValue, Quantity, Semver, Url, cost_size

LIST = 10
"""Units for making a list."""
MAP = 30
"""Units for making a map."""
TEXT = 0.1
"""Units for a character that is looked at."""
PATTERN = 0.25
"""Units for a character of a regular expression, by the units of the text."""

Cost = Callable[[Sequence[Any], Any], int]
"""Takes the arguments and the result, which may be failures."""

_ONE_UNIT = frozenset(
    [
        "check",
        "serviceAccount",
        "path",
        "group",
        "resource",
        "subresource",
        "namespace",
        "name",
        "allowed",
        "reason",
        "error",
        "errored",
        "masked",
        "prefixLength",
        "family",
        "isUnspecified",
        "isLoopback",
        "isLinkLocalMulticast",
        "isLinkLocalUnicast",
        "isGlobalUnicast",
        "format.named",
        "sign",
        "asInteger",
        "isInteger",
        "asApproximateFloat",
        "isGreaterThan",
        "isLessThan",
        "compareTo",
        "add",
        "sub",
        "major",
        "minor",
        "patch",
        "getScheme",
        "getHostname",
        "getHost",
        "getPort",
        "getEscapedPath",
        "getQuery",
    ]
)
_TRAVERSING = frozenset(["isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"])
_READING = frozenset(
    [
        "url",
        "lowerAscii",
        "upperAscii",
        "substring",
        "trim",
        "cidr",
        "isIP",
        "isCIDR",
        "quantity",
        "isQuantity",
        "semver",
        "isSemver",
    ]
)
_READING_TWICE = frozenset(["replace", "split", "ip.isCanonical"])
_STRICT = (Quantity, Semver, Cidr, Url, Format)


def of(function: str, overload: str, minor: int) -> Cost | int:
    """The cost of calls of a function.

    Args:
        overload: the one that was chosen when the expression was compiled; empty if that was left open.
        minor: of Kubernetes; costs have changed.
    """
    by_overload = _by_overload(overload)
    if by_overload is not None:
        return by_overload
    if function in _ONE_UNIT:
        return 350_000 if function == "check" else 1
    if function in _TRAVERSING:
        return lambda args, result: traversal(args[0])
    if function in _READING or (function == "ip" and overload != "cidr_ip"):
        return _reading(0, 1)
    if function in _READING_TWICE:
        return _reading(0, 2)
    if function in _SPECIAL:
        return _SPECIAL[function](overload)
    return _standard(overload, minor)


def traversal(value: Any) -> int:
    """Units for looking at all of a value."""
    kind = type(value)
    if kind is str:
        return int(len(value.encode("utf-8", "surrogatepass")) * TEXT)
    if kind is bytes:
        return int(len(value) * TEXT)
    if kind is list:
        return sum(map(traversal, value))
    if kind is MapValue:
        return sum(traversal(key) + traversal(value.get(key)[0]) for key in value)
    return 1


def _scaled(size: int, factor: float) -> int:
    return ceil(size * factor)


def _reading(which: int, times: int) -> Cost:
    return lambda args, result: _scaled(cost_size(args[which]), times * TEXT)


def _pattern(args: Sequence[Any], result: Any) -> int:
    return ceil((1.0 + cost_size(args[0])) * TEXT) * _scaled(cost_size(args[1]), PATTERN)


def _smaller(args: Sequence[Any], result: Any) -> int:
    return _scaled(min(cost_size(args[0]), cost_size(args[1])), TEXT)


def _equals(args: Sequence[Any], result: Any) -> int:
    kind = type(args[0])
    if kind is str or kind is int or kind is bool:
        return _smaller(args, result)
    return 1 if kind in _STRICT or kind.__module__ == "ipaddress" else _smaller(args, result)


def _contains_ip(overload: str) -> Cost:
    def cost(args: Sequence[Any], result: Any) -> int:
        units = _scaled(2 * cost_size(args[0]), TEXT)
        return units + (_scaled(cost_size(args[1]), TEXT) if overload == "cidr_contains_ip_string" else 0)

    return cost


def _contains_cidr(overload: str) -> Cost:
    def cost(args: Sequence[Any], result: Any) -> int:
        own = cost_size(args[0])
        units = _scaled(2 * own, TEXT) + _scaled(own, TEXT) + 1
        return units + (_scaled(cost_size(args[1]), TEXT) if overload == "cidr_contains_cidr_string" else 0)

    return cost


def _validate(args: Sequence[Any], result: Any) -> int:
    if type(args[0]) is not Format:
        return 1
    return ceil((1.0 + cost_size(args[1])) * TEXT) * _scaled(pattern_size(args[0]), PATTERN)


_SPECIAL: dict[str, Callable[[str], Cost | int]] = {
    "join": lambda overload: lambda args, result: _scaled(cost_size(result), 2 * TEXT),
    "find": lambda overload: _pattern,
    "findAll": lambda overload: _pattern,
    "ip": lambda overload: 1,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": lambda overload: _validate,
    "_==_": lambda overload: _equals,
}


def _standard(overload: str, minor: int) -> Cost | int:
    if overload in ("starts_with_string", "ends_with_string"):
        return _reading(1 if minor >= CEL_GO_0_29 else 0, 1)  # the affix; before, the text
    if overload in ("string_to_bytes", "bytes_to_string", "strings_quote", "string_format"):
        return _reading(0, 1)
    if overload == "in_list":
        return lambda args, result: cost_size(args[1])
    if overload == "not_equals" or overload in _ORDERED:
        return _smaller
    if overload in ("add_string", "add_bytes"):
        return lambda args, result: _scaled(cost_size(args[0]) + cost_size(args[1]), TEXT)
    if overload == "matches_string" or (overload == "matches" and minor >= CEL_GO_0_29):
        return _pattern
    if overload == "contains_string":
        return lambda args, result: _scaled(cost_size(args[0]), TEXT) * _scaled(cost_size(args[1]), TEXT)
    return 1


_ORDERED = {
    f"{name}_{kind}" for name in ("less", "less_equals", "greater", "greater_equals") for kind in ("string", "bytes")
}


def _by_overload(overload: str) -> Cost | None:
    """Costs that a library brings along for overloads."""
    if overload in ("list_slice", "lists_range", "list_reverse"):
        return lambda args, result: _list(1, cost_size(result))
    if overload in ("list_flatten", "list_flatten_int"):
        return lambda args, result: _list(_depth(args), cost_size(args[0]))
    if overload == "list_distinct" or (overload.startswith("list_") and overload.endswith("_sort")):
        return lambda args, result: _comparing(args[0])
    if overload.endswith("_sortByAssociatedKeys"):
        return lambda args, result: _comparing(args[1])
    if overload in ("list_sets_contains_list", "list_sets_intersects_list"):
        return lambda args, result: 1 + cost_size(args[0]) * cost_size(args[1])
    if overload == "list_sets_equivalent_list":
        return lambda args, result: 1 + 2 * cost_size(args[0]) * cost_size(args[1])
    return None


def _depth(args: Sequence[Any]) -> float:
    depth = args[1] if len(args) == 2 and type(args[1]) is int else 1
    return depth if depth >= 0 else 1


def _list(factor: float, size: int) -> int:
    return int(size * factor) + 1 + LIST


def _comparing(values: Any) -> int:
    size = cost_size(values)
    factor = 2.0
    if type(values) is list and values and type(values[0]) in (str, bytes):
        factor += TEXT
    return _list(factor, size * size)
