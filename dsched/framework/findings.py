"""What a search for a node comes to, whoever had a say in it: plugins alone, or extenders as well."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dsched.framework.interface import Code, Status
from dsched.framework.runners import FilterRunner


class Findings(Protocol):
    """Why a pod does not fit: an `Evaluation`, or what extenders made of one."""

    @property
    def rejection(self) -> Status | None:
        """The status by which PreFilter rejected the pod; nothing was filtered then."""
        ...

    @property
    def narrowing(self) -> Sequence[str]:
        """The plugins that narrowed the search, in running order."""
        ...

    @property
    def searched(self) -> int:
        """Number of nodes that were searched."""
        ...

    def rejections(self) -> list[tuple[Status, int]]:
        """Statuses by which nodes were rejected, and how many nodes."""
        ...

    def rows_with(self, code: Code) -> NDArray[np.intp]:
        """Table rows of the searched nodes that were rejected with this code."""
        ...

    def unsettled(self, row: int) -> Sequence[FilterRunner] | None:
        """The filters whose answer about a table row may be another one when pods come or go, the others having let the
        node through; None where that is not known."""
        ...

    @property
    def by_node(self) -> bool:
        """Whether what the filters say of a node depends on that node and its pods alone."""
        ...
