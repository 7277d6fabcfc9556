"""A framework: the plugins of one profile, built once and called point by point in the profile's order.

Whatever a plugin raises or answers out of contract becomes a status Error that names it (`validation`).

Source: pkg/scheduler/framework/runtime/framework.go.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsched.config import Profile
from dsched.errors import PluginError
from dsched.framework import deferred_resizes
from dsched.framework.cycle_state import CycleState
from dsched.framework.instrumentation import measured
from dsched.framework.interface import (
    Normalization,
    PermitResult,
    PlacedPod,
    PostFilterResult,
    PreFilterResult,
    Registry,
)
from dsched.framework.per_class import PerClass
from dsched.framework.pod_info import PodInfo
from dsched.framework.runners import FilterRunner, ScoreRunner
from dsched.framework.snapshot import Snapshot
from dsched.framework.status import SKIP, Code, Scope, Status
from dsched.framework.table import NodeInfo, NodeTable
from dsched.framework.validation import (
    LAST,
    STATUS,
    PluginFailure,
    answered,
    concerned_rows,
    guarded,
    guarded_each,
    outcome,
    unexpected,
    versions,
    whole_turn,
)
from dsched.log import logger
from dsched.metrics import collect
from dsched.model.claim_requests import ClaimDeletion, ClaimRelease
from dsched.model.meta import NodeName
from dsched.model.pod import Pod, PodSpec

MAX_PERMIT_WAIT_S = 15 * 60.0
"""A plugin cannot make a pod wait longer. Source: runtime/framework.go ``maxTimeout``."""

NEAR = frozenset({Scope.NODE, Scope.SUMS, Scope.USAGE})
"""Scopes of answers about a node that depend on that node and its pods alone."""

_JUDGING = ("preFilter", "filter", "preScore", "score")
_JUDGES = (
    *("pre_filter", "filter_table", "filter_few", "filter", "add_pod", "remove_pod"),
    *("pre_score", "score_table", "score_few", "score", "normalize"),
)
"""The methods by which plugins say what an evaluation keeps."""
_PLACED = ("pre_filter_placed", "pre_score_placed")

_log = logger(__name__)

if TYPE_CHECKING:
    from dsched.framework.extender import Extending


class PodClass(NamedTuple):
    """What tells the classes of pods apart that are evaluated together.

    Attributes:
        key: `PodInfo.class_key`, or `PodInfo.keyed_by` the labels at which plugins look.
        part: what plugins say of the pod besides (``class_part``), which may not be true of it for good; the pod's UID
            where one fails to say.
        claims: what its claims mean to the plugins at present (``claims_meaning``), where ``key`` leaves their names
            out; else None.
    """

    key: bytes
    part: bytes
    claims: Hashable = None

    @property
    def passing(self) -> bool:
        """Whether a pod of the class may be of another one later, such as one that has been placed."""
        return bool(self.part) or self.claims is not None


@dataclass(frozen=True, slots=True)
class PermitDecision:
    """What Permit came to: go on (``status`` None), rejected, or wait: plugin to seconds."""

    status: Status | None
    waits: dict[str, float]


class Framework:
    """One profile's plugins.

    Attributes:
        profile_name: the ``schedulerName`` it serves.
        filters, scores: runners in order.
        extenders: the configuration's, None where there are none; they have their say after the plugins.
        cacheable: no plugin of the cycle depends on anything but the pod's class and the snapshot.
        shard_filters, shard_scores: the runners that an evaluator may ask about a shard. The others look beyond a node
            and are asked about the whole table at once, which only the leader can, and cheaply.
        shard_pre_scores: names of the plugins whose PreScore goes before these scores.
        shards_suffice: what an evaluator is asked depends on nothing but the nodes of its shard.
    """

    def __init__(self, profile: Profile, registry: Registry, handle: Any, extenders: "Extending | None" = None) -> None:
        """
        Raises:
            PluginError: a plugin is not in the registry or cannot be built.
        """
        self.profile = profile
        self.profile_name = profile.scheduler_name
        self.extenders = extenders
        self._resizes = profile.features.enabled(deferred_resizes.GATE)
        self._built: dict[str, Any] = {}
        self._registry = registry
        self._handle = handle
        self.filters = tuple(self._filter(name) for name in self._named("filter"))
        self.scores = tuple(self._score(ref.name, ref.weight) for ref in profile.plugins.get("score", ()))
        self.points = {point: tuple(self._plugin(name) for name in self._named(point)) for point in profile.plugins}
        self._pre_filter_scopes = {plugin.name: _pre_filter_scope(plugin) for plugin in self.at("preFilter")}
        entrance = self.at("preEnqueue")
        self.pre_enqueue_reads = _together(_said(plugin, "pre_enqueue_reads", ("pre_enqueue",)) for plugin in entrance)
        """Kinds of objects that say, besides a pod and what is the same for its group, whether the pod may enter the
        active queue; None where that is not known."""
        self._entrance = tuple((plugin, _pre_enqueue_fields(plugin)) for plugin in entrance)
        """Fields of a pod's spec of which one has to say something for a plugin to keep the pod out; None where that is
        not known."""
        self._gating = _together(fields for _, fields in self._entrance)
        """The same of all of them."""
        self._pre_flights = tuple(
            (plugin, getattr(plugin, "pre_bind_needs_shared", False))
            for plugin in self.at("preBind")
            if hasattr(plugin, "pre_bind_pre_flight")
        )
        self._searchers = tuple(each for each in self.at("podGroupPostFilter") if hasattr(each, "note_search"))
        self._class_parts = tuple(_methods(self._built.values(), "class_part").items())
        judging = {plugin.name: plugin for point in _JUDGING for plugin in self.at(point)}
        self._blind_to_plain_pods = _blind_to_plain_pods(self._built.values())
        self._label_keys = _LabelKeys(_readers(judging, "label_keys", blind="label_blind"), self._blind_to_plain_pods)
        self._claim_readers = _readers(judging, "claims_meaning", blind="claim_blind")
        self._followers = tuple(
            plugin for plugin in self.at("preFilter") if hasattr(plugin, "add_pod") or hasattr(plugin, "remove_pod")
        )
        self._skip_versioned = _methods((*self.at("preFilter"), *self.at("preScore")), "skip_version")
        looks_wide = {runner.name for runner in self.filters if runner.scope is Scope.CLUSTER}
        looks_wide |= {runner.name for runner in self.scores if runner.scope is Scope.CLUSTER}
        looks_wide |= {name for name, scope in self._pre_filter_scopes.items() if scope is Scope.CLUSTER}
        self._wide = {name: self._built[name] for name in sorted(looks_wide)}
        self._placed = {point: _methods_of_their_own(self._wide.values(), point) for point in _PLACED}
        self._filter_names = frozenset(runner.name for runner in self.filters)
        self._score_names = frozenset(runner.name for runner in self.scores)
        self.cacheable = self.reach(CycleState()) is not Scope.ANYTHING
        self.shard_filters = tuple(
            runner for runner in self.filters if runner.scope in NEAR or runner.table_form is None
        )
        self.shard_scores = tuple(
            runner
            for runner in self.scores
            if runner.scope in NEAR or (runner.table_form is None and runner.scope is not Scope.CLUSTER)
        )
        asked: list[FilterRunner | ScoreRunner] = [*self.shard_filters, *self.shard_scores]
        self.shards_suffice = all(runner.scope in NEAR for runner in asked)
        scored = {runner.name for runner in self.shard_scores}
        self.shard_pre_scores = frozenset(plugin.name for plugin in self.at("preScore") if plugin.name in scored)

    def at(self, point: str) -> tuple[Any, ...]:
        """The plugins at an extension point (named as in the configuration), in running order; as `points` has them."""
        return self.points.get(point, ())

    @property
    def plugins(self) -> Iterable[Any]:
        """Every plugin of the profile, once each."""
        return self._built.values()

    def plugin(self, name: str) -> Any | None:
        """A plugin of the profile by name."""
        return self._built.get(name)

    def defers(self, pod: Pod) -> bool:
        """Whether the pod is looked at as a deferred resize (`dsched.framework.deferred_resizes`)."""
        return self._resizes and pod.resize_deferred

    def alike(self, plugin: str, pod: PodInfo, other: PodInfo) -> bool:
        """Whether a plugin says that it cannot tell two pods apart.

        Raises:
            PluginFailure: the plugin raised, or answered with what is neither true nor false.
        """
        says: Callable[[PodInfo, PodInfo], bool] | None = getattr(self._built[plugin], "alike", None)
        return says is not None and guarded(plugin, lambda: bool(says(pod, other)))

    def class_of(self, pod: PodInfo, snapshot: Snapshot) -> PodClass:
        """Equal for pods between which no plugin can tell the difference at present."""
        keys, part = self._label_keys(pod, snapshot), self._class_part(pod)
        if keys is None:
            return PodClass(pod.class_key, part)
        claims = self._claims_meaning(pod, snapshot) if pod.claim_names else None
        return PodClass(pod.keyed_by(keys, claims is None), part, claims)

    def named_key(self, pod: PodInfo, snapshot: Snapshot) -> bytes:
        """The key of the pod's class if claims were told apart by their names."""
        keys = self._label_keys(pod, snapshot)
        return pod.class_key if keys is None else pod.keyed_by(keys)

    def _claims_meaning(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        """What the pod's claims mean to those plugins that look at them; None where their names count, as where a
        plugin fails to say."""
        if self._claim_readers is None:
            return None
        try:
            found = tuple(versions(self._claim_readers, pod, snapshot).values())
        except PluginFailure:
            return None
        return None if any(meaning is None for meaning in found) else found

    def _class_part(self, pod: PodInfo) -> bytes:
        try:
            return b"".join(guarded_each(self._class_parts, pod))
        except PluginFailure:
            return pod.uid.encode()

    def reach(self, state: CycleState, scored: bool = True) -> Scope:
        """What the answers about a pod depend on at most, plugins that were skipped left out, and scores too unless
        there are any.

        Whether plugins are skipped again that have ``skip_version`` is left to `skips`.
        """
        scopes = [runner.scope for runner in self.filters if runner.name not in state.skip_filter]
        if scored:
            scopes += [runner.scope for runner in self.scores if runner.name not in state.skip_score]
        scopes += [
            scope
            for name, scope in self._pre_filter_scopes.items()
            if name not in state.skip_filter or name not in self._skip_versioned
        ]
        return max(scopes, key=_reach, default=Scope.NODE)

    def versions_have_objects(self, names: Collection[str]) -> bool:
        """Whether all of these plugins tell by `answers` of objects other than nodes and pods as well."""
        return all(
            _said(plugin, "version_has_objects", _JUDGES) is True for name in names if (plugin := self._built[name])
        )

    def skips(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> Mapping[str, Hashable]:
        """By plugin that skipped the pod, what stays equal as long as it would skip it again.

        Raises:
            PluginFailure: a plugin raised.
        """
        skipped = state.skip_filter | state.skip_score
        return versions([each for each in self._skip_versioned.items() if each[0] in skipped], pod, snapshot)

    def skips_last(self, skips: Mapping[str, Hashable], snapshot: Snapshot) -> bool:
        """Whether what `skips` has just said stays so until `Snapshot.terms_version` grows."""
        return skips.keys() <= self._blind_to_plain_pods and snapshot.version not in skips.values()

    def answers(self, state: CycleState, pod: PodInfo, snapshot: Snapshot, scored: bool) -> Mapping[str, Hashable]:
        """By plugin that looks at the whole cluster and did not skip the pod, what stays equal as long as it would give
        the same answers about every node; None for one that does not say.

        Args:
            scored: whether nodes were scored.
        Raises:
            PluginFailure: a plugin raised.
        """
        found: dict[str, Hashable] = {}
        asked: list[tuple[str, Callable[[PodInfo, Snapshot], Hashable]]] = []
        for name, plugin in self._wide.items():
            filters = name in self._filter_names and name not in state.skip_filter
            scores = scored and name in self._score_names and name not in state.skip_score
            skips_unasked = name in self._skip_versioned or self._pre_filter_scopes.get(name) is not Scope.CLUSTER
            if filters or scores or not skips_unasked:
                found[name] = None
                if hasattr(plugin, "answer_version"):
                    asked.append((name, plugin.answer_version))
        return {**found, **versions(asked, pod, snapshot)} if asked else found

    def sort_key(self, pod: Pod, queued_us: int) -> tuple[int, str]:
        """The pod's place in the active queue, as the profile's QueueSort plugin has it; at the end of the queue where
        the plugin fails, which is logged.

        Raises:
            PluginError: the profile has no QueueSort plugin.
        """
        for plugin in self.at("queueSort"):
            try:
                return whole_turn(plugin.name, guarded(plugin.name, plugin.sort_key, pod, queued_us))
            except PluginFailure as failure:
                _log.error(
                    "queue sort failed, the pod stands last",
                    extra={"action": "sort", "pod": pod.key, "uid": pod.uid, "error": failure.status.message},
                )
                return LAST, f"{queued_us:020}"
        raise PluginError(f"profile {self.profile_name}: no queue sort plugin is enabled")

    def sort_keys(self, pods: Sequence[Pod], queued_us: Sequence[int]) -> Sequence[tuple[int, str]]:
        """As `sort_key`, of many pods.

        Raises:
            PluginError: the profile has no QueueSort plugin.
        """
        for plugin in self.at("queueSort"):
            together = _said(plugin, "sort_keys", ("sort_key",))
            if together is None:
                break
            try:
                answers: list[object] = guarded(plugin.name, list, guarded(plugin.name, together, pods, queued_us))
                if len(answers) == len(pods):
                    return [whole_turn(plugin.name, answer) for answer in answers]
            except PluginFailure:
                pass  # it is asked about each pod, which tells of whom it fails
            break
        return [self.sort_key(pod, us) for pod, us in zip(pods, queued_us, strict=True)]

    def may_gate(self, pod: Pod) -> bool:
        """Whether PreEnqueue may keep the pod out of the active queue, as far as that is known without asking it."""
        if self._gating is None:
            return True
        spec, says = pod.spec, False
        for name in self._gating:
            says = says or bool(getattr(spec, name))
        return says

    @measured("PreEnqueue", "preEnqueue")
    def run_pre_enqueue(self, pod: Pod) -> Status | None:
        """The status of the first plugin that keeps the pod out of the active queue, None when it may enter."""
        spec = pod.spec
        for plugin, fields in self._entrance:
            if fields is not None and not any(getattr(spec, name) for name in fields):
                continue
            status = _guarded_status(plugin.name, plugin.pre_enqueue, pod)
            if status is not None:
                return status
        return None

    @measured("PreFilter", "preFilter")
    def run_pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, near: bool = False
    ) -> tuple[Status | None, frozenset[NodeName] | None, list[str]]:
        """Run PreFilter: to the first rejection that preemption cannot lift; after another the rest is still asked,
        because preemption needs what they keep.

        Source: runtime/framework.go ``RunPreFilterPlugins``.

        Args:
            near: only of plugins whose PreFilter looks at no more than a node and its pods.
        Returns:
            the rejection if there is one; the node names that the search is narrowed to, None for all; the plugins
            that narrowed it.
        """
        rejection: Status | None = None
        nodes: frozenset[NodeName] | None = None
        narrowing: list[str] = []
        if self.defers(pod.pod):
            state.skip_filter |= deferred_resizes.UNCONCERNED
        for plugin in self.at("preFilter"):
            if near and self._pre_filter_scopes[plugin.name] not in NEAR:
                continue
            result = self._pre_filter(plugin, state, pod, snapshot)
            if isinstance(result, Status) and result.code is Code.SKIP:
                state.skip_filter.add(plugin.name)
            elif isinstance(result, Status) and result.code is not Code.SUCCESS:
                if not result.rejected:
                    raise PluginFailure(plugin.name, f"{result.code}: {result.message}")
                rejection = result.by(plugin.name)
                if result.code is not Code.UNSCHEDULABLE:
                    return rejection, None, []
            elif isinstance(result, PreFilterResult) and result.nodes is not None:
                narrowing.append(plugin.name)
                nodes = result.nodes if nodes is None else nodes & result.nodes
                if not nodes:
                    return _nothing_left(narrowing), None, narrowing
        return rejection, None if rejection else nodes, narrowing

    def _pre_filter(self, plugin: Any, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> Any:
        if plugin.name in deferred_resizes.UNCONCERNED and self.defers(pod.pod):
            return SKIP
        return answered(plugin.name, (PreFilterResult, *STATUS), plugin.pre_filter, state, pod, snapshot)

    def run_wide_pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot, moved: Collection[str]) -> bool:
        """Run PreFilter again where it depends on the whole snapshot, after pods came or went. False when more than the
        plugins' own state is different now.

        Args:
            moved: plugins that might not skip the pod again, or that might answer otherwise.
        Raises:
            PluginFailure: a plugin raised or broke its contract.
        """
        for plugin in self.at("preFilter"):
            if plugin.name not in moved:
                continue
            skipped = plugin.name in state.skip_filter
            result = self._pre_filter(plugin, state, pod, snapshot)
            skips = isinstance(result, Status) and result.code is Code.SKIP
            plain = result is None or skips or (isinstance(result, Status) and result.code is Code.SUCCESS)
            if skips != skipped or not plain:
                return False
        return True

    def run_wide_pre_score(
        self,
        state: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        feasible: NDArray[np.bool_],
        moved: Collection[str],
    ) -> None:
        """Run PreScore again where it depends on the whole snapshot, as `run_wide_pre_filter` does PreFilter.

        Raises:
            PluginFailure: a plugin raised or did not succeed.
        """
        for plugin in self.at("preScore"):
            if plugin.name in moved and getattr(plugin, "score_scope", Scope.ANYTHING) is Scope.CLUSTER:
                self._run_pre_score(plugin, state, pod, snapshot, feasible)

    def run_pre_filter_placed(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, row: int, moved: Collection[str]
    ) -> NDArray[np.intp] | None:
        """Have plugins take in that a pod of the class has come to a row, instead of `run_wide_pre_filter`.

        Returns:
            The rows of which their Filter may say something else now; None where PreFilter has to run.
        Raises:
            PluginFailure: a plugin raised or broke its contract.
        """
        return self._run_placed("pre_filter_placed", moved, state, pod, snapshot, row)

    def run_pre_score_placed(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, row: int, moved: Collection[str], same_feasible: bool
    ) -> NDArray[np.intp] | None:
        """The same, of their Score, instead of `run_wide_pre_score`.

        Raises:
            PluginFailure: a plugin raised or broke its contract.
        """
        return self._run_placed("pre_score_placed", moved, state, pod, snapshot, row, same_feasible)

    def _run_placed(
        self, point: str, moved: Collection[str], state: CycleState, pod: PodInfo, snapshot: Snapshot, *told: Any
    ) -> NDArray[np.intp] | None:
        found: NDArray[np.intp] | None = None
        for name in moved:
            says = self._placed[point].get(name)
            if says is None:
                return None
            answer = guarded(name, says, state, pod, snapshot, *told)
            rows = concerned_rows(name, answer, len(snapshot.table))
            if rows is None:
                return None
            found = rows if found is None or not len(found) else np.concatenate([found, rows])
        return found

    def follows_pods(self, state: CycleState) -> bool:
        """Whether `run_add_pod` or `run_remove_pod` would ask any plugin."""
        return any(plugin.name not in state.skip_filter for plugin in self._followers)

    def run_add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """Tell the PreFilter plugins that a pod was put on a node for the sake of argument.

        Raises:
            PluginFailure: a plugin raised or did not succeed.
        """
        self._run_extension("add_pod", state, pod, other, node)

    def run_remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """Tell the PreFilter plugins that a pod was taken off a node for the sake of argument.

        Raises:
            PluginFailure: a plugin raised or did not succeed.
        """
        self._run_extension("remove_pod", state, pod, other, node)

    def _run_extension(self, name: str, state: CycleState, *args: Any) -> None:
        for plugin in self._followers:
            call = getattr(plugin, name, None)
            if call is None or plugin.name in state.skip_filter:
                continue
            status = answered(plugin.name, STATUS, call, state, *args)
            if status is not None and status.code is not Code.SUCCESS:
                raise PluginFailure(plugin.name, f"{status.code}: {status.message}")

    def note_search(self, state: CycleState, pod: PodInfo, findings: Any) -> None:
        """Let plugins keep what they will want to know at PodGroupPostFilter of how a pod of the group was looked at.

        Args:
            findings: an evaluation, which is another one by then.
        """
        for plugin in self._searchers:
            guarded(plugin.name, plugin.note_search, state, pod, findings)

    @measured("PostFilter", "postFilter")
    def run_post_filter(self, attempt: Any) -> PostFilterResult | None:
        """Run PostFilter until a plugin makes the pod schedulable or says that nothing can; None when there is none.

        Source: runtime/framework.go ``RunPostFilterPlugins``.

        Raises:
            PluginFailure: a plugin raised or said Error.
        """
        rejected: list[Status] = []
        nominated: NodeName | None = None
        deallocations: list[ClaimRelease] = []
        deleted: list[ClaimDeletion] = []
        for plugin in self.at("postFilter"):
            call: Callable[..., PostFilterResult | None] = plugin.post_filter
            answer = answered(plugin.name, (PostFilterResult, type(None)), call, attempt)
            result = PostFilterResult(None, Status(Code.SUCCESS)) if answer is None else answer
            status = result.status.by(plugin.name)
            deallocations += result.deallocations
            deleted += result.deleted_claims
            claims = tuple(deallocations), tuple(deleted)
            if status.code in (Code.SUCCESS, Code.UNSCHEDULABLE_AND_UNRESOLVABLE):
                return PostFilterResult(result.nominated, status, result.victims, *claims)
            if not status.rejected:
                failure = PluginFailure(plugin.name, f"{status.code}: {status.message}")
                if status.code is Code.ERROR:  # told as the plugin says it
                    failure.status = status
                raise failure
            nominated = result.nominated if result.nominated is not None else nominated
            rejected.append(status)
        if not rejected:
            return None
        reasons = tuple(reason for status in rejected for reason in status.reasons)
        status = Status(Code.UNSCHEDULABLE, reasons, rejected[0].plugin)
        return PostFilterResult(nominated, status, (), tuple(deallocations), tuple(deleted))

    @measured("PreScore", "preScore")
    def run_pre_score(
        self,
        state: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        feasible: NDArray[np.bool_],
        only: Collection[str] | None = None,
    ) -> None:
        """Run PreScore of all plugins, or of some by name; Skip is noted in the state.

        Raises:
            PluginFailure: a plugin raised or did not succeed.
        """
        for plugin in self.at("preScore"):
            if only is None or plugin.name in only:
                self._run_pre_score(plugin, state, pod, snapshot, feasible)

    def _run_pre_score(
        self, plugin: Any, state: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> None:
        status = answered(plugin.name, STATUS, plugin.pre_score, state, pod, snapshot, feasible)
        state.skip_score.discard(plugin.name)
        if status is None or status.code is Code.SUCCESS:
            return
        if status.code is not Code.SKIP:
            raise PluginFailure(plugin.name, f"{status.code}: {status.message}")
        state.skip_score.add(plugin.name)

    @measured("Reserve", "reserve")
    def run_reserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status | None:
        """Run Reserve in order; when one fails, Unreserve runs for all in reverse order and its status is returned."""
        for plugin in self.at("reserve"):
            status = _guarded_status(plugin.name, plugin.reserve, state, pod, node)
            if status is not None:
                self.run_unreserve(state, pod, node)
                return status
        return None

    @measured("Unreserve", "reserve")
    def run_unreserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        """Run Unreserve of every Reserve plugin, in reverse order; it must be repeatable and may not fail: a failure is
        only logged, for the reservation ends all the same."""
        for plugin in reversed(self.at("reserve")):
            try:
                guarded(plugin.name, plugin.unreserve, state, pod, node)
            except PluginFailure as failure:
                _log.error(
                    "Unreserve failed",
                    extra={"action": "unreserve", "pod": pod.key, "uid": pod.uid, "error": failure.status.message},
                )

    @measured("Permit", "permit")
    def run_permit(self, state: CycleState, pod: PodInfo, node: NodeName) -> PermitDecision:
        """Run Permit; the first rejection ends it, waits are gathered."""
        waits: dict[str, float] = {}
        for plugin in self.at("permit"):
            try:
                result = answered(plugin.name, (PermitResult, type(None)), plugin.permit, state, pod, node)
            except PluginFailure as failure:
                return PermitDecision(failure.status, {})
            if result is None or result.status is None or result.status.code is Code.SUCCESS:
                continue
            if result.status.code is not Code.WAIT:
                return PermitDecision(result.status.by(plugin.name), {})
            waits[plugin.name] = min(result.timeout_s, MAX_PERMIT_WAIT_S)
        return PermitDecision(None, waits)

    def will_pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> bool:
        """Whether a PreBind plugin says that it will have something to do; one that fails at saying it has."""
        for plugin, needs_word in self._pre_flights:
            if plugin.name in state.shared or not needs_word:
                status = _guarded_status(plugin.name, plugin.pre_bind_pre_flight, state, pod, node)
                if status is None or status.code is not Code.SKIP:
                    return True
        return False

    def run_pre_bind_pre_flights(self, state: CycleState, pod: PodInfo, node: NodeName) -> bool:
        """As `will_pre_bind`, measured: asked once of each pod that is placed."""
        started = collect.now()
        will = self.will_pre_bind(state, pod, node)
        took_s, said = collect.now() - started, "Success" if will else "Skip"
        collect.extension_point("PreBindPreFlight", said, self.profile_name, took_s)
        return will

    def run_pre_bind(self, pods: Sequence[PlacedPod], begin: Callable[[int], None]) -> list[Status | None]:
        """Run PreBind for pods; of each the status of the first plugin that does not succeed, the last that is asked.

        Args:
            begin: told before a call which pod it is about, by number; the first, where it is about several.
        """
        found: list[Status | None] = [None] * len(pods)
        took_s = [0.0] * len(pods)
        for plugin in self.at("preBind"):
            left = [number for number, status in enumerate(found) if status is None]
            at_once = [left] if hasattr(plugin, "pre_bind_together") else [[number] for number in left]
            for numbers in filter(None, at_once):
                started = collect.now()
                begin(numbers[0])
                answers = self._pre_bind(plugin, [pods[number] for number in numbers])
                each_s = (collect.now() - started) / len(numbers)
                for number, status in zip(numbers, answers, strict=True):
                    found[number] = status
                    took_s[number] += each_s
        if self.at("preBind"):
            for status, seconds in zip(found, took_s, strict=True):
                collect.extension_point("PreBind", outcome(status), self.profile_name, seconds)
        return found

    def _pre_bind(self, plugin: Any, pods: Sequence[PlacedPod]) -> list[Status | None]:
        """Of one plugin, for one pod, or for several where it takes them together."""
        if not hasattr(plugin, "pre_bind_together"):
            return [_guarded_status(plugin.name, plugin.pre_bind, *pod) for pod in pods]
        try:
            answers = answered(plugin.name, (list, tuple), plugin.pre_bind_together, pods)
            if len(answers) != len(pods):
                raise PluginFailure(plugin.name, f"pre_bind_together answered for {len(answers)} of {len(pods)} pods")
            return [_status(plugin.name, plugin.pre_bind_together, answer) for answer in answers]
        except PluginFailure as failure:
            return [failure.status] * len(pods)

    def run_bind(self, name: str, state: CycleState, pod: PodInfo, node: NodeName) -> Status | None:
        """Run one Bind plugin; None when it has bound the pod, Skip when it leaves it to the next one."""
        return _guarded_status(name, self._plugin(name).bind, state, pod, node)

    @measured("PostBind", "postBind")
    def run_post_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        """Run PostBind; the pod is bound, so a failure is only logged."""
        for plugin in self.at("postBind"):
            try:
                guarded(plugin.name, plugin.post_bind, state, pod, node)
            except PluginFailure as failure:
                _log.warning(
                    "PostBind failed",
                    extra={"action": "post_bind", "pod": pod.key, "uid": pod.uid, "error": failure.status.message},
                )

    # -- building --------------------------------------------------------------------------------------------------

    def _named(self, point: str) -> Iterable[str]:
        return (ref.name for ref in self.profile.plugins.get(point, ()))

    def _plugin(self, name: str) -> Any:
        plugin = self._built.get(name)
        if plugin is None:
            factory = self._registry.get(name)
            if factory is None:
                raise PluginError(f"profile {self.profile_name}: there is no plugin {name}")
            try:
                more = {"features": self.profile.features} if getattr(factory, "takes_features", False) else {}
                plugin = factory(self.profile.args.get(name), self._handle, **more)
            except Exception as error:
                raise PluginError(f"profile {self.profile_name}: plugin {name} cannot be built: {error}") from error
            self._built[name] = plugin
        return plugin

    def _filter(self, name: str) -> FilterRunner:
        plugin = self._plugin(name)
        return FilterRunner(
            name,
            _widened(plugin, getattr(plugin, "filter_scope", Scope.ANYTHING)),
            getattr(plugin, "filter_table", None),
            _few_form(plugin, "filter_few", "filter_table"),
            getattr(plugin, "filter", None),
            getattr(plugin, "filter_takes_open", False),
        )

    def _score(self, name: str, weight: int) -> ScoreRunner:
        plugin = self._plugin(name)
        custom = getattr(plugin, "normalize", None)
        declared = Normalization.CUSTOM if custom is not None else Normalization.NONE
        return ScoreRunner(
            name,
            weight,
            _widened(plugin, getattr(plugin, "score_scope", Scope.ANYTHING)),
            getattr(plugin, "normalization", declared),
            getattr(plugin, "score_table", None),
            _few_form(plugin, "score_few", "score_table"),
            getattr(plugin, "score", None),
            custom,
        )


def _reach(scope: Scope) -> int:
    return int(scope.value)


def _pre_filter_scope(plugin: Any) -> Scope:
    """Where a plugin says nothing of its PreFilter, it depends on what its Filter depends on."""
    said: Scope = getattr(plugin, "pre_filter_scope", getattr(plugin, "filter_scope", Scope.ANYTHING))
    return said


def _few_form(plugin: Any, few: str, table: str) -> Callable[..., Any] | None:
    """A plugin's form for few rows, unless it is inherited from one that says something else of the whole table."""
    form: Callable[..., Any] | None = _said(plugin, few, {table})
    return form


def _said(plugin: Any, name: str, about: Collection[str]) -> Any:
    """A plugin's attribute; None where it has none, or inherits it while it overrides a method that this is about."""
    for namespace in (getattr(plugin, "__dict__", {}), *map(vars, type(plugin).__mro__)):
        if name in namespace:
            return getattr(plugin, name)
        if any(each in namespace for each in about):
            break
    return None


def _blind_to_plain_pods(plugins: Iterable[Any]) -> frozenset[str]:
    """Names of those whose ``skip_version`` stays the same until `Snapshot.terms_version` grows, and ``label_keys`` as
    long as `Snapshot.distinct_terms_version` does."""
    about = ("skip_version", "label_keys")
    return frozenset(plugin.name for plugin in plugins if _said(plugin, "blind_to_plain_pods", about) is True)


class _LabelKeys:
    """Keys of the labels of a pod at which some plugin looks at present; None for all, as where a plugin fails to say.

    They are asked for with each pod, or, where all plugins that look at labels are blind to plain pods, once for pods
    that differ in labels and claims alone, as long as `Snapshot.distinct_terms_version` is the same.
    """

    def __init__(self, readers: Sequence[tuple[str, Any]] | None, blind: Collection[str]) -> None:
        """
        Args:
            readers: the plugins that look at labels, with what says at which; None where one may look at any.
            blind: the plugins that are blind to plain pods.
        """
        self._readers = readers
        self._last = all(name in blind for name, _ in readers or ())
        self._known: PerClass[frozenset[str] | None] | None = None
        """What was found, as of ``_known_at``."""
        self._known_at: tuple[NodeTable | None, tuple[int, int, int]] = None, (-1, -1, -1)

    def __call__(self, pod: PodInfo, snapshot: Snapshot) -> Collection[str] | None:
        if not self._readers:
            return None if self._readers is None else ()
        if not self._last:
            return self._ask(self._readers, pod, snapshot)
        now = snapshot.table, snapshot.distinct_terms_version
        if self._known is None or self._known_at != now:
            ask = partial(self._ask, self._readers, snapshot=snapshot)
            self._known_at, self._known = now, PerClass(ask, key=attrgetter("unclaimed_key"))
        return self._known(pod)

    @staticmethod
    def _ask(readers: Sequence[tuple[str, Any]], pod: PodInfo, snapshot: Snapshot) -> frozenset[str] | None:
        found = frozenset[str]()
        try:
            for (name, _), keys in zip(readers, guarded_each(readers, pod, snapshot), strict=True):
                if keys is None:
                    return None
                if keys:
                    found |= guarded(name, frozenset, keys)
        except PluginFailure:
            return None
        return found


def _pre_enqueue_fields(plugin: Any) -> Sequence[str] | None:
    """
    Raises:
        PluginError: what it says are no fields of a pod's spec.
    """
    names: Any = _said(plugin, "pre_enqueue_fields", ("pre_enqueue",))
    if names is None:
        return None
    if not isinstance(names, tuple | list) or not set(names) <= set(PodSpec.__struct_fields__):
        raise PluginError(f"plugin {plugin.name}: pre_enqueue_fields {names!r}: expected fields of a pod's spec")
    return names


def _together(said: Iterable[Collection[str] | None]) -> tuple[str, ...] | None:
    """The names that plugins say, in order; None where one of them says none."""
    found: set[str] = set()
    for names in said:
        if names is None:
            return None
        found.update(names)
    return tuple(sorted(found))


def _methods(plugins: Iterable[Any], name: str) -> dict[str, Any]:
    """A method of those plugins that have it, by plugin."""
    return {plugin.name: getattr(plugin, name) for plugin in plugins if hasattr(plugin, name)}


def _methods_of_their_own(plugins: Iterable[Any], name: str) -> dict[str, Any]:
    """The same, but for plugins that inherit it while they override what they say of nodes."""
    return {plugin.name: says for plugin in plugins if (says := _said(plugin, name, _JUDGES)) is not None}


def _readers(judging: Mapping[str, Any], name: str, *, blind: str) -> Sequence[tuple[str, Any]] | None:
    """Of the plugins that do not say that they are blind, by name, what they say of how they see; None where one of
    them does not say."""
    found = [
        (each, _said(plugin, name, _JUDGES))
        for each, plugin in judging.items()
        if _said(plugin, blind, _JUDGES) is not True
    ]
    return None if any(says is None for _, says in found) else found


def _widened(plugin: Any, scope: Scope) -> Scope:
    """A filter or a score depends on what PreFilter of the same plugin depends on, where that is more."""
    return max(scope, _pre_filter_scope(plugin), key=_reach) if hasattr(plugin, "pre_filter") else scope


def _guarded_status(plugin: str, call: Callable[..., Status | None], *args: Any) -> Status | None:
    """None for success, else the status under the plugin's name, a raised error included."""
    try:
        status: Any = guarded(plugin, call, *args)
    except PluginFailure as failure:
        return failure.status
    return None if status is None else _status(plugin, call, status)  # as it mostly is; so not by way of `answered`


def _status(plugin: str, call: Callable[..., object], answer: object) -> Status | None:
    """An answer that has to be a status or None: None for success, else the status under the plugin's name."""
    if answer is None:
        return None
    if not isinstance(answer, Status):
        return unexpected(plugin, STATUS, call, answer).status
    return None if answer.code is Code.SUCCESS else answer.by(plugin)


def _nothing_left(narrowing: Sequence[str]) -> Status:
    narrowing = sorted(narrowing)
    reason = (
        f"node(s) didn't satisfy plugin {narrowing[0]}"
        if len(narrowing) == 1
        else f"node(s) didn't satisfy plugin(s) [{' '.join(narrowing)}] simultaneously"
    )
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))
