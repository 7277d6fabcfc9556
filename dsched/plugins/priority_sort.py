"""PrioritySort: the order of the active queue, high priority first, then who has waited longer.

Source: pkg/scheduler/framework/plugins/queuesort/priority_sort.go.
"""

from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from dsched.framework import interface
from dsched.model.pod import Pod

_EPOCH = datetime(1970, 1, 1)


class PrioritySort:
    name = "PrioritySort"

    def __init__(self, args: Any, handle: interface.Handle) -> None:
        pass

    def sort_key(self, pod: Pod, queued_us: int) -> tuple[int, str]:
        """Minus the priority, then the time it was queued as text of fixed width, which sorts as the time does."""
        seconds, microseconds = divmod(queued_us, 1_000_000)
        return -pod.spec.priority, f"{_second(seconds)}.{microseconds:06}Z"


@lru_cache(maxsize=16)
def _second(seconds: int) -> str:
    """Thousands of pods are queued within one."""
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()


_role: type[interface.QueueSortPlugin] = PrioritySort
