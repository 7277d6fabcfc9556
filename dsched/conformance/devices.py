"""Devices in vectors: which ones each node would give, and which claims PostFilter gives back."""

from typing import Any

import msgspec
import numpy as np

from dsched.engine.evaluation import Evaluation
from dsched.framework.interface import PostFilterResult
from dsched.framework.snapshot import Snapshot
from dsched.model.claim_requests import ClaimDeletion, ClaimRelease
from dsched.plugins.dynamic_resources.plugin import DynamicResources
from dsched.plugins.dynamic_resources.reserved import Reserved, spec_of

EXTENDED = ""
"""What vectors call the claim for extended resources."""
_ANY_SHARE = "*"


def reserved(evaluation: Evaluation, snapshot: Snapshot) -> dict[str, Any]:
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
            EXTENDED if each.claim is special else each.claim.metadata.name: _told(each.allocation)
            for each in decided.claims
        }
        if decided.extended is not None:
            mappings = msgspec.to_builtins(list(decided.extended.mappings))
            extended[node] = {"spec": spec_of(decided.extended.claim), "requestMappings": mappings}
    found = {"allocations": allocations, "extendedResourceClaims": extended}
    return {field: by_node for field, by_node in found.items() if by_node}


def given_back(result: PostFilterResult) -> dict[str, Any]:
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
