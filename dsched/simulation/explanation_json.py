"""An explanation as JSON, for ``dsched explain pod -o json`` and for the web page. No I/O."""

from collections.abc import Sequence
from typing import Any

import msgspec

from dsched.framework.interface import Status
from dsched.model.meta import NodeName
from dsched.simulation.explanation import Explanation, NodeAnswer
from dsched.simulation.live_cluster import LiveCluster

Asked = Sequence[NodeName] | None
"""Nodes to tell of, None for all."""


def encoded(explained: Explanation, standing: LiveCluster, asked: Asked) -> bytes:
    """As JSON; statuses as kube-scheduler names their codes."""
    nodes = told(explained, asked)
    return msgspec.json.encode(
        {
            "pod": explained.pod,
            "profile": explained.profile,
            "node": standing.node or None,
            "reserved": standing.reserved or None,
            "promised": explained.promised,
            "gated": _status(explained.gate),
            "failure": _status(explained.failure),
            "chosen": explained.chosen,
            "best": explained.best,
            "pre_filter": _status(explained.rejection),
            "narrowed_by": explained.narrowing,
            "filtered": {node.name: _status(node.rejection) for node in nodes if node.rejection is not None},
            "left_out": [node.name for node in nodes if not node.searched],
            "scores": {node.name: node.scores for node in nodes if node.total is not None},
            "totals": {node.name: node.total for node in nodes if node.total is not None},
            "weights": explained.weights,
            "skipped_filters": explained.skipped_filters,
            "skipped_scores": explained.skipped_scores,
            "sampled": explained.examined,
            "fit_error": explained.message or None,
            "preemption": {"nominated": explained.nominated, "victims": explained.victims},
        }
    )


def told(explained: Explanation, asked: Asked) -> list[NodeAnswer]:
    """The nodes asked for."""
    wanted = None if asked is None else frozenset(asked)
    return [node for node in explained.nodes if wanted is None or node.name in wanted]


def _status(status: Status | None) -> dict[str, Any] | None:
    if status is None:
        return None
    return {"code": str(status.code), "plugin": status.plugin, "reasons": list(status.reasons)}
