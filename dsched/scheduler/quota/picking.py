"""Whose pod is next: between queues the one with the least of what it is due, inside a queue as QueueSort has it.

Pods of no queue come first, as QueueSort has them. From the top of the tree down the child with the least ratio of
usage, the pod included, to fair share is taken (`dsched.scheduler.quota.tree.Share.ratio`), then, of those that are as
well off, the one whose pod QueueSort puts first. What is picked counts as used while the rest of a batch is picked.

A pod for which a limit leaves no room is passed over: the next of its queue that fits is tried, and it stays in the
active queue until there is room. Pods that ask for the same stand in one line, so the next one that fits is found by
looking at one pod of each line, and at no line behind the first that has one. A pod whose claim others of its queue use
on nodes already asks for so much less; it stands elsewhere once that changes.

How long anybody is held up: a queue whose last `PATIENCE` attempts placed nothing gets one attempt a batch until one of
its pods is placed, and all such queues together a quarter of a batch as long as others have pods.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import count

from dsched.model.meta import PodKey
from dsched.scheduler.ports import Amounts, QueueName
from dsched.scheduler.queue import QueuedGroup, QueuedPod
from dsched.scheduler.quota.devices import claims_of
from dsched.scheduler.quota.ledger import Ledger
from dsched.scheduler.quota.tree import Share, Tree

PATIENCE = 64
"""So many attempts in a row may place nothing before a queue gets only one a batch."""
OF_A_BATCH = 4
"""One pod of so many is of queues that place nothing, while others have pods."""

HELD_BACK = 'queue "{queue}" has no room below its limit of {resource}'
"""What a pod is told that a limit holds back."""

Turn = tuple[int, str, str]
"""Sorts pods as the active queue does: order number, text, key."""

_WAITS = frozenset(QueueName) - {QueueName.NOWHERE, QueueName.GATED}


@dataclass(slots=True, eq=False)
class _Place:
    """A pod in a line; ``stands`` is whether it still does so."""

    turn: Turn
    pod: QueuedPod
    line: "_Line"
    stands: bool = True


_Sorted = tuple[Turn, int, _Place]
"""A place as lines sort it: by its turn and, where a pod has come back, by number."""


@dataclass(slots=True, eq=False)
class _Line:
    """Active pods of a queue that ask for the same, the first on top; some may stand elsewhere since.

    Attributes:
        kind: what it is found by among the lines of its queue.
        standing: how many of the places count.
        head: the place by which the queue sorts it among its lines, None while it does not.
    """

    queue: str
    profile: str
    kind: object
    amounts: Amounts
    places: list[_Sorted] = field(default_factory=list)
    standing: int = 0
    head: _Place | None = None
    looked_at: frozenset[str] | None = None
    """The resources of which ``counted`` is what a pod requests."""
    counted: Amounts = field(default_factory=dict)

    def of(self, resources: frozenset[str]) -> Amounts:
        """What a pod requests of some resources."""
        if self.looked_at is not resources:
            self.looked_at = resources
            self.counted = {name: amount for name, amount in self.amounts.items() if name in resources}
        return self.counted


@dataclass(slots=True, eq=False)
class _Lines:
    """Of one queue: by kind, and sorted by their first pods. A line stands no further back than its first pod is; of
    several heads of a line only `_Line.head` counts."""

    by_kind: dict[object, _Line] = field(default_factory=dict)
    heads: list[_Sorted] = field(default_factory=list)


class Picking:
    """The pods in the active queue, by queue; follows the pending pods.

    Attributes:
        paused: profiles whose pods are not picked; ``*`` for all.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.paused: frozenset[str] = frozenset()
        self._lines: dict[str, _Lines] = {}
        self._stands: dict[PodKey, _Place] = {}
        """The one place in a line that counts, of each pod that is active and not picked."""
        self._numbers = count()
        self._users: dict[str, dict[PodKey, tuple[QueuedPod, Sequence[QueuedPod]]]] = {}
        """Claim for devices to the pods and groups that stand in lines and use it, groups with their members."""
        self._claims: dict[PodKey, Sequence[str]] = {}
        """The same the other way round."""
        self._members: dict[PodKey, Sequence[QueuedPod]] = {}
        """Of the pod groups that stand in lines."""
        self._may_run: set[str] = set()
        """Keys of the pod groups in the queue that no gate holds back."""
        self._changed: set[str] = set()
        """Queues whose first pods may be others since turns were sorted, and not because they were picked."""
        self._homeless: set[str] = set()
        """Names in ``_lines`` of which there was no queue when the tree was looked at last."""
        self._looked_at = Tree()
        self._turns = _Turns(self._head, self._take)
        self._in_vain: dict[str, int] = {}
        self._stuck: set[str] = set()
        """Queues whose last `PATIENCE` attempts placed nothing."""
        self._probed: dict[str, int] = {}
        self._batches = 0

    def moved(self, pod: QueuedPod, members: Sequence[QueuedPod] = ()) -> None:
        """A pod stands somewhere else, or has changed; or a pod group, with its members."""
        place = pod.place
        if place is not QueueName.ACTIVE:
            self._leave(pod.key)
        if isinstance(pod, QueuedGroup):
            self._gated(pod, members)
            if place is QueueName.ACTIVE:
                self._line_up(pod, members)
            return
        if place in _WAITS and (place is not QueueName.GROUP or pod.group in self._may_run):
            self.ledger.waits(pod.info)
        else:
            self.ledger.waits_no_more(pod.uid)
        if place is QueueName.ACTIVE:
            self._line_up(pod, ())
        elif place is QueueName.RESERVED or place is QueueName.WAITING:
            name = self.ledger.entry(pod.info).name
            self._in_vain.pop(name, None)
            self._stuck.discard(name)

    def _gated(self, group: QueuedGroup, members: Sequence[QueuedPod]) -> None:
        """The pods of a group that a gate holds back cannot run, and ask for nothing."""
        key, may_run = group.pod_group.key, group.place in _WAITS
        if may_run is (key in self._may_run):
            return
        (self._may_run.add if may_run else self._may_run.discard)(key)
        for pod in members:
            if pod.place is QueueName.GROUP:
                self.moved(pod)

    def dropped(self, pod: QueuedPod) -> None:
        """A pod is no longer pending, or no pod stands beside a group any more."""
        self._leave(pod.key)
        if isinstance(pod, QueuedGroup):
            self._may_run.discard(pod.pod_group.key)
            return
        self.ledger.waits_no_more(pod.uid)

    def any_active(self) -> bool:
        """Whether there are pods in the active queue, those that a limit holds back among them."""
        return bool(self._stands)

    def held_back(self) -> Iterator[tuple[QueuedPod, str]]:
        """Pods in the active queue for which limits leave no room, and what they are told."""
        tree = self._tree()
        for name, lines in self._lines.items():
            leaf = tree.leaf(name)
            for line in lines.by_kind.values():
                if leaf is not None and (full := leaf.full(line.amounts)) is not None:
                    message = HELD_BACK.format(queue=full[0].name, resource=full[1])
                    yield from ((place.pod, message) for _, _, place in line.places if place.stands)

    def count_held_back(self) -> int:
        """How many pods, and pod groups, `held_back` names."""
        tree = self._tree()
        leaves = ((tree.leaf(name), lines.by_kind.values()) for name, lines in self._lines.items())
        return sum(
            line.standing
            for leaf, lines in leaves
            for line in lines
            if leaf is not None and leaf.full(line.amounts) is not None
        )

    def pick(self, count: int) -> list[QueuedPod]:
        """Up to so many pods of the active queue, in the order in which they are to be decided. They stay there until
        they are popped; those that are not popped have to be told with `moved`."""
        self._batches += 1
        tree = self._tree()
        picked, taken = self._of_no_queue(count)
        self.ledger.divide(taken)
        stuck = [name for name in self._stuck if name in self._lines and tree.leaf(name) is not None]
        waiting = set(stuck)
        stuck.sort(key=lambda name: (self._probed.get(name, 0), name))
        probes = set(stuck[: max(1, count // OF_A_BATCH)])
        picked += self._of_queues(tree, count - len(picked), waiting - probes, probes)
        if len(picked) < count and stuck:  # nobody else has any
            picked += self._of_queues(tree, count - len(picked), frozenset(), frozenset())
        return picked

    def _of_no_queue(self, count: int) -> tuple[list[QueuedPod], Amounts]:
        """The pods, and what they request altogether."""
        picked: list[QueuedPod] = []
        taken: Counter[str] = Counter()
        firsts = [
            (first.turn, first.line) for name in [*self._homeless] if (first := self._first_of(name)[0]) is not None
        ]
        heapq.heapify(firsts)
        while len(picked) < count and firsts:
            _, line = firsts[0]
            picked.append(self._take(line))
            taken.update(line.amounts)
            if (first := self._first_of(line.queue)[0]) is None:
                heapq.heappop(firsts)
            else:
                heapq.heapreplace(firsts, (first.turn, first.line))
        return picked, taken

    def _of_queues(self, tree: Tree, count: int, left_out: Set[str], once: Set[str]) -> list[QueuedPod]:
        """
        Args:
            left_out: queues that have no turn; once: those that have one at most.
        """
        self._turns.begin(tree, self.paused, self._changed, left_out, once)
        self._changed.clear()
        picked: list[QueuedPod] = []
        while len(picked) < count and (found := self._turns.next()) is not None:
            share, pod = found
            picked.append(pod)
            name = share.name
            tried = self._in_vain[name] = self._in_vain.get(name, 0) + 1
            if tried >= PATIENCE:
                self._stuck.add(name)
            self._probed[name] = self._batches
        self._turns.undo()
        return picked

    def _tree(self) -> Tree:
        """The queues as they are, once pods stand where they do now that namespaces name other queues, and others use
        their claims, or do no more."""
        tree = self.ledger.tree
        if tree is not self._looked_at:
            self._looked_at = tree
            self._homeless = {name for name in self._lines if tree.leaf(name) is None}
        if self.ledger.renamed:
            self.ledger.renamed = False
            for pod in [*self._of_other_queues()]:
                self._line_up(pod, self._members.get(pod.key, ()))
        for claim in self.ledger.moved & self._users.keys():
            for pod, members in [*self._users.get(claim, {}).values()]:
                self._line_up(pod, members)
        self.ledger.moved.clear()
        return tree

    def _of_other_queues(self) -> Iterator[QueuedPod]:
        """Pods that stand in lines of queues that they are not of."""
        for lines in self._lines.values():
            for line in lines.by_kind.values():
                for _, _, place in line.places:
                    if place.stands and self.ledger.entry(place.pod.info).name != line.queue:
                        yield place.pod

    def _line_up(self, pod: QueuedPod, members: Sequence[QueuedPod]) -> None:
        """A pod, or a pod group with its members, stands where its queue has pods that ask for the same."""
        if self._claims:
            self._forget_claims(pod.key)
        entry = self.ledger.entry(pod.info)
        claims: Sequence[str] = entry.claims
        if isinstance(pod, QueuedGroup):
            infos = [member.info for member in members]
            claims = [claim for info in infos for claim in claims_of(info.pod)]
            self._join(pod, entry.name, self.ledger.added(infos), pod.key)
            self._members[pod.key] = members
        else:
            requested = self.ledger.added([pod.info]) if claims else entry.amounts
            self._join(pod, entry.name, requested, frozenset(requested.items()))
        if claims:
            self._claims[pod.key] = claims
        for claim in claims:
            self._users.setdefault(claim, {})[pod.key] = pod, members

    def _join(self, pod: QueuedPod, name: str, amounts: Amounts, kind: object) -> None:
        profile = pod.info.pod.spec.scheduler_name
        lines = self._lines.get(name)
        if lines is None:
            lines = self._lines[name] = _Lines()
            if self._looked_at.leaf(name) is None:
                self._homeless.add(name)
        kind = profile, kind
        line = lines.by_kind.get(kind)
        if line is None or line.amounts != amounts:  # a pod group stands in a line of its own, and grows
            line = lines.by_kind[kind] = _Line(name, profile, kind, amounts)
        key = pod.key
        turn, stood = (pod.order, pod.turn, key), self._stands.get(key)
        if stood is not None and stood.line is line and stood.turn == turn:
            return
        self._leave(key)  # another line, where the pod has changed
        place = self._stands[key] = _Place(turn, pod, line)
        line.standing += 1
        entry = turn, next(self._numbers), place
        heapq.heappush(line.places, entry)
        if _first(line) is entry:
            line.head = place
            heapq.heappush(lines.heads, entry)
            self._changed.add(name)

    def _leave(self, key: PodKey) -> None:
        """A pod stands in no line any more."""
        stood = self._stands.pop(key, None)
        if stood is not None:
            if stood.line.head is stood:
                self._changed.add(stood.line.queue)
            stood.stands = False
            stood.line.standing -= 1
        if self._members or self._claims:
            self._members.pop(key, None)
            self._forget_claims(key)

    def _forget_claims(self, key: PodKey) -> None:
        """It does not matter to a pod any more who uses its claims."""
        for claim in self._claims.pop(key, ()):
            users = self._users.get(claim, {})
            users.pop(key, None)
            if not users:
                self._users.pop(claim, None)

    def _take(self, line: _Line) -> QueuedPod:
        """The first pod of a line, which is left out from now on."""
        places = line.places
        place = heapq.heappop(places)[2]
        while not place.stands:
            place = heapq.heappop(places)[2]
        place.stands = False
        line.standing -= 1
        key = PodKey(place.turn[2])
        del self._stands[key]
        if self._members or self._claims:
            self._members.pop(key, None)
            self._forget_claims(key)
        return place.pod

    def _first_of(self, name: str, share: Share | None = None) -> tuple[_Place | None, bool]:
        """The first place in the lines of a queue, those of paused profiles left out, and those for which limits from
        ``share`` up leave no room; and whether they hold back any before it. A line in which nobody stands is
        forgotten."""
        lines = self._lines.get(name)
        if lines is None:
            return None, False
        heads, passed, held_back = lines.heads, list[_Sorted](), False
        found: _Place | None = None
        while heads and found is None:
            place = heads[0][2]
            line = place.line
            if line.head is not place:
                heapq.heappop(heads)
            elif not place.stands:
                _sort_anew(lines, line)
            elif self.paused and (line.profile in self.paused or "*" in self.paused):
                passed.append(heapq.heappop(heads))
            elif share is not None and share.limited and share.full(line.amounts) is not None:
                held_back = True
                passed.append(heapq.heappop(heads))
            else:
                found = place
        for head in passed:
            heapq.heappush(heads, head)
        if not heads:
            del self._lines[name]
            self._homeless.discard(name)
        return found, held_back

    def _head(self, share: Share) -> tuple[_Place | None, bool]:
        """The first place in a queue that limits leave room for; and whether they hold others back before it."""
        return self._first_of(share.name, share)


def _first(line: _Line) -> _Sorted | None:
    """The first place of a line at which a pod stands."""
    places = line.places
    while places:
        if places[0][2].stands:
            return places[0]
        heapq.heappop(places)
    return None


def _sort_anew(lines: _Lines, line: _Line) -> None:
    """The first of the heads is of a line whose first pod stands there no more."""
    first = _first(line)
    if first is not None:
        line.head = first[2]
        heapq.heapreplace(lines.heads, first)
        return
    heapq.heappop(lines.heads)
    line.head = None
    if lines.by_kind.get(line.kind) is line:
        del lines.by_kind[line.kind]


_Entry = tuple[float, Turn, str, Share, _Line]
"""Ratio, turn, name, the queue, and the line of its first pod: sorts a queue among its siblings."""


class _Turns:
    """The order of turns, from a state of the tree on in which the pods that had one count as placed.

    It is kept from batch to batch: only queues that are unsorted are looked at again, and those below a limit that
    leaves no room for a first pod any more. A queue in which a limit holds pods back stays unsorted. One that has, when
    the next batch begins, what it has with all its pods that were picked is sorted as it was after the last of them.
    """

    def __init__(self, head: Callable[[Share], tuple[_Place | None, bool]], take: Callable[[_Line], QueuedPod]) -> None:
        """
        Args:
            head: where the first pod of a queue stands that may be picked, and whether others before it are held back;
                take: picks the first of a line.
        """
        self._head = head
        self._take = take
        self._tree = Tree()
        self._paused: Set[str] = frozenset()
        self._left_out: Set[str] = frozenset()
        self._once: Set[str] = frozenset()
        self._done: set[str] = set()
        self._taken: list[tuple[Share, Amounts]] = []
        self._foreseen: list[tuple[Share, list[int | None]]] = []
        """The queues that had turns, and what each has of `_counting` with all pods that were picked."""
        self._counting: frozenset[str] = frozenset()
        """Resources that have to do with the order: those that somebody contends for or that are limited."""
        self._contention = -1
        self._entries: dict[Share, _Entry | None] = {}
        self._heaps: dict[Share, list[_Entry]] = {}
        self._firsts: dict[Share, _Place] = {}
        """The first place in a queue, where limits hold nobody back before it and nobody has come before it since."""
        self._largest: dict[Share, dict[str, int]] = {}
        """Of a queue with limits, how much no first pod below it exceeds."""

    def begin(self, tree: Tree, paused: Set[str], changed: Iterable[str], left_out: Set[str], once: Set[str]) -> None:
        """Sort what has changed.

        Args:
            paused: as `Picking` has it; changed: queues that have other pods.
            left_out: queues that have no turn; once: those that have one at most.
        """
        if tree is not self._tree or paused != self._paused:
            self._tree, self._paused = tree, paused
            self._entries, self._heaps, self._firsts, self._largest = {}, {}, {}, {}
            self._contention = -1
            tree.root.unsorted = True
            for share in tree.shares.values():
                share.unsorted = True
        self._look_back(as_foreseen=self._contention == tree.contention)
        if self._contention != tree.contention:
            self._contention, self._counting = tree.contention, tree.counting()
        for name in [*changed, *(self._left_out ^ left_out)]:
            if (leaf := tree.leaf(name)) is not None:
                self._firsts.pop(leaf, None)
                leaf.unsort()
        self._left_out, self._once = left_out, once
        self._done.clear()
        self._fill(tree.root, anew=False)

    def _look_back(self, *, as_foreseen: bool) -> None:
        """Who has something else than what was foreseen is unsorted.

        Args:
            as_foreseen: whether what was foreseen can be compared: it is still of the resources that count.
        """
        counting = self._counting
        for share, foreseen in self._foreseen:
            share.foreseen = False
            if not as_foreseen or share.name in self._done or [*map(share.usage.get, counting)] != foreseen:
                share.unsort()
        self._foreseen.clear()

    def next(self) -> tuple[Share, QueuedPod] | None:
        """Whose turn it is, and the pod; None where nobody has any that fits."""
        entries = self._heaps.get(self._tree.root)
        if not entries:
            return None
        line = entries[0][4]
        share = self._tree.shares[line.queue]
        pod = self._take(line)
        self._firsts.pop(share, None)
        counted = line.of(self._counting)
        self._taken.append((share, counted))
        share.use(counted, 1)
        if share.name in self._once:
            self._done.add(share.name)
        filled = self._outgrown(share) or share
        self._fill(filled, anew=True)
        self._renew(filled)
        return share, pod

    def undo(self) -> None:
        """Those that had a turn count no longer."""
        for share in {share: None for share, _ in self._taken}:
            share.foreseen = True
            self._foreseen.append((share, [*map(share.usage.get, self._counting)]))
        for share, taken in self._taken:
            share.use(taken, -1)
        self._taken.clear()

    def _fill(self, share: Share, *, anew: bool) -> None:
        """Sort those below a queue, as far as they are unsorted or, ``anew``, all."""
        anew |= bool(share.limits) and bool(share.over(self._largest.get(share, {})))
        share.unsorted = False
        if not share.children:
            return
        if anew:
            self._largest.pop(share, None)
        heap: list[_Entry] = []
        for child in share.children:
            if child.unsorted or anew:
                self._fill(child, anew=anew)
                self._entries[child] = self._entry(child)
            share.unsorted |= child.unsorted
            if (entry := self._entries[child]) is not None:
                heap.append(entry)
        heapq.heapify(heap)
        self._heaps[share] = heap

    def _entry(self, share: Share) -> _Entry | None:
        """How a queue is sorted among its siblings; None where it has no pod that may be picked."""
        if share.children:
            return _above(share, self._heaps[share])
        if share.name in self._done or share.name in self._left_out:
            return None
        first = self._firsts.get(share)
        if first is None or (share.limited and share.full(first.line.amounts) is not None):
            first, held_back = self._head(share)
            share.unsorted |= held_back
            self._firsts.pop(share, None)
            if first is None:
                return None
            if not held_back:
                self._firsts[share] = first
        line = first.line
        self._note(share, line.amounts)
        return share.ratio(line.amounts), first.turn, share.name, share, line

    def _note(self, leaf: Share, amounts: Amounts) -> None:
        for share in leaf.limited:
            if share is not leaf:
                largest = self._largest.setdefault(share, {})
                for resource in share.limits:
                    largest[resource] = max(largest.get(resource, 0), amounts.get(resource, 0))

    def _outgrown(self, leaf: Share) -> Share | None:
        """The highest queue above one that had a turn whose limit may leave no room for other first pods below it now:
        with another pod, or none, they stand elsewhere among their siblings."""
        found: Share | None = None
        for share in leaf.limited:
            if share is not leaf and share.over(self._largest.get(share, {})):
                found = share
        return found

    def _renew(self, share: Share) -> None:
        """Sort a queue, whose turn it was, and those above it anew among their siblings."""
        heaps, entries, entry = self._heaps, self._entries, self._entry(share)
        parent = share.parent
        while parent is not None:
            entries[share] = entry
            heap = heaps[parent]
            if entry is None:
                heapq.heappop(heap)
            else:
                heapq.heapreplace(heap, entry)
            parent.unsorted |= share.unsorted
            share, parent = parent, parent.parent
            if parent is not None:
                entry = _above(share, heap)


def _above(share: Share, heap: Sequence[_Entry]) -> _Entry | None:
    """How a queue that has queues below it is sorted, when these are sorted."""
    if not heap:
        return None
    _, turn, _, _, line = heap[0]
    return share.ratio(line.amounts), turn, share.name, share, line
