"""A pod ``default/web`` in each state, as the real scripts leave it."""

from dsched.scheduler.ports import QueueName
from tests.integration.fsck.by_hand import ByHand

FAR_MS = 10**15
"""A deadline that no test lives to see."""


def queued(system: ByHand) -> None:
    system.cluster_with("web")


def in_flight(system: ByHand) -> None:
    queued(system)
    system.pop()


def unschedulable(system: ByHand) -> None:
    in_flight(system)
    system.put("web", QueueName.UNSCHEDULABLE)


def reserved(system: ByHand) -> None:
    in_flight(system)
    system.reserve("web")


def waiting(system: ByHand) -> None:
    in_flight(system)
    system.reserve("web", deadline_ms=FAR_MS)


def bound(system: ByHand) -> None:
    queued(system)
    system.schedule("web")
