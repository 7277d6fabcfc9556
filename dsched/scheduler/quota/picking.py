"""Whose pod is next: between queues the one with the least of what it is due, inside a queue as QueueSort has it.

Pods of no queue come first, as QueueSort has them. From the top of the tree down the child with the least ratio of
usage, the pod included, to fair share is taken (`dsched.scheduler.quota.tree.Share.ratio`), then, of those that are as
well off, the one whose pod QueueSort puts first. What is picked counts as used while the rest of a batch is picked.

A pod for which a limit leaves no room is passed over: the next of its queue that fits is tried, and it stays in the
active queue until there is room. Pods that ask for the same stand in one line, so the next one that fits is found by
looking at one pod of each line. A pod whose claim others of its queue use on nodes already asks for so much less; it
stands elsewhere once that changes.

How long anybody is held up: a queue whose last `PATIENCE` attempts placed nothing gets one attempt a batch until one of
its pods is placed, and all such queues together a quarter of a batch as long as others have pods.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field

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
class _Line:
    """Active pods of a queue that ask for the same, the first on top; some may stand elsewhere since."""

    queue: str
    profile: str
    amounts: Amounts
    pods: list[tuple[Turn, QueuedPod]] = field(default_factory=list)
    standing: int = 0
    """How many of them stand here."""


class Picking:
    """The pods in the active queue, by queue; follows the pending pods.

    Attributes:
        paused: profiles whose pods are not picked; ``*`` for all.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.paused: frozenset[str] = frozenset()
        self._lines: dict[str, dict[object, _Line]] = {}
        self._stands: dict[PodKey, tuple[_Line, Turn]] = {}
        """The one place in a line that counts, of each pod that is active and not picked."""
        self._users: dict[str, dict[PodKey, tuple[QueuedPod, Sequence[QueuedPod]]]] = {}
        """Claim for devices to the pods and groups that stand in lines and use it, groups with their members."""
        self._claims: dict[PodKey, Sequence[str]] = {}
        """The same the other way round."""
        self._members: dict[PodKey, Sequence[QueuedPod]] = {}
        """Of the pod groups that stand in lines."""
        self._may_run: set[str] = set()
        """Keys of the pod groups in the queue that no gate holds back."""
        self._changed: set[str] = set()
        """Queues whose first pods may be others since turns were sorted."""
        self._turns = _Turns(self._head, self._take)
        self._in_vain: dict[str, int] = {}
        self._probed: dict[str, int] = {}
        self._batches = 0

    def moved(self, pod: QueuedPod, members: Sequence[QueuedPod] = ()) -> None:
        """A pod stands somewhere else, or has changed; or a pod group, with its members."""
        if pod.place is not QueueName.ACTIVE:
            self._leave(pod.key)
        if isinstance(pod, QueuedGroup):
            self._gated(pod, members)
            if pod.place is QueueName.ACTIVE:
                self._line_up(pod, members)
            return
        if pod.place in _WAITS and (pod.place is not QueueName.GROUP or pod.group in self._may_run):
            self.ledger.waits(pod.info)
        else:
            self.ledger.waits_no_more(pod.uid)
        if pod.place is QueueName.ACTIVE:
            self._line_up(pod, ())
        elif pod.place in (QueueName.RESERVED, QueueName.WAITING):
            self._in_vain.pop(self.ledger.entry(pod.info).name, None)

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
            for line in lines.values():
                if leaf is not None and (full := leaf.full(line.amounts)) is not None:
                    message = HELD_BACK.format(queue=full[0].name, resource=full[1])
                    yield from ((pod, message) for turn, pod in line.pods if self._counts(line, turn))

    def count_held_back(self) -> int:
        """How many pods, and pod groups, `held_back` names."""
        tree = self._tree()
        leaves = ((tree.leaf(name), lines.values()) for name, lines in self._lines.items())
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
        shares = {name: tree.leaf(name) for name in self._lines}
        picked, taken = self._of_no_queue([name for name, share in shares.items() if share is None], count)
        self.ledger.divide(taken)
        queues = [share for share in shares.values() if share is not None]
        stuck = [share for share in queues if self._in_vain.get(share.name, 0) >= PATIENCE]
        waiting = {share.name for share in stuck}
        stuck.sort(key=lambda share: self._probed.get(share.name, 0))
        probes = {share.name for share in stuck[: max(1, count // OF_A_BATCH)]}
        picked += self._of_queues(tree, count - len(picked), waiting - probes, probes)
        if len(picked) < count and stuck:  # nobody else has any
            picked += self._of_queues(tree, count - len(picked), frozenset(), frozenset())
        return picked

    def _of_no_queue(self, names: Sequence[str], count: int) -> tuple[list[QueuedPod], Amounts]:
        """The pods, and what they request altogether."""
        picked: list[QueuedPod] = []
        taken: Counter[str] = Counter()
        lines = [line for name in names for _, line in self._heads(name)]
        turns = [(turn, number) for number, line in enumerate(lines) if (turn := self._first(line)) is not None]
        heapq.heapify(turns)
        while len(picked) < count and turns:
            _, number = heapq.heappop(turns)
            picked.append(self._take(lines[number]))
            taken.update(lines[number].amounts)
            if (turn := self._first(lines[number])) is not None:
                heapq.heappush(turns, (turn, number))
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
            self._in_vain[share.name] = self._in_vain.get(share.name, 0) + 1
            self._probed[share.name] = self._batches
        self._turns.undo()
        return picked

    def _tree(self) -> Tree:
        """The queues as they are, once pods stand where they do now that namespaces name other queues, and others use
        their claims, or do no more."""
        tree = self.ledger.tree
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
            for line in lines.values():
                for turn, pod in line.pods:
                    if self._counts(line, turn) and self.ledger.entry(pod.info).name != line.queue:
                        yield pod

    def _line_up(self, pod: QueuedPod, members: Sequence[QueuedPod]) -> None:
        """A pod, or a pod group with its members, stands where its queue has pods that ask for the same."""
        if self._claims:
            self._forget_claims(pod.key)
        if isinstance(pod, QueuedGroup):
            infos = [member.info for member in members]
            claims = [claim for info in infos for claim in claims_of(info.pod)]
            self._join(pod, self.ledger.added(infos), pod.key)
            self._members[pod.key] = members
        else:
            claims = [*claims_of(pod.info.pod)]
            requested = self.ledger.added([pod.info]) if claims else self.ledger.entry(pod.info).amounts
            self._join(pod, requested, frozenset(requested.items()))
        if claims:
            self._claims[pod.key] = claims
        for claim in claims:
            self._users.setdefault(claim, {})[pod.key] = pod, members

    def _join(self, pod: QueuedPod, amounts: Amounts, kind: object) -> None:
        name, profile = self.ledger.entry(pod.info).name, pod.info.pod.spec.scheduler_name
        lines = self._lines.setdefault(name, {})
        line = lines.get((profile, kind))
        if line is None or line.amounts != amounts:  # a pod group stands in a line of its own, and grows
            line = lines[profile, kind] = _Line(name, profile, amounts)
        turn = pod.order, pod.turn, pod.key
        if self._stands.get(pod.key) != (line, turn):
            self._leave(pod.key)  # another line, where the pod has changed
            self._stands[pod.key] = line, turn
            line.standing += 1
            self._changed.add(name)
            heapq.heappush(line.pods, (turn, pod))

    def _leave(self, key: PodKey) -> None:
        """A pod stands in no line any more."""
        stood = self._stands.pop(key, None)
        if stood is not None:
            stood[0].standing -= 1
            self._changed.add(stood[0].queue)
        self._members.pop(key, None)
        if self._claims:
            self._forget_claims(key)

    def _forget_claims(self, key: PodKey) -> None:
        """It does not matter to a pod any more who uses its claims."""
        for claim in self._claims.pop(key, ()):
            users = self._users.get(claim, {})
            users.pop(key, None)
            if not users:
                self._users.pop(claim, None)

    def _counts(self, line: _Line, turn: Turn) -> bool:
        """Whether the pod of this turn stands in a line with it still."""
        return self._stands.get(PodKey(turn[2])) == (line, turn)

    def _first(self, line: _Line) -> Turn | None:
        """The turn of the first pod of a line that stands there."""
        while line.pods:
            turn = line.pods[0][0]
            if self._counts(line, turn):
                return turn
            heapq.heappop(line.pods)
        return None

    def _take(self, line: _Line) -> QueuedPod:
        """The first pod of a line, which is left out from now on."""
        turn, pod = heapq.heappop(line.pods)
        self._leave(PodKey(turn[2]))
        return pod

    def _heads(self, name: str) -> "list[_Head]":
        """The first pod of each line of a queue, those of paused profiles left out; a line in which nobody stands is
        forgotten."""
        lines = self._lines.get(name, {})
        found: list[_Head] = []
        for kind, line in [*lines.items()]:
            turn = self._first(line)
            if turn is None:
                del lines[kind]
            elif line.profile not in self.paused and "*" not in self.paused:
                found.append((turn, line))
        if not lines:
            self._lines.pop(name, None)
        return found

    def _head(self, share: Share) -> "tuple[_Head | None, bool]":
        """The first pod of a queue that limits leave room for, and its line; and whether they hold others back."""
        heads = self._heads(share.name)
        fitting = [head for head in heads if share.holds(head[1].amounts)]
        return min(fitting, key=_by_turn, default=None), len(fitting) < len(heads)


_Head = tuple[Turn, _Line]


def _by_turn(head: _Head) -> Turn:
    return head[0]


_Entry = tuple[float, Turn, str, Share, _Line]
"""Ratio, turn, name, the queue, and the line of its first pod: sorts a queue among its siblings."""


class _Turns:
    """The order of turns, from a state of the tree on in which the pods that had one count as placed.

    It is kept from batch to batch: only queues that are unsorted are looked at again, and those below a limit that
    leaves no room for a first pod any more. A queue in which a limit holds pods back stays unsorted.
    """

    def __init__(self, head: Callable[[Share], tuple[_Head | None, bool]], take: Callable[[_Line], QueuedPod]) -> None:
        """
        Args:
            head: the first pod of a queue that may be picked, and whether others are held back; take: picks it.
        """
        self._head = head
        self._take = take
        self._tree = Tree()
        self._paused: Set[str] = frozenset()
        self._left_out: Set[str] = frozenset()
        self._once: Set[str] = frozenset()
        self._done: set[str] = set()
        self._taken: list[tuple[Share, Amounts]] = []
        self._entries: dict[Share, _Entry | None] = {}
        self._heaps: dict[Share, list[_Entry]] = {}
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
            self._entries, self._heaps, self._largest = {}, {}, {}
            tree.root.unsorted = True
            for share in tree.shares.values():
                share.unsorted = True
        for name in [*changed, *(self._left_out ^ left_out)]:
            if (leaf := tree.leaf(name)) is not None:
                leaf.unsort()
        self._left_out, self._once = left_out, once
        self._done.clear()
        self._fill(tree.root, anew=False)

    def next(self) -> tuple[Share, QueuedPod] | None:
        """Whose turn it is, and the pod; None where nobody has any that fits."""
        share = self._tree.root
        if not self._heaps.get(share):
            return None
        line = self._heaps[share][0][4]
        while share.children:
            share = self._heaps[share][0][3]
        pod = self._take(line)
        self._taken.append((share, line.amounts))
        share.use(line.amounts, 1)
        if share.name in self._once:
            self._done.add(share.name)
        filled = self._outgrown(share) or share
        self._fill(filled, anew=True)
        self._renew(filled)
        return share, pod

    def undo(self) -> None:
        """Those that had a turn count no longer."""
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
            if not (heap := self._heaps[share]):
                return None
            turn, line = heap[0][1], heap[0][4]
        else:
            if share.name in self._done or share.name in self._left_out:
                return None
            first, held_back = self._head(share)
            share.unsorted |= held_back
            if first is None:
                return None
            turn, line = first
            self._note(share, line.amounts)
        return share.ratio(line.amounts), turn, share.name, share, line

    def _note(self, leaf: Share, amounts: Amounts) -> None:
        for share in leaf.path():
            if share.limits and share is not leaf:
                largest = self._largest.setdefault(share, {})
                for resource in share.limits:
                    largest[resource] = max(largest.get(resource, 0), amounts.get(resource, 0))

    def _outgrown(self, leaf: Share) -> Share | None:
        """The highest queue above one that had a turn whose limit may leave no room for other first pods below it now:
        with another pod, or none, they stand elsewhere among their siblings."""
        found: Share | None = None
        for share in leaf.path():
            if share is not leaf and share.limits and share.over(self._largest.get(share, {})):
                found = share
        return found

    def _renew(self, share: Share) -> None:
        """Sort a queue, whose turn it was, and those above it anew among their siblings."""
        while share.parent is not None:
            heap, entry = self._heaps[share.parent], self._entry(share)
            if entry is None:
                heapq.heappop(heap)
            else:
                heapq.heapreplace(heap, entry)
            share.parent.unsorted |= share.unsorted
            share = share.parent
