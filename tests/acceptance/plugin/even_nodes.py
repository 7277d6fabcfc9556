"""A plugin as others would write it, in a package of its own: pods go to nodes with an even number only."""

import os
from pathlib import Path
from typing import Any

from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Code, Scope, Status
from dsched.framework.pod_info import PodInfo
from dsched.framework.table import NodeInfo
from dsched.model.meta import NodeName

REASON = "node(s) had an odd number"


class EvenNodes:
    """Leaves a file ``POINT-PID`` in the folder EVEN_NODES_JOURNAL for each process that asks it at an extension point.

    In ``reserve`` it leaves word for ``pre_bind``, which runs in another process.
    """

    name = "EvenNodes"
    filter_scope = Scope.NODE

    def __init__(self, args: Any, handle: Any) -> None:
        self._journal = Path(os.environ["EVEN_NODES_JOURNAL"])

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        self._note("filter")
        return None if int(node.name[-1]) % 2 == 0 else Status(Code.UNSCHEDULABLE, (REASON,))

    def reserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status | None:
        self._note("reserve")
        state.shared[self.name] = node
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        self._note("unreserve")

    def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status | None:
        self._note("pre_bind")
        return None if state.shared[self.name] == node else Status(Code.ERROR, ("word from reserve was lost",))

    def _note(self, point: str) -> None:
        (self._journal / f"{point}-{os.getpid()}").touch()
