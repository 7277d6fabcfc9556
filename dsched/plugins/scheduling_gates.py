"""SchedulingGates: a pod with scheduling gates stays out of the active queue.

Source: pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go.
"""

from collections.abc import Sequence
from typing import Any

from dsched.framework import interface
from dsched.framework.interface import Action, ClusterEvent, Hint, Registration, Resource, Status
from dsched.model.pod import Pod

REASON = "waiting for scheduling gates: [{gates}]"


class SchedulingGates:
    name = "SchedulingGates"
    hints_per_class = True
    pre_enqueue_reads = ()
    pre_enqueue_fields = ("scheduling_gates",)

    def __init__(self, args: Any, handle: interface.Handle) -> None:
        pass

    def pre_enqueue(self, pod: Pod) -> Status | None:
        gates = pod.spec.scheduling_gates
        if not gates:
            return None
        return interface.unresolvable(REASON.format(gates=" ".join(gate.name for gate in gates)))

    def events_to_register(self) -> Sequence[Registration]:
        return (Registration(Resource.POD, frozenset({Action.UPDATE}), _after_gates_gone),)


def _after_gates_gone(pod: Pod, event: ClusterEvent) -> Hint:
    """The last of the pod's own gates went."""
    gone = event.old.spec.scheduling_gates and not event.new.spec.scheduling_gates
    return Hint.QUEUE if gone and event.new.uid == pod.uid else Hint.SKIP


_role: type[interface.PreEnqueuePlugin] = SchedulingGates
_enqueue: type[interface.EnqueueExtensions] = SchedulingGates
