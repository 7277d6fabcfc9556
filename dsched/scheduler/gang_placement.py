"""Where a pod group goes with the gate ``DschedGangPlacement``: into the tightest domain of the narrowest topology
level that has room for all of it. No I/O.

Where all pods are alike and nothing but sums of requests matters, one pass over the columns says how many of them each
domain has room for, so that one that can take the group is found whenever there is one. Else the domains are tried, the
tightest first; and where the group fits into none in the order of its pods, in other orders.

The rules, with examples: docs/pod-groups.md.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import islice, permutations
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from dsched.arithmetic import requests
from dsched.arithmetic.sums import totals
from dsched.engine.evaluation_cache import EvaluationCache
from dsched.framework import group_points, pod_groups
from dsched.framework.interface import Code, Placement
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework, PodClass
from dsched.framework.table import NodeTable
from dsched.metrics import GENERATED_PLACEMENTS, collect
from dsched.model import placement_wishes
from dsched.model.meta import NodeName
from dsched.model.placement_wishes import PlacementWishes
from dsched.scheduler.decision import Candidate, GroupCandidate
from dsched.scheduler.group_attempt import Found, GroupAttempt, GroupStatus, Member, feasible, nowhere, rows_of, some_of
from dsched.scheduler.memory import Memory
from dsched.scheduler.ports import Assumptions

MOST_ORDERS = 24
"""Orders in which the pods of a group are tried in one domain, besides their own: all orders of four kinds of pods."""
MOST_DECISIONS = 20_000
"""Once so many pods were decided in other orders, no further order is begun in this attempt of the group."""
APART = "cannot determine domain for already scheduled pods: they are not in one domain of {keys}"


class Level(NamedTuple):
    """One way to cut the nodes.

    Attributes:
        keys: the labels by which they are cut, the widest first; none where they are not.
        placements: the domains, by name.
    """

    keys: tuple[str, ...]
    placements: Sequence[Placement]


class TopologyLevels:
    """Cuts the nodes, and keeps the cuts as long as no node comes, goes or changes."""

    def __init__(self) -> None:
        self._version: tuple[NodeTable | None, int, int] = (None, -1, -1)
        self._kept: dict[tuple[str, ...], tuple[tuple[Placement, ...], Sequence[Placement]]] = {}

    def of(self, wishes: PlacementWishes, base: Sequence[Placement], table: NodeTable) -> list[Level]:
        """The levels of a group, the narrowest first, the last one that of what is required.

        A domain of a preferred level is one of the wider ones as well: racks of one name in two blocks are two racks.

        Args:
            base: what is cut, placements that have no nodes in common.
        """
        wider = [wishes.preferred[place:] for place in range(len(wishes.preferred) + 1)]
        cuts = [wishes.required + preferred[::-1] for preferred in wider]
        return [Level(keys, self._cut(keys, base, table)) for keys in cuts]

    def _cut(self, keys: tuple[str, ...], base: Sequence[Placement], table: NodeTable) -> Sequence[Placement]:
        if not keys:
            return base
        version = (table, table.layout, table.objects_version)
        if self._version != version:
            self._kept.clear()
            self._version = version
        known = self._kept.get(keys)
        if known is None or not _same(known[0], base):
            found = [domain for each in base for domain in _domains(keys, each, table)]
            known = self._kept[keys] = (tuple(base), sorted(found, key=lambda each: each.name))
        return known[1]


def _holding(level: Level, rows: NDArray[np.intp]) -> Level:
    """The domains of a level that have all of some rows in them, of which there is one at most where there are rows."""
    if not len(rows):
        return level
    return Level(level.keys, [each for each in level.placements if np.isin(rows, each.rows).all()])


def _same(known: Sequence[Placement], base: Sequence[Placement]) -> bool:
    return len(known) == len(base) and all(one.rows is other.rows for one, other in zip(known, base, strict=True))


def _domains(keys: Sequence[str], within: Placement, table: NodeTable) -> list[Placement]:
    """Nodes with the same values of all labels; those that lack one of these are in no domain."""
    columns = [table.label(key) for key in keys]
    ids = np.stack([column.ids[within.rows] for column in columns])
    labelled = np.all(ids != 0, axis=0)
    rows, ids = within.rows[labelled], ids[:, labelled]
    if not len(rows):
        return []
    order = np.lexsort(ids[::-1])
    rows, ids = rows[order], ids[:, order]
    starts = np.flatnonzero(np.any(np.diff(ids, axis=1) != 0, axis=0)) + 1
    found = []
    for part, first in zip(np.split(rows, starts), [0, *starts.tolist()], strict=True):
        values = [column.values[ids[place, first]] or "" for place, column in enumerate(columns)]
        found.append(Placement("/".join([within.name, *values] if within.name else values), part))
    return found


class Chosen(NamedTuple):
    """
    Attributes:
        pods: how many pods of the group there is room for.
        fitting: how many domains were found to have room for enough of them.
    """

    placement: Placement
    pods: int
    fitting: int


class _Search(NamedTuple):
    """A group that is to be placed.

    Attributes:
        cache: where it is to be assumed.
        levels: the narrowest first; the last one has a placement.
        aim: for how many pods there is to be room.
        scheduled: pods of the group that are on nodes.
        anywhere: whether nobody asks for a domain.
    """

    framework: Framework
    entry: GroupCandidate
    cache: Assumptions
    levels: Sequence[Level]
    aim: int
    scheduled: int
    anywhere: bool

    @property
    def domains(self) -> int:
        """How many there are, on all levels."""
        return sum(len(level.placements) for level in self.levels)

    def nowhere(self, first: Found) -> Found:
        """The group fits into no domain; what came of the first one is told."""
        return first if self.anywhere else nowhere(first, len(self.levels[-1].placements))


class GangPlacement:
    """Chooses domains, and places groups in them."""

    def __init__(self, cache: Assumptions, classes: EvaluationCache, pods: GroupAttempt) -> None:
        """
        Args:
            pods: decides the pods of a group in order.
        """
        self._cache = cache
        self._classes = classes
        self._pods = pods
        self._levels = TopologyLevels()
        self._all = Placement("", np.zeros(0, dtype=np.intp))

    def place(
        self, framework: Framework, entry: GroupCandidate, base: Sequence[Placement] | None, cache: Assumptions
    ) -> Found:
        """Place a group.

        Args:
            base: at least one placement, of which the group has to be in one whatever its annotations say; None is all
                nodes.
        """
        wishes, _ = placement_wishes.read(entry.group.metadata.annotations, entry.group.min_count)
        placed = self._placed(entry)
        levels = self.levels(entry, base)
        if not levels[-1].placements:
            return _no_domain(wishes, there=bool(placed))
        aim, anywhere = wishes.aim(len(placed), len(entry.pods)), base is None and not wishes.required
        search = _Search(framework, entry, cache, levels, aim, len(placed), anywhere)
        GENERATED_PLACEMENTS.labels(framework.profile_name).inc(search.domains)
        found = self._foreseen(search)
        if found is None:
            found = self._alone(search) if search.domains == 1 else self._tried(search)
        return found

    def levels(self, entry: GroupCandidate, base: Sequence[Placement] | None) -> list[Level]:
        """What is to be tried, the narrowest level first; of each the domain alone in which the group's pods are, where
        there are any, or none."""
        table = self._cache.snapshot.table
        wishes, _ = placement_wishes.read(entry.group.metadata.annotations, entry.group.min_count)
        rows = np.array([table.index[name] for name in self._placed(entry) if name in table.index], dtype=np.intp)
        *preferred, required = self._levels.of(wishes, self._everywhere() if base is None else base, table)
        return [
            *(_holding(level, rows) for level in preferred),
            _holding(required, rows) if wishes.required else required,
        ]

    def _placed(self, entry: GroupCandidate) -> list[NodeName]:
        """The nodes of those of the group's pods that are on any."""
        table = self._cache.snapshot.table
        return [name for uid in pod_groups.scheduled(table, entry.group.key) if (name := table.node_of(uid))]

    def _everywhere(self) -> Sequence[Placement]:
        nodes = len(self._cache.snapshot.table)
        if len(self._all.rows) != nodes:
            self._all = Placement("", np.arange(nodes, dtype=np.intp))
        return (self._all,)

    # -- pods that are alike -----------------------------------------------------------------------------------------

    def _foreseen(self, search: _Search) -> Found | None:
        """Place a group of which sums of requests say where it fits; None where they do not."""
        framework, entry = search.framework, search.entry
        room = self._room(framework, [each.info for each in entry.pods])
        if room is None:
            return None

        def enough(count: int) -> bool:
            return count > 0 and feasible(framework, entry.group, search.scheduled + count, 0) is None

        chosen = tightest(search.levels, room, len(entry.pods), search.aim, enough)
        placement = search.levels[-1].placements[0] if chosen is None else chosen.placement
        found = self._in(search, placement, search.cache)
        pods, fitting = (0, 0) if chosen is None else (chosen.pods, chosen.fitting)
        if found.pods == pods:
            collect.placements(framework.profile_name, fitting, search.domains - fitting)
            return found if pods else search.nowhere(found)
        if found.status is None:  # a plugin turned a pod away at Reserve, which no sum tells
            self._pods.revert(found.decisions, search.cache)
        return None

    def _room(self, framework: Framework, pods: Sequence[PodInfo]) -> NDArray[np.int64] | None:
        """For how many of these pods each node has room, by table row; None where more than sums matter."""
        snapshot = self._cache.snapshot
        if len({framework.class_of(pod, snapshot) for pod in pods}) > 1:
            return None
        if framework.extenders is not None and framework.extenders.concerned(pods[0]):
            return None
        return self._classes.evaluation(framework, pods[0]).room()

    # -- pods that differ --------------------------------------------------------------------------------------------

    def _alone(self, search: _Search) -> Found:
        """Place the group in the only domain there is."""
        (placement,) = (each for level in search.levels for each in level.placements)
        found = self._in(search, placement, search.cache)
        if found.status is not None and found.status.code is Code.UNSCHEDULABLE:
            with self._classes.judging_here():
                other = self._in_other_orders(search, Memory(self._cache.snapshot))
            found = search.nowhere(found) if other is None else self._carried_out(search, other)
        collect.placements(search.framework.profile_name, int(found.status is None), int(found.status is not None))
        return found

    def _tried(self, search: _Search) -> Found:
        """Try the domains in memory, the narrowest level first and the tightest domain of it; the first one that takes
        all pods gets them, else the first level where enough fit, there the domain that takes most."""
        memory, first = Memory(self._cache.snapshot), None
        best: Found | None = None
        fitting = tried = 0
        with self._classes.judging_here():
            for level in search.levels:
                most: Found | None = None
                for placement in self._by_room(search, level):
                    found = self._in(search, placement, memory)
                    tried += 1
                    if found.status is not None:
                        if found.status.code is Code.ERROR:
                            return found
                        first = found if level is search.levels[-1] and first is None else first
                        continue
                    self._pods.revert(found.decisions, memory)
                    fitting += 1
                    most = found if most is None or found.pods > most.pods else most
                    if most.pods == len(search.entry.pods):
                        break
                best = most if best is None or (most is not None and _whole(most, search)) else best
                if best is not None and _whole(best, search):
                    break
            if best is None:
                best = self._in_other_orders(search, memory)
        collect.placements(search.framework.profile_name, fitting, tried - fitting)
        if best is not None:
            return self._carried_out(search, best)
        assert first is not None
        return search.nowhere(first)

    def _in_other_orders(self, search: _Search, memory: Memory) -> Found | None:
        """Try other orders of the pods, of a group that fits nowhere in their own; None where none does either, or the
        bound is reached."""
        table, pods = self._cache.snapshot.table, search.entry.pods
        kinds: dict[tuple[PodClass, Sequence[str]], list[Candidate]] = {}
        for each in pods:
            kind = search.framework.class_of(each.info, self._cache.snapshot)
            # Pods of the group may share a claim, and mean something else once one of them is placed.
            kinds.setdefault((kind, each.info.claim_names), []).append(each)
        if len(kinds) == 1:
            return None
        amounts = [requests.requested(each.info.pod) for each in pods]
        least = max(search.entry.group.min_count - search.scheduled, 1)
        decided = 0
        for level in search.levels:
            for placement in self._by_room(search, level):
                if not sums_allow(amounts, least, placement, table):
                    continue
                for order in orders(list(kinds.values()), table):
                    if decided >= MOST_DECISIONS:
                        return None
                    entry = replace(search.entry, pods=order)
                    found = self._in(search._replace(entry=entry), placement, memory)
                    decided += len(found.decisions)
                    if found.status is None:
                        self._pods.revert(found.decisions, memory)
                        return found
        return None

    def _by_room(self, search: _Search, level: Level) -> list[Placement]:
        """The domains of a level, the tightest first: that in which the group's requests fit the fewest times by their
        sums; among equals by name."""
        if len(level.placements) < 2:
            return list(level.placements)
        wanted: dict[str, int] = {}
        for each in search.entry.pods:
            for name, amount in requests.requested(each.info.pod).items():
                wanted[name] = wanted.get(name, 0) + amount
        table = self._cache.snapshot.table
        times = [
            min(
                (Fraction(free(placement, name, table), amount) for name, amount in wanted.items()), default=Fraction(0)
            )
            for placement in level.placements
        ]
        return [level.placements[place] for place in sorted(range(len(times)), key=lambda place: times[place])]

    # -- both --------------------------------------------------------------------------------------------------------

    def _in(self, search: _Search, placement: Placement, cache: Assumptions) -> Found:
        """Place the group in a domain, in the order of its entry."""
        table = self._cache.snapshot.table
        member = Member(cache, rows_of(placement, len(table)), tried=cache is not self._cache)
        return some_of(self._pods.in_order(search.framework, search.entry, member))

    def _carried_out(self, search: _Search, found: Found) -> Found:
        """Place the group where a trial has placed it; what is said of its pods is in their own order again."""
        carried_out = self._pods.carried_out(search.framework, found.decisions, search.cache)
        by_uid = {each.candidate.info.uid: each for each in carried_out}
        return Found(None, [by_uid[each.info.uid] for each in search.entry.pods])


