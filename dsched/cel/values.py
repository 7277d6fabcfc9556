"""Values of expressions: equality, order, size, key of a map.

bool, int, float, str, bytes, None and list are Python's own; the rest is here. An error is a value, too, until
an operator absorbs it or it is the result.

cel-go: ``common/types``.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from dsched.cel import types
from dsched.cel.types import Type

INT_MAX = 2**63 - 1
INT_MIN = -(2**63)
UINT_MAX = 2**64 - 1
_DURATION_MAX = INT_MAX
TIME_MIN, TIME_MAX = -62135596800, 253402300799
"""Seconds since 1970 of the years 1 and 9999, between which timestamps lie."""


class UInt(int):
    """An unsigned integer; arithmetic gives plain integers, which the operators wrap again."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """An error while evaluating."""

    text: str


NO_OVERLOAD = Failure("no such overload")


@dataclass(frozen=True, slots=True)
class Duration:
    """Attributes:
    nanos: nanoseconds, 64 bits.
    """

    nanos: int


@dataclass(frozen=True, slots=True)
class Timestamp:
    """Attributes:
    nanos: nanoseconds since 1970.
    offset: minutes east of UTC that the text named; equality does not look at it.
    """

    nanos: int
    offset: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be missing."""

    value: Any = None
    present: bool = True


NONE = Optional(present=False)


@dataclass(frozen=True, slots=True)
class Quantity:
    """Attributes:
    nanos: in nano units, as `dsched.model.quantity` counts.
    computed: whether it was added up or subtracted. kube-scheduler refuses to compare anything with such a quantity
        by ``==`` when it stands on the right.
    scale: the power of ten that kube-scheduler keeps it in; None where it keeps a decimal number of any size. Only
        quantities with a scale of at least 0 are integers there: ``2000m`` is none.
    """

    nanos: int
    computed: bool = field(default=False, compare=False)
    scale: int | None = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Semver:
    """Attributes:
    precedence: what versions are ordered by; the build is not part of it.
    """

    numbers: tuple[int, int, int]
    precedence: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Cidr:
    address: IPv4Address | IPv6Address
    prefix: int


@dataclass(frozen=True, slots=True)
class Url:
    scheme: str
    host: str
    escaped_path: str
    query: str
    text: str


@dataclass(frozen=True, slots=True)
class Format:
    """One of Kubernetes' named formats."""

    name: str


class _Unfindable:
    """Keeps what may stand as a key in a map, but is not found there again: lists and maps."""

    def __init__(self, value: Any) -> None:
        self.value = value


class MapValue:
    """A map.

    Args:
        entries: by key as Python hashes it: bools through `key_of`.
        default: what a key that is not there gives; ``in`` and loops do not see it. None: nothing.
    """

    __slots__ = ("default", "entries")

    def __init__(self, entries: Mapping[Any, Any], default: Any = None) -> None:
        self.entries = entries
        self.default = default

    def get(self, key: Any) -> tuple[Any, bool]:
        """The value of a key, and whether there is one. A number is found whichever type it has."""
        found = self.entries.get(key if type(key) is str else key_of(key), self)
        if found is self and type(key) in _NUMBERS:
            found = next((self.entries[each] for each in _same_number(key) if each in self.entries), self)
        if found is not self:
            return found, True
        return self.default, self.default is not None

    def __iter__(self) -> Iterator[Any]:
        """Its keys."""
        for each in self.entries:
            if type(each) is tuple:
                yield each[1]
            else:
                yield each.value if type(each) is _Unfindable else each

    def __contains__(self, key: Any) -> bool:
        if key_of(key) in self.entries:
            return True
        return type(key) in _NUMBERS and any(each in self.entries for each in _same_number(key))

    def __len__(self) -> int:
        return len(self.entries)


def key_of(value: Any) -> Any:
    """What stands for a value among the keys of a `MapValue`: strings and ints themselves, others with their type."""
    kind = type(value)
    if kind is str or kind is int:
        return value
    return _Unfindable(value) if kind in (list, MapValue, Type, Optional) else (kind.__name__, value)


def _same_number(key: Any) -> list[Any]:
    """The keys of other types that are the same number as this one."""
    if type(key) is float:
        if not key.is_integer():
            return []
        whole = int(key)
        return [
            key_of(whole) if INT_MIN <= whole <= INT_MAX else None,
            key_of(UInt(whole)) if 0 <= whole <= UINT_MAX else None,
        ]
    if type(key) is UInt:
        return [int(key)]
    return [key_of(UInt(key))] if key >= 0 else []


def is_key(value: Any) -> bool:
    """Whether a map may have such a key."""
    return type(value) not in (bytes, Semver, Url)


_TYPES: dict[type, Type] = {
    bool: types.BOOL,
    int: types.INT,
    UInt: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
    list: Type("list", "list"),
    MapValue: Type("map", "map"),
    Type: Type("type", "type"),
    Duration: types.DURATION,
    Timestamp: types.TIMESTAMP,
    Optional: Type("optional_type", "opaque"),
    Quantity: types.QUANTITY,
    Semver: types.SEMVER,
    IPv4Address: types.IP,
    IPv6Address: types.IP,
    Cidr: types.CIDR,
    Url: types.URL,
    Format: types.FORMAT,
}
_STRICT = (Quantity, Semver, IPv4Address, IPv6Address, Cidr, Url, Format)
"""Classes whose values can only be compared with their own kind."""
_NUMBERS = (int, UInt, float)


