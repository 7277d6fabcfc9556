"""What the scheduler's word about a pod group makes of the group's status. Pure: reads and writes nothing.

Groups are plain JSON objects here, so that what dsched does not know of them stays.

Source: pkg/scheduler/schedule_one_podgroup.go ``updatePodGroupCondition``; apimachinery pkg/api/meta/conditions.go
``SetStatusCondition``.
"""

from collections.abc import Mapping
from typing import Any

from dsched.cluster.interface import GroupStatus
from dsched.model.pod_groups import INITIALLY_SCHEDULED

Object = dict[str, Any]


def condition(group: Mapping[str, Any], status: GroupStatus, now: str) -> Object | None:
    """The condition as it is to be written; None where nothing is: the group has another UID, has it already, or was
    scheduled once, which stays so.

    Args:
        now: RFC 3339; when the condition changed, if its status did.
    """
    if group["metadata"].get("uid") != status.uid:
        return None
    old = next((each for each in _conditions(group) if each.get("type") == INITIALLY_SCHEDULED), None)
    if old is not None and old.get("status") == "True" and not status.scheduled:
        return None
    said = "True" if status.scheduled else "False"
    since = old.get("lastTransitionTime", now) if old is not None and old.get("status") == said else now
    new: Object = {"type": INITIALLY_SCHEDULED, "status": said}
    if status.generation:
        new["observedGeneration"] = status.generation
    new |= {"lastTransitionTime": since, "reason": status.reason, "message": status.message}
    return None if new == old else new


def told(group: Mapping[str, Any], status: GroupStatus, now: str) -> Object | None:
    """The group with its condition; None where nothing is to be written."""
    new = condition(group, status, now)
    if new is None:
        return None
    others = [each for each in _conditions(group) if each.get("type") != INITIALLY_SCHEDULED]
    return {**group, "status": {**(group.get("status") or {}), "conditions": [*others, new]}}


def _conditions(group: Mapping[str, Any]) -> list[Object]:
    return list((group.get("status") or {}).get("conditions") or ())
