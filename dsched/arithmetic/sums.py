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
