"""Types of expressions, and when a value of one may stand where another is expected.

cel-go: ``checker/types.go``.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Type:
    """``name`` and parameters, as in ``map(string, dyn)``.

    Attributes:
        kind: ``primitive``, ``dyn`` (dyn and any), ``error``, ``null``, ``list``, ``map``, ``type``, ``opaque``,
            ``struct`` or ``param`` (stands for another type).
        fields: names and types of a ``struct``.
    """

    name: str
    kind: str = "primitive"
    parameters: tuple["Type", ...] = ()
    fields: tuple[tuple[str, "Type"], ...] = ()

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"


BOOL, INT, UINT, DOUBLE, STRING, BYTES = map(Type, ("bool", "int", "uint", "double", "string", "bytes"))
TIMESTAMP = Type("google.protobuf.Timestamp", "wellknown")
DURATION = Type("google.protobuf.Duration", "wellknown")
NULL = Type("null_type", "null")
DYN = Type("dyn", "dyn")
ANY = Type("google.protobuf.Any", "dyn")
ERROR = Type("!error!", "error")
QUANTITY = Type("kubernetes.Quantity", "struct")
SEMVER = Type("kubernetes.Semver", "struct")
URL = Type("kubernetes.URL", "struct")
FORMAT = Type("kubernetes.NamedFormat", "struct")
IP = Type("net.IP", "opaque")
CIDR = Type("net.CIDR", "opaque")

_NULLABLE = {"opaque", "struct", "wellknown", "null"}


def list_of(element: Type) -> Type:
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", "map", (key, value))


def optional_of(value: Type) -> Type:
    return Type("optional_type", "opaque", (value,))


def type_of(value: Type) -> Type:
    return Type("type", "type", (value,))


def param(name: str) -> Type:
    return Type(name, "param")


def is_optional(each: Type) -> bool:
    return each.kind == "opaque" and each.name == "optional_type"


def unwrapped(each: Type) -> Type:
    """What an optional may hold; any other type itself."""
    return each.parameters[0] if is_optional(each) else each


class Bindings:
    """What each type parameter stands for, as far as that is known by now."""

    def __init__(self, bound: dict[str, Type] | None = None) -> None:
        self._bound = dict(bound or {})
        self._fresh = 0

    def fresh(self) -> Type:
        """A parameter of which nothing is known."""
        self._fresh += 1
        return param(f"_var{self._fresh}")

    def assignable(self, given: list[Type], wanted: list[Type]) -> bool:
        """Whether all of ``given`` may stand for ``wanted``; binds parameters if so, else changes nothing."""
        before = dict(self._bound)
        if len(given) == len(wanted) and all(map(self._fits, given, wanted)):
            return True
        self._bound = before
        return False

    def resolved(self, each: Type, final: bool = False) -> Type:
        """The type with parameters replaced by what they stand for; by dyn where that is open, if ``final``."""
        if each.kind == "param":
            found = self._bound.get(each.name)
            if found is not None:
                return self.resolved(found, final)
            return DYN if final else each
        if not each.parameters:
            return each
        return Type(each.name, each.kind, tuple(self.resolved(inner, final) for inner in each.parameters))

    def _fits(self, given: Type, wanted: Type) -> bool:
        if wanted.kind == "param":
            fits, known = self._binds(given, wanted)
            if fits or known:
                return fits
        if given.kind == "param":
            return self._binds(wanted, given)[0]
        if given.kind in ("dyn", "error") or wanted.kind in ("dyn", "error"):
            return True
        if given.kind == "null":
            return wanted.kind in _NULLABLE
        if wanted.kind == "null":
            return given.kind in _NULLABLE
        if given.kind == "type" or wanted.kind == "type":
            return given.kind == wanted.kind
        if given.name != wanted.name or len(given.parameters) != len(wanted.parameters):
            return False
        return all(map(self._fits, given.parameters, wanted.parameters))

    def _binds(self, value: Type, parameter: Type) -> tuple[bool, bool]:
        """Whether ``parameter`` may stand for ``value``, and whether it stood for something already."""
        if value == parameter:
            return True, True
        known = self._bound.get(parameter.name)
        if known is not None:
            if value == known:
                return True, True
            if not self._fits(value, known):
                return False, True
            wider = most_general(value, known)
            if not self._occurs(parameter, wider):
                self._bound[parameter.name] = wider
            return True, True
        if self._occurs(parameter, value):
            return False, False
        self._bound[parameter.name] = value
        return True, False

    def _occurs(self, parameter: Type, within: Type) -> bool:
        if parameter == within:
            return True
        if within.kind == "param":
            known = self._bound.get(within.name)
            return known is not None and self._occurs(parameter, known)
        return any(self._occurs(parameter, inner) for inner in within.parameters)


def most_general(one: Type, other: Type) -> Type:
    """The wider of two types that fit each other."""
    return one if _at_most_as_specific(one, other) else other


def _at_most_as_specific(one: Type, other: Type) -> bool:
    if one.kind in ("dyn", "param"):
        return True
    if other.kind in ("dyn", "param") or one.kind != other.kind:
        return False
    if one.kind == "type":
        return True
    if one.kind not in ("opaque", "list", "map"):
        return one == other
    return (
        one.name == other.name
        and len(one.parameters) == len(other.parameters)
        and all(map(_at_most_as_specific, one.parameters, other.parameters))
    )


def instantiate(types: list[Type], bindings: Bindings) -> list[Type]:
    """The types of an overload with fresh parameters instead of its own."""
    fresh: dict[str, Type] = {}

    def renew(each: Type) -> Type:
        if each.kind == "param":
            if each.name not in fresh:
                fresh[each.name] = bindings.fresh()
            return fresh[each.name]
        if not each.parameters:
            return each
        return Type(each.name, each.kind, tuple(map(renew, each.parameters)))

    return [renew(each) for each in types]
