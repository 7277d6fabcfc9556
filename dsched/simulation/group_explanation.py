"""Why a pod group goes where it goes: every placement with what it lacks, or with its score, and the choice.

The answers are those of the leader's pod group cycle (`dsched.scheduler.pod_group_cycle`), which tries the group in
each placement for this. Permit is left out of it. Reserve is not, for pods of a group see what those before them have
reserved.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dsched.clock import ManualClock
from dsched.config import SchedulerConfiguration
from dsched.engine.select import Selector
from dsched.errors import NotFound
from dsched.framework.extender import ReadObjects
from dsched.framework.interface import Registry, Status
from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NodeName, PodKey
from dsched.scheduler.decision import Candidate, Decision, GroupCandidate, GroupDecision
from dsched.scheduler.group_trials import Trial
from dsched.scheduler.ports import QueueName
from dsched.scheduler.queue import QueuedPod
from dsched.simulation.explanation import remember, without_points
from dsched.simulation.live_group import LiveGroup
from dsched.simulation.offline_cycle import OfflineCycle

GATE = "GenericWorkload"


@dataclass(frozen=True, slots=True)
class PlacementAnswer:
    """What comes of the group in one placement.

    Attributes:
        name: the value of the topology label; ``""`` for all nodes.
        nodes: how many it has.
        fits: whether enough pods of the group fit.
        placed: where pods would go there, in order; where it does not fit, as far as it was looked.
        score: the higher the better; None where it does not fit.
        message: why not enough pods fit; empty where they do.
        rejected: by why, the pods that fit nowhere there, as far as it was looked.
    """

    name: str
    nodes: int
    fits: bool
    placed: Mapping[PodKey, NodeName]
    score: int | None
    message: str
    rejected: Mapping[str, tuple[PodKey, ...]]


@dataclass(frozen=True, slots=True)
class MemberAnswer:
    """What would become of a pod of the group.

    Attributes:
        message: why it would get no node.
        nominated: the node that would be promised to it by preemption.
    """

    pod: PodKey
    node: NodeName | None
    message: str
    nominated: NodeName | None


@dataclass(frozen=True, slots=True)
class GroupExplanation:
    """What would be decided about a group now.

    Attributes:
        group: ``namespace/name``.
        profile: the ``schedulerName``.
        topology: the label of which all its nodes have one value; empty where that is open.
        wanted: so many of its pods have to be placed together.
        gate: the status of the PreEnqueue plugin that keeps the group out of the queue; the rest is as if none did.
        failure: the status of what has no placements, or failed; nothing is told of placements then.
        placements: those that were tried, the best first.
        chosen: of these, the one that is taken; None where none is.
        end: as `dsched.scheduler.decision.GroupEnd`.
        message: as the group's condition would say.
        pods: in the order in which they are decided.
        victims: the pods that would have to go for it.
    """

    group: str
    profile: str
    topology: str
    wanted: int
    gate: Status | None
    failure: Status | None
    placements: tuple[PlacementAnswer, ...]
    chosen: str | None
    end: str
    message: str
    pods: tuple[MemberAnswer, ...]
    victims: tuple[PodKey, ...]


def explain_group(
    configured: SchedulerConfiguration,
    plugins: Registry,
    standing: LiveGroup,
    seed: int = 0,
    read: ReadObjects | None = None,
) -> GroupExplanation:
    """What would be decided about the group at its next attempt. Afterwards its pods may be in ``standing.memory``.

    Args:
        seed: of the choice among equals.
        read: where extenders get whole pods and nodes from.

    Raises:
        NotFound: it has no pods, no profile is for them, or their profile knows no groups.
        PluginError: a profile's plugins cannot be built.
    """
    group, reduced = standing.group, without_points(configured, ("permit",))
    if not standing.pods:
        raise NotFound(f"pod group {group.key} has no pods; they name it in spec.schedulingGroup.podGroupName")
    made = OfflineCycle(reduced, plugins, standing.memory, Selector(seed), ManualClock(), read=read)
    first = standing.pods[0][0]
    name = first.spec.scheduler_name
    if name not in made.frameworks:
        raise NotFound(f"pod {first.key}: {made.unknown(name)}; --config names the file that has its profile")
    if not made.groups.concerns(first):
        raise NotFound(f"pod group {group.key}: profile {name} places no groups; the feature gate {GATE} brings them")
    remember(made, standing.pending)
    gate, candidate = _queued(made, standing)
    trials = made.cycle.trials(candidate)
    decided: Sequence[Decision | GroupDecision] = made.cycle.decide([candidate])
    (decision,) = decided
    assert isinstance(decision, GroupDecision)
    told = () if isinstance(trials, Status) else tuple(map(_placement, _best_first(trials)))
    return GroupExplanation(
        group=group.key,
        profile=name,
        topology=group.topology_key,
        wanted=group.min_count,
        gate=gate,
        failure=trials if isinstance(trials, Status) else None,
        placements=told,
        chosen=None if isinstance(trials, Status) else _chosen(trials, decision, made),
        end=str(decision.end),
        message=decision.message,
        pods=tuple(map(_member, decision.decisions)),
        victims=tuple(sorted(victim.key for victim in decision.victims)),
    )


def _queued(made: OfflineCycle, standing: LiveGroup) -> tuple[Status | None, GroupCandidate]:
    """The group with its pods in order, as it would be popped; and what gates it."""
    pods: list[QueuedPod] = []
    gate: Status | None = None
    for pod, record in standing.pods:
        info, framework = PodInfo(pod), made.frameworks.get(pod.spec.scheduler_name)
        if record is not None:
            pods.append(made.pending.restore(info, record))
        elif framework is not None:
            pods.append(made.pending.add(info, framework))
    for queued in pods:
        queued.group = queued.info.pod.group_key
        made.pending.placed(queued, QueueName.GROUP)
        gate = made.frameworks[queued.info.pod.spec.scheduler_name].run_pre_enqueue(queued.info.pod) or gate
    for queued in pods:
        made.pending.placed(queued, QueueName.INFLIGHT)
    ordered = made.groups.in_order(pods)
    return gate, GroupCandidate(standing.group, tuple(Candidate(each.info, each.attempts + 1) for each in ordered))


def _best_first(trials: Sequence[Trial]) -> list[Trial]:
    return sorted(trials, key=lambda trial: (trial.score is None, -(trial.score or 0)))


def _placement(trial: Trial) -> PlacementAnswer:
    rejected: dict[str, tuple[PodKey, ...]] = {}
    for each in trial.decisions:
        if each.node is None:
            rejected[each.message] = (*rejected.get(each.message, ()), each.candidate.info.key)
    return PlacementAnswer(
        trial.placement.name,
        len(trial.placement.rows),
        trial.lacking is None,
        {each.candidate.info.key: each.node for each in trial.decisions if each.node is not None},
        trial.score,
        "" if trial.lacking is None else trial.lacking.message,
        rejected,
    )


def _chosen(trials: Sequence[Trial], decision: GroupDecision, made: OfflineCycle) -> str | None:
    """The narrowest placement in which all pods are: with several levels, wider ones have them as well."""
    index = made.memory.snapshot.table.index
    rows = {index[each.node] for each in decision.decisions if each.node is not None}
    if not rows:
        return None
    holding = [trial.placement for trial in trials if rows <= set(trial.placement.rows.tolist())]
    narrowest = min(holding, key=lambda placement: len(placement.rows), default=None)
    return None if narrowest is None else narrowest.name


def _member(decision: Decision) -> MemberAnswer:
    message = "" if decision.node is not None else decision.message
    return MemberAnswer(decision.candidate.info.key, decision.node, message, decision.nominated or None)
