"""CPU time of deciding pod groups in memory, with the gate ``DschedGangPlacement`` and without it.

``python -m benchmarks.gangs``: 5,000 nodes in racks of 100; groups that ask for one rack, or for none, one after the
other.
"""

import statistics
import time

from dsched.scheduler.decision import GroupEnd
from tests.builders import make_node
from tests.unit.scheduler.grouped import Grouped, make_group, members

NODES, NODES_A_RACK, GROUPS = 5_000, 100, 9
RACK = "example.com/rack"


def decide(pods: int, *, gate: bool, mixed: bool, rack: bool) -> list[float]:
    """CPU seconds a group.

    Args:
        pods: of a group.
        mixed: half of them ask for twice as much as the others.
        rack: whether they ask for one rack.
    """
    nodes = [
        make_node(f"n{number}", cpu="16", memory="64Gi", labels={RACK: f"r{number // NODES_A_RACK:03}"})
        for number in range(NODES)
    ]
    groups = [make_group(f"shop/g{number}", pods, topology=RACK if rack else "") for number in range(GROUPS)]
    cluster, taken = Grouped(nodes, groups=groups, topology=True, placement=gate), []
    for number in range(GROUPS):
        larger = pods // 2 if mixed else 0
        group = members(pods - larger, f"shop/g{number}", cpu="1", memory="1Gi")
        group += members(larger, f"shop/g{number}", start=pods - larger, cpu="2", memory="1Gi")
        began = time.process_time()
        decided = cluster.decide(group)
        taken.append(time.process_time() - began)
        if decided.end is not GroupEnd.SCHEDULED:
            raise SystemExit(f"a group was not placed: {decided.message}")
    return taken


def main() -> None:
    """Print the median of each case, in milliseconds."""
    for pods, mixed in ((4, False), (100, False), (1000, False), (100, True)):
        for gate in (False, True):
            taken = statistics.median(decide(pods, gate=gate, mixed=mixed, rack=True)) * 1e3
            print(f"{pods} pods{', two kinds' if mixed else ''}, gate {'on' if gate else 'off'}: {taken:.1f} ms")
    print(f"1000 pods, in no rack: {statistics.median(decide(1000, gate=False, mixed=False, rack=False)) * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
