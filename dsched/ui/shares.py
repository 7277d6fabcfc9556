"""What queues between teams are to have and have, at each look; and the pods of theirs that come next."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

import msgspec

from dsched.clock import Clock
from dsched.cluster import opening
from dsched.cluster.interface import Cluster
from dsched.cluster.opening import Kind
from dsched.cluster.standalone.objects import Objects
from dsched.config import SchedulerConfiguration
from dsched.errors import DschedError, QuantityError, RedisUnavailable
from dsched.manifests import kinds
from dsched.model.meta import from_builtins
from dsched.model.pod import Pod
from dsched.model.queue_forest import Forest, Object
from dsched.model.queues import PLUGIN, QUEUE, Queue
from dsched.observe import queue_pods, queue_shares
from dsched.observe.queue_pods import DescribedQueue
from dsched.plugins.fair_share import plugin as fair_share
from dsched.scheduler.quota.tree import Tree
from dsched.state.client import Store
from dsched.ui.system import System
from dsched.ui.usage_history import Name, UsageHistory

LOAD = 0.1
"""Reading it takes no more of a core than that, however long it takes once."""
KUBERNETES_EVERY_S = 10.0
"""So seldom an API server is asked for its queues."""
UNDIVIDED = (
    f"No profile of the configuration has {PLUGIN}: nothing is divided by these queues, and nobody says what they have."
)
_LeftOut = Callable[[str], None]
"""Is told of an object that cannot be read: which, and why."""


class ShownResource(msgspec.Struct, frozen=True):
    """Of a queue and a resource, as `dsched.observe.queue_shares` counts it.

    Attributes:
        guaranteed: at least what queues below are guaranteed together.
        named: whether the queue's spec says something of the resource.
    """

    used: int
    borrowed: int
    guaranteed: int
    limit: int | None
    fair_share: int
    pending: int
    named: bool

    @property
    def short(self) -> bool:
        """Whether it has less than is guaranteed to it, and pods wait that ask for more."""
        return self.used < self.guaranteed and self.pending > 0


class ShownQueue(msgspec.Struct, frozen=True):
    """
    Attributes:
        depth: 0 at the top.
        children: how many queues name it as their parent.
        problem: why it counts for nothing; empty where it does.
    """

    name: str
    parent: str
    depth: int
    children: int
    pending_pods: int
    reclaimed_pods: int
    resources: Mapping[str, ShownResource]
    problem: str = ""


class Shares(msgspec.Struct, frozen=True):
    """
    Attributes:
        at_ms: when they were read.
        queues: parents before their children, by name.
        resources: of which any of them says something, as they are shown.
        note: why nothing can be told, or why it means nothing; empty otherwise.
        problems: objects that cannot be read.
    """

    at_ms: int
    queues: Sequence[ShownQueue] = ()
    resources: Sequence[str] = ()
    note: str = ""
    problems: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SharesLook:
    """What a look came to, and what it was made from.

    Attributes:
        scales: parent and resource to the amount that is as long as a whole bar of its children.
    """

    shares: Shares
    forest: Forest
    scales: Mapping[tuple[str, str], int]

    def queue(self, name: str) -> ShownQueue | None:
        """A queue by its name; None where there is none that can be read."""
        return next((each for each in self.shares.queues if each.name == name), None)


class SharesTable:
    """What queues had at the last look, and the looks before."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._next_s = 0.0
        self.history = UsageHistory()
        self.latest = SharesLook(Shares(0, note="nothing was read yet"), Forest(()), {})

    def look(self) -> None:
        """Read the queues, where it is time. Why they cannot be read is told in their place.

        Raises:
            RedisUnavailable: Redis does not answer.
        """
        clock = self._system.clock
        began_s, now_ms = clock.monotonic(), clock.now_ms()
        if began_s < self._next_s:
            return
        problems: list[str] = []
        least_s = 0.0
        try:
            configured = self._system.configuration().config
            with self._system.cluster(configured) as cluster:
                least_s = KUBERNETES_EVERY_S if cluster.kind == Kind.KUBERNETES.value else 0.0
                with _opened(self._system.store, configured, cluster) as objects:
                    values = objects.queues(problems.append)
        except RedisUnavailable:
            raise
        except DschedError as error:
            self.latest = SharesLook(Shares(now_ms, note=str(error)), Forest(()), {})
        else:
            note = "" if not values or configured.enables(PLUGIN) else UNDIVIDED
            self.latest = seen(values, now_ms, note, problems)
            self.history.add(now_ms, dict(_numbers(self.latest.shares.queues)))
        took_s = clock.monotonic() - began_s
        self._next_s = began_s + max(least_s, took_s / LOAD if took_s > 2 * LOAD else 0.0)


