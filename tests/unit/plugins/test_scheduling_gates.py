"""SchedulingGates."""

from typing import Any

from dsched.framework.interface import Action, Code, Resource
from dsched.plugins.scheduling_gates import SchedulingGates
from tests.builders import make_pod
from tests.unit.plugins.hints import queues

NO_HANDLE: Any = None
PLUGIN = SchedulingGates(None, NO_HANDLE)


def test_gates_are_named_in_order() -> None:
    status = PLUGIN.pre_enqueue(make_pod(gates=["b", "example.com/a"]))
    assert status is not None
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == ("waiting for scheduling gates: [b example.com/a]",)


def test_no_gates_no_objection() -> None:
    assert PLUGIN.pre_enqueue(make_pod()) is None


def test_only_the_pods_own_last_gate_matters() -> None:
    gated, half, free = make_pod(gates=["a", "b"]), make_pod(gates=["a"]), make_pod()
    assert queues(PLUGIN, gated, Resource.POD, Action.UPDATE, half, free)
    assert not queues(PLUGIN, gated, Resource.POD, Action.UPDATE, gated, half)
    assert not queues(PLUGIN, gated, Resource.POD, Action.UPDATE, free, free)
    assert not queues(PLUGIN, make_pod("shop/other"), Resource.POD, Action.UPDATE, gated, free)
