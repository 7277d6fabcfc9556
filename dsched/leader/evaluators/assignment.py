"""Which evaluator holds which parts of the node table.

Each holds about as many nodes as the others. When evaluators come or go, or nodes have come where they were few, no
more parts change hands than must: who lets parts go drops them, but who gets parts builds its replica anew. So one that
cannot be asked for a while (it starts again, builds its replica, takes up a configuration) keeps its parts, and the
leader judges them meanwhile.
"""

import heapq
from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from dsched.engine.partitions import PARTS

KEPT_S = 60.0
"""After so long its parts go to others; and no sooner after that are parts dealt out again for nodes that came."""
UNEVEN = 1.25
FEW = 16
"""So many times as many nodes as it should have, and some more, are too many for one evaluator."""


class Assignment:
    """The shares of one leader's evaluators."""

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}
        self._held: dict[str, list[int]] = {}
        self._looked_at_s = 0.0

    def among(
        self, evaluators: Collection[str], nodes: NDArray[np.intp], now_s: float
    ) -> Mapping[str, Collection[int]]:
        """Parts by evaluator; beyond `PARTS` evaluators some have none.

        Args:
            evaluators: that can be asked now; those that could be lately have their share, too.
            nodes: how many there are, by part.
            now_s: seconds on a clock that never goes back.
        """
        self._seen |= dict.fromkeys(evaluators, now_s)
        self._seen = {name: at_s for name, at_s in self._seen.items() if now_s - at_s < KEPT_S}
        if self._seen.keys() != self._held.keys() or self._uneven(nodes, now_s):
            self._held = _dealt({name: self._held.get(name, []) for name in sorted(self._seen)}, nodes)
            self._looked_at_s = now_s
        return self._held

    def _uneven(self, nodes: NDArray[np.intp], now_s: float) -> bool:
        if now_s - self._looked_at_s < KEPT_S or not self._held:
            return False
        self._looked_at_s = now_s
        most = max(int(nodes[parts].sum()) for parts in self._held.values())
        return most > UNEVEN * int(nodes.sum()) / len(self._held) + FEW


def _dealt(held: Mapping[str, list[int]], nodes: NDArray[np.intp]) -> dict[str, list[int]]:
    """All parts, by who gets them.

    Args:
        held: parts by who has them so far.
    """
    weights = (nodes * PARTS + 1).tolist()  # nodes count, and where these are as many, parts for nodes to come
    fair = sum(weights) / max(len(held), 1)
    free = set(range(PARTS))
    dealt: dict[str, list[int]] = {}
    loads: list[tuple[int, str]] = []
    for name, parts in held.items():
        load, kept = sum(weights[part] for part in parts), []
        for part in sorted(parts, key=lambda part: weights[part]):
            if load - weights[part] >= fair:
                load -= weights[part]
            else:
                kept.append(part)
        free -= set(kept)
        dealt[name] = kept
        loads.append((load, name))
    heapq.heapify(loads)
    for part in sorted(free, key=lambda part: -weights[part]) if loads else ():
        load, name = heapq.heappop(loads)
        dealt[name].append(part)
        heapq.heappush(loads, (load + weights[part], name))
    return {name: sorted(parts) for name, parts in dealt.items()}
