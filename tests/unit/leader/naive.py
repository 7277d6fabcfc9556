"""A scheduler as one would write it on a first evening: each pod on a fresh table, node by node, in plain Python.

It asks the plugins about one row at a time and does the rest by hand: filtering in order, sampling, normalising,
weights, the best set, the message.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Normalization
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model.node import Node
from dsched.model.pod import Pod


@dataclass(frozen=True)
class Verdict:
    """What the naive scheduler says.

    Attributes:
        best: names of the best nodes; empty when the pod fits nowhere, ``message`` says why then.
        start: where the next sampled search begins.
    """

    best: frozenset[str]
    message: str
    start: int


def decide(
    framework: Framework,
    pod: Pod,
    nodes: Sequence[Node],
    placed: Sequence[tuple[str, Pod]],
    percentage: int,
    start: int,
) -> Verdict:
    """Decide on one pod, on a table made for it alone."""
    table = NodeTable()
    for node in nodes:
        table.set_node(node)
    for name, other in placed:
        table.add_pod(PodInfo(other), name)
    return _Attempt(framework, PodInfo(pod), Snapshot(table)).verdict(percentage, start)


class _Attempt:
    def __init__(self, framework: Framework, pod: PodInfo, snapshot: Snapshot) -> None:
        self.framework, self.pod, self.snapshot = framework, pod, snapshot
        self.table = snapshot.table
        self.state = CycleState()
        self.rejected: Counter[str] = Counter()

    def verdict(self, percentage: int, start: int) -> Verdict:
        count = len(self.table)
        rejection, names, narrowing = self.framework.run_pre_filter(self.state, self.pod, self.snapshot)
        if rejection is not None:
            return Verdict(frozenset(), f"0/{count} nodes are available: {', '.join(rejection.reasons)}.", start)
        if names is None:
            feasible, start = self.search(_zone_order(self.table.nodes), _wanted(percentage, count), start)
        else:
            there = [row for row in range(count) if self.table.names[row] in names]
            feasible = [row for row in there if self.passes(row)]
            if len(there) < count:
                self.rejected[f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowing))}]"] = count - len(there)
        if not feasible:
            return Verdict(frozenset(), self.message(count), start)
        totals = self.totals(feasible)
        highest = max(totals.values())
        best = frozenset(self.table.names[row] for row in feasible if totals[row] == highest)
        return Verdict(best, "", start)

    def search(self, order: list[int], wanted: int, start: int) -> tuple[list[int], int]:
        feasible: list[int] = []
        examined = 0
        for place in range(len(order)):
            row = order[(start + place) % len(order)]
            examined += 1
            if self.passes(row):
                feasible.append(row)
                if len(feasible) == wanted < len(order):
                    break
        return feasible, (start + examined) % max(len(order), 1)

    def passes(self, row: int) -> bool:
        for runner in self.framework.filters:
            if runner.name in self.state.skip_filter:
                continue
            plugin = self.framework.plugin(runner.name)
            verdict = plugin.filter_table(self.state, self.pod, self.table, np.array([row]))
            if verdict.index[0]:
                self.rejected.update(verdict.statuses[verdict.index[0] - 1].reasons)
                return False
        return True

    def totals(self, feasible: list[int]) -> dict[int, int]:
        mask = np.zeros(len(self.table), dtype=np.bool_)
        mask[feasible] = True
        self.framework.run_pre_score(self.state, self.pod, self.snapshot, mask)
        totals = dict.fromkeys(feasible, 0)
        for runner in self.framework.scores:
            if runner.name in self.state.skip_score:
                continue
            plugin = self.framework.plugin(runner.name)
            raw = [int(self.score(plugin, row)) for row in feasible]
            if runner.normalization is Normalization.CUSTOM:
                scaled = [int(each) for each in plugin.normalize(self.state, self.pod, np.array(raw))]
            else:
                scaled = [_scaled(each, max(raw), runner.normalization) for each in raw]
            for row, each in zip(feasible, scaled, strict=True):
                totals[row] += runner.weight * each
        return totals

    def score(self, plugin: Any, row: int) -> int:
        return plugin.score_table(self.state, self.pod, self.table, np.array([row]))[0]

    def message(self, count: int) -> str:
        if count == 0:
            return "no nodes available to schedule pods"
        reasons = sorted(f"{number} {reason}" for reason, number in self.rejected.items())
        return f"0/{count} nodes are available: {', '.join(reasons)}."


def _wanted(percentage: int, nodes: int) -> int:
    if percentage == 0:
        percentage = max(5, 50 - nodes // 125)
    return nodes if nodes < 100 else max(100, nodes * percentage // 100)


def _scaled(score: int, highest: int, how: Normalization) -> int:
    if how is Normalization.NONE:
        return score
    scaled = score * 100 // highest if highest else 0
    return scaled if how is Normalization.MAX else 100 - scaled


def _zone_order(nodes: Sequence[Node]) -> list[int]:
    """One of each zone in turn."""
    zones: dict[str, list[int]] = {}
    for row, node in enumerate(nodes):
        zones.setdefault(node.metadata.labels.get("topology.kubernetes.io/zone", ""), []).append(row)
    order: list[int] = []
    while any(zones.values()):
        order += [rows.pop(0) for rows in zones.values() if rows]
    return order
