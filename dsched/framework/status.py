"""What a plugin answers: `Code`, `Status`, `Verdict`; and what such an answer depends on.

Source: staging/src/k8s.io/kube-scheduler/framework/interface.go ``Code``, ``Status``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

import numpy as np
from numpy.typing import NDArray

Rows = slice | NDArray[np.intp]
"""Rows of a node table that a plugin is asked about; index a column with it."""


class Code(IntEnum):
    """How a plugin's call ended."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    def __str__(self) -> str:
        return _CODE_TEXT[self]


_CODE_TEXT = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}


class Hazard(Enum):
    """What asking a plugin the same again may bring: it took too long, in this process or in another one, or the other
    process was lost with it."""

    NONE = 0
    OVERRAN = 1
    OVERRAN_ELSEWHERE = 2
    LOST = 3


MOST_REASON = 4096
"""Characters of a status' reasons together; what is longer is cut, before it goes into conditions, events and logs."""


@dataclass(frozen=True, slots=True)
class Status:
    """A plugin's answer; where a method may return None, that means success.

    Attributes:
        hazard: what asking again may bring; set by dsched, not by plugins.

    Raises:
        TypeError: the code is no `Code`, or the reasons are no tuple of str.
    """

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    hazard: Hazard = Hazard.NONE

    def __post_init__(self) -> None:
        if type(self.code) is not Code:
            raise TypeError(f"a Status' code has to be a Code, not {type(self.code).__name__}")
        if type(self.reasons) is not tuple or not all(isinstance(reason, str) for reason in self.reasons):
            raise TypeError("a Status' reasons have to be a tuple of str")
        if sum(map(len, self.reasons)) > MOST_REASON:
            object.__setattr__(self, "reasons", (cut(", ".join(map(str, self.reasons))),))

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    @property
    def rejected(self) -> bool:
        """The pod cannot go on for a reason that lies in the cluster, not in a failure."""
        return self.code in (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)

    def by(self, plugin: str) -> Status:
        """The same status under a plugin's name."""
        return Status(self.code, self.reasons, plugin, self.hazard)


def cut(text: str) -> str:
    """The text, its end left out where it is longer than `MOST_REASON`."""
    return text if len(text) <= MOST_REASON else f"{text[:MOST_REASON]} … ({len(text)} characters)"


SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a filter says of rows of the table: per row 0 for success, or k for ``statuses[k - 1]``."""

    index: NDArray[np.int32]
    statuses: tuple[Status, ...]

    def copy(self) -> Verdict:
        """The same, to be overwritten."""
        return Verdict(self.index.copy(), self.statuses)

    @staticmethod
    def where(bad: NDArray[np.bool_], status: Status) -> Verdict:
        """``status`` for the rows where ``bad`` holds."""
        return Verdict(bad.astype(np.int32), (status,))


class Scope(Enum):
    """What a plugin's answer about one node may depend on, beside the pod; says when a cached answer is stale."""

    NODE = 0
    """The node object alone."""
    SUMS = 1
    """The node object and the sums of what the pods on that node request; for plugins that work on the table."""
    USAGE = 2
    """The node object and the pods on that node."""
    NODES = 3
    """Any node object."""
    CLUSTER = 4
    """Anything in the snapshot."""
    ANYTHING = 5
    """Things outside the snapshot as well, or this very pod: nothing is cached. The default for plugins that say
    nothing."""
