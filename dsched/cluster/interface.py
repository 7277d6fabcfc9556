"""What a cluster must do for the scheduler, whatever keeps its objects.

Every call takes and gives whole batches. A cluster's objects carry a version that only grows; a listing says up to
which version it is complete, and a watch goes on from there.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from dsched.model.claim_requests import ClaimDeletion, ClaimRelease, ClaimWrite, CreatedClaim, ExtendedClaim
from dsched.model.meta import NO_NODE, NodeName, PodKey, PodUid
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.model.pod_groups import GroupKey
from dsched.model.queues import QueueStatus
from dsched.model.volumes import ClaimBinding, NodeSelection

if TYPE_CHECKING:
    from dsched.config.feature_gates import Version

Object = Pod | Node | Mapping[str, Any]
"""Pods and nodes come as records; objects of other kinds as the plain JSON objects they are."""


class Change(Enum):
    """What happened to an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOUND = "BOUND"
    """A pod got its node and nothing else changed; `Event.object` may be left out."""
    STATUS = "STATUS"
    """Of a pod without a node something changed that scheduling does not read, as the conditions that the scheduler
    itself writes."""


class Event(msgspec.Struct, frozen=True):
    """One entry of the watch.

    Attributes:
        kind: ``Pod``, ``Node``, ``Namespace`` …
        key: ``namespace/name``, or ``name`` for objects without a namespace.
        version: the object's version after the change.
        uid: of the object; of the dead one for DELETED.
        object: the object after the change; None for DELETED and STATUS, and where the cluster leaves it out for BOUND.
        node: the node, for BOUND.
    """

    change: Change
    kind: str
    key: str
    version: int
    uid: str
    object: Object | None = None
    node: NodeName = NO_NODE


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything there is, complete up to ``version``; later changes may already show, so a watch from ``version``
    may repeat what is listed.

    Attributes:
        pods, nodes: those least recently changed first.
    """

    version: int
    pods: Sequence[Pod] = ()
    nodes: Sequence[Node] = ()
    others: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)


class Sighting(NamedTuple):
    """A pod or a node that is there.

    Attributes:
        key: ``namespace/name``, or a node's name.
        node: where the pod is bound.
        finished, deleting: of the pod.
        version: of its last change.
        object: the node.
    """

    key: str
    uid: str
    node: NodeName
    finished: bool
    deleting: bool
    version: str
    object: Node | None = None


@dataclass(frozen=True, slots=True)
class Binding:
    """A request to bind a pod to a node, valid only while the pod has this UID and, where the cluster can see
    reservations, while the reservation of this epoch stands; ``scheduler`` as in `PodEvent`."""

    key: PodKey
    uid: PodUid
    node: NodeName
    epoch: int
    scheduler: str = ""


class BindVerdict(Enum):
    """How a bind ended."""

    BOUND = "bound"
    """The pod is bound to the node asked for, by this call or an earlier one."""
    CONFLICT = "conflict"
    """The pod is bound to another node."""
    GONE = "gone"
    """There is no such pod, it has another UID, or it is being deleted and was not bound."""
    REFUSED = "refused"
    """The cluster refused for a reason that may lie with the node (it is not there, admission does not allow it …);
    trying again at once will not change it."""
    NOT_NOW = "not-now"
    """The cluster refused for a reason that says nothing of the node (gated, a conflict, throttled …)."""
    RESERVATION_LOST = "reservation-lost"
    """The reservation the bind relied on no longer stands; nothing was bound."""
    UNKNOWN = "unknown"
    """The request may or may not have been carried out; read the pod before deciding."""


@dataclass(frozen=True, slots=True)
class BindOutcome:
    """The outcome of one `Binding`; ``node`` is where the pod is bound now, if it is, ``message`` is for people."""

    key: PodKey
    uid: PodUid
    verdict: BindVerdict
    node: NodeName = NO_NODE
    message: str = ""


@dataclass(frozen=True, slots=True)
class SchedulingStatus:
    """What the scheduler writes onto a pending pod: condition PodScheduled=False, and the nominated node.

    ``nominated`` None leaves the nominated node as it is, ``""`` clears it; an empty ``reason`` leaves the condition.
    """

    key: PodKey
    uid: PodUid
    reason: str
    message: str
    nominated: NodeName | None = None


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """What the scheduler writes onto a pod group: the condition PodGroupInitiallyScheduled.

    Attributes:
        scheduled: its status.
        generation: of the group as it was decided on.
    """

    key: GroupKey
    uid: str
    scheduled: bool
    reason: str
    message: str
    generation: int = 0


@dataclass(frozen=True, slots=True)
class PodEvent:
    """An event about a pod, as ``kubectl describe`` shows it. Repeats of the newest one are counted, not stored.

    Attributes:
        scheduler: the profile that says it, by its schedulerName; empty for the first one of the configuration.
        related: another pod that has to do with it: whom a victim makes room for.
    """

    key: PodKey
    uid: PodUid
    type: str
    reason: str
    message: str
    scheduler: str = ""
    related: tuple[PodKey, PodUid] | None = None


def scheduled(key: PodKey, uid: PodUid, node: NodeName, scheduler: str) -> PodEvent:
    """The event of a pod that was bound. Source: pkg/scheduler/schedule_one.go ``finishBinding``."""
    return PodEvent(key, uid, "Normal", "Scheduled", f"Successfully assigned {key} to {node}", scheduler)


class Cluster(Protocol):
    """The source of truth.

    Attributes:
        kind: ``standalone`` or ``kubernetes``.
        checks_reservations: whether `bind` refuses a pod whose reservation has ended.
        tells_binds: whether a pod gets its event `scheduled` whoever binds it, and not only by `bind`.
    """

    @property
    def kind(self) -> str: ...

    @property
    def checks_reservations(self) -> bool: ...

    @property
    def tells_binds(self) -> bool: ...

    def kubernetes_version(self) -> "Version | None":
        """The version of Kubernetes that keeps the objects, or that its API server emulates; None where none does.

        Raises:
            ClusterUnavailable: it cannot be read.
        """
        ...

    def lead(
        self,
        epoch: int,
        holds: Callable[[], bool],
        profiles: Collection[str] = (),
        *,
        groups: bool = False,
        group_claims: bool = False,
        queues: bool = False,
        coscheduling: bool = False,
    ) -> None:
        """This process leads from now on: what it reports and deletes is refused, or waits, once it does not any more.

        Args:
            holds: whether its lease is known to be good at the moment; from any thread.
            profiles: the schedulerNames of the pods that it schedules.
            groups, queues: whether it schedules pod groups, and pods by queues: else a cluster need not have them, nor
                let them be read.
            group_claims: whether claims for devices may be a pod group's: whoever sees to claims makes these, too.
            coscheduling: whether groups and labels of scheduler-plugins are read as those of Kubernetes.
        """
        ...

    def stand_down(self) -> None:
        """This process does not lead any more: nobody watches, and what was to be written in the background and is not
        yet is left to the next leader."""
        ...

    def list(self) -> Listing:
        """Everything there is."""
        ...

    def watch(self, version: int, timeout_s: float) -> tuple[Sequence[Event], int]:
        """Changes after ``version`` in order and the version to go on from; waits up to ``timeout_s`` for the first.

        Raises:
            WatchExpired: the log no longer reaches back that far; list again.
        """
        ...

    def survey(self) -> Iterator[Sequence[Sighting]]:
        """Every node and every pod there is, in pieces, each read when it is asked for; what changes meanwhile may
        show or not, and may come twice."""
        ...

    def get_pods(self, keys: Sequence[PodKey]) -> Sequence[Pod | None]:
        """The pods as they are now, bound or not; None for one that is not there."""
        ...

    def get_objects(self, kind: str, keys: Sequence[str]) -> Sequence[Mapping[str, Any] | None]:
        """Objects of a kind as they are now, as plain JSON objects; None for one that is not there."""
        ...

    def bind(self, bindings: Sequence[Binding]) -> Sequence[BindOutcome]:
        """Bind pods, each on its own: a compare-and-set that records the event ``Scheduled`` exactly once.

        One outcome a binding, in order. Binding again is a no-op that reads the outcome.
        """
        ...

    def bind_volumes(self, bindings: Sequence[ClaimBinding]) -> Sequence[str]:
        """Write onto each volume the claim it is for, a compare-and-set; whoever binds claims in this cluster goes on
        from there.

        One answer a binding, in order: why not, ``""`` for what is written, by this call or an earlier one.
        """
        ...

    def select_nodes(self, selections: Sequence[NodeSelection]) -> Sequence[str]:
        """Write onto each claim the node for which a volume has to be made, a compare-and-set; whoever makes volumes in
        this cluster goes on from there. Answers as `bind_volumes`.
        """
        ...

    def allocate_claims(self, writes: Sequence[ClaimWrite]) -> Sequence[str]:
        """Give claims their devices and let pods use them, a compare-and-set each; the finalizer that keeps a claim
        while it has devices comes first.

        One answer a request, in order: why not, ``""`` for what is written, by this call or an earlier one.
        """
        ...

    def release_claims(self, releases: Sequence[ClaimRelease]) -> Sequence[str]:
        """Take pods out of claims, and the devices away where that is asked for and nobody else uses the claim. Answers
        as `allocate_claims`; a claim that is gone is given back."""
        ...

    def create_claim(self, wanted: ExtendedClaim) -> CreatedClaim:
        """Make the claim of a pod's extended resources and name it in the pod's status; the one that an earlier call
        made, if there is one."""
        ...

    def delete_claim(self, deletion: ClaimDeletion) -> str:
        """Delete a claim that was made for a pod's extended resources, whether it has devices or not; says why not,
        ``""`` when it is gone."""
        ...

    def report(self, statuses: Sequence[SchedulingStatus]) -> None:
        """Write conditions and nominated nodes; pods that are gone, bound or have another UID are passed over."""
        ...

    def report_groups(self, statuses: Sequence[GroupStatus]) -> None:
        """Write conditions of pod groups where they change; one that was scheduled once stays so. Groups that are gone
        or have another UID are passed over."""
        ...

    def report_queues(self, statuses: Mapping[str, QueueStatus]) -> None:
        """Write the status of queues, by name, where it has changed; queues that are gone are passed over."""
        ...

    def record(self, events: Sequence[PodEvent]) -> None:
        """Record events; those about pods that are gone may be passed over, and do not show at others of the name."""
        ...

    def delete_pods(self, pods: Sequence[tuple[PodKey, PodUid]], reason: str, message: str) -> None:
        """Delete pods that still have the UID, marking why (condition DisruptionTarget)."""
        ...

    def drain(self, timeout_s: float, *, hurry: bool = False) -> bool:
        """Wait until what was reported, recorded and deleted has been written; False when it is not in time.

        Args:
            hurry: hold nothing back: this process ends.
        """
        ...
