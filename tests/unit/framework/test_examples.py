"""Examples of rejected nodes are the first rows whose first rejection it is; with extenders, rows that have it."""

from collections.abc import Sequence
from random import Random

import pytest

from dsched.engine import with_extenders
from dsched.engine.evaluation import evaluate
from dsched.engine.select import Selector
from dsched.framework.extender import EXTENDER, Filtering, Said
from dsched.framework.interface import unschedulable
from dsched.framework.pod_info import PodInfo
from dsched.model.node import Node
from tests.unit.engine.test_with_extenders import Picky
from tests.unit.framework.frameworks import Handle, frameworks
from tests.unit.framework.random_clusters import CONFIGURATION, random_cluster

MOST = 2


@pytest.mark.parametrize("seed", range(15))
def test_examples_are_the_first_rows_of_each_rejection(seed: int) -> None:
    rng = Random(seed)
    cluster = random_cluster(rng, rng.choice([1, 7, 25]), waiting=8, classes=8)
    snapshot = cluster.snapshot()
    by_name = frameworks(CONFIGURATION, Handle(snapshot))
    for pod in cluster.waiting:
        found = evaluate(by_name[pod.spec.scheduler_name], PodInfo(pod), snapshot)
        statuses = [status for status, _ in found.rejections()]
        rows = range(len(snapshot.table))
        expected = {status: [row for row in rows if found.status_of(row) == status][:MOST] for status in statuses}
        assert found.examples(statuses, MOST) == expected
        assert found.examples(statuses[:1], MOST) == {status: expected[status] for status in statuses[:1]}


class Outspoken(Picky):
    """Says why of most of the nodes that it drops."""

    def filter(self, pod: PodInfo, nodes: Sequence[Node]) -> Filtering:
        found = super().filter(pod, nodes)
        said = {name: Said("x", unschedulable("no", "never")) for name in found.left_out if self._rng.random() < 0.8}
        return Filtering(found.kept, said, found.left_out)


@pytest.mark.parametrize("seed", range(15))
def test_examples_where_extenders_have_a_say(seed: int) -> None:
    rng = Random(seed)
    cluster = random_cluster(rng, 12, waiting=6, classes=6)
    snapshot = cluster.snapshot()
    by_name = frameworks(CONFIGURATION, Handle(snapshot))
    told = 0
    for pod in cluster.waiting:
        info = PodInfo(pod)
        evaluation = evaluate(by_name[pod.spec.scheduler_name], info, snapshot)
        found, _ = with_extenders.choose(Outspoken(rng), evaluation, snapshot, Selector(seed), info, 1, 100, None)
        if found is None:
            continue
        counts = dict(found.rejections())
        told += any(status == unschedulable("no", "never").by(EXTENDER) for status in counts)
        for status, rows in found.examples(list(counts), MOST).items():
            assert 0 < len(rows) <= min(MOST, counts[status])
            for row in rows:
                said = found.status_of(row)
                assert said is not None
                assert (said.code, said.reasons) == (status.code, status.reasons)
    assert told or seed % 5, "no extender has said anything: the test tests nothing"
