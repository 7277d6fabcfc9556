"""What the checks look at: the objects, and what the scheduler keeps of them, as read. No I/O."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from dsched.framework.pod_info import Demand
from dsched.fsck.findings import Kind
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.model.pod import Pod
from dsched.state.devices import Ledger
from dsched.state.reservations import Reservation
from dsched.state.standings import Moment, Standing

PODS = "pods"

Amounts = Mapping[str, int]
"""Resource to amount, CPU in milli-units, all others in units; ``pods`` among them."""


class SeenPod(NamedTuple):
    """A pod of the cluster.

    Attributes:
        version: of its last change; applied: of the last time that a manifest changed it.
        node: where it is bound, empty while it is not.
        by_manifest: its manifest named the node; nobody scheduled it.
        bound_ms: when it got its node, ms since the epoch; 0 while it has none.
        finished: it has ended and takes up nothing.
        demand: what it takes up.
        by_devices: resources that devices stand for, as its status says.
        group: ``namespace/name`` of its pod group, empty where it has none.
        deferred: a resize of it waits until its node has room.
        queue: the queue that its own label names; by_kueue: whether Kueue's may name one instead.
        claims: ``namespace/name`` of the claims for devices that it names.
    """

    key: PodKey
    uid: PodUid
    version: int
    applied: int
    node: NodeName
    by_manifest: bool
    bound_ms: int
    finished: bool
    deleting: bool
    scheduler: str
    demand: Demand
    by_devices: frozenset[str] = frozenset()
    group: str = ""
    deferred: bool = False
    queue: str = ""
    by_kueue: bool = False
    claims: tuple[str, ...] = ()

    @property
    def scheduled(self) -> bool:
        """Whether the scheduler bound it."""
        return bool(self.node) and not self.by_manifest

    @property
    def changed_since_bound(self) -> bool:
        """Whether a manifest changed it after it was bound: its resources may not be those it was placed with."""
        return self.scheduled and self.version == self.applied


def met_by_devices(pod: Pod) -> frozenset[str]:
    """The extended resources that a pod gets by devices instead of by what its node has, as its status says."""
    status = pod.status.extended_resource_claim_status
    return frozenset() if status is None else frozenset(each.resource_name for each in status.request_mappings)


class SeenNode(NamedTuple):
    """A node of the cluster and the version of its last change."""

    name: NodeName
    version: int
    allocatable: Amounts


class SeenGroup(NamedTuple):
    """A pod group.

    Attributes:
        min_count: so many of its pods are placed together; 1 where it is no gang.
        scheduled: whether its condition says that they were, once.
    """

    key: str
    uid: PodUid
    version: int
    min_count: int
    scheduled: bool


class SeenQueue(NamedTuple):
    """A queue that divides the cluster; amounts as those of pods."""

    name: str
    parent: str
    limits: Amounts


class SeenClaim(NamedTuple):
    """A claim for devices.

    Attributes:
        owner: uid of the pod that it was made for; empty for one that stands for itself.
        devices: ``driver/pool/device`` of those that it has to itself; shares: of those that it has a part of.
        pods: key and uid of those that may use it.
        counted: what it counts for a queue.
    """

    key: str
    uid: str
    owner: str = ""
    devices: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()
    pods: tuple[tuple[PodKey, PodUid], ...] = ()
    counted: Amounts = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class SeenDevices:
    """Who has which devices.

    Attributes:
        claims: claims for devices, by key.
        ledger: what reserved pods hold.
        seen_to: whether the leader gives devices back when pods are gone.
    """

    claims: Mapping[str, SeenClaim] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)
    seen_to: bool = False


class Told(NamedTuple):
    """The events kept of a pod: how many, and how many of them (repeats counted) say that it was scheduled."""

    events: int
    scheduled: int


@dataclass(frozen=True, slots=True)
class Seen:
    """The cluster's objects as they were read.

    Attributes:
        version: of the cluster, after they were read; 0 where this Redis keeps none.
        groups: pod groups by ``namespace/name``; None where they were not read, for no pod names one.
        told: the events kept, of pods that the scheduler bound.
        broken: those that cannot be read, and why.
    """

    version: int
    pods: Mapping[PodKey, SeenPod] = field(default_factory=dict)
    nodes: Mapping[NodeName, SeenNode] = field(default_factory=dict)
    groups: Mapping[str, SeenGroup] | None = None
    told: Mapping[PodKey, Told] = field(default_factory=dict)
    broken: Mapping[tuple[Kind, str], str] = field(default_factory=dict)


class Resident(NamedTuple):
    """A pod that takes up room on a node: bound there, or reserved; since when, ms since the epoch."""

    pod: SeenPod
    since_ms: int
    reserved: bool


@dataclass(frozen=True)
class View:
    """Everything, or everything about some suspects.

    Attributes:
        moment: who leads and how far the leader is.
        epoch: the present one, as of when the places were read.
        objects: the cluster's.
        usage: fields of ``node:NAME``.
        quota: fields of ``quota:NAME``.
        queues: the objects, and default_queues what namespaces say of their pods; read where something is kept there.
        standings: the pods' places.
        reservations: those that can be read; unreadable: the texts of those that cannot.
        devices: who has which.
        schedulers: the names of the schedulers whose pods are ours.
        resizes: whether pods on a node stand in the queue as long as a resize of them is deferred.
        now_ms: when it was read, ms since the epoch.
    """

    moment: Moment
    epoch: int
    objects: Seen
    now_ms: int
    schedulers: frozenset[str] = frozenset()
    resizes: bool = False
    usage: Mapping[NodeName, Mapping[str, str]] = field(default_factory=dict)
    quota: Mapping[NodeName, Mapping[str, str]] = field(default_factory=dict)
    queues: Mapping[str, SeenQueue] = field(default_factory=dict)
    default_queues: Mapping[str, str] = field(default_factory=dict)
    standings: Mapping[PodKey, Standing] = field(default_factory=dict)
    reservations: Mapping[PodUid, Reservation] = field(default_factory=dict)
    unreadable: Mapping[PodUid, str] = field(default_factory=dict)
    devices: SeenDevices = field(default_factory=SeenDevices)

    @property
    def version(self) -> int:
        """The cluster's, which the leader must have taken in for what is seen here."""
        return self.objects.version

    @property
    def has_cluster(self) -> bool:
        """Whether the objects are kept here at all."""
        return self.version > 0

    @property
    def leads(self) -> bool:
        """Whether somebody leads."""
        return self.moment.leader != ""

    @property
    def at_rest(self) -> bool:
        """Nothing to be decided, of all that there is."""
        return self.moment.idle and self.moment.intake >= self.version

    def ours(self, pod: SeenPod) -> bool:
        """Whether a pod waits for one of our profiles: for a node, or for room on the one that it has."""
        waits = not pod.node or (self.resizes and pod.deferred)
        return waits and not pod.finished and not pod.deleting and pod.scheduler in self.schedulers

    def owner(self, uid: PodUid, key: PodKey) -> SeenPod | None:
        """The pod of that name, if it has that uid."""
        pod = self.objects.pods.get(key)
        return pod if pod is not None and pod.uid == uid else None

    @cached_property
    def residents(self) -> Mapping[NodeName, list[Resident]]:
        """Node to the pods that take up room there, each once."""
        found: dict[NodeName, list[Resident]] = {}
        for pod in self.objects.pods.values():
            if pod.node and not pod.finished:
                found.setdefault(pod.node, []).append(Resident(pod, pod.bound_ms, reserved=False))
        for reservation in self.reservations.values():
            owner = self.owner(reservation.uid, reservation.key)
            if owner is not None and not owner.node and not owner.finished:
                found.setdefault(reservation.node, []).append(Resident(owner, reservation.since_ms, reserved=True))
        return found

    @cached_property
    def reserved_keys(self) -> Mapping[PodKey, list[Reservation]]:
        """Pod to its reservations; more than one only when another pod of that name had one."""
        found: dict[PodKey, list[Reservation]] = {}
        for reservation in self.reservations.values():
            found.setdefault(reservation.key, []).append(reservation)
        return found

    @cached_property
    def grouped(self) -> Mapping[str, list[SeenPod]]:
        """Pod group to its pods."""
        found: dict[str, list[SeenPod]] = {}
        for pod in self.objects.pods.values():
            if pod.group:
                found.setdefault(pod.group, []).append(pod)
        return found


def charged(pod: SeenPod) -> Iterator[tuple[str, int]]:
    """Resource and amount that a pod charges its node with."""
    yield from pod.demand.requests.items()
    yield PODS, 1


def shown(resource: str, amount: int) -> str:
    """An amount for people: CPU in milli-units, the rest as the plain number it is."""
    return f"{amount}m" if resource == "cpu" else str(amount)
