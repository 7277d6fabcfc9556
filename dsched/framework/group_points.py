"""The extension points of the pod group cycle, called in a profile's order.

Source: pkg/scheduler/framework/runtime/framework.go ``RunPlacementGeneratePlugins``, ``RunPlacementFeasiblePlugins``,
``RunPlacementScorePlugins``, ``RunPodGroupPostFilterPlugins``.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dsched.framework.instrumentation import measured
from dsched.framework.interface import (
    MAX_NODE_SCORE,
    GroupAssignments,
    Placement,
    PodGroupPostFilterResult,
)
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot
from dsched.framework.status import Code, Status
from dsched.framework.validation import STATUS, PluginFailure, answered, guarded
from dsched.model.claim_requests import ClaimDeletion, ClaimRelease
from dsched.model.pod_groups import PodGroup

FEASIBLE_PLUGIN = "GangScheduling"
"""The one plugin that upstream asks whether enough pods are placed; it cannot be configured."""
NO_PLACEMENTS = "no feasible placements found"


@measured("PlacementGenerate", "placementGenerate")
def run_placement_generate(
    framework: Framework, group: PodGroup, parent: Placement, snapshot: Snapshot
) -> Sequence[Placement] | Status:
    """The sets of nodes of which one is to take the group; all nodes where no plugin generates any.

    Returns:
        at least one placement, or the status of the plugin that has none.
    """
    for plugin in framework.at("placementGenerate"):
        try:
            found = answered(plugin.name, (Status, tuple, list), plugin.generate_placements, group, parent, snapshot)
        except PluginFailure as failure:
            return failure.status
        if isinstance(found, Status):
            return found.by(plugin.name)
        return found or Status(Code.UNSCHEDULABLE, (NO_PLACEMENTS,), plugin.name)
    return (parent,)


def run_placement_feasible(framework: Framework, group: PodGroup, scheduled: int, remaining: int) -> Status | None:
    """Whether so many scheduled pods of the group are enough: None, Wait as long as so many remaining ones may yet do
    it, Unschedulable, or an error."""
    plugin: Any = framework.plugin(FEASIBLE_PLUGIN)
    if plugin is None:
        return None
    try:
        status: Status | None = answered(plugin.name, STATUS, plugin.placement_feasible, group, scheduled, remaining)
    except PluginFailure as failure:
        return failure.status
    return None if status is None or status.code is Code.SUCCESS else status.by(plugin.name)


@measured("PlacementScore", "placementScore")
def run_placement_score(
    framework: Framework, group: PodGroup, found: Sequence[GroupAssignments], snapshot: Snapshot
) -> list[int]:
    """The sums of the weighted scores, one a placement.

    Raises:
        PluginFailure: a plugin raised, or its score is out of range.
    """
    totals = [0] * len(found)
    weights = {ref.name: ref.weight for ref in framework.profile.plugins.get("placementScore", ())}
    for plugin in framework.at("placementScore"):
        scores: Sequence[int]
        if hasattr(plugin, "score_placements"):
            scores = guarded(plugin.name, plugin.score_placements, group, found, snapshot)
        else:
            scores = [guarded(plugin.name, plugin.score_placement, group, each, snapshot) for each in found]
        if hasattr(plugin, "normalize_placements"):
            scores = guarded(plugin.name, plugin.normalize_placements, group, scores)
        for place, score in enumerate(scores):
            if not 0 <= score <= MAX_NODE_SCORE:
                within = f"[0, {MAX_NODE_SCORE}] after normalizing"
                raise PluginFailure(
                    plugin.name, f"returns an invalid score {score}, it should in the range of {within}"
                )
            totals[place] += score * weights[plugin.name]
    return totals


@measured("PodGroupPostFilter", "podGroupPostFilter")
def run_pod_group_post_filter(framework: Framework, attempt: Any) -> PodGroupPostFilterResult:
    """Run PodGroupPostFilter until a plugin makes the group schedulable or says that nothing can."""
    reasons: list[str] = []
    rejector = ""
    deallocations: list[ClaimRelease] = []
    deleted: list[ClaimDeletion] = []
    for plugin in framework.at("podGroupPostFilter"):
        try:
            call: Callable[..., PodGroupPostFilterResult] = plugin.pod_group_post_filter
            result = answered(plugin.name, (PodGroupPostFilterResult,), call, attempt)
        except PluginFailure as failure:
            status = failure.status
            return PodGroupPostFilterResult(_failed(plugin.name, status.message))
        deallocations += result.deallocations
        deleted += result.deleted_claims
        code = result.status.code
        if code not in (Code.SUCCESS, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.UNSCHEDULABLE):
            result = replace(result, status=_failed(plugin.name, result.status.message))
        if code is not Code.UNSCHEDULABLE:
            return replace(result, deallocations=tuple(deallocations), deleted_claims=tuple(deleted))
        reasons += result.status.reasons
        rejector = rejector or plugin.name
    status = Status(Code.UNSCHEDULABLE, tuple(reasons), rejector)
    return PodGroupPostFilterResult(status, deallocations=tuple(deallocations), deleted_claims=tuple(deleted))


def _failed(plugin: str, message: str) -> Status:
    return Status(Code.ERROR, (f'error in "{plugin}" PodGroupPostFilter plugins: {message}',), plugin)
