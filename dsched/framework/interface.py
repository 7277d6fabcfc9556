"""Extension points, as Protocols, and the words they speak: `Code`, `Status`, `Verdict`.

A plugin is a class with a ``name`` that is built with ``(args, handle)`` and has the methods of the extension points it
serves; the names of the methods are the names of the points. Filter and Score come in two forms each: over the whole
node table at once (``filter_table``, ``score_table``), or for one node (``filter``, ``score``), called in a loop.

Source: staging/src/k8s.io/kube-scheduler/framework/interface.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dsched.engine.failed_attempt import FailedAttempt
    from dsched.framework.cycle_state import CycleState
    from dsched.framework.pod_info import PodInfo
    from dsched.framework.snapshot import Snapshot
    from dsched.framework.table import NodeInfo, NodeTable
    from dsched.model.claim_requests import ClaimDeletion, ClaimRelease
    from dsched.model.meta import NodeName
    from dsched.model.pod import Pod

MAX_NODE_SCORE = 100

Rows = slice | NDArray[np.intp]
"""Rows of a node table that a plugin is asked about; index a column with it."""


class Code(IntEnum):
    """How a plugin's call ended."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    def __str__(self) -> str:
        return _CODE_TEXT[self]


_CODE_TEXT = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}


class Hazard(Enum):
    """What asking a plugin the same again may bring: it took too long, in this process or in another one, or the other
    process was lost with it."""

    NONE = 0
    OVERRAN = 1
    OVERRAN_ELSEWHERE = 2
    LOST = 3


MOST_REASON = 4096
"""Characters of a status' reasons together; what is longer is cut, before it goes into conditions, events and logs."""


@dataclass(frozen=True, slots=True)
class Status:
    """A plugin's answer; where a method may return None, that means success.

    Attributes:
        hazard: what asking again may bring; set by dsched, not by plugins.

    Raises:
        TypeError: the code is no `Code`, or the reasons are no tuple of str.
    """

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    hazard: Hazard = Hazard.NONE

    def __post_init__(self) -> None:
        if type(self.code) is not Code:
            raise TypeError(f"a Status' code has to be a Code, not {type(self.code).__name__}")
        if type(self.reasons) is not tuple or not all(isinstance(reason, str) for reason in self.reasons):
            raise TypeError("a Status' reasons have to be a tuple of str")
        if sum(map(len, self.reasons)) > MOST_REASON:
            object.__setattr__(self, "reasons", (cut(", ".join(map(str, self.reasons))),))

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    @property
    def rejected(self) -> bool:
        """The pod cannot go on for a reason that lies in the cluster, not in a failure."""
        return self.code in (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)

    def by(self, plugin: str) -> Status:
        """The same status under a plugin's name."""
        return Status(self.code, self.reasons, plugin, self.hazard)


def cut(text: str) -> str:
    """The text, its end left out where it is longer than `MOST_REASON`."""
    return text if len(text) <= MOST_REASON else f"{text[:MOST_REASON]} … ({len(text)} characters)"


SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a filter says of rows of the table: per row 0 for success, or k for ``statuses[k - 1]``."""

    index: NDArray[np.int32]
    statuses: tuple[Status, ...]

    def copy(self) -> Verdict:
        """The same, to be overwritten."""
        return Verdict(self.index.copy(), self.statuses)

    @staticmethod
    def where(bad: NDArray[np.bool_], status: Status) -> Verdict:
        """``status`` for the rows where ``bad`` holds."""
        return Verdict(bad.astype(np.int32), (status,))


class Scope(Enum):
    """What a plugin's answer about one node may depend on, beside the pod; says when a cached answer is stale."""

    NODE = 0
    """The node object alone."""
    SUMS = 1
    """The node object and the sums of what the pods on that node request; for plugins that work on the table."""
    USAGE = 2
    """The node object and the pods on that node."""
    NODES = 3
    """Any node object."""
    CLUSTER = 4
    """Anything in the snapshot."""
    ANYTHING = 5
    """Things outside the snapshot as well, or this very pod: nothing is cached. The default for plugins that say
    nothing."""


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """Nodes that PreFilter narrows the search to; None is all of them.

    Raises:
        TypeError: they are no set.
    """

    nodes: frozenset[NodeName] | None = None

    def __post_init__(self) -> None:
        if self.nodes is not None and not isinstance(self.nodes, AbstractSet):
            raise TypeError(f"the nodes of a PreFilterResult have to be a frozenset, not {type(self.nodes).__name__}")


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """What PostFilter makes possible.

    Attributes:
        nominated: node to promise to the pod; ``""`` ends an earlier promise, None leaves it as it is.
        victims: pods to delete so that there is room; the leader does it.
        deallocations: claims to take devices away from.
        deleted_claims: claims to delete that an earlier attempt made.

    Raises:
        TypeError: one of them is of another type.
    """

    nominated: NodeName | None
    status: Status
    victims: tuple[PodInfo, ...] = ()
    deallocations: tuple[ClaimRelease, ...] = ()
    deleted_claims: tuple[ClaimDeletion, ...] = ()

    def __post_init__(self) -> None:
        if self.nominated is not None and not isinstance(self.nominated, str):
            raise TypeError(f"nominated has to be the name of a node, not {type(self.nominated).__name__}")
        if not isinstance(self.status, Status):
            raise TypeError(f"the status of a PostFilterResult has to be a Status, not {type(self.status).__name__}")
        if not isinstance(self.victims, tuple) or not all(hasattr(victim, "uid") for victim in self.victims):
            raise TypeError("victims have to be a tuple of PodInfo")


@dataclass(frozen=True, slots=True)
class PermitResult:
    """Allow (``status`` None), reject, or Wait for at most ``timeout_s``.

    Raises:
        TypeError: one of them is of another type, or the time is no number.
    """

    status: Status | None = None
    timeout_s: float = 0.0

    def __post_init__(self) -> None:
        if self.status is not None and not isinstance(self.status, Status):
            raise TypeError(f"the status of a PermitResult has to be a Status, not {type(self.status).__name__}")
        if not isinstance(self.timeout_s, int | float) or math.isnan(self.timeout_s):
            raise TypeError(f"timeout_s has to be seconds, not {cut(repr(self.timeout_s))}")


class Hint(Enum):
    """A queueing hint: whether an event may make a pod schedulable."""

    SKIP = 0
    QUEUE = 1


class Action(Enum):
    """What happened to a resource, as queueing hints see it."""

    ADD = "Add"
    DELETE = "Delete"
    UPDATE = "Update"


class Resource(Enum):
    """Resources that events are about."""

    POD = "Pod"
    """An unscheduled pod (its own update)."""
    PENDING_POD = "PendingPod"
    """Any unscheduled pod, when it comes (Add) or its labels or spec change (Update): for plugins to which pods matter
    that have no node yet."""
    ASSIGNED_POD = "AssignedPod"
    NODE = "Node"
    NAMESPACE = "Namespace"
    SERVICE = "Service"
    PV = "PersistentVolume"
    PVC = "PersistentVolumeClaim"
    STORAGE_CLASS = "StorageClass"
    CSI_NODE = "CSINode"
    CSI_DRIVER = "CSIDriver"
    CSI_STORAGE_CAPACITY = "CSIStorageCapacity"
    VOLUME_ATTACHMENT = "VolumeAttachment"
    PDB = "PodDisruptionBudget"
    RESOURCE_CLAIM = "ResourceClaim"
    RESOURCE_SLICE = "ResourceSlice"
    DEVICE_CLASS = "DeviceClass"
    DEVICE_TAINT_RULE = "DeviceTaintRule"


