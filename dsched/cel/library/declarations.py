"""Functions as they are declared: ``list(A).indexOf(A) -> int`` says it all."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from dsched.cel import types
from dsched.cel.types import Type

Implementation = Callable[..., Any]
"""Takes values and gives one, a `dsched.cel.values.Failure` for an error."""

_NAMES = {
    "bool": types.BOOL,
    "int": types.INT,
    "uint": types.UINT,
    "double": types.DOUBLE,
    "string": types.STRING,
    "bytes": types.BYTES,
    "duration": types.DURATION,
    "timestamp": types.TIMESTAMP,
    "dyn": types.DYN,
    "Quantity": types.QUANTITY,
    "Semver": types.SEMVER,
    "URL": types.URL,
    "Format": types.FORMAT,
    "IP": types.IP,
    "CIDR": types.CIDR,
}
_SIGNATURE = re.compile(r"(?:(?P<target>[A-Za-z()., ]+?)::)?(?P<name>\S+?)\((?P<args>.*)\) -> (?P<result>.+)")
_TYPE_TOKEN = re.compile(r"\s*([A-Za-z]+|[(),])")


@dataclass(frozen=True, slots=True)
class Overload:
    """Attributes:
    args: types; the first one is the target of a member.
    run: None for operators that the planner knows itself.
    metered: ``run`` takes a `dsched.cel.regex.Meter` before the values, and counts its steps there.
    """

    id: str
    name: str
    member: bool
    args: tuple[Type, ...]
    result: Type
    run: Implementation | None = None
    metered: bool = False

    @property
    def lazy(self) -> bool:
        """Whether arguments after one that failed are left out: cel-go's functions of more than two arguments."""
        return len(self.args) > 2


def overload(signature: str, name: str, run: Implementation | None = None, *, metered: bool = False) -> Overload:
    """An overload by its signature: ``size(string) -> int``, or with a target ``string::size() -> int``.

    Args:
        name: of the overload, as cel-go calls it; costs go by it.
    """
    match = _SIGNATURE.fullmatch(signature)
    if match is None:
        raise ValueError(f"no signature: {signature}")
    args = _types(match["args"])
    if match["target"]:
        args = [*_types(match["target"]), *args]
    result = _types(match["result"])[0]
    return Overload(name, match["name"], bool(match["target"]), tuple(args), result, run, metered)


def by_name(overloads: Iterable[Overload]) -> dict[str, list[Overload]]:
    """Overloads by the name of their function, in their order."""
    found: dict[str, list[Overload]] = {}
    for each in overloads:
        found.setdefault(each.name, []).append(each)
    return found


def _types(text: str) -> list[Type]:
    tokens = _TYPE_TOKEN.findall(text)
    found: list[Type] = []
    while tokens:
        found.append(_type(tokens))
        if tokens and tokens[0] == ",":
            tokens.pop(0)
    return found


def _type(tokens: list[str]) -> Type:
    name = tokens.pop(0)
    parameters: list[Type] = []
    if tokens and tokens[0] == "(":
        while tokens.pop(0) != ")":
            parameters.append(_type(tokens))
    if name in ("list", "map", "type"):
        return Type(name, name, tuple(parameters))
    if name == "optional":
        return types.optional_of(parameters[0])
    if name in _NAMES:
        return _NAMES[name]
    if len(name) == 1:
        return types.param(name)
    return Type(f"kubernetes.authorization.{name}", "struct")
