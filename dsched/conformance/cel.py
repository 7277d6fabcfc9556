"""Vectors of the family ``cel``: what becomes of an expression that selects devices, and of one device.

Compared are whether it compiles, the result, and the kind of the error: ``compile``, ``type``, ``runtime`` or ``cost``.
"""

from collections.abc import Mapping
from typing import Any

from dsched.cel import CompileError, DeviceSelector, EvaluationError
from dsched.config import Features
from dsched.config.feature_gates import UNSAID

FAMILY = "cel"
_COMPARED = ("compiles", "result", "error")


def check(case: Mapping[str, Any], expect: Mapping[str, Any], features: Features = UNSAID) -> list[str]:
    """Run one vector.

    Args:
        case: ``expression``, ``driver`` and ``device``, which is as in a ResourceSlice.
        expect: its ``expect``.
        features: of the version that it was recorded from.
    Returns:
        The differences, one line each; empty when there is none.
    """
    found = _outcome(case, features)
    return [
        f"{field}: found {found.get(field)}{_why(found)}, expected {expect.get(field)}"
        for field in _COMPARED
        if found.get(field) != expect.get(field)
    ]


def _outcome(case: Mapping[str, Any], features: Features) -> dict[str, Any]:
    device = case["device"]
    try:
        selector = DeviceSelector(case["expression"], features.version.minor)
    except CompileError as error:
        return {"compiles": False, "error": error.kind, "message": str(error)}
    try:
        result = selector.matches(
            case["driver"],
            device.get("attributes") or {},
            device.get("capacity") or {},
            device.get("allowMultipleAllocations"),
        )
    except EvaluationError as error:
        return {"compiles": True, "error": error.kind, "message": str(error)}
    return {"compiles": True, "result": result}


def _why(found: Mapping[str, Any]) -> str:
    return f" ({found['message']})" if "message" in found else ""
