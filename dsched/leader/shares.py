"""Which evaluator holds which parts of the node table.

Each as many as the others, one more or less. When evaluators come or go, no more parts change hands than must: who lets
parts go drops them, but who gets parts builds its replica anew.
"""

from collections.abc import Collection, Mapping

from dsched.framework.parts import PARTS


class Shares:
    """The shares of one leader's evaluators."""

    def __init__(self) -> None:
        self._held: dict[str, list[int]] = {}

    def among(self, evaluators: Collection[str]) -> Mapping[str, Collection[int]]:
        """Parts by evaluator, of those that there are now; beyond `PARTS` evaluators some have none."""
        if self._held.keys() != set(evaluators):
            held = {name: self._held.get(name, []) for name in sorted(evaluators)}
            taken = {part for parts in held.values() for part in parts}
            free = [part for part in range(PARTS) if part not in taken]
            fewest, over = divmod(PARTS, len(held)) if held else (0, 0)
            fullest_first = sorted(held, key=lambda name: -len(held[name]))
            wanted = {name: fewest + (number < over) for number, name in enumerate(fullest_first)}
            for name, parts in held.items():
                free += parts[wanted[name] :]
                held[name] = parts[: wanted[name]]
            for name, parts in held.items():
                missing = wanted[name] - len(parts)
                held[name] = sorted([*parts, *free[:missing]])
                free = free[missing:]
            self._held = held
        return self._held
