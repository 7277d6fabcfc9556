"""What the scheduler's word about a queue makes of the queue's status. Pure: reads and writes nothing."""

from collections.abc import Mapping
from typing import Any

import msgspec

from dsched.model.queues import QueueStatus

Object = Mapping[str, Any]


def told(queue: Object, status: QueueStatus) -> Object | None:
    """The queue with its status; None where it has it already."""
    new = msgspec.to_builtins(status)
    return None if new == status_of(queue) else {**queue, "status": new}


def changes(queue: Object, status: QueueStatus) -> dict[str, Any]:
    """What a merge patch of the status says, so that it becomes this one; empty where it is."""
    return _difference(status_of(queue), msgspec.to_builtins(status))


def status_of(queue: Object) -> dict[str, Any]:
    """The status as it stands; empty where nothing was said yet."""
    found: dict[str, Any] = queue.get("status") or {}
    return found


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Source: RFC 7386."""
    found: dict[str, Any] = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            if inner := _difference(before, value):
                found[name] = inner
        elif value != before:
            found[name] = value
    return found
