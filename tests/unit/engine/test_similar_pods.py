"""What is taken over from a pod that is much alike is what evaluating anew says."""

from random import Random

import numpy as np
import pytest

from dsched.engine.evaluation import Evaluation, evaluate
from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NodeName
from tests.builders import make_node, make_pod, make_snapshot
from tests.unit.framework.answers import said
from tests.unit.framework.frameworks import Handle, default_framework, frameworks
from tests.unit.framework.random_clusters import CONFIGURATION, random_change, random_cluster
from tests.unit.framework.shards import replicas_of, through_the_wire


def one_after_the_other(seed: int) -> int:
    """Evaluate pods, each like the one before it, while the table changes, and compare; how many took over things."""
    rng = Random(seed)
    cluster = random_cluster(rng, rng.choice([1, 5, 20]), waiting=12, classes=12)
    snapshot = cluster.snapshot()
    by_name = frameworks(CONFIGURATION, Handle(snapshot))
    latest: dict[str, Evaluation] = {}
    resembling = 0
    for number in range(40):
        pod = PodInfo(rng.choice(cluster.waiting))
        framework = by_name[pod.pod.spec.scheduler_name]
        evaluation = Evaluation(framework, pod, snapshot)
        before = latest.get(framework.profile_name)
        if before is not None and evaluation.open:
            evaluation.resemble(before)
        resembling += evaluation.resembling
        if evaluation.open:
            evaluation.judge_here()
        assert said(evaluation, snapshot.table) == said(evaluate(framework, pod, snapshot), snapshot.table), number
        if rng.random() < 0.7:
            random_change(rng, snapshot.table, number)
            if evaluation.refresh():
                assert said(evaluation, snapshot.table) == said(evaluate(framework, pod, snapshot), snapshot.table)
        if rng.random() < 0.5:
            random_change(rng, snapshot.table, 100 + number)
        latest[framework.profile_name] = evaluation
    return resembling


@pytest.mark.parametrize("seed", range(60))
def test_alike_is_equal(seed: int) -> None:
    one_after_the_other(seed)


def test_much_is_taken_over() -> None:
    """Nodes change in a good part of the changes, and then nothing can be."""
    assert sum(one_after_the_other(seed) for seed in range(200, 205)) > 20


def test_plugins_that_see_no_difference_are_not_asked_about_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = make_snapshot([make_node(f"n{number}", cpu=4) for number in range(8)])
    framework = default_framework(snapshot)
    first = evaluate(framework, PodInfo(make_pod("shop/first", cpu=1, labels={"of": "first"})), snapshot)
    snapshot.table.add_pod(PodInfo(make_pod("shop/other", cpu=1)), NodeName("n3"))
    second = Evaluation(framework, PodInfo(make_pod("shop/second", cpu=1, labels={"of": "second"})), snapshot)
    second.resemble(first)
    fit = framework.plugin("NodeResourcesFit")
    assert fit is not None
    asked: list[list[int]] = []
    filter_table = type(fit).filter_table

    def asking(self, state, pod, table, rows):
        asked.append(np.arange(len(table))[rows].tolist())
        return filter_table(self, state, pod, table, rows)

    runners = [runner for runner in framework.filters if runner.name == "NodeResourcesFit"]
    monkeypatch.setattr(type(fit), "filter_table", asking)
    assert runners[0].table_form is not None
    object.__setattr__(runners[0], "table_form", fit.filter_table)
    second.judge_here()
    assert asked == [[3]]


def test_nothing_is_taken_over_from_before_a_node_changed() -> None:
    snapshot = make_snapshot([make_node("n1", cpu=4)])
    framework = default_framework(snapshot)
    first = evaluate(framework, PodInfo(make_pod("shop/first", cpu=1)), snapshot)
    snapshot.table.set_node(make_node("n1", cpu=2))
    second = Evaluation(framework, PodInfo(make_pod("shop/second", cpu=1, labels={"of": "second"})), snapshot)
    second.resemble(first)
    assert not second.resembling


def test_scores_that_evaluators_gave_are_not_those_of_another_time() -> None:
    """One node fits and is not scored; when another one does, both are scored as they are then."""
    snapshot = make_snapshot([make_node("n1", cpu=4), make_node("n2", cpu=2)])
    full = PodInfo(make_pod("shop/full", cpu=2, node="n2"))
    snapshot.table.add_pod(full, NodeName("n2"))
    framework = default_framework(snapshot)
    pod = PodInfo(make_pod("shop/pod", cpu=1))
    kept = Evaluation(framework, pod, snapshot, shared=True)
    through_the_wire(kept, snapshot, replicas_of(snapshot, 1, [framework]))
    assert kept.only_row == 0
    snapshot.table.add_pod(PodInfo(make_pod("shop/more", cpu=2)), NodeName("n1"))
    assert kept.refresh()
    snapshot.table.remove_pod(full.uid)
    assert kept.refresh()
    assert said(kept, snapshot.table) == said(evaluate(framework, pod, snapshot), snapshot.table)
