"""Selectors of devices in CEL, for the allocator.

Source: k8s.io/dynamic-resource-allocation cel/cache.go; structured/internal/incubating/allocator_incubating.go
``selectorsMatch``.
"""

from dsched.cel.devices import DeviceSelector, device_value
from dsched.cel.errors import CompileError, EvaluationError
from dsched.cel.values import MapValue
from dsched.config import Features
from dsched.model.devices import Device
from dsched.plugins.dynamic_resources.allocation.selection import Failure, SelectorCache

_ADVICE = (
    ". consider using CEL optional chaining (.? followed by orValue()) "
    "or guarding the check with has() for optional fields"
)
"""What v1.37 adds to ``no such key``. Source: k8s.io/dynamic-resource-allocation cel/errors.go."""


def selector_cache(features: Features) -> SelectorCache:
    """A cache for expressions as a version of Kubernetes reads them."""
    # The allocator of v1.35 that is used while capacity is not consumed does not tell expressions who may be shared.
    tells_shared = features.enabled("DRAConsumableCapacity") or not features.since(35)
    devices, advice = _Devices(tells_shared), _ADVICE if features.since(37) else ""

    def compile(expression: str) -> "_Selector | Failure":
        try:
            return _Selector(DeviceSelector(expression, features.version.minor), devices, advice)
        except CompileError as error:
            return Failure(False, str(error))

    return SelectorCache(compile)


class _Devices:
    """The device that was looked at last, as expressions see it: the next expression mostly looks at the same one."""

    def __init__(self, tells_shared: bool) -> None:
        self._tells_shared = tells_shared
        self._known: tuple[str, Device, MapValue] | None = None

    def value(self, driver: str, device: Device) -> MapValue:
        """
        Raises:
            EvaluationError: an attribute or a capacity cannot be read.
        """
        known = self._known
        if known is None or known[0] != driver or known[1] is not device:
            shares = device.allow_multiple_allocations if self._tells_shared else None
            value = device_value(driver, device.attributes, device.capacity, shares)
            known = self._known = driver, device, value
        return known[2]


class _Selector:
    def __init__(self, selector: DeviceSelector, devices: _Devices, advice: str) -> None:
        self._selector = selector
        self._devices = devices
        self._advice = advice

    def matches(self, driver: str, device: Device) -> bool | Failure:
        try:
            return self._selector.matches_device(self._devices.value(driver, device))
        except EvaluationError as error:
            words = str(error)
            return Failure(True, words + self._advice if "no such key:" in words else words)
