"""Vectors of decisions: builds the cluster of a case, decides on its pod, compares.

What is decided is what the leader decides with: the same configuration, framework, table and evaluation.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from dsched import config
from dsched.config import Features, Profile
from dsched.config.feature_gates import UNSAID
from dsched.conformance import comparing
from dsched.engine.diagnosis import diagnose
from dsched.engine.evaluation import Evaluation, evaluate
from dsched.engine.failed_attempt import FailedAttempt
from dsched.framework.interface import PostFilterResult, Registry, Status
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.framework.validation import PluginFailure
from dsched.model import meta
from dsched.model.claim_requests import ClaimDeletion, ClaimRelease
from dsched.model.meta import NodeName
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.plugins import profiles, registry
from dsched.plugins.dynamic_resources.plugin import DynamicResources
from dsched.plugins.dynamic_resources.reserved import Reserved, spec_of

Case = Mapping[str, Any]

_DEFAULT = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}

OTHER_KINDS = {
    "namespaces": "Namespace",
    "services": "Service",
    "replicaSets": "ReplicaSet",
    "persistentVolumes": "PersistentVolume",
    "persistentVolumeClaims": "PersistentVolumeClaim",
    "storageClasses": "StorageClass",
    "csiNodes": "CSINode",
    "csiDrivers": "CSIDriver",
    "csiStorageCapacities": "CSIStorageCapacity",
    "podDisruptionBudgets": "PodDisruptionBudget",
    "deviceClasses": "DeviceClass",
    "resourceSlices": "ResourceSlice",
    "resourceClaims": "ResourceClaim",
    "deviceTaintRules": "DeviceTaintRule",
}
PASSED_OVER = frozenset({"resourceClaimTemplates"})
"""Fields of a case that decide nothing: the claims that were made of templates are listed."""
FIELDS = frozenset({"name", "config", "nodes", "pods", "nominated", "pod", "preempt", *OTHER_KINDS, *PASSED_OVER})
"""Fields of a case that are read."""
_NAMESPACED = frozenset(
    {"Service", "ReplicaSet", "PersistentVolumeClaim", "PodDisruptionBudget", "CSIStorageCapacity", "ResourceClaim"}
)
_EXTENDED = ""
"""What vectors call the claim for extended resources."""
_ANY_SHARE = "*"


class _Handle:
    """What plugins reach beside their arguments."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot


def check(
    case: Case,
    expect: Mapping[str, Any],
    plugins: Registry | None = None,
    features: Features = UNSAID,
) -> list[str]:
    """Run one vector.

    Args:
        case, expect: as recorded.
        plugins: the plugins there are, by default those in tree.
        features: of the version that it was recorded from.
    Returns:
        the differences, one line each; empty when there is none.
    Raises:
        ConfigError: the case's configuration was refused.
        PluginError: a plugin of the profile cannot be built.
        msgspec.ValidationError: an object of the case is none.
    """
    known = registry.intree() if plugins is None else plugins
    profile = _profile(case, features)
    found = decide(case, profile, known)
    lines = comparing.differences(found, expect)
    absent = missing(profile, known)
    if lines and absent:
        lines.append(f"the profile was built without plugins that dsched does not have: {', '.join(absent)}")
    return lines


def decide(case: Case, profile: Profile, plugins: Registry) -> dict[str, Any]:
    """What is decided for the pod of a case, in the form of ``expect``, but for an ``error``, which has one message."""
    profiles.emulate(profile.features)
    snapshot = cluster(case)
    framework = profiles.framework(profile, plugins, _Handle(snapshot))
    pod = meta.from_builtins(case["pod"], Pod)
    gated = framework.run_pre_enqueue(pod)
    if gated is not None:
        return {"preEnqueue": _status(gated)}
    evaluation = evaluate(framework, PodInfo(pod), snapshot)
    if evaluation.failure is not None:
        return {"error": {"plugin": evaluation.failure.plugin, "message": evaluation.failure.message}}
    found = _decision(evaluation, snapshot.table) | _reserved(evaluation, snapshot)
    if case.get("preempt") and not found["feasible"]:
        diagnosis = diagnose(evaluation, len(snapshot.table))
        info = evaluation.pod
        attempt = FailedAttempt(framework, evaluation.state, info, snapshot, evaluation, diagnosis)
        found["preemption"] = _preempted(framework, attempt)
    return found


def _preempted(framework: Framework, attempt: FailedAttempt) -> dict[str, Any]:
    try:
        return _preemption(framework.run_post_filter(attempt))
    except PluginFailure as failure:
        return dict.fromkeys(("message", "error"), failure.status.message) | {"nominated": {"": []}}


def _preemption(result: PostFilterResult | None) -> dict[str, Any]:
    """The nominated node with the pods to delete, and what was said."""
    if result is None:
        return {}
    found: dict[str, Any] = {"nominated": {result.nominated or "": sorted(victim.key for victim in result.victims)}}
    if result.status.message and result.nominated:
        found["messages"] = {result.nominated: result.status.message}
    elif result.status.message:
        found["message"] = result.status.message
    return found | _given_back(result)


