"""An explanation as JSON, for ``dsched explain pod -o json`` and for the web page. No I/O.

The form is promised: ``docs/explain-json.md`` says what the fields mean, ``docs/schemas`` has it as a JSON schema, and
both are written from the types below. A field may come at any time; where one goes, or means something else, `VERSION`
is another one.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import msgspec

from dsched.framework.interface import Code, Status
from dsched.model.meta import NodeName, PodKey
from dsched.simulation.explanation import Explanation, NodeAnswer, QueueHas, Score
from dsched.simulation.live_cluster import LiveCluster

Asked = Sequence[NodeName] | None
"""Nodes to tell of, None for all."""

VERSION: Literal[1] = 1
"""Of the form."""

CodeName = Annotated[str, msgspec.Meta(extra_json_schema={"enum": [str(code) for code in Code]})]
"""As kube-scheduler names it."""


class StatusIs(msgspec.Struct, frozen=True):
    """What a plugin said.

    Attributes:
        code: as kube-scheduler names it. `UnschedulableAndUnresolvable`: evictions would not help.
        plugin: who said it. Empty where it was no single plugin.
        reasons: in kube-scheduler's words.
    """

    code: CodeName
    plugin: str
    reasons: tuple[str, ...]


class PreemptionIs(msgspec.Struct, frozen=True):
    """What evictions would bring.

    Attributes:
        nominated: the node on which they would make room. `null` where there is none, or none is needed.
        victims: the pods that would have to go, as `namespace/name`.
    """

    nominated: NodeName | None
    victims: tuple[PodKey, ...]


class ExplanationIs(msgspec.Struct, frozen=True):
    """What the leader would decide now. Objects by node have the nodes of `--nodes`, else all of them.

    Attributes:
        version: of this form.
        pod: as `namespace/name`.
        profile: the `schedulerName`.
        node: the node that the pod is bound to; it is evaluated as if it were not. `null` where it is not bound.
        reserved: the node on which it is being bound; it is evaluated as if it were not.
        promised: the node that preemption has nominated; it is taken where the pod fits there.
        gated: the status of the PreEnqueue plugin that keeps the pod out of the queue; the rest is as if none did.
        failure: the status of a plugin that failed. There are no answers of nodes then.
        chosen: the node that the pod would get. `null` where it fits nowhere.
        best: the nodes with the highest total; `chosen` is one of them, unless the promised node was taken.
        pre_filter: the status of the PreFilter plugin that rejected the pod for all nodes.
        narrowed_by: the PreFilter plugins that narrowed the search to some nodes.
        filtered: by node, the status of the first filter that rejected it.
        left_out: nodes that no filter was asked about: PreFilter rejected the pod or left them out.
        scores: by node that fits and by plugin, what it scored.
        totals: by node that fits, the sum of its weighted scores.
        weights: by score plugin, its weight.
        skipped_filters: filters that had nothing to say of this pod and were not asked.
        skipped_scores: score plugins of the same kind.
        sampled: after how many nodes that fit the search would end (`percentageOfNodesToScore`). `null` where it looks
            at all nodes.
        fit_error: the message that the pod's condition gets, in kube-scheduler's words. `null` where it fits.
        preemption: what evictions would bring, where the pod fits nowhere.
        queues: the pod's queue and those above it, where queues divide the cluster, by resource.
        held_back: what the pod is told where a limit of these leaves no room for it. `null` where there is room.
    """

    version: Literal[1]
    pod: PodKey
    profile: str
    node: NodeName | None
    reserved: NodeName | None
    promised: NodeName | None
    gated: StatusIs | None
    failure: StatusIs | None
    chosen: NodeName | None
    best: tuple[NodeName, ...]
    pre_filter: StatusIs | None
    narrowed_by: tuple[str, ...]
    filtered: Mapping[NodeName, StatusIs]
    left_out: Sequence[NodeName]
    scores: Mapping[NodeName, Mapping[str, Score]]
    totals: Mapping[NodeName, int]
    weights: Mapping[str, int]
    skipped_filters: tuple[str, ...]
    skipped_scores: tuple[str, ...]
    sampled: int | None
    fit_error: str | None
    preemption: PreemptionIs
    queues: tuple[QueueHas, ...]
    held_back: str | None


def encoded(explained: Explanation, standing: LiveCluster, asked: Asked) -> bytes:
    """An `ExplanationIs` as JSON."""
    return msgspec.json.encode(_written(explained, standing, told(explained, asked)))


def _written(explained: Explanation, standing: LiveCluster, nodes: Sequence[NodeAnswer]) -> ExplanationIs:
    return ExplanationIs(
        version=VERSION,
        pod=explained.pod,
        profile=explained.profile,
        node=standing.node or None,
        reserved=standing.reserved or None,
        promised=explained.promised,
        gated=status_or_null(explained.gate),
        failure=status_or_null(explained.failure),
        chosen=explained.chosen,
        best=explained.best,
        pre_filter=status_or_null(explained.rejection),
        narrowed_by=explained.narrowing,
        filtered={node.name: _told(node.rejection) for node in nodes if node.rejection is not None},
        left_out=[node.name for node in nodes if not node.searched],
        scores={node.name: node.scores for node in nodes if node.total is not None},
        totals={node.name: node.total for node in nodes if node.total is not None},
        weights=explained.weights,
        skipped_filters=explained.skipped_filters,
        skipped_scores=explained.skipped_scores,
        sampled=explained.examined,
        fit_error=explained.message or None,
        preemption=PreemptionIs(explained.nominated, explained.victims),
        queues=explained.queues,
        held_back=explained.held_back or None,
    )


def told(explained: Explanation, asked: Asked) -> list[NodeAnswer]:
    """The nodes asked for."""
    wanted = None if asked is None else frozenset(asked)
    return [node for node in explained.nodes if wanted is None or node.name in wanted]


def status_or_null(status: Status | None) -> StatusIs | None:
    """A status as it is told."""
    return None if status is None else _told(status)


def _told(status: Status) -> StatusIs:
    return StatusIs(str(status.code), status.plugin, tuple(status.reasons))
