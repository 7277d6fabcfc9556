"""What extenders make of an evaluation, with extenders that are no webhooks."""

from collections.abc import Iterator, Mapping, Sequence
from random import Random

import numpy as np
import pytest

from dsched.engine import with_extenders
from dsched.engine.evaluation import Evaluation, evaluate
from dsched.engine.select import Selector
from dsched.framework.extender import AnsweredNode, BindFailure, Extending, Filtering, Scoring, Victims
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName
from dsched.model.node import Node
from tests.unit.framework.frameworks import Handle, frameworks
from tests.unit.framework.random_clusters import CONFIGURATION, random_cluster


class Indifferent:
    """Lets everything through and scores nothing; notes the nodes it was asked about."""

    bind_timeout_s = 0.0

    def __init__(self) -> None:
        self.asked: list[str] = []

    def concerned(self, pod: PodInfo) -> bool:
        return True

    def filter(self, pod: PodInfo, nodes: Sequence[Node]) -> Filtering:
        self.asked += [node.name for node in nodes]
        return Filtering(tuple(node.name for node in nodes), {}, {})

    def prioritize(
        self, pod: PodInfo, nodes: Sequence[Node], answered: Mapping[NodeName, AnsweredNode]
    ) -> Sequence[Scoring]:
        return [Scoring("x", 7, {node.name: 0 for node in nodes})]

    def preempt(
        self, pod: PodInfo, candidates: Mapping[NodeName, Victims], snapshot: Snapshot
    ) -> Mapping[NodeName, Victims]:
        return candidates

    def binds(self, pod: PodInfo) -> bool:
        return False

    def bind(self, pods: Sequence[tuple[PodInfo, NodeName]]) -> list[BindFailure | None]:
        return []

    def ignores_failure_to_bind(self, pod: PodInfo) -> bool:
        return False


_role: type[Extending] = Indifferent


class Picky(Indifferent):
    """Drops nodes by chance."""

    def __init__(self, rng: Random) -> None:
        super().__init__()
        self._rng = rng

    def filter(self, pod: PodInfo, nodes: Sequence[Node]) -> Filtering:
        kept = [node.name for node in nodes if self._rng.random() < 0.6]
        return Filtering(tuple(kept), {}, {node.name: "x" for node in nodes if node.name not in kept})


def evaluations(seed: int) -> Iterator[tuple[Snapshot, PodInfo, Evaluation]]:
    """Some pods on a random cluster."""
    rng = Random(seed)
    cluster = random_cluster(rng, nodes=12, waiting=6)
    snapshot = cluster.snapshot()
    by_name = frameworks(CONFIGURATION, Handle(snapshot))
    for waiting in cluster.waiting:
        pod = PodInfo(waiting)
        yield snapshot, pod, evaluate(by_name[waiting.spec.scheduler_name], pod, snapshot)


@pytest.mark.parametrize("seed", range(20))
def test_extenders_without_an_opinion_change_nothing(seed: int) -> None:
    for snapshot, pod, evaluation in evaluations(seed):
        selector = Selector(seed)
        plain = selector.choose(evaluation, snapshot.table, pod.uid, 1, 100)
        indifferent = Indifferent()
        found, choice = with_extenders.choose(indifferent, evaluation, snapshot, selector, pod, 1, 100, None)
        if plain is None:
            assert (found, choice, indifferent.asked) == (None, None, [])
            continue
        assert found is not None
        assert choice is not None
        assert (choice.row, choice.best.tolist()) == (plain.row, plain.best.tolist())
        assert found.feasible.tolist() == evaluation.feasible.tolist()
        assert found.totals.tolist() == evaluation.totals.tolist()
        assert found.rejections() == evaluation.rejections()


@pytest.mark.parametrize("seed", range(20))
def test_what_is_left_is_ranked_as_if_there_were_no_others(seed: int) -> None:
    for snapshot, pod, evaluation in evaluations(seed):
        found, choice = with_extenders.choose(
            Picky(Random(seed)), evaluation, snapshot, Selector(seed), pod, 1, 100, None
        )
        if found is None or not isinstance(evaluation.rows, slice):
            continue
        if choice is None:
            assert not len(found.kept)
            assert sum(count for _, count in found.rejections()) == len(snapshot.table)
            continue
        if len(found.kept) > 1:
            assert choice.best.tolist() == evaluation.best_among(found.kept).tolist()
        assert set(found.kept.tolist()) == set(np.flatnonzero(found.feasible).tolist())
        assert all(found.status_of(int(row)) is not None for row in np.flatnonzero(~found.feasible))
