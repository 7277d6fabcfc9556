"""Evaluating in shards and on replicas, as evaluators do, without any process."""

from itertools import pairwise

from dsched.framework import delta, wire
from dsched.framework.evaluate import Evaluation
from dsched.framework.judge import join
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model import messages
from dsched.model.messages import ShardResult


def through_the_wire(evaluation: Evaluation, replica: Snapshot, shards: int) -> None:
    """Fill an evaluation as evaluators do: each judges a shard of its replica, the columns travel as messages."""
    framework, pod, rows = evaluation.framework, evaluation.pod, len(replica.table)
    bounds = [rows * number // shards for number in range(shards + 1)]
    columns = []
    for start, stop in pairwise(bounds):
        there = Evaluation(framework, PodInfo(pod.pod), replica)
        classes = [wire.pack(there.judge_shard(slice(start, stop)))]
        answer = ShardResult(request="r", epoch=1, shard=0, evaluator="e", seconds=0, classes=classes)
        columns.append(wire.unpack(messages.decode(messages.encode(answer), ShardResult).classes[0], stop - start))
    evaluation.fill(join(columns))


def replica_of(snapshot: Snapshot) -> Snapshot:
    """A snapshot that has heard of this one through the log."""
    replica = Snapshot()
    for change in delta.decode(delta.encode(delta.whole(snapshot))):
        delta.apply(replica, change)
    return replica
