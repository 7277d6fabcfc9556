"""Node selectors and tolerations asked of whole columns of nodes: once per distinct value, not once per node.

Source of the rules: dsched.model.node_selectors, dsched.model.tolerations.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dsched.model import selectors
from dsched.model.meta import NodeName
from dsched.model.node import Taint
from dsched.model.node_selectors import NAME_FIELD, Required, Term
from dsched.model.selectors import Requirement, Selector

Rows = slice | NDArray[np.intp]
Flags = NDArray[np.bool_]

_FEW_ROWS = 16
"""So few rows are asked one by one instead of asking every distinct value."""


class Labels(Protocol):
    """One label of every node: ``ids[row]`` indexes ``values``; id 0 stands for "no such label"."""

    ids: NDArray[np.int32]
    values: list[str | None]

    def is_in(self, values: Iterable[str], rows: Rows) -> Flags:
        """Rows whose label has one of the values."""
        ...

    def where(self, predicate: Callable[[str | None], bool], rows: Rows) -> Flags:
        """Rows for whose label the predicate holds."""
        ...


class LabelledNodes(Protocol):
    """Nodes with names and labels, a row a node."""

    def __len__(self) -> int: ...

    def __hash__(self) -> int: ...

    @property
    def layout(self) -> int:
        """Grows when nodes change rows."""
        ...

    @property
    def index(self) -> Mapping[NodeName, int]:
        """Node name to row."""
        ...

    def label(self, key: str) -> Labels:
        """The column of a label."""
        ...


class Tainted(Protocol):
    """Nodes with taints, a row a node."""

    @property
    def taint_sets(self) -> Sequence[tuple[Taint, ...]]:
        """Distinct lists of taints; the list only grows."""
        ...


def count(rows: Rows) -> int:
    """How many rows these are."""
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def none(rows: Rows) -> Flags:
    """False for each of the rows."""
    return np.zeros(count(rows), dtype=np.bool_)


def is_row(row: int | None, rows: Rows) -> Flags:
    """Which of the rows is this one; None is none of them."""
    if row is None:
        return none(rows)
    if isinstance(rows, slice):
        flags = none(rows)
        if rows.start <= row < rows.stop:
            flags[row - rows.start] = True
        return flags
    return np.asarray(rows == row)


def required(wanted: Required, nodes: LabelledNodes, rows: Rows) -> Flags:
    """Rows that have what a pod requires of its node (nodeSelector and required node affinity)."""
    flags = labelled(wanted.labels, nodes, rows)
    return flags if wanted.terms is None else flags & any_term(wanted.terms, nodes, rows)


def any_term(terms: Iterable[Term], nodes: LabelledNodes, rows: Rows) -> Flags:
    """Rows that one of the terms matches; no terms match no row."""
    flags = none(rows)
    for each in terms:
        flags |= term(each, nodes, rows)
    return flags


def term(wanted: Term, nodes: LabelledNodes, rows: Rows) -> Flags:
    """Rows that meet every requirement of a node selector term."""
    flags = labelled(wanted.labels, nodes, rows)
    for field in wanted.fields:
        # A field other than the name is empty on every node, so a requirement on it holds everywhere or nowhere; so
        # does one that asks for a name that is not there.
        named = is_row(nodes.index.get(NodeName(field.value)), rows) if field.field == NAME_FIELD else None
        flags &= field.admits("") if named is None else named != field.negated
    return flags


def labelled(selector: Selector, nodes: LabelledNodes, rows: Rows) -> Flags:
    """Rows whose labels a label selector matches."""
    flags = np.full(count(rows), not selector.nothing, dtype=np.bool_)
    for requirement in selector.requirements:
        flags &= meets(requirement, nodes.label(requirement.key), rows)
    return flags


def meets(requirement: Requirement, column: Labels, rows: Rows) -> Flags:
    """Rows whose label meets one requirement."""
    match requirement.operator:
        case selectors.IN:
            return column.is_in(requirement.values, rows)
        case selectors.NOT_IN:
            return ~column.is_in(requirement.values, rows)
        case selectors.EXISTS:
            return np.asarray(column.ids[rows] != 0)
        case selectors.DOES_NOT_EXIST:
            return np.asarray(column.ids[rows] == 0)
    ids = column.ids[rows]
    if len(ids) <= _FEW_ROWS:
        return np.fromiter((requirement.admits(column.values[each]) for each in ids), dtype=np.bool_, count=len(ids))
    return column.where(requirement.admits, rows)


class TaintSetNumbers(ABC):
    """A number per distinct list of taints, asked once each: for lists that have not been seen yet when they are
    needed."""

    def __init__(self) -> None:
        self._known: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    @abstractmethod
    def number(self, taints: tuple[Taint, ...]) -> int:
        """The number of a list of taints."""

    def all(self, nodes: Tainted) -> NDArray[np.int64]:
        """The numbers, in the order of ``taint_sets``."""
        fresh = nodes.taint_sets[len(self._known) :]
        if fresh:
            numbers = np.fromiter((self.number(taints) for taints in fresh), dtype=np.int64, count=len(fresh))
            self._known = np.concatenate([self._known, numbers])
        return self._known