def seen(values: Sequence[Object], now_ms: int, note: str = "", problems: Sequence[str] = ()) -> SharesLook:
    """What queue objects say."""
    forest = Forest(values)
    queues: dict[str, Queue] = {}
    wrong = list(problems)
    for name, value in forest.queues.items():
        try:
            queues[name] = from_builtins(value, Queue)
        except msgspec.ValidationError as error:
            wrong.append(f"queue {name}: {error}")
    tree = Tree(queues.values())
    shown: list[ShownQueue] = []
    for depth, value in forest.in_tree():
        name = value["metadata"]["name"]
        if name not in queues:
            continue
        try:
            found = _resources(queues[name], tree)
        except QuantityError as error:
            wrong.append(f"queue {name}: {error}")
            continue
        queue = queues[name]
        shown.append(
            ShownQueue(
                name,
                queue.spec.parent,
                depth,
                len(forest.children_of(name)),
                queue.status.pending_pods,
                queue.status.reclaimed_pods,
                found,
                tree.broken.get(name, ""),
            )
        )
    resources = queue_shares.in_order(name for each in shown for name in each.resources)
    return SharesLook(Shares(now_ms, shown, resources, note, wrong), forest, _scales(shown))


def _resources(queue: Queue, tree: Tree) -> dict[str, ShownResource]:
    share = tree.shares.get(queue.name)
    guaranteed = {} if share is None else share.guaranteed
    found = {
        each.resource: ShownResource(
            each.used or 0,
            min(each.borrowed or 0, each.used or 0),
            guaranteed.get(each.resource, each.guaranteed or 0),
            each.limit,
            each.fair_share or 0,
            each.pending or 0,
            each.resource in queue.spec.resources,
        )
        for each in queue_shares.of(queue)
    }
    for resource, amount in guaranteed.items():  # of which only queues below speak
        if resource not in found and amount:
            found[resource] = ShownResource(0, 0, amount, None, 0, 0, named=False)
    return {resource: found[resource] for resource in queue_shares.in_order(found)}


def _scales(queues: Sequence[ShownQueue]) -> dict[tuple[str, str], int]:
    """A limit that is far beyond everything else would leave nothing to see of the rest."""
    most: dict[tuple[str, str], int] = {}
    for each in queues:
        for resource, share in each.resources.items():
            at = each.parent, resource
            most[at] = max(most.get(at, 0), share.used, share.guaranteed, share.fair_share)
    found = dict(most)
    for each in queues:
        for resource, share in each.resources.items():
            at = each.parent, resource
            if share.limit is not None and share.limit <= 2 * most[at]:
                found[at] = max(found[at], share.limit)
    return found


def _numbers(queues: Sequence[ShownQueue]) -> Iterator[tuple[Name, float]]:
    """What is kept over time, by the names that `UsageHistory` knows them by."""
    for each in queues:
        yield (each.name, "pending_pods"), each.pending_pods
        yield (each.name, "reclaimed_pods"), each.reclaimed_pods
        for resource, share in each.resources.items():
            yield (each.name, "used", resource), share.used
            yield (each.name, "fair_share", resource), share.fair_share


class QueueHistory(msgspec.Struct, frozen=True):
    """What a queue had at each of the times, oldest first; None where that is not known.

    Attributes:
        used, fair_share: by resource.
    """

    at_ms: Sequence[int]
    used: Mapping[str, Sequence[float | None]]
    fair_share: Mapping[str, Sequence[float | None]]
    pending_pods: Sequence[float | None]
    reclaimed_pods: Sequence[float | None]


class QueueAnswer(DescribedQueue, frozen=True):
    """A queue as ``dsched describe queue`` tells it, and what this page knows besides.

    Attributes:
        shown: None where it cannot be read.
    """

    shown: ShownQueue | None
    history: QueueHistory


