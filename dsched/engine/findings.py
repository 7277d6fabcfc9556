"""What a search for a node comes to, whoever had a say in it: plugins alone, or extenders as well."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dsched.framework.runners import FilterRunner
from dsched.framework.status import Code, Status, unresolvable


def left_out(findings: "Findings") -> Status:
    """The status of nodes that were not searched. It names the plugins that narrowed the search and the one that
    rejected the promised node, which kube-scheduler adds to the same set before it prints it.

    Source: pkg/scheduler/schedule_one.go ``findNodesThatFitPod``, ``evaluateNominatedNode``.
    """
    names = set(findings.narrowing)
    if findings.refused is not None and findings.refused[1].code is not Code.PENDING:
        names.add(findings.refused[1].plugin)
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(names))}]")


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
    def refused(self) -> tuple[int, Status] | None:
        """The table row of the node that this very pod was promised, and the status by which a filter rejected it."""
        ...

    @property
    def searched(self) -> int:
        """Number of nodes that were searched."""
        ...

    def covers(self, row: int) -> bool:
        """Whether the node of a table row is among those that were searched."""
        ...

    def status_of(self, row: int) -> Status | None:
        """The status by which the node of a table row was rejected; None when it fits or was not searched."""
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
