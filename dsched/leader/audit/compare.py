"""Compares what the leader believes with the cluster, the queue, the reservations and the nodes' usage; repairs.

Watches lie sometimes, and somebody may have changed Redis by hand. A look goes through everything in small pieces, one
a turn. What does not agree is only suspected: it counts when a later look finds the very same, the object's version and
the leader's belief included, after longer than any change is on its way. Every repair reads the object anew and takes
the way that a change would have taken, so that one which arrives after all does no harm.

=====================  ===============================================================================================
``node_missing``       a node is there and the leader does not know it, or not as it is
``node_redundant``     a node is gone and the leader still has it
``pod_missing``        a pod waits for us and the leader does not know it
``pod_elsewhere``      a pod is bound, and the leader believes otherwise; or a resize of it is deferred, and it is in no
                       queue
``pod_redundant``      a pod is gone or finished and the leader still counts or queues it
``queue_missing``      a pending pod has no record in Redis, or is not listed where its record says
``queue_elsewhere``    a pod's record names another place than the leader believes
``queue_redundant``    a record of a pod that is not pending, or of a pod group that has no pods beside it
``reservation_lost``   a pod is believed to be reserved and Redis has no reservation: the leader starts over
``reservation_stray``  a reservation that the leader knows nothing of
``usage``              what Redis says of a node's usage or version is not what is on the node
``quota``              what Redis counts against the limits of a queue is not what its pods come to, or these differ
=====================  ===============================================================================================

Not compared: the content of pods, and objects of other kinds. Killed at any point: the next leader compares everything.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from dsched.cluster.interface import Cluster, Sighting
from dsched.errors import ClusterUnavailable, StateError
from dsched.leader.audit.repair import Repair
from dsched.leader.binders.tracker import BindTracker
from dsched.leader.parts import LeaderMemory, StoredState
from dsched.log import logger
from dsched.metrics import CACHE_MISMATCHES
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.scheduler.ports import Amounts, QueueName
from dsched.scheduler.queue import resizes
from dsched.state import keys, ledger

_log = logger(__name__)

STEP_S = 0.25
"""A piece is compared so often …"""
EVERY_S = 30.0
"""… and a look begins so long after the last one ended; sooner when something is suspected:"""
AGAIN_S = 5.0
HELD_S = 10.0
"""A suspicion has to hold for so long, …"""
UNHEARD_S = 60.0
"""… and for so long while the leader has not yet heard of the version that it is about."""
REPAIRED_AT_ONCE = 100

_OUTSIDE_QUEUE = frozenset({QueueName.INFLIGHT, QueueName.RESERVED, QueueName.WAITING})


class Suspect(NamedTuple):
    """What does not agree: what, about whom, and everything that has to stay the same for it to count."""

    what: str
    subject: str
    uid: PodUid
    detail: tuple[object, ...]
    version: int = 0

    @property
    def kind(self) -> str:
        """Of the subject: ``node``, ``pod`` or ``queue``."""
        if self.what == "quota":
            return "queue"
        return "node" if self.what in ("node_missing", "node_redundant", "usage") else "pod"


class Audit:
    """Compares for one epoch.

    Args:
        heard: up to which version of the cluster the leader has taken everything in.
    Attributes:
        found: what did not agree at the last look; None where it was given up, or there was none.
    """

    def __init__(
        self,
        state: StoredState,
        memory: LeaderMemory,
        *,
        cluster: Cluster,
        binding: BindTracker,
        repairs: Repair,
        heard: Callable[[], int],
    ) -> None:
        self._store = state.store
        self._clock, self._pending, self._cache = memory.clock, memory.pending, memory.cache
        self._frameworks = memory.frameworks
        self._cluster = cluster
        self._binding = binding
        self._repairs = repairs
        self._heard = heard
        self._look: Iterator[None] | None = None
        self._due = memory.clock.monotonic() + EVERY_S
        self._found: list[Suspect] = []
        self.found: Sequence[Suspect] | None = None
        self._since: dict[Suspect, float] = {}
        self._foreign: set[str] = set()

    @property
    def looking(self) -> bool:
        """Whether a look is under way, so that the next step reads what is in Redis."""
        return self._look is not None

    def begin(self) -> Iterator[None]:
        """Begin a look with the next step, instead of one that is under way."""
        self._found = []
        self._look = look = self._pieces()
        return look

    def step(self) -> None:
        """Compare one piece; at the end of a look, repair what was found in earlier ones, too.

        Raises:
            StateError: Redis has lost a reservation; the leader has to start over from the cluster.
        """
        now = self._clock.monotonic()
        if self._look is None and now < self._due:
            return
        try:
            next(self._look or self.begin())
            return
        except StopIteration:
            self._look = None
        except ClusterUnavailable as error:
            self._look = self.found = None
            self._due = now + EVERY_S
            _log.warning("comparing given up", extra={"action": "compare", "error": str(error)})
            return
        self.found = self._found
        self._judge(now)
        self._due = now + (AGAIN_S if self._since else EVERY_S)

    def _judge(self, now: float) -> None:
        since = {suspect: self._since.get(suspect, now) for suspect in self._found}
        for suspect in [each for each, first in since.items() if self._counts(each, now - first)][:REPAIRED_AT_ONCE]:
            del since[suspect]
            self._repair(suspect)
        self._since = since

    def _counts(self, suspect: Suspect, held_s: float) -> bool:
        return held_s >= (HELD_S if suspect.version <= self._heard() else UNHEARD_S)

    def _repair(self, suspect: Suspect) -> None:
        what, subject = suspect.what, suspect.subject
        lost = what == "reservation_lost"
        try:
            repaired = lost or self._repairs.make(what, subject, suspect.uid)
        except ClusterUnavailable as error:
            _log.warning("mismatch not repaired", extra={"action": "compare", "what": what, "error": str(error)})
            return
        if not repaired:
            if what == "pod_missing":
                self._foreign.add(suspect.uid)
            return
        CACHE_MISMATCHES.labels(what).inc()
        extra = {"action": "repair", suspect.kind: subject, "what": what, "detail": " ".join(map(str, suspect.detail))}
        _log.warning("what the leader believed was wrong, repaired", extra=extra)
        if lost:
            raise StateError(f"{subject}: its reservation is no longer in Redis")

    def _suspect(self, what: str, subject: str, uid: str, *detail: object, version: str = "") -> None:
        number = int(version) if version.isdigit() else 0
        self._found.append(Suspect(what, subject, PodUid(uid), (*detail, version), number))

    # -- the pieces ------------------------------------------------------------------------------------------------

    def _pieces(self) -> Iterator[None]:
        yield from self._objects()
        yield from self._queue()
        self._reservations()
        yield
        yield from self._usage()
        yield from self._limits()

    def _objects(self) -> Iterator[None]:
        table = self._cache.snapshot.table
        nodes = set(table.names)
        pods = {info.uid: info.key for _, info in table.placed()}
        pods |= {pod.uid: pod.key for pod in self._pending}
        foreign: set[str] = set()
        for piece in self._cluster.survey():
            for seen in piece:
                if seen.object is not None:
                    nodes.discard(seen.object.name)
                    self._node(seen)
                else:
                    if not seen.finished:
                        pods.pop(PodUid(seen.uid), None)
                    if seen.uid in self._foreign:
                        foreign.add(seen.uid)
                    self._pod(seen)
            yield
        self._foreign = foreign
        for name in nodes & table.index.keys():
            self._suspect("node_redundant", name, "")
        for uid, key in pods.items():
            known = self._pending.get(key)
            if table.node_of(uid) is not None or (known is not None and known.uid == uid):
                self._suspect("pod_redundant", key, uid)

    def _node(self, seen: Sighting) -> None:
        table, node = self._cache.snapshot.table, seen.object
        assert node is not None
        row = table.index.get(node.name)
        mine = None if row is None else table.nodes[row]
        wanted = self._cache.seen(node)
        if mine is None or (
            (mine.spec, mine.metadata.labels) != (wanted.spec, wanted.metadata.labels)
            or (mine.metadata.uid, mine.status.allocatable) != (wanted.metadata.uid, wanted.status.allocatable)
        ):
            self._suspect("node_missing", node.name, "", mine is None, version=seen.version)

    def _pod(self, seen: Sighting) -> None:
        key, uid = PodKey(seen.key), PodUid(seen.uid)
        home = self._cache.snapshot.table.node_of(uid)
        pending = self._pending.get(key)
        place = None if pending is None or pending.uid != uid else pending.place
        assumed = self._binding.assumed(uid)
        if seen.finished:
            if home is not None or place is not None:
                self._suspect("pod_redundant", key, uid, home, place, version=seen.version)
        elif seen.node:
            if home != seen.node or (place is not None) != self._resizes(uid) or assumed is not None:
                self._suspect("pod_elsewhere", key, uid, seen.node, home, place, version=seen.version)
        elif seen.deleting:
            return  # it stands in the queue until its turn comes, and nowhere after that
        elif home is not None and assumed is None:
            self._suspect("pod_elsewhere", key, uid, "", home, place, version=seen.version)
        elif place is None and assumed is None and uid not in self._foreign:
            self._suspect("pod_missing", key, uid, version=seen.version)

    def _resizes(self, uid: PodUid) -> bool:
        """Whether a pod that is on a node has to stand in the queue all the same."""
        known = self._cache.snapshot.table.pod(uid)
        return known is not None and resizes(known.pod, self._frameworks)

    def _queue(self) -> Iterator[None]:
        """The leader is the only one who moves pods, and not now: what Redis says of a pod is what the leader knows."""
        known = chain(self._pending, self._pending.groups())
        before = {pod.key: pod.uid for pod in known if pod.place is not QueueName.NOWHERE}
        for piece in ledger.entries(self._store):
            for entry in piece:
                pod = self._pending.standing(entry.key)
                if pod is None or pod.uid != entry.uid:
                    self._suspect("queue_redundant", entry.key, entry.uid, entry.queue)
                    continue
                before.pop(entry.key, None)
                if entry.queue != pod.place:
                    self._suspect("queue_elsewhere", entry.key, entry.uid, entry.queue, pod.place)
                elif not entry.listed:
                    self._suspect("queue_missing", entry.key, entry.uid, pod.place, pod.attempts)
            yield
        for key, uid in before.items():
            pod = self._pending.standing(key)
            if pod is not None and pod.uid == uid and pod.place not in _OUTSIDE_QUEUE:
                self._suspect("queue_missing", key, uid, pod.place, pod.attempts)

    def _reservations(self) -> None:
        standing = ledger.reservations(self._store)
        for uid, text in standing.items():
            if self._binding.assumed(uid) is None:
                self._suspect("reservation_stray", text.partition(" ")[0], uid, text)
        for assumed in self._binding.all():
            if assumed.info.uid not in standing:
                self._suspect("reservation_lost", assumed.info.key, assumed.info.uid, assumed.attempt)

    def _usage(self) -> Iterator[None]:
        self._cache.usage.flush()
        table = self._cache.snapshot.table
        for piece in ledger.usage(self._store, lambda: list(table.names)):
            self._cache.usage.flush()
            for name, fields in piece.items():
                if name in table.index and (wrong := self._wrong_usage(name, fields)):
                    self._suspect("usage", name, "", *wrong)
            yield

    def _wrong_usage(self, name: NodeName, fields: Mapping[str, str]) -> list[str]:
        info = self._cache.snapshot.table.info(self._cache.snapshot.table.index[name])
        wanted = _fields(info.offered, info.charged)
        seen = self._cache.usage.seen(name)
        return _differing(wanted | {"version": seen.version, "object": seen.object_version}, fields)

    def _limits(self) -> Iterator[None]:
        limits = self._cache.limits
        if limits is None:
            return
        limits.flush()
        for piece in ledger.usage(self._store, lambda: limits.queues, keys.QUOTA):
            limits.flush()
            for name, fields in piece.items():
                amounts = {field: text for field, text in fields.items() if "." in field}
                standing = limits.standing(name)
                if standing is not None and (wrong := _differing(_fields(*standing), amounts)):
                    self._suspect("quota", name, "", *wrong)
            yield


def _fields(offered: Amounts, charged: Amounts) -> dict[str, int]:
    """As a node's or a queue's fields in Redis."""
    found = {f"used.{resource}": amount for resource, amount in charged.items() if amount}
    return found | {f"allocatable.{resource}": amount for resource, amount in offered.items()}


def _differing(wanted: Mapping[str, int], there: Mapping[str, str]) -> list[str]:
    """What differs, each field with what it is and should be; a 0 need not be there."""
    wanted = {field: amount for field, amount in wanted.items() if amount}
    found = {field: _number(text) for field, text in there.items() if text != "0"}
    differing = sorted(field for field in wanted.keys() | found.keys() if wanted.get(field) != found.get(field))
    return [f"{field}={found.get(field)}/{wanted.get(field)}" for field in differing]


def _number(text: str) -> int | str:
    """A number, or what somebody else has put in its place."""
    try:
        return int(text)
    except ValueError:
        return text