def runtime_type(value: Any) -> Type:
    """The type of a value, without what a list or map holds."""
    if isinstance(value, MapValue):  # a device is one, too
        return _TYPES[MapValue]
    return _TYPES[type(value)]


def fits(value: Any, wanted: Type) -> bool:
    """Whether a value may be an argument of this type; of lists and maps, the first element is looked at."""
    if wanted.kind in ("dyn", "param"):
        return True
    if runtime_type(value).name != wanted.name:
        return False
    if wanted.kind == "list" and wanted.parameters and value:
        return fits(value[0], wanted.parameters[0])
    if wanted.kind == "map" and wanted.parameters and len(value):
        key = next(iter(value))
        return fits(key, wanted.parameters[0]) and fits(value.get(key)[0], wanted.parameters[1])
    return True


def equal(one: Any, other: Any) -> Any:
    """True or False; a `Failure` where the values cannot be compared."""
    kind = type(one)
    if kind is type(other):
        if kind is str or kind is int or kind is bool:
            return one == other
        if kind is list:
            return _equal_lists(one, other)
        if kind is MapValue:
            return _equal_maps(one, other)
        if kind is Optional:
            return one.present == other.present and (not one.present or equal(one.value, other.value))
        if kind is Type:
            return bool(one.name == other.name)
        if kind is Quantity and other.computed:
            return NO_OVERLOAD
        return bool(one == other)
    if one is None or other is None:
        return False
    if kind in _STRICT:
        return (
            False if kind in (IPv4Address, IPv6Address) and type(other) in (IPv4Address, IPv6Address) else NO_OVERLOAD
        )
    if kind in _NUMBERS and type(other) in _NUMBERS:
        if kind is float or type(other) is float:
            return not (math.isnan(one) or math.isnan(other)) and _compare_mixed(one, other) == 0
        return bool(one == other)
    return False


def _equal_lists(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(equal(a, b) is not False for a, b in zip(one, other, strict=True))


def _equal_maps(one: MapValue, other: MapValue) -> bool:
    if len(one) != len(other):
        return False
    for key in one:
        value, found = other.get(key)
        if not found or equal(one.get(key)[0], value) is False:
            return False
    return True


def compare(one: Any, other: Any) -> Any:
    """-1, 0 or 1; a `Failure` where there is no order between the values."""
    kind, kind_of_other = type(one), type(other)
    if kind in _NUMBERS and kind_of_other in _NUMBERS:
        if kind is float or kind_of_other is float:
            if math.isnan(one) or math.isnan(other):
                return Failure("NaN values cannot be ordered")
            if kind is not kind_of_other:
                return _compare_mixed(one, other)
    elif kind is not kind_of_other or kind not in (str, bytes, bool, Duration, Timestamp):
        return NO_OVERLOAD
    if kind is Duration or kind is Timestamp:
        one, other = one.nanos, other.nanos
    return -1 if one < other else 1 if one > other else 0


def _compare_mixed(one: float, other: float) -> int:
    """A double and an integer, which is made a double first where that is possible, so that it may lose digits."""
    one, other = _bounded(one, other), _bounded(other, one)
    return -1 if one < other else 1 if one > other else 0


def _bounded(value: float, other: float) -> float:
    lowest, highest = (0.0, float(UINT_MAX)) if type(other) is UInt else (float(INT_MIN), float(INT_MAX))
    if type(value) is float:
        if math.isnan(value) or lowest <= value <= highest:
            return value
        return -math.inf if value < lowest else math.inf
    return float(value)


def size(value: Any) -> int | None:
    """Characters, bytes, elements or entries; None for values without a size."""
    kind = type(value)
    if kind is str or kind is list or kind is bytes or kind is MapValue:
        return len(value)
    if kind is IPv4Address:
        return 4
    if kind is IPv6Address:
        return 16
    if kind is Cidr:
        return -(-int(value.prefix) // 8)
    return None


def cost_size(value: Any) -> int:
    """The size as the cost of a call counts it: 1 for what has none."""
    if type(value) is Optional and value.present:
        return cost_size(value.value)
    found = size(value)
    return 1 if found is None else found


def to_int(value: int) -> Any:
    """A plain integer, or a `Failure` when it does not fit."""
    return value if INT_MIN <= value <= INT_MAX else Failure("integer overflow")


def to_uint(value: int) -> Any:
    return UInt(value) if 0 <= value <= UINT_MAX else Failure("unsigned integer overflow")


def to_duration(nanos: int) -> Any:
    return Duration(nanos) if INT_MIN <= nanos <= _DURATION_MAX else Failure("duration overflow")


def to_timestamp(nanos: int, offset: int = 0) -> Any:
    if TIME_MIN <= nanos // 10**9 <= TIME_MAX:
        return Timestamp(nanos, offset)
    return Failure("timestamp overflow")
