"""PrioritySort: the order of the active queue, high priority first, then who has waited longer.

Source: pkg/scheduler/framework/plugins/queuesort/priority_sort.go.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from dsched.framework import interface
from dsched.model.pod import Pod

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class PrioritySort:
    name = "PrioritySort"

    def __init__(self, args: Any, handle: interface.Handle) -> None:
        pass

    def sort_key(self, pod: Pod, queued_us: int) -> tuple[int, str]:
        """Minus the priority, then the time it was queued as text of fixed width, which sorts as the time does."""
        queued = _EPOCH + timedelta(microseconds=queued_us)
        return -pod.spec.priority, queued.isoformat(timespec="microseconds")[: -len("+00:00")] + "Z"


_role: type[interface.QueueSortPlugin] = PrioritySort
