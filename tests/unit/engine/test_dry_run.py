"""What sums alone tell is what a trial comes to, and leaves no trace."""

from random import Random

import pytest

from dsched.engine.dry_run import DryRun, rejection_by_sums
from dsched.engine.evaluation import evaluate
from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NodeName
from tests.builders import make_node, make_pod, make_snapshot
from tests.unit.framework.frameworks import Handle, default_framework, frameworks
from tests.unit.framework.random_clusters import CONFIGURATION, random_cluster

BIG = PodInfo(make_pod("shop/big", cpu="3", priority=10))


def compare(seed: int) -> int:
    """Take pods off every node; how often sums told why the pod does not fit even so."""
    rng, told = Random(seed), 0
    cluster = random_cluster(rng, 9, waiting=8, classes=8)
    snapshot = cluster.snapshot()
    by_name = frameworks(CONFIGURATION, Handle(snapshot))
    for waiting in cluster.waiting:
        pod, framework = PodInfo(waiting), by_name[waiting.spec.scheduler_name]
        evaluation = evaluate(framework, pod, snapshot)
        if not evaluation.open:
            continue
        for row in range(len(snapshot.table)):
            gone = [other for other in snapshot.table.pods[row].values() if rng.random() < 0.5]
            unsettled = evaluation.unsettled(row)
            version = snapshot.table.version
            sums = [snapshot.table.requested(name).tolist() for name in snapshot.table.resources]
            found = rejection_by_sums(framework, evaluation.state, pod, snapshot, row, gone, unsettled)
            assert snapshot.table.version == version
            assert sums == [snapshot.table.requested(name).tolist() for name in snapshot.table.resources]
            with DryRun(framework, evaluation.state, pod, snapshot, row, unsettled) as trial:
                for other in gone:
                    trial.remove(other)
                if found is not None:
                    assert trial.status() == found
                    told += 1
    return told


@pytest.mark.parametrize("seed", range(10))
def test_sums_tell_what_a_trial_finds(seed: int) -> None:
    compare(seed)


def test_sums_tell_often() -> None:
    assert sum(compare(seed) for seed in range(100, 115)) > 20


def test_where_the_pod_fits_sums_say_nothing() -> None:
    low = PodInfo(make_pod("shop/low", cpu="2"))
    snapshot = make_snapshot([make_node("n1", cpu="4")])
    snapshot.table.add_pod(low, NodeName("n1"))
    framework = default_framework()
    evaluation = evaluate(framework, BIG, snapshot)
    unsettled = evaluation.unsettled(0)
    assert rejection_by_sums(framework, evaluation.state, BIG, snapshot, 0, [low], unsettled) is None
    assert rejection_by_sums(framework, evaluation.state, BIG, snapshot, 0, [], unsettled) == evaluation.status_of(0)


def test_what_was_promised_takes_a_trial() -> None:
    """Promised pods count as if they were there, which the sums of those that are do not tell."""
    snapshot = make_snapshot([make_node("n1", cpu="2")])
    framework = default_framework()
    evaluation = evaluate(framework, BIG, snapshot)
    snapshot.nominations.set(PodInfo(make_pod("shop/first", cpu="1", priority=20)), NodeName("n1"))
    assert rejection_by_sums(framework, evaluation.state, BIG, snapshot, 0, [], evaluation.unsettled(0)) is None