def _whole(found: Found, search: _Search) -> bool:
    return found.pods == len(search.entry.pods)


def tightest(
    levels: Sequence[Level], room: NDArray[np.int64], pods: int, aim: int, enough: Callable[[int], bool]
) -> Chosen | None:
    """Of the domains with room for ``aim`` pods, on the narrowest level that has any, that with the least room. Where
    no level has any, of those with room for enough of the pods, on the narrowest level that has any, that with room for
    most, and then the least room. None where none has. Among equals the first.

    Args:
        room: for how many pods each node has room, by table row.
        pods: how many there are.
        enough: whether so many will do.
    """
    sums = [_sums(level, room) for level in levels]
    fitting = [[enough(min(total, pods)) for total in level] for level in sums]
    count = sum(map(sum, fitting))
    for aimed in (aim, 1):
        for level, found, fits in zip(levels, sums, fitting, strict=True):
            able = [place for place, total in enumerate(found) if fits[place] and total >= aimed]
            if able:
                best = min(able, key=lambda place: (-min(found[place], aim), found[place]))
                return Chosen(level.placements[best], min(found[best], pods), count)
    return None


def _sums(level: Level, room: NDArray[np.int64]) -> list[int]:
    """How many pods each domain of a level has room for: one pass over the nodes."""
    if not level.placements:
        return []
    rows = np.concatenate([each.rows for each in level.placements])
    if not len(rows):  # a cluster without nodes
        return [0] * len(level.placements)
    starts = np.cumsum([0, *(len(each.rows) for each in level.placements[:-1])])
    found: list[int] = totals(room[rows], starts).tolist()
    return found