class ClusterEvent(msgspec.Struct, frozen=True):
    """Something that happened in the cluster; ``old`` and ``new`` are records (`Pod`, `Node`) or plain objects."""

    resource: Resource
    action: Action
    old: Any = None
    new: Any = None

    @property
    def label(self) -> str:
        """The event's name in metrics and logs, e.g. ``AssignedPodDelete``."""
        return f"{self.resource.value}{self.action.value}"


HintFn = Callable[["Pod", ClusterEvent], Hint]


@dataclass(frozen=True, slots=True)
class Registration:
    """Events that may help a pod the plugin rejected; without a hint function every such event queues it.

    Attributes:
        about_taints: whether updates that taint, untaint or uncordon a node are among these events. Of a plugin that
            registers for nodes that come and not for such updates, each of them queues every pod that it rejected, as
            in kube-scheduler. Source: pkg/scheduler/scheduler.go ``buildQueueingHintMap``.
    """

    resource: Resource
    actions: frozenset[Action]
    hint: HintFn | None = None
    about_taints: bool = True


class Handle(Protocol):
    """What plugins may reach beside their arguments."""

    @property
    def snapshot(self) -> Snapshot:
        """The present snapshot (leader and evaluators)."""
        ...


class Plugin(Protocol):
    """What every plugin has."""

    name: str


class PreEnqueuePlugin(Plugin, Protocol):
    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Whether the pod may enter the active queue; a rejected pod is gated."""
        ...


class QueueSortPlugin(Plugin, Protocol):
    def sort_key(self, pod: Pod, queued_us: int) -> tuple[int, str]:
        """The pod's place in the active queue, lower first: by the number (within ±2^53), then by the text (no spaces,
        compared byte by byte). ``queued_us`` is when the pod was put into the queue, in microseconds; no two are equal.
        """
        ...


class PreFilterPlugin(Plugin, Protocol):
    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status | None:
        """Look at the pod once; may reject it, narrow the search, or say Skip."""
        ...


class PreFilterExtensions(Protocol):
    """Kept up to date while other pods are added or removed for the sake of argument (nominated pods, preemption)."""

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> Status | None: ...

    def remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> Status | None: ...


class TableFilterPlugin(Plugin, Protocol):
    filter_scope: Scope

    def filter_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> Verdict:
        """Judge ``rows`` of the table; one entry a row."""
        ...


class FewRowsFilter(Protocol):
    """For plugins that work on the table: spares them arrays, which cost more than they save where few rows changed."""

    def filter_few(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Sequence[int]) -> list[Status | None]:
        """What ``filter_table`` says of these rows, one entry a row: a rejection, or None for success."""
        ...


class FilterPlugin(Plugin, Protocol):
    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Judge one node."""
        ...


class PostFilterPlugin(Plugin, Protocol):
    def post_filter(self, attempt: FailedAttempt) -> PostFilterResult | None:
        """Make the pod schedulable, if that can be done: name a node, and pods whose deletion makes room there. None is
        success without a node: no other plugin is asked, and nothing is promised."""
        ...


