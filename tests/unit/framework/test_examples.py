"""Examples of rejected nodes are the first rows whose first rejection it is; with extenders, rows that have it."""

from random import Random

import pytest

from dsched.framework import extended
from dsched.framework.evaluate import evaluate
from dsched.framework.pod_info import PodInfo
from dsched.framework.select import Selector
from tests.unit.framework.frameworks import Handle, frameworks
from tests.unit.framework.random_clusters import CONFIGURATION, random_cluster
from tests.unit.framework.test_extended import Picky

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


@pytest.mark.parametrize("seed", range(15))
def test_examples_where_extenders_have_a_say(seed: int) -> None:
    rng = Random(seed)
    cluster = random_cluster(rng, 12, waiting=6, classes=6)
    snapshot = cluster.snapshot()
    by_name = frameworks(CONFIGURATION, Handle(snapshot))
    for pod in cluster.waiting:
        info = PodInfo(pod)
        evaluation = evaluate(by_name[pod.spec.scheduler_name], info, snapshot)
        found, _ = extended.choose(Picky(rng), evaluation, snapshot, Selector(seed), info, 1, 100, None)
        if found is None:
            continue
        counts = dict(found.rejections())
        for status, rows in found.examples(list(counts), MOST).items():
            assert 0 < len(rows) <= min(MOST, counts[status])
            for row in rows:
                said = found.status_of(row)
                assert said is not None
                assert (said.code, said.reasons) == (status.code, status.reasons)
