"""What is derived from a pod, kept for the pods of its class."""

from collections.abc import Callable
from operator import attrgetter
from typing import Generic, TypeVar

from dsched.framework.pod_info import PodInfo
from dsched.lru import LRU

Derived = TypeVar("Derived")


class PerClass(Generic[Derived]):
    """Derives once per class; the classes that were asked for last are kept."""

    def __init__(
        self,
        derive: Callable[[PodInfo], Derived],
        most: int = 4096,
        key: Callable[[PodInfo], bytes] = attrgetter("class_key"),
    ) -> None:
        """
        Args:
            most: how many classes are kept.
            key: what makes the class, where that is less than `PodInfo.class_key`.
        """
        self._derive = derive
        self._key = key
        self._kept: LRU[bytes, Derived] = LRU(most)

    def __call__(self, pod: PodInfo) -> Derived:
        """What is derived from this pod, or was from another of its class."""
        key = self._key(pod)
        known = self._kept.get(key)
        if known is not None:  # `used`, without a call: each pod pays for ten of these
            self._kept.move_to_end(key)
            return known
        derived = self._kept[key] = self._derive(pod)
        return derived
