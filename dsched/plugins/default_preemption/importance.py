"""Which pods are more important than which: who is spared first, and named first among the victims."""

from datetime import datetime
from functools import lru_cache

from dsched.framework.pod_info import PodInfo

LAST = "9999-12-31T23:59:59Z"
"""When a pod starts that has not started."""
_INSERTED = 12
"""So many are sorted by insertion in Go. Source: sort.Slice, zsortfunc.go ``pdqsort_func``."""


def by_importance(pods: list[PodInfo], *, started_once: bool = True) -> None:
    """Sort pods of one node, in the order in which they joined it, so that the most important one is first: by
    priority, then who started earlier.

    Who has not started counts as starting now, and upstream looks at its clock for each of them: since v1.37 once, in
    the order in which they joined; before, for each comparison anew. Whoever comes first in a comparison was looked at
    earlier then, and insertion, which compares a pod with those before it, puts each in front of all such pods of its
    priority: the last one that joined is spared first. Of more pods than are sorted by insertion, upstream's order has
    no rule; they are left in the order in which they joined.

    Args:
        started_once: whether the clock is looked at once for each pod.

    Source: pkg/scheduler/util/utils.go ``GetPodStartTime``, ``MoreImportantPod``; framework/preemption/types.go
    ``NewVictim``.
    """
    if started_once or len(pods) > _INSERTED:
        pods.sort(key=importance)
        return
    joined = {pod.uid: place for place, pod in enumerate(pods)}
    pods.sort(key=lambda pod: (*importance(pod), 0 if pod.pod.status.start_time else -joined[pod.uid]))


def importance(pod: PodInfo) -> tuple[int, str]:
    """Sorts the most important pod first.

    Source: pkg/scheduler/util/utils.go ``MoreImportantPod``.
    """
    return -pod.priority, start_time(pod)


def start_time(pod: PodInfo) -> str:
    """When the pod started, as sortable text."""
    text = pod.pod.status.start_time
    return LAST if not text else _sortable(text)


@lru_cache(maxsize=65536)
def _sortable(text: str) -> str:
    return datetime.fromisoformat(text).isoformat()
