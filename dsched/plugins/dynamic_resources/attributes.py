"""Attributes of devices, as constraints compare them.

Source: structured/internal/incubating/allocator_incubating.go ``lookupAttribute``.
"""

from typing import NamedTuple

from dsched.model.devices import Device

_KINDS = ("string", "int", "bool", "version")
_UNKNOWN = ""


class Value(NamedTuple):
    """An attribute's value. Versions are compared as they are written, lists and what is newer not at all."""

    kind: str
    value: object

    @property
    def comparable(self) -> bool:
        return self.kind != _UNKNOWN


def lookup(device: Device, driver: str, name: str) -> Value | None:
    """The attribute with a fully qualified name, which a device may give without its driver's domain; None where it
    has none."""
    found = device.attributes.get(name)
    if found is None:
        domain, slash, short = name.partition("/")
        found = device.attributes.get(short) if slash and domain == driver else None
    if found is None:
        return None
    return next((Value(kind, found[kind]) for kind in _KINDS if kind in found), Value(_UNKNOWN, None))  # type: ignore[literal-required]
