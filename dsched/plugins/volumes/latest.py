"""What was derived from the pod that was asked about last, for who asks again before anything has changed."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot

Derived = TypeVar("Derived")


class Latest(Generic[Derived]):
    """Derives once for the same pod, snapshot and version of what it depends on besides."""

    def __init__(self, derive: Callable[[PodInfo, Snapshot], Derived], version: Callable[[Snapshot], Hashable]) -> None:
        self._derive = derive
        self._version = version
        self._kept: tuple[PodInfo, Snapshot, Hashable, Derived] | None = None

    def __call__(self, pod: PodInfo, snapshot: Snapshot) -> Derived:
        """What is, or was, derived; an error is derived anew each time."""
        version, kept = self._version(snapshot), self._kept
        if kept is not None and kept[0] is pod and kept[1] is snapshot and kept[2] == version:
            return kept[3]
        found = self._derive(pod, snapshot)
        self._kept = pod, snapshot, version, found
        return found
