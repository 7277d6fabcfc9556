"""Which volumes claims can have, asked of whole columns of nodes: once per volume or label value, not once per node.

Source: k8s.io/component-helpers storage/volume/pv_helpers.go ``FindMatchingVolume``, helpers.go ``CheckNodeAffinity``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic import matching
from dsched.arithmetic.matching import Flags, LabelledNodes, Rows
from dsched.model import node_selectors, quantity, selectors, volumes
from dsched.model.node_selectors import Term
from dsched.model.pod import Affinity, NodeAffinity, NodeSelector, PodSpec
from dsched.model.selectors import IN, Requirement
from dsched.model.volumes import FILESYSTEM, STORAGE, PersistentVolume, PersistentVolumeClaim

Numbers = NDArray[np.int64]
NONE = -1
"""No volume."""


class Offer:
    """A persistent volume as claims see it; what is derived from it is derived once."""

    def __init__(self, volume: PersistentVolume) -> None:
        """
        Raises:
            QuantityError: its capacity is none.
        """
        self.volume = volume
        self.name = volume.metadata.name
        self.class_name = volumes.class_of_volume(volume)
        self.capacity = quantity.nano(volume.spec.capacity.get(STORAGE, 0))

    @cached_property
    def terms(self) -> tuple[Term, ...] | None:
        """Where it is reachable, None for everywhere."""
        affinity = self.volume.spec.node_affinity
        return reach(affinity.required if affinity else None)


class Want:
    """A claim that waits for a volume, as volumes see it."""

    def __init__(self, claim: PersistentVolumeClaim) -> None:
        """
        Raises:
            SelectorError: its selector is not legal.
            QuantityError: its size is none.
        """
        self.claim = claim
        self.class_name = volumes.class_of_claim(claim)
        self.size = quantity.nano(claim.spec.resources.requests.get(STORAGE, 0))
        selector = claim.spec.selector
        self._selector = selectors.EVERYTHING if selector is None else selectors.label_selector(selector)

    def takes(self, offer: Offer) -> bool:
        """Whether the volume, which may be bound to this claim already, is large enough and of the right kind."""
        spec, own = offer.volume.spec, self.claim.spec
        return (
            offer.capacity >= self.size
            and (spec.volume_mode or FILESYSTEM) == (own.volume_mode or FILESYSTEM)
            and (spec.volume_attributes_class_name or "") == (own.volume_attributes_class_name or "")
            and not offer.volume.metadata.deletion_timestamp
        )

    def may_choose(self, offer: Offer) -> bool:
        """Whether an unbound volume that it takes is there for the choosing."""
        volume = offer.volume
        return (
            volume.status.phase == volumes.AVAILABLE
            and offer.class_name == self.class_name
            and set(self.claim.spec.access_modes) <= set(volume.spec.access_modes)
            and self._selector.matches(volume.metadata.labels)
        )


def reach(selector: NodeSelector | None) -> tuple[Term, ...] | None:
    """Terms of a volume's node affinity, illegal ones left out; None for everywhere."""
    affinity = Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=selector))
    return node_selectors.required(PodSpec(affinity=affinity)).terms


def reachable(terms: Sequence[Term] | None, nodes: LabelledNodes, rows: Rows) -> Flags:
    """Rows from whose nodes a volume can be reached. It is their labels that are asked, as if nodes had no name."""
    if terms is None:
        return np.ones(matching.count(rows), dtype=np.bool_)
    flags = matching.none(rows)
    for term in terms:
        if all(field.admits("") for field in term.fields):
            flags |= matching.labelled(term.labels, nodes, rows)
    return flags


def reachable_from(terms: Sequence[Term], labels: Mapping[str, str]) -> bool:
    """The same of one node with these labels."""
    nameless = (term for term in terms if all(field.admits("") for field in term.fields))
    return any(term.labels.matches(labels) for term in nameless)


