"""An explanation of a pod group as JSON, for ``dsched explain podgroup -o json``. No I/O.

The form is promised as that of pods is, see `dsched.simulation.explanation_json`.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from dsched.model.meta import NodeName, PodKey
from dsched.scheduler.decision import GroupEnd
from dsched.simulation.explanation_json import StatusIs, status_or_null
from dsched.simulation.group_explanation import GroupExplanation, PlacementAnswer
from dsched.simulation.live_group import LiveGroup

VERSION: Literal[1] = 1
"""Of the form."""

EndName = Annotated[str, msgspec.Meta(extra_json_schema={"enum": [str(end) for end in GroupEnd]})]
"""What would come of the attempt."""


class RejectedIs(msgspec.Struct, frozen=True):
    """Pods that fit nowhere in a placement.

    Attributes:
        message: why, in kube-scheduler's words.
        pods: as `namespace/name`.
    """

    message: str
    pods: tuple[PodKey, ...]


class PlacementIs(msgspec.Struct, frozen=True):
    """Nodes among which all pods of the group would have to be.

    Attributes:
        name: the value of the topology label; empty for all nodes.
        nodes: how many.
        fits: whether enough pods of the group fit.
        score: the higher the better. `null` where the group does not fit.
        message: why not enough pods fit. `null` where they do.
        placed: the node of each pod that fits; where the group does not fit, as far as it was looked.
        rejected: pods that fit nowhere there, by why; as far as it was looked.
    """

    name: str
    nodes: int
    fits: bool
    score: int | None
    message: str | None
    placed: Mapping[PodKey, NodeName]
    rejected: tuple[RejectedIs, ...]


class MemberIs(msgspec.Struct, frozen=True):
    """What would become of a pod of the group.

    Attributes:
        pod: as `namespace/name`.
        node: the node that it would get. `null` for none.
        message: the message that its condition would get. `null` where it gets a node.
        nominated: the node that would be promised to it, where evictions make room.
    """

    pod: PodKey
    node: NodeName | None
    message: str | None
    nominated: NodeName | None


class GroupExplanationIs(msgspec.Struct, frozen=True):
    """What the leader would decide now about a pod group.

    Attributes:
        version: of this form.
        group: as `namespace/name`.
        profile: the `schedulerName` of its pods.
        topology: the label of which all its nodes have to have one value. `null` where that is open.
        min_count: so many of its pods have to be placed together.
        placed: the node of each of its pods that has one.
        moved: whether no pod of it waits, so that those in `placed` are evaluated as if they had no nodes; else they
            stay where they are and count.
        gated: the status of the PreEnqueue plugin that keeps the group out of the queue; the rest is as if none did.
        failure: the status of a plugin that has no placements, or failed. None was tried then.
        placements: those that were tried, the best first.
        chosen: the name of the one that the group would get. `null` where it gets none.
        end: what would come of the attempt.
        message: the message that the group's condition would get. `null` where it is placed.
        pods: those that wait, in the order in which they are decided.
        victims: the pods that would have to go for the group, as `namespace/name`.
    """

    version: Literal[1]
    group: str
    profile: str
    topology: str | None
    min_count: int
    placed: Mapping[PodKey, NodeName]
    moved: bool
    gated: StatusIs | None
    failure: StatusIs | None
    placements: tuple[PlacementIs, ...]
    chosen: str | None
    end: EndName
    message: str | None
    pods: tuple[MemberIs, ...]
    victims: tuple[PodKey, ...]


def encoded(explained: GroupExplanation, standing: LiveGroup) -> bytes:
    """A `GroupExplanationIs` as JSON."""
    return msgspec.json.encode(
        GroupExplanationIs(
            version=VERSION,
            group=explained.group,
            profile=explained.profile,
            topology=explained.topology or None,
            min_count=explained.wanted,
            placed=standing.placed,
            moved=standing.moved,
            gated=status_or_null(explained.gate),
            failure=status_or_null(explained.failure),
            placements=tuple(map(_placement, explained.placements)),
            chosen=explained.chosen,
            end=explained.end,
            message=explained.message or None,
            pods=tuple(MemberIs(each.pod, each.node, each.message or None, each.nominated) for each in explained.pods),
            victims=explained.victims,
        )
    )


def _placement(answer: PlacementAnswer) -> PlacementIs:
    rejected = tuple(RejectedIs(message, pods) for message, pods in answer.rejected.items())
    return PlacementIs(
        answer.name, answer.nodes, answer.fits, answer.score, answer.message or None, answer.placed, rejected
    )
