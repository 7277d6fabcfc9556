"""What the scheduler says of pod groups, for `StatusWriter`."""

from collections.abc import Sequence
from functools import partial

from dsched.cluster import pod_groups
from dsched.cluster.interface import GroupStatus
from dsched.cluster.standalone.statuses import Object, Told


def told(statuses: Sequence[GroupStatus], now: str) -> dict[str, Told]:
    """What is said of each group, one status after the other.

    Args:
        now: RFC 3339; when conditions changed, if they did.
    """
    of: dict[str, list[GroupStatus]] = {}
    for status in statuses:
        of.setdefault(status.key, []).append(status)
    return {key: partial(_all, said, now) for key, said in of.items()}


def _all(statuses: Sequence[GroupStatus], now: str, group: Object) -> Object | None:
    before = group
    for status in statuses:
        group = pod_groups.told(group, status, now) or group
    return None if group is before else group
