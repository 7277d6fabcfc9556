"""PrioritySort: the order of the active queue, high priority first, then who has waited longer.

Source: pkg/scheduler/framework/plugins/queuesort/priority_sort.go.
"""

from collections.abc import Sequence
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

    def sort_keys(self, pods: Sequence[Pod], queued_us: Sequence[int]) -> list[tuple[int, str]]:
        """`sort_key` of each: pods that stand beside each other came within the same second, mostly."""
        found: list[tuple[int, str]] = []
        begins, text = 0, _second(0)
        for pod, us in zip(pods, queued_us, strict=True):
            if not 0 <= us - begins < 1_000_000:
                begins = us // 1_000_000 * 1_000_000
                text = _second(begins // 1_000_000)
            found.append((-pod.spec.priority, f"{text}.{us - begins:06}Z"))
        return found


@lru_cache(maxsize=16)
def _second(seconds: int) -> str:
    """Thousands of pods are queued within one."""
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()


_role: type[interface.QueueSortPlugin] = PrioritySort
