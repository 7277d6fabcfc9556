"""Whether all claims of a pod can be met from a node: bound ones by their volumes, waiting ones by volumes that are
there or that would be made; and which nodes have the better storage for it.

Source: pkg/scheduler/framework/plugins/volumebinding/binder.go ``FindPodVolumes``, ``checkBoundClaims``,
``findMatchingVolumes``, ``checkVolumeProvisions``, ``hasEnoughCapacity``; volume_binding.go and scorer.go, v1.37.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic import matching, scores, volumes
from dsched.arithmetic.matching import Flags, LabelledNodes, Rows
from dsched.arithmetic.sums import plus
from dsched.arithmetic.volumes import NONE, Choices, Numbers, Offer, Want
from dsched.errors import SelectorError
from dsched.model import quantity, selectors
from dsched.model.meta import LabelSelectorRequirement, NodeName
from dsched.model.node_selectors import Term
from dsched.model.selectors import IN, Selector
from dsched.model.volumes import (
    NO_PROVISIONER,
    SELECTED_NODE,
    STORAGE,
    CsiStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
    TopologyTerm,
)

ELSEWHERE, NO_VOLUME, NO_SPACE, MISSING = 1, 2, 4, 8
"""Why a node will not do, added up: a bound volume cannot be reached, there is nothing to bind, there is no room for a
new volume, the volume of a bound claim does not exist."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Where the volume of a bound claim can be reached.

    Attributes:
        terms: None for everywhere.
        migrated: nodes on which ``migrated_terms`` are asked instead, because a driver has taken the volume over there.
    """

    terms: tuple[Term, ...] | None
    migrated: frozenset[NodeName] = frozenset()
    migrated_terms: tuple[Term, ...] | None = None

    @property
    def everywhere(self) -> bool:
        """Whether every node can reach it."""
        return self.terms is None and (not self.migrated or self.migrated_terms is None)

    def reachable(self, nodes: LabelledNodes, rows: Rows) -> Flags:
        """Rows whose nodes can reach it."""
        flags = volumes.reachable(self.terms, nodes, rows)
        if not self.migrated or self.migrated_terms == self.terms:
            return flags
        translated = volumes.reachable(self.migrated_terms, nodes, rows)
        return np.where(_rows_of(self.migrated, nodes)[rows], translated, flags)


_rows: WeakKeyDictionary[LabelledNodes, tuple[int, dict[frozenset[NodeName], Flags]]] = WeakKeyDictionary()
"""The layout of the nodes, and what `_rows_of` has found for it."""


def _rows_of(names: frozenset[NodeName], nodes: LabelledNodes) -> Flags:
    """By row, whether the node is one of these; found once for nodes that stand in the same rows."""
    layout, found = _rows.get(nodes, (-1, {}))
    if layout != nodes.layout:
        found = {}
        _rows[nodes] = nodes.layout, found
    flags = found.get(names)
    if flags is None:
        known = (nodes.index.get(name) for name in names)
        flags = found[names] = np.zeros(len(nodes), dtype=np.bool_)
        flags[[row for row in known if row is not None]] = True
    return flags


class Provisioning:
    """From which nodes a volume could be made for a claim; what is derived from it is derived when it is asked for."""

    def __init__(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass, capacities: Sequence[CsiStorageCapacity] | None
    ) -> None:
        """
        Args:
            capacities: what drivers have room for; None when the class's driver does not say.
        """
        self._class = storage_class
        self._capacities = capacities
        self._size = claim.spec.resources.requests.get(STORAGE)

    def problems(self, nodes: LabelledNodes, rows: Rows) -> NDArray[np.int32]:
        """Per row 0, `NO_VOLUME` or `NO_SPACE`."""
        if self._class.provisioner in ("", NO_PROVISIONER):
            return np.full(matching.count(rows), NO_VOLUME, dtype=np.int32)
        codes = np.zeros(matching.count(rows), dtype=np.int32)
        if self._room is not None:
            codes[~_any_of(self._room, nodes, rows)] = NO_SPACE
        if self._topologies is not None:
            codes[~_any_of(self._topologies, nodes, rows)] = NO_VOLUME
        return codes

    def room(self, nodes: LabelledNodes, rows: Rows) -> Numbers:
        """Per row how many bytes the first of the drivers' reports that reach it, and that are large enough, say there
        are; `NONE` where none does, or nobody asks."""
        found = np.full(matching.count(rows), NONE, dtype=np.int64)
        if self._class.provisioner in ("", NO_PROVISIONER) or self._capacities is None or self._size is None:
            return found
        for each in _sufficient(self._capacities, self._class.metadata.name, self._size):
            topology = _topology(each)
            if topology is not None:
                here = (found == NONE) & matching.labelled(topology, nodes, rows)
                found[here] = quantity.saturated(quantity.value(each.capacity or 0))
        return found

    @cached_property
    def _topologies(self) -> list[Selector] | None:
        return _topologies(self._class.allowed_topologies)

    @cached_property
    def _room(self) -> list[Selector] | None:
        """Nodes with access to enough room; None where that is not asked."""
        if self._capacities is None or self._size is None:
            return None
        enough = _sufficient(self._capacities, self._class.metadata.name, self._size)
        return [each for each in map(_topology, enough) if each is not None]


class Waiting:
    """A claim that waits for its first consumer.

    Attributes:
        key: ``namespace/name``.
        offers: volumes of its class.
    """

    def __init__(self, key: str, want: Want, offers: Sequence[Offer], provisioning: Provisioning) -> None:
        self.key = key
        self.want = want
        self.offers = offers
        self.provisioning = provisioning

    @cached_property
    def choices(self) -> Choices:
        """Those of the offers that it could have."""
        return Choices.of(self.want, self.offers)

    @property
    def selected_node(self) -> NodeName | None:
        """The node that a volume is being made for; None while nobody has asked for one."""
        name = self.want.claim.metadata.annotations.get(SELECTED_NODE)
        return None if name is None else NodeName(name)


@dataclass(frozen=True, slots=True)
class PodClaims:
    """The claims of a pod in the order of its volumes; ``bound`` has None for a volume that does not exist."""

    bound: tuple[Bound | None, ...] = ()
    waiting: tuple[Waiting, ...] = ()

    @property
    def met_everywhere(self) -> bool:
        """Whether none waits, and every node can reach the volumes."""
        return not self.waiting and all(each is not None and each.everywhere for each in self.bound)


@dataclass(frozen=True, slots=True)
class Answer:
    """What meets the claims, per row.

    Attributes:
        codes: 0 where all can be met, else reasons added up.
        picks: claims that volumes were looked for, and numbers of their offers (`NONE`: to be made).
        made: claims that volumes are being made for already.
    """

    codes: NDArray[np.int32]
    picks: list[tuple[Waiting, Numbers]] = field(default_factory=list)
    made: list[Waiting] = field(default_factory=list)


def answer(claims: PodClaims, nodes: LabelledNodes, rows: Rows) -> Answer:
    """Ask all of it of the rows."""
    codes = _bound(claims.bound, nodes, rows)
    found = Answer(codes, made=[each for each in claims.waiting if each.selected_node is not None])
    open_ = np.ones(len(codes), dtype=np.bool_)
    for each in found.made:
        open_ &= matching.is_row(nodes.index.get(each.selected_node or NodeName("")), rows)
    codes[~open_] |= NO_VOLUME
    found.picks.extend(_picks(claims.waiting, nodes, rows))
    lacking = [(each, np.ones(len(codes), dtype=np.bool_)) for each in found.made]
    lacking += [(each, picked == NONE) for each, picked in found.picks]
    for each, lacks in lacking:
        asked = open_ & lacks
        if asked.any():
            problems = each.provisioning.problems(nodes, rows)
            codes[asked] |= problems[asked]
            open_ &= ~(asked & (problems != 0))
    return found


def _bound(bound: Iterable[Bound | None], nodes: LabelledNodes, rows: Rows) -> NDArray[np.int32]:
    """The first claim that fails on a node is the one that is reported."""
    codes = np.zeros(matching.count(rows), dtype=np.int32)
    for each in bound:
        if each is None:
            codes[codes == 0] = MISSING
            break
        codes[(codes == 0) & ~each.reachable(nodes, rows)] = ELSEWHERE
    return codes


def _picks(waiting: Iterable[Waiting], nodes: LabelledNodes, rows: Rows) -> Iterable[tuple[Waiting, Numbers]]:
    """The smallest claim is served first; what one takes is gone for the others."""
    taken: dict[str, list[Numbers]] = {}
    for each in sorted((each for each in waiting if each.selected_node is None), key=lambda each: each.want.size):
        gone = taken.setdefault(each.want.class_name, [])
        picked = each.choices.pick(each.offers, gone, nodes, rows)
        gone.append(picked)
        yield each, picked


def _topologies(terms: Sequence[TopologyTerm]) -> list[Selector] | None:
    """Terms of which a node has to match one; None for no terms, which all nodes match; empty and illegal ones match
    none (``MatchTopologySelectorTerms``)."""
    if not terms:
        return None
    found: list[Selector] = []
    for term in terms:
        records = [LabelSelectorRequirement(each.key, IN, each.values) for each in term.match_label_expressions]
        try:
            requirements = tuple(selectors.requirement(record) for record in records)
        except SelectorError:
            continue  # matches no node
        if requirements:
            found.append(Selector(requirements))
    return found


def _sufficient(
    capacities: Iterable[CsiStorageCapacity], class_name: str, size: quantity.Quantity
) -> Iterable[CsiStorageCapacity]:
    """Those of the class with room for so much (``capacitySufficient``)."""
    for each in capacities:
        limit = each.limit if each.storage_class_name == class_name else None
        if limit is not None and quantity.value(limit) >= quantity.value(size):
            yield each


def _topology(capacity: CsiStorageCapacity) -> Selector | None:
    """Nodes with access to it; None for nobody (``nodeHasAccess``)."""
    if capacity.node_topology is None:
        return None
    try:
        return selectors.label_selector(capacity.node_topology)
    except SelectorError:
        return None  # a driver wrote nonsense: no node has access


def _any_of(wanted: Iterable[Selector], nodes: LabelledNodes, rows: Rows) -> Flags:
    """Rows that one of the selectors matches; those that only ask for a value of one label are asked together."""
    flags = matching.none(rows)
    values: dict[str, set[str]] = {}
    for selector in wanted:
        only = selector.requirements[0] if len(selector.requirements) == 1 else None
        if only is not None and only.operator == IN and not selector.nothing:
            values.setdefault(only.key, set()).update(only.values)
        else:
            flags |= matching.labelled(selector, nodes, rows)
    for key, known in values.items():
        flags |= nodes.label(key).is_in(known, rows)
    return flags


class _Class:
    """What is used of a storage class, by row, where any is."""

    def __init__(self, count: int) -> None:
        self.used: Flags = np.zeros(count, dtype=np.bool_)
        self.requested: Numbers = np.zeros(count, dtype=np.int64)
        self.capacity: Numbers = np.zeros(count, dtype=np.int64)


def storage_scores(found: Answer, nodes: LabelledNodes, rows: Rows, line: NDArray[np.int64]) -> NDArray[np.int64]:
    """
    Score nodes by how much of their storage the pod's claims would use.

    It is the average over the storage classes of what the line says of the share that is used. Where a volume is
    picked, only picked ones count; elsewhere those that would be made and of which a driver says how much room it has.

    Args:
        found: what meets the pod's claims on these rows.
        line: int64 (101,), score 0..100 by used percentage.
    Returns:
        int64, one a row, rounded half away from zero; 0 where nothing counts.
    Source: ``VolumeBinding.Score``, ``buildScorerFunction``.
    """
    count = len(found.codes)
    static = np.zeros(count, dtype=np.bool_)
    classes: dict[tuple[bool, str], _Class] = {}
    for waiting, picked in found.picks:
        static |= picked != NONE
        for number in set(picked[picked != NONE].tolist()):
            volume = waiting.offers[number].volume.spec
            rate = classes.setdefault((True, volume.storage_class_name), _Class(count))
            here = picked == number
            _add(rate, here, _size(waiting))
            rate.capacity[here] = plus(rate.capacity[here], _value(volume.capacity.get(STORAGE, 0)))
    for waiting, lacks in _made(found):
        room = waiting.provisioning.room(nodes, rows)
        here = lacks & ~static & (room != NONE)
        rate = classes.setdefault((False, waiting.want.class_name), _Class(count))
        _add(rate, here, _size(waiting))
        # Not a sum: two claims of a class share its room.
        rate.capacity[here] = room[here]
    return _average(classes.values(), count, line)


def _made(found: Answer) -> Iterator[tuple[Waiting, Flags]]:
    """Claims that volumes would be made for, and the rows where."""
    everywhere = np.ones(len(found.codes), dtype=np.bool_)
    yield from ((waiting, everywhere) for waiting in found.made)
    yield from ((waiting, picked == NONE) for waiting, picked in found.picks)


def _add(rate: _Class, here: Flags, size: int) -> None:
    rate.used |= here
    rate.requested[here] = plus(rate.requested[here], size)


def _average(classes: Iterable[_Class], count: int, line: NDArray[np.int64]) -> NDArray[np.int64]:
    total, number = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for each in classes:
        total += np.where(each.used, scores.by_used_share(each.requested, each.capacity, line), 0)
        number += each.used
    return np.where(number > 0, (2 * total + number) // np.maximum(2 * number, 1), 0)


def _size(waiting: Waiting) -> int:
    return _value(waiting.want.claim.spec.resources.requests.get(STORAGE, 0))


def _value(amount: quantity.Quantity) -> int:
    return quantity.saturated(quantity.value(amount))
