"""One label of every node as small integers, so that a predicate is asked once per distinct value."""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from dsched.framework.status import Rows


class LabelColumn:
    """One label of every node: ``ids[row]`` indexes ``values``; id 0 stands for "no such label"."""

    def __init__(self, ids: NDArray[np.int32]) -> None:
        self.ids = ids
        self.values: list[str | None] = [None]
        self.id_of: dict[str | None, int] = {None: 0}

    def intern(self, value: str | None) -> int:
        """The id of a value, a new one if need be."""
        known = self.id_of.get(value)
        if known is None:
            known = self.id_of[value] = len(self.values)
            self.values.append(value)
        return known

    def copy(self) -> "LabelColumn":
        """The same, to be changed apart from this one."""
        found = LabelColumn(self.ids.copy())
        found.values, found.id_of = list(self.values), dict(self.id_of)
        return found

    def is_in(self, values: Iterable[str], rows: Rows) -> NDArray[np.bool_]:
        """Rows whose label has one of the values."""
        truth = np.zeros(len(self.values), dtype=np.bool_)
        for value in values:
            known = self.id_of.get(value)
            if known is not None:
                truth[known] = True
        return truth[self.ids[rows]]

    def where(self, predicate: Callable[[str | None], bool], rows: Rows) -> NDArray[np.bool_]:
        """Rows for whose label (None: absent) the predicate holds; it is asked once per distinct value."""
        truth = np.fromiter((predicate(value) for value in self.values), dtype=np.bool_, count=len(self.values))
        return truth[self.ids[rows]]
