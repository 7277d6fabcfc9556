"""Sums of amounts that end at the largest int64 instead of wrapping around."""

import numpy as np
from numpy.typing import NDArray

from dsched.model.quantity import LARGEST


def plus(amounts: NDArray[np.int64], amount: int, out: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """
    Args:
        amounts: int64, of any shape.
        amount: what is added to each, an int64, not negative.
        out: where to write the sums, an array of their own by default.
    """
    found = np.minimum(amounts, LARGEST - amount, out=out)
    found += amount
    return found


def totals(amounts: NDArray[np.int64], starts: NDArray[np.intp]) -> NDArray[np.int64]:
    """The sums of parts of amounts, none negative, which end at the largest int64.

    Args:
        starts: where each part begins, ascending and below the number of amounts; no part is empty.
    """
    if int(amounts.max(initial=0)) <= LARGEST // max(len(amounts), 1):
        found: NDArray[np.int64] = np.add.reduceat(amounts, starts)
        return found
    return np.array([min(sum(part.tolist()), LARGEST) for part in np.split(amounts, starts[1:])], dtype=np.int64)
