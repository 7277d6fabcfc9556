"""Why a pod goes where it goes: every node with the plugin that rejected it or with its scores, and the choice.

The answers are those of the leader's engine: nodes by `dsched.engine.evaluation`, the choice and preemption by its
cycle. Reserve and Permit are left out of it, for plugins may act there and not only answer.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from dsched.clock import ManualClock
from dsched.config import SchedulerConfiguration
from dsched.engine.evaluation import Evaluation, evaluate
from dsched.engine.select import Selector, nodes_to_find
from dsched.engine.with_extenders import EvaluationWithExtenders
from dsched.errors import NotFound
from dsched.framework.extender import ReadObjects
from dsched.framework.interface import Registry, Status
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import PODS
from dsched.model.meta import NodeName, PodKey
from dsched.model.pod import Pod
from dsched.scheduler.decision import Candidate
from dsched.scheduler.ports import QueueName, Record
from dsched.scheduler.queue import QueuedPod
from dsched.scheduler.quota.picking import HELD_BACK, Picking
from dsched.simulation.live_cluster import LiveCluster
from dsched.simulation.offline_cycle import OfflineCycle

_WITH_EFFECTS = ("reserve", "permit")


@dataclass(frozen=True, slots=True)
class Score:
    """What a plugin says of a node.

    Attributes:
        raw: its own number.
        normalised: that, brought to 0..100.
        weighted: that, times the plugin's weight.
    """

    raw: int
    normalised: int
    weighted: int


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """What the plugins say of a node.

    Attributes:
        rejection: the status of the first filter that rejected it.
        searched: False where PreFilter rejected the pod or left the node out; nothing else was asked then.
        scores: by plugin, where the pod fits.
        total: their sum, None where the pod does not fit.
    """

    name: NodeName
    searched: bool
    rejection: Status | None
    scores: Mapping[str, Score]
    total: int | None


@dataclass(frozen=True, slots=True)
class QueueHas:
    """What a queue above the pod has of a resource that the pod requests; CPU in milli-units.

    Attributes:
        name: of the queue.
        resource: as pods request it.
        used: by its pods on nodes and those of queues below it.
        guaranteed: it may always reach this.
        fair_share: what it is due as things are.
        limit: `null` where it has none.
    """

    name: str
    resource: str
    used: int
    guaranteed: int
    fair_share: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """What would be decided now.

    Attributes:
        profile: the ``schedulerName``.
        gate: the status of the PreEnqueue plugin that keeps the pod out of the queue; the rest is as if none did.
        rejection: the status of the PreFilter plugin that rejected the pod.
        narrowing: the PreFilter plugins that narrowed the search.
        filters: the filter plugins, in running order; the first one that rejects a node is the last one asked about it.
        skipped_filters, skipped_scores: plugins that have nothing to say of this pod, and were not asked.
        nodes: every node, by row.
        weights: of the score plugins, in running order.
        best: nodes with the highest total.
        chosen: the node that would be taken.
        promised: the node that the pod was promised; where it fits, it is taken without looking at others.
        examined: how many feasible nodes a search would stop after, None where it looks at all.
        message: why it fits nowhere.
        nominated, victims: the node on which preemption would make room, and the pods that would have to go.
        failure: the status of a plugin that failed; there are no answers then.
        queues: the pod's queue and those above it, where queues divide the cluster, by resource.
        held_back: what the pod is told where a limit of these leaves no room for it; empty where there is room.
    """

    pod: PodKey
    profile: str
    gate: Status | None
    rejection: Status | None
    narrowing: tuple[str, ...]
    filters: tuple[str, ...]
    skipped_filters: tuple[str, ...]
    skipped_scores: tuple[str, ...]
    nodes: tuple[NodeAnswer, ...]
    weights: Mapping[str, int]
    best: tuple[NodeName, ...]
    chosen: NodeName | None
    promised: NodeName | None
    examined: int | None
    message: str
    nominated: NodeName | None
    victims: tuple[PodKey, ...]
    failure: Status | None
    queues: tuple[QueueHas, ...] = ()
    held_back: str = ""

    def why_not(self, node: NodeAnswer) -> tuple[str, str]:
        """Of a node that is not taken: the plugin that rejected it, or narrowed the search, and why."""
        status = node.rejection or self.rejection
        if status is not None:
            return status.plugin or " ".join(self.narrowing), status.message
        if self.failure is not None:
            return self.failure.plugin, "failed"
        return " ".join(self.narrowing), "left out of the search"


def explain(
    configured: SchedulerConfiguration,
    plugins: Registry,
    standing: LiveCluster,
    seed: int = 0,
    read: ReadObjects | None = None,
) -> Explanation:
    """What would be decided for the pod at its next attempt. Afterwards it may be in ``standing.memory``.

    Extenders are asked as the leader would ask them, but for binding.

    Args:
        seed: of the choice among equals.
        read: where extenders get whole pods and nodes from.

    Raises:
        NotFound: no profile is for this pod.
        PluginError: a profile's plugins cannot be built.
    """
    pod, snapshot = standing.pod, standing.memory.snapshot
    info, reduced = PodInfo(pod), without_points(configured, _WITH_EFFECTS)
    made = OfflineCycle(reduced, plugins, standing.memory, Selector(seed), ManualClock(), read=read)
    framework = made.frameworks.get(pod.spec.scheduler_name)
    if framework is None:
        raise NotFound(
            f"pod {pod.key}: {made.unknown(pod.spec.scheduler_name)}; --config names the file that has its profile"
        )
    remember(made, [*standing.pending, (pod, None)])
    promised = snapshot.nominations.node_of(info.uid)
    queues, held_back = _queues(made.picking, info)
    evaluation = evaluate(framework, info, snapshot)
    before = _nodes(evaluation, snapshot), _best(evaluation, snapshot)
    (decision,) = made.cycle.decide([Candidate(info, standing.attempts + 1)])
    extended = decision.extended
    nodes, best = before if extended is None else (_nodes(extended, snapshot), _best(extended, snapshot))
    return Explanation(
        pod=pod.key,
        profile=framework.profile_name,
        gate=framework.run_pre_enqueue(pod),
        rejection=evaluation.rejection,
        narrowing=tuple(evaluation.narrowing),
        filters=tuple(each.name for each in framework.filters),
        skipped_filters=tuple(each.name for each in framework.filters if each.name in evaluation.state.skip_filter),
        skipped_scores=tuple(each.name for each in framework.scores if each.name in evaluation.state.skip_score),
        nodes=nodes,
        weights=_weights(framework, extended),
        best=best,
        chosen=decision.node,
        promised=promised,
        examined=_sampled(evaluation, snapshot, made.percentages[framework.profile_name]),
        message="" if decision.diagnosis is None else decision.diagnosis.message,
        nominated=decision.nominated or None,
        victims=tuple(victim.key for victim in decision.victims),
        failure=decision.error,
        queues=queues,
        held_back=held_back,
    )


def _queues(picking: Picking | None, pod: PodInfo) -> tuple[tuple[QueueHas, ...], str]:
    """What queues above the pod have, and what it is told where a limit holds it back."""
    if picking is None or (leaf := picking.ledger.divide().leaf(picking.ledger.name_of(pod))) is None:
        return (), ""
    wanted = picking.ledger.requested([pod])
    found = tuple(
        QueueHas(
            share.name,
            resource,
            share.usage.get(resource, 0),
            share.guaranteed.get(resource, 0),
            round(share.fair.get(resource, 0.0)),
            share.limits.get(resource),
        )
        for share in leaf.path()
        for resource in sorted(wanted)
        if resource != PODS or PODS in share.limits
    )
    full = leaf.full(picking.ledger.added([pod]))
    return found, "" if full is None else HELD_BACK.format(queue=full[0].name, resource=full[1])


def remember(made: OfflineCycle, pods: Sequence[tuple[Pod, Record | None]]) -> None:
    """Pods that are not bound yet, for plugins that look at the others, and for what queues ask for. Those that no
    leader has seen yet stand where it would put them."""
    beside: list[QueuedPod] = []
    for pod, record in pods:
        info = PodInfo(pod)
        if record is not None:
            queued = made.pending.restore(info, record)
        else:
            queued = made.pending.add(info, made.frameworks[pod.spec.scheduler_name])
        if made.groups.concerns(pod) and queued.place in (QueueName.NOWHERE, QueueName.GROUP, QueueName.GATED):
            beside.append(queued)
        elif record is None:
            status = made.frameworks[pod.spec.scheduler_name].run_pre_enqueue(pod)
            made.pending.placed(queued, QueueName.ACTIVE if status is None else QueueName.GATED)
    for queued, move in made.groups.rebuilt(beside).moves:
        made.pending.placed(queued, move.target)


def without_points(configured: SchedulerConfiguration, points: Collection[str]) -> SchedulerConfiguration:
    """The configuration with no plugin at these extension points."""
    reduced = tuple(
        replace(each, plugins={point: () if point in points else refs for point, refs in each.plugins.items()})
        for each in configured.profiles
    )
    return replace(configured, profiles=reduced)


def _best(evaluation: Evaluation | EvaluationWithExtenders, snapshot: Snapshot) -> tuple[NodeName, ...]:
    return tuple(snapshot.table.names[row] for row in evaluation.best_rows())


def _weights(framework: Framework, extended: EvaluationWithExtenders | None) -> dict[str, int]:
    weights = {scorer.name: scorer.weight for scorer in framework.scores}
    return weights if extended is None else weights | extended.weights()


def _nodes(evaluation: Evaluation | EvaluationWithExtenders, snapshot: Snapshot) -> tuple[NodeAnswer, ...]:
    if not evaluation.open:
        return tuple(NodeAnswer(name, False, None, {}, None) for name in snapshot.table.names)
    raw, weighted, totals = evaluation.raw_columns(), evaluation.score_columns(), evaluation.totals
    weights = _weights(evaluation.framework, evaluation if isinstance(evaluation, EvaluationWithExtenders) else None)
    feasible = evaluation.feasible
    answers = []
    for row, name in enumerate(snapshot.table.names):
        rejection = evaluation.status_of(row)
        scores = {}
        if feasible[row]:
            for plugin, column in weighted.items():
                amount = int(column[row])
                scores[plugin] = Score(int(raw[plugin][row]), amount // weights[plugin], amount)
        total = int(totals[row]) if feasible[row] else None
        answers.append(NodeAnswer(name, bool(feasible[row]) or rejection is not None, rejection, scores, total))
    return tuple(answers)


def _sampled(evaluation: Evaluation, snapshot: Snapshot, percentage: int) -> int | None:
    """How many feasible nodes end the search, None where all nodes are looked at."""
    wanted = nodes_to_find(percentage, len(snapshot.table))
    return wanted if wanted < len(snapshot.table) and isinstance(evaluation.rows, slice) else None
