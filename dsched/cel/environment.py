"""What an expression may use: variables, types and functions, as a version of Kubernetes has them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from dsched.cel import types
from dsched.cel.library import (
    authorizer,
    conversions,
    declarations,
    formats,
    formatting,
    lists,
    networks,
    operators,
    optionals,
    quantities,
    regexes,
    semvers,
    strings,
    times,
    urls,
)
from dsched.cel.library.declarations import Overload
from dsched.cel.types import Type

_LIBRARIES = (
    operators,
    conversions,
    strings,
    formatting,
    regexes,
    times,
    lists,
    optionals,
    quantities,
    semvers,
    networks,
    urls,
    formats,
    authorizer,
)
"""In the order in which their overloads are tried."""

_NAMED_TYPES = {
    each.name: each
    for each in (
        types.BOOL,
        types.BYTES,
        types.DOUBLE,
        types.INT,
        types.STRING,
        types.UINT,
        types.DURATION,
        types.TIMESTAMP,
        types.NULL,
        types.IP,
        types.CIDR,
    )
} | {
    "list": types.list_of(types.DYN),
    "map": types.map_of(types.DYN, types.DYN),
    "type": Type("type", "type"),
    "optional_type": types.optional_of(types.DYN),
}


CEL_GO_0_29 = 37
"""The minor since which Kubernetes has cel-go 0.29; before it has 0.26."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Attributes:
    minor: of Kubernetes: 34 is 1.34.
    variables: names and types.
    functions: overloads by the function's name.
    types: types that expressions may name.
    """

    minor: int
    variables: Mapping[str, Type]
    functions: Mapping[str, list[Overload]] = field(repr=False)
    types: Mapping[str, Type] = field(default_factory=lambda: _NAMED_TYPES, repr=False)


def environment(minor: int, variables: Mapping[str, Type]) -> Environment:
    """The environment of a Kubernetes minor.

    apiserver: ``pkg/cel/environment/base.go``.
    """
    return Environment(minor, variables, declarations.by_name(_functions(minor)))


@lru_cache(maxsize=8)
def _functions(minor: int) -> tuple[Overload, ...]:
    """The overloads that Kubernetes 1.``minor`` offers, in the order in which they are tried."""
    versioned = [lists.LIMITED_RANGE] if minor >= CEL_GO_0_29 else [lists.RANGE, conversions.INT_TO_DURATION]
    versioned += [lists.INCLUDES] if minor >= 36 else []
    return (*(each for library in _LIBRARIES for each in library.OVERLOADS), *versioned)
