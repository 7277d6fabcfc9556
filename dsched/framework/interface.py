"""Extension points, as Protocols, and the words they speak: `Code`, `Status`, `Verdict`.

A plugin is a class with a ``name`` that is built with ``(args, handle)`` and has the methods of the extension points it
serves; the names of the methods are the names of the points. Filter and Score come in two forms each: over the whole
node table at once (``filter_table``, ``score_table``), or for one node (``filter``, ``score``), called in a loop.

Source: staging/src/k8s.io/kube-scheduler/framework/interface.go.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dsched.framework.cycle_state import CycleState
from dsched.framework.events import Action, ClusterEvent, Hint, HintFn, Registration, Resource
from dsched.framework.pod_groups import GroupAssignments, Placement
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.status import (
    MOST_REASON,
    SKIP,
    Code,
    Hazard,
    Rows,
    Scope,
    Status,
    Verdict,
    cut,
    unresolvable,
    unschedulable,
)
from dsched.framework.table import NodeInfo, NodeTable
from dsched.model.claim_requests import ClaimDeletion, ClaimRelease
from dsched.model.meta import NodeName, PodUid
from dsched.model.pod import Pod
from dsched.model.pod_groups import PodGroup

__all__ = [
    "MAX_NODE_SCORE",
    "MOST_REASON",
    "SKIP",
    "Action",
    "Alike",
    "AnswerVersion",
    "BindPlugin",
    "ClusterEvent",
    "Code",
    "EnqueueExtensions",
    "FewRowsFilter",
    "FewRowsScore",
    "FilterPlugin",
    "GroupAssignments",
    "Handle",
    "Hazard",
    "Hint",
    "HintFn",
    "ManyPlacementsScore",
    "Normalization",
    "Normalizer",
    "PermitPlugin",
    "PermitResult",
    "Placement",
    "PlacementGeneratePlugin",
    "PlacementNormalizer",
    "PlacementScorePlugin",
    "Plugin",
    "PluginFactory",
    "PodGroupPostFilterPlugin",
    "PodGroupPostFilterResult",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreBindPreFlight",
    "PreEnqueuePlugin",
    "PreFilterExtensions",
    "PreFilterPlugin",
    "PreFilterResult",
    "PreScorePlugin",
    "QueueSortPlugin",
    "Registration",
    "Registry",
    "ReservePlugin",
    "Resource",
    "Rows",
    "Scope",
    "ScorePlugin",
    "SkipVersion",
    "Status",
    "TableFilterPlugin",
    "TableScorePlugin",
    "Verdict",
    "cut",
    "unresolvable",
    "unschedulable",
]
"""What a plugin's author needs is to be had from here, statuses and events as well."""

