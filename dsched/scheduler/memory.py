"""A cluster in memory: what the cycle decides on where there is no leader, and where it tries something out."""

from collections.abc import Sequence

from dsched.engine.evaluation import Evaluation
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName, PodUid
from dsched.scheduler.ports import Assumptions


class Memory:
    """The leader's cache without the state in Redis that follows it."""

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        self.snapshot = snapshot or Snapshot()

    def assume(self, pod: PodInfo, node: NodeName) -> None:
        """Count a pod on a node."""
        self.snapshot.table.add_pod(pod, node)

    def forget(self, uid: PodUid, *, released: bool) -> None:
        """The pod no longer counts."""
        self.snapshot.table.remove_pod(uid)


def judge_here(evaluations: Sequence[Evaluation]) -> None:
    """Fill open evaluations in this process."""
    for evaluation in evaluations:
        evaluation.judge_here()


_role: type[Assumptions] = Memory
