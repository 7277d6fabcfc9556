"""The tree of queues: what each has, wants, and is due.

::

    Tree.charge   a pod came onto a node or left it: usage of its queue and of those above
    Tree.wants    a pod began or ceased to wait: what its queue asks for
    Tree.place    a pod that waited came onto a node: both at once
    Tree.divide   fair shares from the top, where something has changed since
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from dsched.arithmetic.fair_division import Claim, divide, is_more
from dsched.config import durations
from dsched.framework.table import PODS
from dsched.model import quantity
from dsched.model.queues import Queue, QueueResource
from dsched.scheduler.ports import Amounts

TOP = ""
"""The root of the tree: all that queues may have."""


@dataclass(slots=True, eq=False)
class Share:
    """A queue in the tree.

    Attributes:
        queue: None for the root.
        limits: resource to what it never exceeds; a resource without a limit is left out.
        guaranteed: what it may always reach, at least what its children may reach together.
        usage: of its pods on nodes and of those of all queues below; running: how many these are.
        asks: what its own pods that wait ask for; asking: how many these are. A queue with queues below has none.
        min_runtime_s: so long its pods run before they may be taken back.
        fair: what it is due; a resource that it has not and does not ask for is left out.
        contended: resources of which its children ask for more than it is due.
    """

    name: str
    queue: Queue | None = None
    parent: "Share | None" = None
    children: list["Share"] = field(default_factory=list)
    limits: dict[str, int] = field(default_factory=dict)
    guaranteed: dict[str, int] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)
    min_runtime_s: float = 0.0
    usage: dict[str, int] = field(default_factory=dict)
    asks: dict[str, int] = field(default_factory=dict)
    running: int = 0
    asking: int = 0
    fair: dict[str, float] = field(default_factory=dict)
    contended: frozenset[str] = frozenset()
    demands: dict[str, int] = field(default_factory=dict)
    """What it would use if there was enough, as of the last division."""
    touched: bool = True
    """Whether pods came, went or were placed since then."""
    divided_anew: bool = True
    """Whether what its children, or queues further below, ask for differs from what it was at the last division."""
    unsorted: bool = True
    """Whether its place among its siblings, or that of a queue below, may have changed since they were sorted. Those
    above are unsorted, too."""
    foreseen: bool = False
    """Whether it, and those above, are sorted as they will be once pods of it that were picked are placed."""
    all_weigh: bool = True
    """Whether each of its children is due a part of what is beyond guarantees, of whatever resource."""
    news: bool = True
    """Whether something of it has changed since somebody last told how it is, who clears it for all queues."""
    to_root: tuple["Share", ...] = ()
    """The queue and those above it, the root at the end."""
    limited: tuple["Share", ...] = ()
    """Those of them that have limits."""

    def __post_init__(self) -> None:
        above, limited = ((), ()) if self.parent is None else (self.parent.to_root, self.parent.limited)
        self.to_root = (self, *above)
        self.limited = (self, *limited) if self.limits else limited

    @property
    def pending(self) -> dict[str, int]:
        """What the pods ask for that wait here or in a queue below; added up when it is asked for."""
        if not self.children:
            return self.asks
        found: dict[str, int] = {}
        for child in self.children:
            add(found, child.pending, 1)
        return found

    @property
    def waiting(self) -> int:
        """How many pods these are."""
        return sum(child.waiting for child in self.children) if self.children else self.asking

    def path(self) -> Iterator["Share"]:
        """The queue and those above it, without the root."""
        return iter(self.to_root[:-1])

    def holds(self, amounts: Amounts) -> bool:
        """Whether limits, its own and those above, leave room for so much more."""
        return self.full(amounts) is None

    def full(self, amounts: Amounts) -> "tuple[Share, str] | None":
        """The first queue, from here up, whose limit leaves no room for so much more, and the resource; None where
        there is room."""
        for share in self.limited:  # as `over`, without the calls: it is asked several times for each pod
            usage = share.usage
            for resource, limit in share.limits.items():
                more = amounts.get(resource, 0)
                if more and usage.get(resource, 0) + more > limit:
                    return share, resource
        return None

    def over(self, amounts: Amounts) -> str:
        """The resource of which so much more would exceed its own limit; empty where that is none."""
        for resource, limit in self.limits.items():
            more = amounts.get(resource, 0)
            if more and self.usage.get(resource, 0) + more > limit:
                return resource
        return ""

    def exceeded(self) -> Iterator[tuple["Share", str]]:
        """Queues, from here up, that use more than their limit, and the resource."""
        for share in self.limited:
            for resource, limit in share.limits.items():
                if share.usage.get(resource, 0) > limit:
                    yield share, resource

    def use(self, amounts: Amounts, sign: int) -> None:
        """Count amounts as used here and above, or not any more, for as long as it is worked out what would come of it:
        neither what is due nor the order of queues is looked at."""
        changes = [(resource, sign * amount) for resource, amount in amounts.items()]
        for share in self.to_root:  # as `add`, without the calls: it is done several times for each pod
            usage = share.usage
            for resource, change in changes:
                if left := usage.get(resource, 0) + change:
                    usage[resource] = left
                else:
                    usage.pop(resource, None)

    def touch(self) -> None:
        """What it, and those above, would use has to be worked out anew."""
        for share in self.to_root:
            if share.touched:
                return
            share.touched = True

    def is_news(self) -> None:
        """What is told of it, and of those above, has changed."""
        for share in self.to_root:
            if share.news:
                return
            share.news = True

    def unsort(self) -> None:
        """Its place among its siblings has to be looked up again."""
        for share in self.to_root:
            if share.unsorted:
                return
            share.unsorted = True

    def ratio(self, more: Amounts) -> float:
        """How much it would have of what it is due, with so much more, of the resource of which that is the most: its
        dominant one. Only what its siblings contend for counts; where they contend for nothing, all are as well off."""
        assert self.parent is not None
        worst = 0.0
        for resource in self.parent.contended:
            used = self.usage.get(resource, 0) + more.get(resource, 0)
            if used > 0:
                due = self.fair.get(resource, 0.0)
                worst = max(worst, used / due if due > 0 else float("inf"))
        return worst


class Tree:
    """All queues, by name; a tree is built anew when a queue comes, goes or changes.

    Attributes:
        broken: queue to why it counts for nothing: its parent is not there, it is its own ancestor, or what it says is
            no amount or no time.
        contention: grows whenever siblings begin or cease to contend for something.
    """

    def __init__(self, queues: Iterable[Queue] = ()) -> None:
        self.root = Share(TOP)
        self.shares: dict[str, Share] = {}
        self.broken: dict[str, str] = {}
        self.contention = 0
        self._build({queue.name: queue for queue in queues})

    def __len__(self) -> int:
        return len(self.shares)

    def leaf(self, name: str) -> Share | None:
        """The queue of this name that may have pods; None where there is none, or it has children."""
        share = self.shares.get(name)
        return None if share is None or share.children else share

    def _build(self, queues: Mapping[str, Queue]) -> None:
        below: dict[str, list[Queue]] = {}
        for name in sorted(queues):
            below.setdefault(queues[name].spec.parent, []).append(queues[name])
        reached: deque[Share] = deque([self.root])
        order: list[Share] = []
        while reached:
            share = reached.popleft()
            order.append(share)
            for queue in below.get(share.name, ()):
                try:
                    child = self.shares[queue.name] = _share(queue, share)
                except ValueError as error:
                    self.broken[queue.name] = str(error)
                    continue
                share.children.append(child)
                reached.append(child)
        for share in reversed(order):
            _raise_guarantees(share)
            share.all_weigh = all(_least_weight(child) > 0 for child in share.children)
        for name in queues.keys() - self.shares.keys() - self.broken.keys():
            parent = queues[name].spec.parent
            self.broken[name] = (
                f'its ancestor "{parent}" is below it or hangs in the air'
                if parent in queues
                else f'its parent "{parent}" does not exist'
            )

    # -- what pods do to it ------------------------------------------------------------------------------------------

    def adopt(self, leaf: Share, usage: dict[str, int], asks: dict[str, int], *, running: int, asking: int) -> None:
        """A queue has pods from the beginning; what they come to is kept in these very dictionaries from now on."""
        leaf.usage, leaf.asks, leaf.asking = usage, asks, asking
        for share in leaf.to_root[1:]:
            add(share.usage, usage, 1)
        self._moved(leaf, running)
        leaf.touch()

    def charge(self, leaf: Share, amounts: Amounts, pods: int = 1) -> None:
        """Pods of a queue are on nodes; a negative number: they left; none: by its pods it has more, or less."""
        leaf.use(amounts, 1 if pods >= 0 else -1)
        self._moved(leaf, pods)
        leaf.touch()

    def wants(self, leaf: Share, amounts: Amounts, pods: int = 1) -> None:
        """Pods of a queue wait; a negative number: they do so no more; none: its pods ask for more, or less."""
        add(leaf.asks, amounts, 1 if pods >= 0 else -1)
        leaf.asking += pods
        leaf.is_news()
        leaf.touch()

    def place(self, leaf: Share, amounts: Amounts) -> None:
        """A pod of a queue that waited is on a node. What queues would use is as it was, unless a limit is exceeded:
        then what they use counts."""
        add(leaf.asks, amounts, -1)
        leaf.asking -= 1
        leaf.use(amounts, 1)
        for share in leaf.to_root:
            share.running += 1
        leaf.is_news()
        if not leaf.foreseen:
            leaf.unsort()
        if leaf.limited and next(leaf.exceeded(), None) is not None:
            leaf.touch()

    def _moved(self, leaf: Share, pods: int) -> None:
        for share in leaf.to_root:
            share.running += pods
        leaf.is_news()
        leaf.unsort()

    # -- fair shares -------------------------------------------------------------------------------------------------

    def divide(self, total: Mapping[str, float]) -> None:
        """Bring fair shares up to date.

        Args:
            total: resource to what queues may have altogether.
        """
        _ask(self.root)
        self._divide(self.root, due_changed=total != self.root.fair, due=dict(total))

    def counting(self) -> frozenset[str]:
        """Resources that have to do with whose turn it is: siblings contend for them, or they are limited."""
        found = {resource for share in self.shares.values() for resource in share.limits}
        return frozenset(found.union(self.root.contended, *(share.contended for share in self.shares.values())))

    def _divide(self, share: Share, *, due_changed: bool, due: dict[str, float]) -> None:
        """What a queue's children are due, and theirs, as far as it may have changed."""
        if due_changed and share.parent is not None:
            before = share.fair
            if any(before.get(resource) != due.get(resource) for resource in share.parent.contended):
                share.unsort()
        if due_changed:
            share.is_news()
        share.fair = due
        if not share.children or not (due_changed or share.divided_anew):
            return
        share.divided_anew = False
        contended: set[str] = set()
        parts: list[dict[str, float]] = [{} for _ in share.children]
        for resource in sorted(share.demands.keys() | {name for child in share.children for name in child.demands}):
            amount = due.get(resource, 0.0)
            wanted = [child.demands.get(resource, 0) for child in share.children]
            if share.all_weigh and is_more(amount, sum(wanted)):  # each gets what it asks for
                for demand, given in zip(wanted, parts, strict=True):
                    given[resource] = demand
                continue
            claims = [_claim(child, resource) for child in share.children]
            for given, part in zip(parts, divide(amount, claims), strict=True):
                given[resource] = part
            if is_more(sum(wanted), amount):
                contended.add(resource)
        if contended != share.contended:
            share.contended = frozenset(contended)
            self.contention += 1
            for child in share.children:
                child.unsort()
        for child, part_of_it in zip(share.children, parts, strict=True):
            self._divide(child, due_changed=part_of_it != child.fair, due=part_of_it)


