"""Constraints over the devices of a claim, kept up while devices are tried.

Once a constraint refuses a device, it refuses it with more devices as well: the search may stop there.

Source: structured/internal/incubating/{allocator_incubating,constraint}.go.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from dsched.model.resource_claims import DeviceConstraint
from dsched.plugins.dynamic_resources.attributes import Value


class Constraint(ABC):
    """
    Attributes:
        attribute: the attribute that counts, fully qualified.
        requests: requests and alternatives (``request/alternative``) that it concerns; all where there are none.
    """

    def __init__(self, attribute: str, requests: Sequence[str]) -> None:
        self.attribute = attribute
        self.requests = frozenset(requests)

    def concerns(self, *names: str) -> bool:
        """Whether a request, or an alternative with both of its names, is concerned."""
        return not self.requests or not self.requests.isdisjoint(names)

    @abstractmethod
    def add(self, value: Value | None) -> bool:
        """Count a device that has this value; False, and nothing is counted, where it does not do."""

    @abstractmethod
    def remove(self) -> None:
        """Take back the last device that was counted."""


class MatchAttribute(Constraint):
    """All devices have the same value."""

    def __init__(self, attribute: str, requests: Sequence[str]) -> None:
        super().__init__(attribute, requests)
        self._value: Value | None = None
        self._devices = 0

    def add(self, value: Value | None) -> bool:
        if value is None or (self._devices and (not value.comparable or value != self._value)):
            return False
        if not self._devices:
            self._value = value
        self._devices += 1
        return True

    def remove(self) -> None:
        self._devices -= 1


class DistinctAttribute(Constraint):
    """All devices have different values."""

    def __init__(self, attribute: str, requests: Sequence[str]) -> None:
        super().__init__(attribute, requests)
        self._values: list[Value] = []

    def add(self, value: Value | None) -> bool:
        if value is None or (self._values and not value.comparable) or value in self._values:
            return False
        self._values.append(value)
        return True

    def remove(self) -> None:
        self._values.pop()


def constraint(record: DeviceConstraint) -> Constraint | None:
    """The constraint that a claim states; None for one of a kind that is not known."""
    if record.match_attribute is not None:
        return MatchAttribute(record.match_attribute, record.requests)
    if record.distinct_attribute is not None:
        return DistinctAttribute(record.distinct_attribute, record.requests)
    return None
