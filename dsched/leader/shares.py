"""Which evaluator holds which parts of the node table.

Each as many as the others, one more or less. When evaluators come or go, no more parts change hands than must: who lets
parts go drops them, but who gets parts builds its replica anew. So one that cannot be asked for a while (it starts
again, builds its replica, takes up a configuration) keeps its parts, and the leader judges them meanwhile.
"""

from collections.abc import Collection, Mapping

from dsched.framework.parts import PARTS

KEPT_S = 60.0
"""After so long its parts go to others."""


class Shares:
    """The shares of one leader's evaluators."""

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}
        self._held: dict[str, list[int]] = {}

    def among(self, evaluators: Collection[str], now_s: float) -> Mapping[str, Collection[int]]:
        """Parts by evaluator; beyond `PARTS` evaluators some have none.

        Args:
            evaluators: that can be asked now; those that could be lately have their share, too.
            now_s: seconds on a clock that never goes back.
        """
        self._seen |= dict.fromkeys(evaluators, now_s)
        self._seen = {name: at_s for name, at_s in self._seen.items() if now_s - at_s < KEPT_S}
        if self._seen.keys() != self._held.keys():
            self._held = _shared_out({name: self._held.get(name, []) for name in sorted(self._seen)})
        return self._held


def _shared_out(held: dict[str, list[int]]) -> dict[str, list[int]]:
    """All parts, by who gets them.

    Args:
        held: parts by who has them so far.
    """
    taken = {part for parts in held.values() for part in parts}
    free = [part for part in range(PARTS) if part not in taken]
    fewest, over = divmod(PARTS, len(held)) if held else (0, 0)
    fullest_first = sorted(held, key=lambda name: -len(held[name]))
    wanted = {name: fewest + (number < over) for number, name in enumerate(fullest_first)}
    kept = {name: parts[: wanted[name]] for name, parts in held.items()}
    free += [part for name, parts in held.items() for part in parts[wanted[name] :]]
    found: dict[str, list[int]] = {}
    for name, parts in kept.items():
        missing = wanted[name] - len(parts)
        found[name] = sorted([*parts, *free[:missing]])
        free = free[missing:]
    return found
