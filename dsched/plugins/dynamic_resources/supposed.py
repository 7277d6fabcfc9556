"""Pods that were put on a node, or taken off it, for the sake of argument.

Part of preemption that frees devices (gate ``DschedDevicePreemption``).
"""

from dsched.framework.pod_info import PodInfo
from dsched.model.meta import PodUid


class Supposed:
    """What a trial has changed on its node.

    Attributes:
        gone: pods that are on the node and were taken off it.
        come: pods that were put there and are not: those that the node was promised to.
    """

    def __init__(self) -> None:
        self.gone: set[PodUid] = set()
        self.come: dict[PodUid, PodInfo] = {}

    @property
    def nothing(self) -> bool:
        """Whether the node is as it is."""
        return not (self.gone or self.come)

    def clone(self) -> "Supposed":
        """For a trial of its own (`CycleState.fork`)."""
        other = Supposed()
        other.gone, other.come = set(self.gone), dict(self.come)
        return other

    def add(self, pod: PodInfo) -> None:
        """A pod was put on the node."""
        if pod.uid in self.gone:
            self.gone.discard(pod.uid)
        else:
            self.come[pod.uid] = pod

    def remove(self, pod: PodInfo) -> None:
        """A pod was taken off the node."""
        if self.come.pop(pod.uid, None) is None:
            self.gone.add(pod.uid)
