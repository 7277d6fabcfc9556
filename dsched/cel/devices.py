"""Selectors of devices: ``device.driver == 'gpu.example.com' && device.attributes['gpu.example.com'].index > 1``.

dynamic-resource-allocation: ``cel/compile.go``.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from dsched.cel import types
from dsched.cel.environment import Environment, environment
from dsched.cel.errors import EvaluationError
from dsched.cel.library import quantities, semvers
from dsched.cel.program import MAX_COST, NEWEST, compile_in
from dsched.cel.types import Type, map_of
from dsched.cel.values import Failure, MapValue

Values = Mapping[str, Mapping[str, Any]]
"""Attributes (``{"string": …}``) or capacity (``{"value": …}``) by name, as in the JSON of a ResourceSlice."""

_NOTHING = MapValue({})
_FIRST_WITH_LISTS = 37
"""The minor since which attributes may be lists, so that their type is left open."""


@lru_cache(maxsize=8)
def _environment(minor: int) -> Environment:
    attribute = types.DYN if minor >= _FIRST_WITH_LISTS else types.ANY
    device = Type(
        "kubernetes.DRADevice",
        "struct",
        fields=(
            ("driver", types.STRING),
            ("attributes", map_of(types.STRING, map_of(types.STRING, attribute))),
            ("capacity", map_of(types.STRING, map_of(types.STRING, types.QUANTITY))),
            ("allowMultipleAllocations", types.BOOL),
        ),
    )
    return environment(minor, {"device": device})


class DeviceSelector:
    """An expression that devices either match or not.

    Args:
        minor: of the Kubernetes that is emulated: 34 is 1.34.

    Raises:
        CompileError: of the kind ``type`` if the expression is well formed but its result is no bool, else ``compile``.
    """

    def __init__(self, expression: str, minor: int = NEWEST) -> None:
        self.expression = expression
        unknown = types.DYN if minor >= _FIRST_WITH_LISTS else types.ANY
        self._program = compile_in(_environment(minor), expression, types.BOOL, unknown)

    def matches(
        self, driver: str, attributes: Values, capacity: Values, allow_multiple_allocations: bool | None = None
    ) -> bool:
        """Whether a device matches. See `matches_device` for many selectors of one device.

        Raises:
            EvaluationError: the expression failed on this device, or took too many units.
        """
        return self.matches_device(device_value(driver, attributes, capacity, allow_multiple_allocations))

    def matches_device(self, device: MapValue) -> bool:
        """Whether a device matches that `device_value` has made.

        Raises:
            EvaluationError: the expression failed on this device, or took too many units.
        """
        return self.outcome(device)[0]

    def outcome(self, device: MapValue) -> tuple[bool, int]:
        """Whether a device matches, and the units that this took.

        Raises:
            EvaluationError: the expression failed on this device, or took too many units.
        """
        found = self._program.evaluate({"device": device}, MAX_COST)
        if type(found.value) is not bool:
            raise EvaluationError("the result could not be converted to bool")
        return found.value, found.cost


def device_value(
    driver: str, attributes: Values, capacity: Values, allow_multiple_allocations: bool | None = None
) -> MapValue:
    """A device as selectors see it; may be kept and used again.

    Raises:
        EvaluationError: an attribute whose value cannot be read.
    """
    return MapValue(
        {
            "driver": driver,
            "allowMultipleAllocations": bool(allow_multiple_allocations),
            "attributes": _by_domain(driver, {name: _attribute(name, each) for name, each in attributes.items()}),
            "capacity": _by_domain(driver, {name: _capacity(name, each) for name, each in capacity.items()}),
        }
    )


def _by_domain(driver: str, values: Mapping[str, Any]) -> MapValue:
    """Values by the domain of their names, which is the driver's for names without one. An unknown domain is empty."""
    domains: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        domain, slash, identifier = name.partition("/")
        if not slash:
            domain, identifier = driver, name
        domains.setdefault(domain, {})[identifier] = value
    return MapValue({domain: MapValue(entries) for domain, entries in domains.items()}, default=_NOTHING)


_LISTS = ("ints", "bools", "strings")


def _attribute(name: str, attribute: Mapping[str, Any]) -> Any:
    for kind in _LISTS:
        if attribute.get(kind) is not None:
            return list(attribute[kind])
    if attribute.get("versions") is not None:
        return [_version(name, each) for each in attribute["versions"]]
    for kind in ("int", "bool", "string"):
        if attribute.get(kind) is not None:
            return attribute[kind]
    if attribute.get("version") is not None:
        return _version(name, attribute["version"])
    raise EvaluationError(f"attribute {name}: unsupported attribute value")


def _version(name: str, text: str) -> Any:
    found = semvers.parse(text)
    if type(found) is Failure:
        raise EvaluationError(f"attribute {name}: parse semantic version: {found.text}")
    return found


def _capacity(name: str, capacity: Mapping[str, Any]) -> Any:
    found = quantities.parse(str(capacity.get("value", "0")))
    if type(found) is Failure:
        raise EvaluationError(f"capacity {name}: {found.text}")
    return found