def answer(told: DescribedQueue, look: SharesLook, history: UsageHistory) -> QueueAnswer:
    """Everything about a queue, for programs."""
    name = told.path[-1]
    shown = look.queue(name)
    resources = [] if shown is None else list(shown.resources)
    pods: list[Name] = [(name, "pending_pods"), (name, "reclaimed_pods")]
    amounts: list[Name] = [(name, what, resource) for what in ("used", "fair_share") for resource in resources]
    at_ms, found = history.read([*pods, *amounts])
    used, fair = ({key[2]: row for key, row in found.items() if key[1] == what} for what in ("used", "fair_share"))
    kept = QueueHistory(at_ms, used, fair, *(found.get(each, ()) for each in pods))
    return QueueAnswer(told.queue, told.path, told.children, told.next_pods, shown, kept)


class WaitingTable:
    """The first pods of each queue that wait, kept for a moment: all pods that wait are read for it."""

    KEPT_S = 2.0

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: tuple[float, str, dict[str, list[Pod]]] | None = None

    def read(self, configured: SchedulerConfiguration, cluster: Cluster) -> dict[str, list[Pod]]:
        """As `dsched.observe.queue_pods.first_pods`.

        Raises:
            RedisUnavailable, ClusterUnavailable: it cannot be read.
            ClusterError: this user may not read it.
        """
        with self._lock:
            began, kept = self._clock.monotonic(), self._kept
            if kept is None or kept[1] != configured.hash or began > kept[0]:
                with _opened(self._store, configured, cluster) as objects:
                    found = queue_pods.first_pods(
                        objects.waiting_pods(), objects.namespaces(), kueue=fair_share.takes_kueue_label(configured)
                    )
                now = self._clock.monotonic()
                self._kept = kept = now + max(self.KEPT_S, (now - began) / LOAD), configured.hash, found
            return kept[2]


class _QueueObjects(Protocol):
    """Where queues, pods and namespaces are read."""

    def queues(self, left_out: _LeftOut) -> Sequence[Object]: ...
    def waiting_pods(self) -> Iterator[Pod]: ...
    def namespaces(self) -> Sequence[Object]: ...
    def close(self) -> None: ...


@contextmanager
def _opened(store: Store, configured: SchedulerConfiguration, cluster: Cluster) -> Iterator[_QueueObjects]:
    """The cluster's. Methods raise RedisUnavailable or ClusterUnavailable where it does not answer, and ClusterError
    where this user may not read it. In Kubernetes with the credentials of `dsched.cli.options.cluster_of`."""
    kubernetes = cluster.kind == Kind.KUBERNETES.value
    objects: _QueueObjects = _Listed(configured) if kubernetes else _Stored(store)
    try:
        yield objects
    finally:
        objects.close()


class _Stored:
    def __init__(self, store: Store) -> None:
        self._objects = Objects(store)

    def queues(self, left_out: _LeftOut) -> Sequence[Object]:
        return self._objects.all_of(
            kinds.QUEUE, left_out=lambda kind, key, error: left_out(f"queue {key.decode(errors='replace')}: {error}")
        )

    def waiting_pods(self) -> Iterator[Pod]:
        return self._objects.waiting_pods()

    def namespaces(self) -> Sequence[Object]:
        return self._objects.all_of(kinds.NAMESPACE)

    def close(self) -> None:
        """Nothing was opened."""


class _Listed:
    def __init__(self, configured: SchedulerConfiguration) -> None:
        from dsched.cluster.kubernetes.objects import Everything

        self._everything = Everything(opening.open_access(opening.from_environment(), configured))

    def queues(self, left_out: _LeftOut) -> Sequence[Object]:
        from dsched.cluster.kubernetes.resources import BY_KIND

        return self._everything.of(BY_KIND[QUEUE])

    def waiting_pods(self) -> Iterator[Pod]:
        from dsched.cluster.kubernetes.resources import POD

        found = self._everything.of(replace(POD, selector=f"{POD.selector},spec.nodeName="))
        return (from_builtins(each, Pod) for each in found)

    def namespaces(self) -> Sequence[Object]:
        from dsched.cluster.kubernetes.resources import BY_KIND

        return self._everything.of(BY_KIND["Namespace"])

    def close(self) -> None:
        self._everything.close()