class Shelf:
    """Volumes in a claim's order of preference; the place in that order is a volume's rank.

    Volumes that one label's value decides about, as of local disks, are found by that value; the others are asked per
    distinct affinity.
    """

    def __init__(self, offers: Sequence[Offer]) -> None:
        self._end = len(offers)
        self._by_label: dict[str, dict[str, list[int]]] = {}
        self._by_terms: dict[tuple[Term, ...] | None, list[int]] = {}
        for rank, offer in enumerate(offers):
            label = _one_label(offer.terms)
            if label is None:
                self._by_terms.setdefault(offer.terms, []).append(rank)
                continue
            by_value = self._by_label.setdefault(label.key, {})
            for value in label.values:
                by_value.setdefault(value, []).append(rank)

    def first(self, nodes: LabelledNodes, rows: Rows, floor: Numbers) -> Numbers:
        """Per row the first rank from ``floor`` on that can be reached from there; the number of volumes for none."""
        best = np.full(len(floor), self._end, dtype=np.int64)
        for terms, ranks in self._by_terms.items():
            found = self._next(np.array(ranks, dtype=np.int64), floor)
            np.minimum(best, found, out=best, where=reachable(terms, nodes, rows))
        for key, by_value in self._by_label.items():
            np.minimum(best, self._next_by_label(nodes.label(key), by_value, rows, floor), out=best)
        return best

    def _next(self, ranks: Numbers, floor: Numbers) -> Numbers:
        """Per row the first of the (rising) ranks from ``floor`` on."""
        place = np.searchsorted(ranks, floor)
        return np.append(ranks, self._end)[place]

    def _next_by_label(
        self, column: matching.Labels, by_value: dict[str, list[int]], rows: Rows, floor: Numbers
    ) -> Numbers:
        """The same for ranks by label value: value and rank are made one rising number, and searched at once."""
        present, which = np.unique(column.ids[rows], return_inverse=True)
        step = self._end + 1
        known = (by_value.get(column.values[each] or "", ()) if each else () for each in present.tolist())
        keys = np.array([at * step + rank for at, ranks in enumerate(known) for rank in ranks], dtype=np.int64)
        place = np.searchsorted(keys, which * step + floor)
        found = np.append(keys, len(present) * step)[place]
        return np.where(found // step == which, found % step, self._end)


def _one_label(terms: tuple[Term, ...] | None) -> Requirement | None:
    """The requirement, where all that is asked of a node is that one label has one of some values."""
    if terms is None or len(terms) != 1 or terms[0].fields or len(terms[0].labels.requirements) != 1:
        return None
    only = terms[0].labels.requirements[0]
    return only if only.operator == IN else None


@dataclass(frozen=True, slots=True)
class Choices:
    """What a claim would have.

    Attributes:
        bound: numbers of the offers that are bound to the claim already; the first of them that is not taken decides.
        shelf: the free ones, smallest first; numbers: rank to number.
    """

    bound: tuple[int, ...]
    shelf: Shelf
    numbers: Numbers

    @staticmethod
    def of(want: Want, offers: Sequence[Offer]) -> "Choices":
        """Choices among offers, which are numbered as they come."""
        bound: list[int] = []
        free: list[int] = []
        for number, offer in enumerate(offers):
            reference = offer.volume.spec.claim_ref
            mine = volumes.refers_to(reference, want.claim)
            if (reference is not None and not mine) or not want.takes(offer):
                continue
            if mine:
                bound.append(number)
            elif want.may_choose(offer):
                free.append(number)
        free.sort(key=lambda number: offers[number].capacity)
        return Choices(tuple(bound), Shelf([offers[each] for each in free]), np.array(free, dtype=np.int64))

    def pick(self, offers: Sequence[Offer], taken: Sequence[Numbers], nodes: LabelledNodes, rows: Rows) -> Numbers:
        """Per row the number of the claim's volume, `NONE` for none.

        Args:
            taken: per row, what other claims of the same pod have taken of the same offers.
        """
        picked = np.full(matching.count(rows), NONE, dtype=np.int64)
        open_ = np.ones(len(picked), dtype=np.bool_)
        for number in self.bound:
            excluded = _among(np.full(len(picked), number, dtype=np.int64), taken)
            picked[open_ & ~excluded & reachable(offers[number].terms, nodes, rows)] = number
            open_ &= excluded
        if open_.any() and len(self.numbers):
            picked = np.where(open_, self._pick_free(taken, nodes, rows), picked)
        return picked

    def _pick_free(self, taken: Sequence[Numbers], nodes: LabelledNodes, rows: Rows) -> Numbers:
        floor = np.zeros(matching.count(rows), dtype=np.int64)
        numbers = np.append(self.numbers, NONE)
        while True:
            rank = self.shelf.first(nodes, rows, floor)
            picked = numbers[rank]
            excluded = (picked != NONE) & _among(picked, taken)
            if not excluded.any():
                return picked
            floor = np.where(excluded, rank + 1, rank)


def _among(numbers: Numbers, taken: Sequence[Numbers]) -> Flags:
    """Whether, per row, the number is one of those taken."""
    flags = np.zeros(len(numbers), dtype=np.bool_)
    for each in taken:
        flags |= each == numbers
    return flags
