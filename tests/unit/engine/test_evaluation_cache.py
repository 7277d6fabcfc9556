"""Evaluations kept per class of pods."""

from collections.abc import Sequence
from typing import Any

import pytest

from dsched.engine import evaluation_cache as classes_module
from dsched.engine.evaluation import Evaluation
from dsched.engine.evaluation_cache import EvaluationCache
from dsched.framework.interface import Scope, Status, unschedulable
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName
from tests.builders import make_node, make_pod, make_snapshot, make_term
from tests.unit.framework.frameworks import Handle, default_framework, framework_of

NODES = [make_node("n1"), make_node("n2")]


class CountingJudge:
    """Judges here, and remembers how many evaluations each call asked for."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def __call__(self, evaluations: Sequence[Evaluation]) -> None:
        self.calls.append(len(evaluations))
        for evaluation in evaluations:
            evaluation.judge_here()


@pytest.fixture
def snapshot() -> Snapshot:
    return make_snapshot(NODES)


@pytest.fixture
def judge() -> CountingJudge:
    return CountingJudge()


def pods(*cpus: str) -> list[PodInfo]:
    return [PodInfo(make_pod(f"shop/p{number}", cpu=cpu)) for number, cpu in enumerate(cpus)]


def test_equal_pods_share_an_evaluation(snapshot: Snapshot, judge: CountingJudge) -> None:
    kept, framework = EvaluationCache(snapshot, judge, lambda classes: True), default_framework(Handle(snapshot))
    first, same, other = pods("1", "1", "2")
    kept.prepare([(framework, pod) for pod in (first, same, other)])
    assert judge.calls == [2]
    assert kept.evaluation(framework, first) is kept.evaluation(framework, same)
    assert kept.evaluation(framework, other) is not kept.evaluation(framework, first)
    kept.prepare([(framework, first)])
    assert judge.calls in ([2], [2, 0])


def test_nothing_is_evaluated_before_its_turn_where_that_does_not_pay(snapshot: Snapshot, judge: CountingJudge) -> None:
    asked: list[list[str]] = []

    def gather_first(classes: Sequence[tuple[str, PodInfo]]) -> bool:
        asked.append([profile for profile, _ in classes])
        return False

    kept, framework = EvaluationCache(snapshot, judge, gather_first), default_framework(Handle(snapshot))
    kept.prepare([(framework, pod) for pod in pods("1", "1", "2")])
    assert judge.calls == []
    assert asked == [["default-scheduler"] * 3], "it would not if each pod were a class"


def test_classes_are_what_pays(snapshot: Snapshot, judge: CountingJudge) -> None:
    """Of one profile more classes pay more, of several they may not, so there the classes are counted at once."""
    asked: list[int] = []

    def gather_first(classes: Sequence[tuple[str, PodInfo]]) -> bool:
        asked.append(len(classes))
        return len(classes) > 2

    framework, other = default_framework(Handle(snapshot)), default_framework(Handle(snapshot))
    other.profile_name = "other"
    kept, several = EvaluationCache(snapshot, judge, gather_first), pods("1", "1", "2")
    assert not kept.prepare([(framework, pod) for pod in several])
    assert asked == [3, 2]
    assert len(kept.prepare([(each, pod) for each in (framework, other) for pod in several])) == 4
    assert asked == [3, 2, 4, 4]


def test_rows_that_changed_wait_for_the_turn_of_their_class(snapshot: Snapshot, judge: CountingJudge) -> None:
    kept, framework = EvaluationCache(snapshot, judge, lambda classes: True), default_framework(Handle(snapshot))
    pod = pods("3")[0]
    before = kept.evaluation(framework, pod)
    asked = list(judge.calls)
    snapshot.table.add_pod(PodInfo(make_pod("shop/big", cpu="2")), NodeName("n1"))
    assert not kept.prepare([(framework, pod)])
    assert before.feasible.tolist() == [True, True]
    assert kept.evaluation(framework, pod) is before
    assert before.feasible.tolist() == [False, True]
    assert judge.calls == asked


def test_a_class_that_cannot_be_kept_up_to_date_does_not_wait(snapshot: Snapshot, judge: CountingJudge) -> None:
    kept, framework = EvaluationCache(snapshot, judge, lambda classes: True), default_framework(Handle(snapshot))
    pod = pods("3")[0]
    before = kept.evaluation(framework, pod)
    snapshot.table.set_node(make_node("n3"))
    (fresh,) = kept.prepare([(framework, pod)])
    assert fresh is not before
    assert fresh.feasible.tolist() == [True, True, True]
    assert kept.evaluation(framework, pod) is fresh


def test_two_profiles_do_not_share(snapshot: Snapshot, judge: CountingJudge) -> None:
    kept, pod = EvaluationCache(snapshot, judge), pods("1")[0]
    one, other = default_framework(), default_framework()
    other.profile_name = "other"
    assert kept.evaluation(one, pod) is not kept.evaluation(other, pod)


def test_what_changed_is_taken_in(snapshot: Snapshot, judge: CountingJudge) -> None:
    kept, framework, pod = EvaluationCache(snapshot, judge), default_framework(), pods("3")[0]
    assert kept.evaluation(framework, pod).feasible.tolist() == [True, True]
    snapshot.table.add_pod(PodInfo(make_pod("shop/big", cpu="2")), NodeName("n1"))
    assert kept.evaluation(framework, pod).feasible.tolist() == [False, True]
    snapshot.table.set_node(make_node("n3"))
    assert kept.evaluation(framework, pod).feasible.tolist() == [False, True, True]


def test_the_longest_unused_is_dropped(
    snapshot: Snapshot, judge: CountingJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classes_module, "KEPT_CELLS", 4)
    monkeypatch.setattr(classes_module, "FEWEST_KEPT", 1)
    kept, framework = EvaluationCache(snapshot, judge), default_framework()
    first, second, third = pods("1", "2", "3")
    kept.evaluation(framework, first)
    kept.evaluation(framework, second)
    kept.evaluation(framework, first)
    kept.evaluation(framework, third)  # 2 classes of 2 nodes are kept: second goes
    asked = len(judge.calls)
    kept.evaluation(framework, first)
    assert len(judge.calls) == asked
    kept.evaluation(framework, second)
    assert len(judge.calls) == asked + 1


def test_a_plugin_that_looks_anywhere_is_asked_for_each_pod(snapshot: Snapshot, judge: CountingJudge) -> None:
    class Fickle:
        name = "Fickle"
        filter_scope = Scope.ANYTHING
        open = True

        def __init__(self, args: Any, handle: Any) -> None:
            pass

        def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
            return None if Fickle.open else unschedulable("closed")

    kept, framework = EvaluationCache(snapshot, judge), framework_of(Fickle)
    first, same = pods("1", "1")
    kept.prepare([(framework, first), (framework, same)])
    assert kept.evaluation(framework, first).feasible.any()
    Fickle.open = False
    assert not kept.evaluation(framework, same).feasible.any()


def test_a_rejected_class_is_not_sent_out(snapshot: Snapshot, judge: CountingJudge) -> None:
    kept, framework = EvaluationCache(snapshot, judge), default_framework()
    pod = PodInfo(make_pod(required=[make_term(fields=["metadata.name In x", "metadata.name In y"])]))
    kept.prepare([(framework, pod)])
    assert sum(judge.calls) == 0
    assert kept.evaluation(framework, pod).rejection is not None


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"key": "shop/other", "uid": "other"}, True),
        ({"status": {"startTime": "2024-01-01T00:00:00Z"}}, True),
        ({"key": "other/web"}, False),
        ({"cpu": "2"}, False),
        ({"labels": {"app": "web"}}, False),
        ({"priority": 5}, False),
        ({"ports": [80]}, False),
        ({"tolerations": ["a"]}, False),
    ],
)
def test_what_makes_a_class(change: dict[str, Any], same: bool) -> None:
    key = change.pop("key", "shop/web")
    one, other = PodInfo(make_pod("shop/web", uid="uid")), PodInfo(make_pod(key, **{"uid": "uid", **change}))
    assert (one.class_key == other.class_key) is same
