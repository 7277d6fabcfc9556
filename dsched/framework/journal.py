"""Which rows of a table changed, in order: from it, whoever keeps results per row learns which are stale."""

LENGTH = 65536
"""So many changes are remembered at least."""


class Journal:
    """Rows that changed; a position is how many changes there have been.

    Attributes:
        end: the present one; who will ask for what comes after it has to `read` it.
    """

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._start = 0
        self._told = 0
        self.end = 0

    def read(self) -> int:
        """The present end, for who will ask for what comes after it."""
        self._told = self.end
        return self.end

    def note(self, row: int) -> None:
        """A row has changed."""
        self._rows.append(row)
        self.end += 1
        if len(self._rows) > 2 * LENGTH:
            del self._rows[:LENGTH]
            self._start += LENGTH

    def since(self, position: int) -> list[int] | None:
        """Rows that changed since then, each once; None when that is too long ago."""
        offset = position - self._start
        return None if offset < 0 else list(dict.fromkeys(self._rows[offset:]))

    def back_to(self, position: int) -> bool:
        """Forget what came after; False when somebody has read of it already."""
        if position < max(self._start, self._told):
            return False
        del self._rows[position - self._start :]
        self.end = position
        return True
