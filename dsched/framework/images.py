"""Which nodes hold which images."""

from collections.abc import Sequence
from dataclasses import dataclass

from dsched.model.node import Node


@dataclass(slots=True)
class ImageState:
    """An image: the rows of the nodes that hold it, the first of them, and the size in bytes that this one reports.

    Nodes may report different sizes; which one counts must not depend on who reported last, or a replica that starts
    from the whole table would score differently.
    """

    size: int
    first: int
    rows: set[int]


class Images:
    """Images by their normalized names."""

    def __init__(self) -> None:
        self._known: dict[str, ImageState] = {}

    def get(self, name: str) -> ImageState | None:
        """What is known of an image; None where no node holds it."""
        return self._known.get(name)

    def put(self, row: int, node: Node) -> None:
        """A node of a row holds what it says."""
        for image in node.status.images:
            for name in image.names:
                known = self._known.get(name)
                if known is None:
                    self._known[name] = ImageState(image.size_bytes, row, {row})
                    continue
                known.rows.add(row)
                if row < known.first:
                    known.size, known.first = image.size_bytes, row

    def drop(self, row: int, nodes: Sequence[Node]) -> None:
        """The node of a row, among all of them, holds nothing any more."""
        for image in nodes[row].status.images:
            for name in image.names:
                state = self._known.get(name)
                if state is None:
                    continue
                state.rows.discard(row)
                if not state.rows:
                    del self._known[name]
                elif row == state.first:
                    state.first = min(state.rows)
                    state.size = _size(nodes[state.first], name)


def _size(node: Node, name: str) -> int:
    return next(image.size_bytes for image in node.status.images if name in image.names)
