"""Evaluating in shards and on replicas, as evaluators do, without any process."""

from collections.abc import Collection, Sequence

from dsched.engine import replica_delta, wire
from dsched.engine.evaluation import Evaluation
from dsched.engine.judge import closed_by, join, judge_apart
from dsched.engine.partitions import PARTS, Partitions
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot
from dsched.model import messages
from dsched.model.messages import ShardResult


def through_the_wire(
    evaluation: Evaluation, snapshot: Snapshot, replicas: Sequence[Snapshot], there: Sequence[Framework] = ()
) -> None:
    """Fill an evaluation as evaluators do: each judges its shard on its replica, the columns travel as messages.

    Args:
        snapshot: the leader's.
        replicas: of one evaluator each, from `replicas_of`.
        there: the evaluators' frameworks, where they are others.
    """
    framework, pod, beyond = evaluation.framework, evaluation.pod, evaluation.judge_beyond()
    closed, found = closed_by(framework, beyond), []
    frameworks = there or [framework] * len(replicas)
    for parts, replica, own_framework in zip(shares(len(replicas)), replicas, frameworks, strict=True):
        rows, own = Partitions().rows(snapshot.table, parts), Partitions().rows(replica.table, parts)
        assert [replica.table.names[row] for row in own] == [snapshot.table.names[row] for row in rows]
        sent = wire.unpack_closed(wire.pack_closed(closed[rows]), len(rows))
        classes = [wire.pack(judge_apart(own_framework, PodInfo(pod.pod), replica, own, sent))]
        answer = ShardResult(request="r", epoch=1, shard=0, evaluator="e", seconds=0, classes=classes)
        columns = wire.unpack(messages.decode(messages.encode(answer), ShardResult).classes[0], len(rows))
        found.append((rows, columns))
    evaluation.fill(join(framework, beyond, found))


def shares(count: int) -> list[range]:
    """The parts of the table that each of so many evaluators holds."""
    return [range(number, PARTS, count) for number in range(count)]


def replicas_of(snapshot: Snapshot, count: int, frameworks: Collection[Framework]) -> list[Snapshot]:
    """What so many evaluators with these frameworks hold: each its shard, or all where a plugin needs it."""
    suffice = all(framework.shards_suffice for framework in frameworks)
    return [replica_of(snapshot, parts if suffice else None) for parts in shares(count)]


def replica_of(snapshot: Snapshot, parts: Collection[int] | None = None) -> Snapshot:
    """A snapshot that has heard of this one, or of some parts of it, through the log."""
    replica = Snapshot()
    for change in replica_delta.decode(replica_delta.encode(replica_delta.whole(snapshot)), parts):
        replica_delta.apply(replica, change)
    return replica
