"""Which nodes hold which images."""

from dataclasses import dataclass

from dsched.model.node import Node


@dataclass(slots=True)
class ImageState:
    """An image: the sizes in bytes that the nodes report which hold it, by their serials in the table, and the first of
    these.

    Nodes may report different sizes; which one counts must not depend on who reported last, or a replica that starts
    from the whole table would score differently.
    """

    sizes: dict[int, int]
    first: int

    @property
    def size(self) -> int:
        """The one that counts: what the first node reports."""
        return self.sizes[self.first]


class Images:
    """Images by their normalized names."""

    def __init__(self) -> None:
        self._known: dict[str, ImageState] = {}

    def get(self, name: str) -> ImageState | None:
        """What is known of an image; None where no node holds it."""
        return self._known.get(name)

    def put(self, serial: int, node: Node) -> None:
        """A node holds what it says; of an image that it lists twice, the first size counts."""
        for image in node.status.images:
            for name in image.names:
                known = self._known.get(name)
                if known is None:
                    self._known[name] = ImageState({serial: image.size_bytes}, serial)
                    continue
                known.sizes.setdefault(serial, image.size_bytes)
                known.first = min(known.first, serial)

    def drop(self, serial: int, node: Node) -> None:
        """A node, as it was put, holds nothing any more."""
        for image in node.status.images:
            for name in image.names:
                known = self._known.get(name)
                if known is None or known.sizes.pop(serial, None) is None:
                    continue
                if not known.sizes:
                    del self._known[name]
                elif serial == known.first:
                    known.first = min(known.sizes)