def cluster(case: Case) -> Snapshot:
    """The snapshot of a case's cluster: nodes and pods in their order, the other objects by kind."""
    snapshot = Snapshot()
    for node in case.get("nodes") or ():
        snapshot.table.set_node(meta.from_builtins(node, Node))
    for record in case.get("pods") or ():
        pod = PodInfo(meta.from_builtins(record, Pod))
        snapshot.table.add_pod(pod, pod.node_name)
    for record in case.get("nominated") or ():
        waiting = PodInfo(meta.from_builtins(record, Pod))
        snapshot.nominations.set(waiting, NodeName(waiting.pod.status.nominated_node_name))
    for field, kind in OTHER_KINDS.items():
        for value in case.get(field) or ():
            snapshot.put(kind, _key(kind, value["metadata"]), value)
    return snapshot


def missing(profile: Profile, plugins: Registry) -> list[str]:
    """Plugins of a profile that are not in the registry, in the order of the profile."""
    names = dict.fromkeys(ref.name for refs in profile.plugins.values() for ref in refs)
    return [name for name in names if name not in plugins]


def _profile(case: Case, features: Features) -> Profile:
    given = case.get("config")
    if given is None:
        return _default_profile(features)
    return config.load(json.dumps(given), str(case["name"]), features=features).profiles[0]


@lru_cache(maxsize=4)
def _default_profile(features: Features) -> Profile:
    return config.default(features).profiles[0]


def _key(kind: str, metadata: Mapping[str, Any]) -> str:
    name = str(metadata["name"])
    return f"{metadata.get('namespace') or 'default'}/{name}" if kind in _NAMESPACED else name


def _decision(evaluation: Evaluation, table: NodeTable) -> dict[str, Any]:
    found: dict[str, Any] = {"feasible": []}
    if evaluation.narrowed is not None:
        found["preFilterNodes"] = sorted(evaluation.narrowed)
    if evaluation.rejection is not None:
        found["preFilter"] = _status(evaluation.rejection)
    else:
        statuses = {name: evaluation.status_of(row) for row, name in enumerate(table.names)}
        found["filtered"] = {name: _status(status) for name, status in statuses.items() if status is not None}
        found["feasible"] = [table.names[row] for row in np.flatnonzero(evaluation.feasible)]
    return found | (_scores(evaluation, table) if found["feasible"] else _fit_error(evaluation, table))


def _scores(evaluation: Evaluation, table: NodeTable) -> dict[str, Any]:
    rows = np.flatnonzero(evaluation.feasible)

    def by_name(column: NDArray[np.int64]) -> dict[str, int]:
        return {table.names[row]: int(column[row]) for row in rows}

    return {
        "scores": {plugin: by_name(column) for plugin, column in evaluation.score_columns().items()},
        "totals": by_name(evaluation.totals),
        "best": [table.names[row] for row in evaluation.best_rows()],
    }


def _fit_error(evaluation: Evaluation, table: NodeTable) -> dict[str, Any]:
    diagnosis = diagnose(evaluation, len(table))
    return {"fitError": diagnosis.message, "unschedulablePlugins": sorted(diagnosis.unschedulable_plugins)}


def _status(status: Status) -> dict[str, Any]:
    return {"code": str(status.code), "plugin": status.plugin, "reasons": list(status.reasons)}


def _reserved(evaluation: Evaluation, snapshot: Snapshot) -> dict[str, Any]:
    """What Reserve keeps for each feasible node: ``allocations`` and ``extendedResourceClaims``; an ``error`` where it
    fails. Nothing is kept."""
    plugin = evaluation.framework.plugin(DynamicResources.name)
    if plugin is None or plugin not in evaluation.framework.at("reserve"):
        return {}
    allocations: dict[str, Any] = {}
    extended: dict[str, Any] = {}
    for row in np.flatnonzero(evaluation.feasible).tolist():
        node, state = snapshot.table.names[row], evaluation.state.clone()
        status = plugin.reserve(state, evaluation.pod, node)
        plugin.unreserve(state, evaluation.pod, node)
        if status is not None:
            return {"error": {"plugin": plugin.name, "message": status.message}}
        decided = state.read(Reserved)
        if decided is None or not decided.claims:
            continue
        special = None if decided.extended is None else decided.extended.claim
        allocations[node] = {
            _EXTENDED if each.claim is special else each.claim.metadata.name: _told(each.allocation)
            for each in decided.claims
        }
        if decided.extended is not None:
            mappings = msgspec.to_builtins(list(decided.extended.mappings))
            extended[node] = {"spec": spec_of(decided.extended.claim), "requestMappings": mappings}
    found = {"allocations": allocations, "extendedResourceClaims": extended}
    return {field: by_node for field, by_node in found.items() if by_node}


def _given_back(result: PostFilterResult) -> dict[str, Any]:
    """Keys of the claims that are deallocated and deleted."""
    found = {"deallocated": _names(result.deallocations), "deletedClaims": _names(result.deleted_claims)}
    return {field: names for field, names in found.items() if names}


def _names(requests: tuple[ClaimRelease, ...] | tuple[ClaimDeletion, ...]) -> list[str]:
    return [each.key for each in requests]


def _told(allocation: Any) -> dict[str, Any]:
    """As ``status.allocation``; shares have any name."""
    found: dict[str, Any] = {"devices": {}, **msgspec.to_builtins(allocation)}
    for each in found.get("devices", {}).get("results", ()):
        if "shareID" in each:
            each["shareID"] = _ANY_SHARE
    return found