def orders(kinds: Sequence[Sequence[Candidate]], table: NodeTable) -> Iterator[tuple[Candidate, ...]]:
    """Up to `MOST_ORDERS` orders of pods, each kind of them together: by size from the largest on, then with one kind
    after the other first, then all others; none comes twice.

    A kind's size is the largest part of what the nodes have of a resource that one of its pods requests.
    """
    sizes = [_size(kind[0].info, table) for kind in kinds]
    by_size = sorted(range(len(kinds)), key=lambda place: -sizes[place])
    first = [(place, *(other for other in by_size if other != place)) for place in by_size[:MOST_ORDERS]]
    found = dict.fromkeys(first)
    for order in islice(permutations(by_size), 2 * MOST_ORDERS):
        found.setdefault(order)
    for order in islice(found, MOST_ORDERS):
        yield tuple(each for place in order for each in kinds[place])


def _size(pod: PodInfo, table: NodeTable) -> Fraction:
    wanted = requests.requested(pod.pod)
    everything = ((amount, _total(table.allocatable(name)[: len(table)])) for name, amount in wanted.items())
    return max((Fraction(amount, whole) for amount, whole in everything if whole), default=Fraction(0))


def sums_allow(amounts: Sequence[requests.Amounts], least: int, placement: Placement, table: NodeTable) -> bool:
    """Whether a domain has what the ``least`` smallest requests for each resource come to; if not, no order helps."""
    for name in {name for each in amounts for name in each}:
        wanted = sum(sorted(each.get(name, 0) for each in amounts)[:least])
        if wanted > free(placement, name, table):
            return False
    return True


def free(placement: Placement, resource: str, table: NodeTable) -> int:
    """What is free of a resource on the nodes of a domain together."""
    left = table.allocatable(resource)[placement.rows] - table.requested(resource)[placement.rows]
    return _total(np.maximum(left, 0))


def _total(amounts: NDArray[np.int64]) -> int:
    return int(totals(amounts, np.zeros(1, dtype=np.intp))[0]) if len(amounts) else 0


def _no_domain(wishes: PlacementWishes, *, there: bool) -> Found:
    """There is no domain at all, or none that has the pods of the group which are there."""
    if there:
        return Found(GroupStatus(Code.ERROR, [APART.format(keys=", ".join(wishes.required))]))
    return Found(GroupStatus(Code.UNSCHEDULABLE, [group_points.NO_PLACEMENTS]))
