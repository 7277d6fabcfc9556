"""Queue objects as the forest that they are, by the parents that they name. What scheduling makes of them is in
`dsched.scheduler.quota.tree`; here also those have a place whose parent is missing, or who are in a circle."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

Object = Mapping[str, Any]


def parent_of(value: Object) -> str:
    """The name of a queue's parent; empty at the top."""
    return str((value.get("spec") or {}).get("parent") or "")


class Forest:
    """Queues by name, and who names whom as its parent.

    Attributes:
        queues: by name, in the order of the names.
    """

    def __init__(self, values: Iterable[Object]) -> None:
        self.queues: dict[str, Object] = {
            each["metadata"]["name"]: each for each in sorted(values, key=lambda each: str(each["metadata"]["name"]))
        }
        self._children: dict[str, list[str]] = defaultdict(list)
        for name, value in self.queues.items():
            self._children[parent_of(value)].append(name)

    def children_of(self, name: str) -> list[str]:
        """Who names the queue as its parent, by name."""
        return list(self._children.get(name, ()))

    def path_of(self, name: str) -> list[str]:
        """The way from the top to a queue; from where it would come back to itself, in a cluster that lets it."""
        way, above = [name], self._above(name)
        while above and above not in way:
            way.append(above)
            above = self._above(above)
        return way[::-1]

    def below(self, name: str) -> set[str]:
        """The queue and all that are below it."""
        return {each for _, each in self._walk(name, set())} | {name}

    def in_tree(self) -> list[tuple[int, Object]]:
        """Queues with their depth, parents before their children, by name; at the top is whose parent is not among
        them, or who would be below itself."""
        tops = [name for name, value in self.queues.items() if parent_of(value) not in self.queues]
        seen: set[str] = set()
        return [(depth, self.queues[name]) for top in (*tops, *self.queues) for depth, name in self._walk(top, seen)]

    def _above(self, name: str) -> str:
        value = self.queues.get(name)
        return "" if value is None else parent_of(value)

    def _walk(self, start: str, seen: set[str]) -> Iterable[tuple[int, str]]:
        """A queue and those below it with their depth, without those that were seen, which they are from now on."""
        stack = [(0, start)]
        while stack:
            depth, name = stack.pop()
            if name in seen or name not in self.queues:
                continue
            seen.add(name)
            yield depth, name
            stack += [(depth + 1, child) for child in reversed(self._children.get(name, ()))]
