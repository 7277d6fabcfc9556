"""Selectors over devices: each expression is looked at once a device, and what it said is kept with the device.

Source: structured/internal/incubating/allocator_incubating.go ``isSelectable``, ``selectorsMatch``.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from dsched.model.devices import Device
from dsched.model.resource_claims import DeviceClass, DeviceRequirements
from dsched.plugins.dynamic_resources.allocation.failures import AllocationError

_MOST_EXPRESSIONS = 1024
"""So many are kept in a process, and so many results with a device, before they are forgotten."""


class Criteria(NamedTuple):
    """Expressions that a device has to match: those of the class, then those of the request."""

    of_class: tuple[str, ...]
    of_request: tuple[str, ...]


class Failure(NamedTuple):
    """An expression that says neither yes nor no.

    Attributes:
        compiles: it is well formed, and fails on this device.
    """

    compiles: bool
    words: str


class Selector(Protocol):
    """A compiled expression."""

    def matches(self, driver: str, device: Device) -> bool | Failure:
        """What it says of a device."""


class Mistake(NamedTuple):
    """Where selecting a device failed."""

    in_class: bool
    number: int
    failure: Failure


def criteria(cls: DeviceClass, requirements: DeviceRequirements) -> Criteria:
    """What a request asks of its devices by expressions; selectors without one have been refused before."""
    of_class, of_request = (
        tuple("" if each.cel is None else each.cel.expression for each in selectors)
        for selectors in (cls.spec.selectors, requirements.selectors)
    )
    return Criteria(of_class, of_request)


class SelectorCache:
    """Compiled expressions, for all attempts of a process.

    Args:
        compile: gives the selector of an expression, or says why there is none.
    """

    def __init__(self, compile: Callable[[str], Selector | Failure]) -> None:
        self._compile = compile
        self._selectors: dict[str, Selector | Failure] = {}

    def select(self, wanted: Criteria, driver: str, device: Device, known: dict[str, bool | Failure]) -> bool | Mistake:
        """Whether a device meets criteria, or the first expression that fails.

        Args:
            known: what expressions have said of the device so far; gets what they say now.
        """
        for in_class, expressions in ((True, wanted.of_class), (False, wanted.of_request)):
            for index, expression in enumerate(expressions):
                said = known.get(expression)
                if said is None:
                    if len(known) >= _MOST_EXPRESSIONS:
                        known.clear()
                    said = known[expression] = self._ask(expression, driver, device)
                if said is False:
                    return False
                if said is not True:
                    return Mistake(in_class, index, said)
        return True

    def _ask(self, expression: str, driver: str, device: Device) -> bool | Failure:
        selector = self._selectors.get(expression)
        if selector is None:
            if len(self._selectors) >= _MOST_EXPRESSIONS:
                self._selectors.clear()
            selector = self._selectors[expression] = self._compile(expression)
        return selector if isinstance(selector, Failure) else selector.matches(driver, device)


def error(mistake: Mistake, class_name: str, claim: str, device: object, *, name_device: bool) -> AllocationError:
    """The words for a selector that failed.

    Args:
        claim: ``namespace/name``.
        device: as text, ``driver/pool/device``.
    """
    who = f"class {class_name}" if mistake.in_class else f"claim {claim}"
    where = f" on device {device}" if name_device and mistake.failure.compiles else ""
    kind = "runtime" if mistake.failure.compiles else "compile"
    return AllocationError(f"{who}: selector #{mistake.number}{where}: CEL {kind} error: {mistake.failure.words}")
