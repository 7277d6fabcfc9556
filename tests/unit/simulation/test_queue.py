"""What is in the queue of a simulation and changes there; what it has in common with the leader's is compared in
`tests/contract`."""

from dsched import config
from dsched.clock import ManualClock
from dsched.engine.select import Selector
from dsched.framework.pod_info import PodInfo
from dsched.plugins import registry
from dsched.scheduler.decision import Candidate
from dsched.scheduler.memory import Memory
from dsched.simulation.offline_cycle import OfflineCycle
from dsched.simulation.queue import SimulatedQueue
from tests.builders import make_pod


def test_who_changes_takes_the_turn_that_is_due_to_him_then() -> None:
    clock = ManualClock()
    made = OfflineCycle(config.default(), registry.intree(), Memory(), Selector(0), clock)
    queue = SimulatedQueue(made.frameworks, made.pending, made.groups, clock)
    queue.add([PodInfo(make_pod(f"shop/{name}")) for name in "ab"])
    changed = make_pod("shop/b", priority=5)
    queue.changed(PodInfo(changed))
    turns = []
    while isinstance(popped := queue.pop(), Candidate):
        turns.append(popped.info.key)
    assert turns == ["shop/b", "shop/a"]