MAX_NODE_SCORE = 100
NO_ROWS: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
"""For `FollowsPlaced`: the same is said of every row as before."""


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
class PodGroupPostFilterResult:
    """What PodGroupPostFilter makes possible.

    Attributes:
        nominated: nodes to promise to pods of the group, by the pods' UID.
        victims: pods to delete so that there is room; the leader does it.
        deallocations: claims to take devices, or the group, away from.
        deleted_claims: claims to delete that an earlier attempt made.
    """

    status: Status
    nominated: Mapping[PodUid, NodeName] = field(default_factory=dict)
    victims: tuple[PodInfo, ...] = ()
    deallocations: tuple[ClaimRelease, ...] = ()
    deleted_claims: tuple[ClaimDeletion, ...] = ()


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
    """One that has ``pre_enqueue_reads`` says the kinds of other objects than pods and nodes that its answer depends on
    besides the pod, and what is the same for all pods of a pod group: those of a group that have passed are not asked
    again for each pod that joins them, as long as no such object changes. Without it they are.

    One that has ``pre_enqueue_fields`` names fields of a pod's spec, as its type has them: a pod in which all of these
    are empty enters, whatever else there is, and the plugin is not asked about it. Without it, it is asked."""

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Whether the pod may enter the active queue; a rejected pod is gated."""
        ...


class QueueSortPlugin(Plugin, Protocol):
    """One that has ``sort_keys`` is asked by it where many pods are sorted at once: given pods and when each was put
    into the queue, it answers with a list of what `sort_key` says of each."""

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
    def post_filter(self, attempt: Any) -> PostFilterResult | None:
        """Make the pod schedulable, if that can be done: name a node, and pods whose deletion makes room there. None is
        success without a node: no other plugin is asked, and nothing is promised.

        Args:
            attempt: a `dsched.engine.failed_attempt.FailedAttempt`; what is read here knows nothing of the engine.
        """
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
    whenever anything changes in the cluster.

    With ``blind_to_plain_pods = True`` it makes no difference to `skip_version` and `label_keys` that pods without
    (anti-)affinity come to nodes or leave them, nor to the latter which labels and claims a pod has, or how many pods
    have the same (anti-)affinity. The one is asked for anew when `Snapshot.terms_version` has grown, one that is the
    snapshot's own after every change; the others are when `Snapshot.distinct_terms_version` is another."""

    def skip_version(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        """As long as this is equal, a pod that PreFilter or PreScore skipped would be skipped again; a constant for
        pods that always are. It has to be cheap."""
        ...


class AnswerVersion(Protocol):
    """For plugins of scope CLUSTER to which most of what happens in a cluster makes no difference. With
    ``version_has_objects = True``, `answer_version` speaks of objects other than nodes and pods, too: it differs when
    one of these came, changed or went that makes a difference."""

    def answer_version(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        """As long as this is equal, and pods came and went but nothing else changed, PreFilter, Filter, PreScore and
        Score would give the same answers about every node, whichever nodes are feasible; None where that cannot be
        told. It has to be cheap."""
        ...


class FollowsPlaced(Protocol):
    """For plugins of scope CLUSTER with ``filter_few`` and ``score_few``, where they filter and score: spares them
    PreFilter and PreScore, and a pass over the table, for each of many pods of a class in a row. Both bring up to date
    what is written in the state, by writing it anew: what is there is others' too."""

    def pre_filter_placed(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, row: int
    ) -> NDArray[np.intp] | None:
        """A pod of this one's class has come to a row of the table, and nothing else has changed since PreFilter, or
        this, has run. The rows of which Filter may say something else now, in any order; None where PreFilter is to
        run: where it might say something else itself, or that cannot be told."""
        ...

    def pre_score_placed(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, row: int, same_feasible: bool
    ) -> NDArray[np.intp] | None:
        """The same of PreScore and Score.

        Args:
            same_feasible: whether the same rows are feasible as when PreScore, or this, has run.
        """
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


class LabelKeys(Protocol):
    """For plugins at PreFilter, Filter, PreScore or Score that look at some labels of a pod only; those that look at
    none have ``label_blind = True`` instead. Pods that differ only in labels at which nobody looks are evaluated
    together. Who says neither is taken to look at all of them."""

    def label_keys(self, pod: PodInfo, snapshot: Snapshot) -> Collection[str] | None:
        """Keys of the pod's labels that make a difference to what the plugin says of it at present; None for all. Equal
        for pods that differ in labels alone. It has to be cheap."""
        ...


class ClaimsMeaning(Protocol):
    """For plugins at PreFilter, Filter, PreScore or Score that look at the volume claims of a pod; those that look at
    none have ``claim_blind = True`` instead. Pods that differ only in the names of claims which mean the same to all
    plugins are evaluated together. Who says neither is taken to look at the names."""

    def claims_meaning(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        """Equal for pods that are alike but for the names of their claims, and of which the plugin says the same at
        present; None where the names count. A pod that is on a node may mean something else than before. It has to be
        cheap."""
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


PlacedPod = tuple[CycleState, PodInfo, NodeName]
"""A pod in the binding cycle: the state of its cycle, and its node."""


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


class PreBindTogether(Plugin, Protocol):
    """A PreBind plugin that takes all pods of a bind request in one call, which may cost less than one for each."""

    def pre_bind_together(self, pods: Sequence[PlacedPod]) -> Sequence[Status | None]:
        """As ``pre_bind``, which it has as well, for each of the pods, in order; asked instead of it."""
        ...


class PreBindPreFlight(Plugin, Protocol):
    """A PreBind plugin that says beforehand whether it will have something to do; one that does not say is taken to be
    quick. Where one has, the pod's nominatedNodeName says meanwhile which node it will get (since v1.35).

    Source: kube-scheduler's staging framework interface.go ``PreBindPreFlight``.
    """

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status | None:
        """Skip where PreBind has nothing to do, None where it has. Runs in the leader, after Reserve."""
        ...


class PlacementGeneratePlugin(Plugin, Protocol):
    """At most one in a profile."""

    def generate_placements(
        self, group: PodGroup, parent: Placement, snapshot: Snapshot
    ) -> Sequence[Placement] | Status:
        """The sets of nodes, out of those of ``parent``, of which one is to take the whole group."""
        ...


class PlacementScorePlugin(Plugin, Protocol):
    """One that has ``placement_score_by_pods`` set to True promises that it does not matter to it which node of the
    placement which pod would get; groups whose pods are alike are then not tried in placements that cannot win."""

    def score_placement(self, group: PodGroup, assignments: GroupAssignments, snapshot: Snapshot) -> int:
        """How good a placement is in which enough of the group fit, 0..100 after ``normalize_placements``."""
        ...


class ManyPlacementsScore(Protocol):
    """For plugins that can score placements together for less than one after the other."""

    def score_placements(self, group: PodGroup, found: Sequence[GroupAssignments], snapshot: Snapshot) -> Sequence[int]:
        """What ``score_placement`` says of each of these, at least one."""
        ...


class PlacementNormalizer(Protocol):
    def normalize_placements(self, group: PodGroup, scores: Sequence[int]) -> Sequence[int]:
        """Scores of all placements in, the same brought to 0..100 out."""
        ...


class PodGroupPostFilterPlugin(Plugin, Protocol):
    def pod_group_post_filter(self, attempt: Any) -> PodGroupPostFilterResult:
        """Make the group schedulable, if that can be done.

        Args:
            attempt: a `dsched.engine.failed_attempt.FailedGroupAttempt`.
        """
        ...


class SearchNoter(Protocol):
    def note_search(self, state: CycleState, pod: PodInfo, findings: Any) -> None:
        """Write into the state of a pod of a group what PodGroupPostFilter will want to know of how it was looked at.

        Args:
            findings: the `dsched.engine.findings.Findings`; another one by then.
        """
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
