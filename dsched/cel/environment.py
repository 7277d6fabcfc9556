"""What an expression may use: variables, types and functions, as a version of Kubernetes has them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dsched.cel import types
from dsched.cel.library import declarations, functions
from dsched.cel.library.declarations import Overload
from dsched.cel.types import Type

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
    return Environment(minor, variables, declarations.by_name(functions.of(minor)))