class PreScorePlugin(Plugin, Protocol):
    def pre_score(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> Status | None:
        """Look at the feasible nodes (by table row) once. All of them only where the plugin's ``score_scope`` is
        CLUSTER; an evaluator gives the others its shard's."""
        ...


class SkipVersion(Protocol):
    """For plugins of wide scope whose PreFilter and PreScore skip most pods: spares these pods an evaluation anew
    whenever anything changes in the cluster."""

    def skip_version(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        """As long as this is equal, a pod that PreFilter or PreScore skipped would be skipped again; a constant for
        pods that always are. It has to be cheap."""
        ...


class AnswerVersion(Protocol):
    """For plugins of scope CLUSTER to which most of what happens in a cluster makes no difference."""

    def answer_version(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        """As long as this is equal, and pods came and went but nothing else changed, PreFilter, Filter, PreScore and
        Score would give the same answers about every node, whichever nodes are feasible; None where that cannot be
        told. It has to be cheap."""
        ...


class Alike(Protocol):
    """For plugins that work on the table and look at few things of a pod: spares pods that differ in others a pass over
    the table."""

    def alike(self, pod: PodInfo, other: PodInfo) -> bool:
        """Whether Filter and Score, where they are asked at all, would say the same of each node to both pods. It has
        to be cheap."""
        ...


class ClassPart(Protocol):
    """For plugins that look at more of a pod than `PodInfo.class_key` has, such as objects that it names in its
    status."""

    def class_part(self, pod: PodInfo) -> bytes:
        """Equal for pods of equal class keys between which the plugin cannot tell the difference at present; empty for
        most. It has to be cheap."""
        ...


class Normalization(Enum):
    """How a plugin's scores become 0..100 over the feasible nodes."""

    NONE = 0
    """They already are."""
    MAX = 1
    """score × 100 / highest, truncated; all zero stays all zero."""
    MAX_REVERSED = 2
    """100 minus that; all zero becomes all 100."""
    CUSTOM = 3
    """By the plugin's ``normalize``."""


class TableScorePlugin(Plugin, Protocol):
    score_scope: Scope
    normalization: Normalization

    def score_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> NDArray[np.int64]:
        """Scores of ``rows``, one entry a row; what it says of infeasible rows is not used."""
        ...


class FewRowsScore(Protocol):
    """For plugins that work on the table, as `FewRowsFilter`."""

    def score_few(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Sequence[int]) -> list[int]:
        """What ``score_table`` says of these rows, one entry a row."""
        ...


class ScorePlugin(Plugin, Protocol):
    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int: ...


class Normalizer(Protocol):
    def normalize(self, state: CycleState, pod: PodInfo, scores: NDArray[np.int64]) -> NDArray[np.int64]:
        """Scores of the feasible nodes in, the same brought to 0..100 out."""
        ...


class ReservePlugin(Plugin, Protocol):
    def reserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status | None: ...

    def unreserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> None: ...


class PermitPlugin(Plugin, Protocol):
    def permit(self, state: CycleState, pod: PodInfo, node: NodeName) -> PermitResult | None:
        """Whether the pod may be bound now; None, as a status of None, allows it."""
        ...


class PreBindPlugin(Plugin, Protocol):
    def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status | None:
        """Runs in a binder; may run twice for one attempt, so it has to be repeatable."""
        ...


class PreBindPreFlight(Plugin, Protocol):
    """A PreBind plugin that says beforehand whether it will have something to do; one that does not say is taken to be
    quick. Where one has, the pod's nominatedNodeName says meanwhile which node it will get (since v1.35).

    Source: kube-scheduler's staging framework interface.go ``PreBindPreFlight``.
    """

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status | None:
        """Skip where PreBind has nothing to do, None where it has. Runs in the leader, after Reserve."""
        ...


class BindPlugin(Plugin, Protocol):
    def bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status | None:
        """Bind the pod, or say Skip to leave it to the next bind plugin. Runs in a binder, perhaps twice."""
        ...


class PostBindPlugin(Plugin, Protocol):
    def post_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> None: ...


class EnqueueExtensions(Protocol):
    """A plugin with ``hints_per_class`` set to True promises that its hints depend on nothing of a pod but what makes
    its class, `PodInfo.class_key`; they are then asked once for all pods of a class."""

    def events_to_register(self) -> Sequence[Registration]:
        """Events that may make a pod schedulable which this plugin rejected. A plugin without this method is taken to
        care about every event."""
        ...


class PluginFactory(Protocol):
    """Builds a plugin: the class itself, or a function with the same parameters.

    One that has ``takes_features`` set to True gets the emulated version and what is on as ``features``, by name: a
    `dsched.config.Features`.
    """

    def __call__(self, args: Any, handle: Handle) -> Any: ...


Registry = Mapping[str, PluginFactory]
"""Plugins by name."""
