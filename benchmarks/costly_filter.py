"""Plugins of another package whose Filter costs what a plugin written node by node in Python does. They reject nothing.

`benchmarks.fanout` copies this file into a package of its own.
"""

import time
from collections.abc import Mapping
from typing import Any

from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Scope, Status
from dsched.framework.pod_info import PodInfo
from dsched.framework.table import NodeInfo

_TRIED = 20_000
_TIMES = 250


class CostlyFilter:
    """Counts up to ``loops`` for each node.

    It says no scope: nothing it answers is kept, and every pod costs a pass over all nodes.
    """

    name = "CostlyFilter"

    def __init__(self, args: Mapping[str, Any] | None, handle: Any) -> None:
        self._loops = int((args or {})["loops"])

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Yes, after a while."""
        _count(self._loops)
        return None


class CostlyNodeFilter(CostlyFilter):
    """The same, and says that it looks at the node alone: evaluators are asked about many classes of pods at once."""

    name = "CostlyNodeFilter"
    filter_scope = Scope.NODE


def loops_for(seconds: float) -> int:
    """How far `CostlyFilter` counts in this time on this machine, at its best."""
    fastest = float("inf")
    for _ in range(_TIMES):
        began = time.perf_counter()
        _count(_TRIED)
        fastest = min(fastest, time.perf_counter() - began)
    return max(1, round(_TRIED * seconds / fastest))


def _count(loops: int) -> None:
    for _ in range(loops):
        pass