def _share(queue: Queue, parent: Share) -> Share:
    """
    Raises:
        ValueError: an amount is none, or the time is none.
    """
    spec = queue.spec
    return Share(
        queue.name,
        queue,
        parent,
        limits={name: _amount(name, each.limit) for name, each in spec.resources.items() if each.limit is not None},
        guaranteed={name: _amount(name, each.guaranteed) for name, each in spec.resources.items()},
        weights={name: _weight(queue, each) for name, each in spec.resources.items()},
        min_runtime_s=durations.parse(spec.min_runtime) / durations.SECOND,
    )


def _amount(resource: str, given: quantity.Quantity) -> int:
    return quantity.amount(resource, quantity.nano(given))


def _weight(queue: Queue, resource: QueueResource) -> int:
    return queue.spec.weight if resource.weight is None else resource.weight


def _least_weight(share: Share) -> int:
    assert share.queue is not None
    return min(share.queue.spec.weight, *share.weights.values()) if share.weights else share.queue.spec.weight


def _raise_guarantees(share: Share) -> None:
    for child in share.children:
        for resource in child.guaranteed:
            together = sum(each.guaranteed.get(resource, 0) for each in share.children)
            share.guaranteed[resource] = max(share.guaranteed.get(resource, 0), together)


def add(amounts: dict[str, int], more: Amounts, sign: int) -> None:
    """Add amounts to others, or subtract them; of which nothing is left is left out."""
    for resource, amount in more.items():
        left = amounts.get(resource, 0) + sign * amount
        if left:
            amounts[resource] = left
        else:
            amounts.pop(resource, None)


def _ask(share: Share) -> bool:
    """Bring up to date what a queue and those below would use; says whether anything of that has changed. It is never
    more than the limit, nor less than the usage."""
    if not share.touched:
        return False
    share.touched = False
    wanted: dict[str, int] = {}
    if share.children:
        share.divided_anew |= sum(_ask(child) for child in share.children) > 0
        for child in share.children:
            add(wanted, child.demands, 1)
    else:
        add(wanted, share.usage, 1)
        add(wanted, share.asks, 1)
    for resource, limit in share.limits.items():
        if wanted.get(resource, 0) > limit:
            wanted[resource] = max(limit, share.usage.get(resource, 0))
    before, share.demands = share.demands, {resource: amount for resource, amount in wanted.items() if amount > 0}
    # Those below may have to be divided anew even where what they ask for together is as it was.
    return share.demands != before or (bool(share.children) and share.divided_anew)


def _claim(share: Share, resource: str) -> Claim:
    weight = share.weights.get(resource)
    if weight is None:
        weight = 1 if share.queue is None else share.queue.spec.weight
        if resource == PODS:  # who says nothing of pods means them to be no reason for anything
            weight = max(1, weight)
    return Claim(share.demands.get(resource, 0), share.guaranteed.get(resource, 0), weight)
