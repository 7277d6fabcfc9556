"""Promised nodes: who has to respect them, and what a trial leaves behind."""

import pytest

from dsched.engine.diagnosis import diagnose
from dsched.engine.dry_run import DryRun, filter_beside_nominated
from dsched.engine.evaluation import evaluate
from dsched.engine.evaluation_cache import EvaluationCache
from dsched.engine.failed_attempt import FailedAttempt
from dsched.framework.interface import Code
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName
from dsched.model.pod import Pod
from tests.builders import make_node, make_pod
from tests.unit.framework.frameworks import default_framework

N1 = NodeName("n1")


def pod(name: str, cpu: str, priority: int = 0) -> PodInfo:
    made: Pod = make_pod(name, cpu=cpu, priority=priority)
    return PodInfo(made)


def cluster(*on_node: PodInfo) -> Snapshot:
    """One node of 4 CPUs with pods on it."""
    snapshot = Snapshot()
    snapshot.table.set_node(make_node("n1", cpu="4"))
    for each in on_node:
        snapshot.table.add_pod(each, N1)
    return snapshot


def fits(snapshot: Snapshot, info: PodInfo) -> bool:
    return bool(evaluate(default_framework(), info, snapshot).feasible[0])


def test_room_promised_to_equals_and_betters_is_taken() -> None:
    """4 CPUs, 3 promised: 2 more do not fit beside them, 1 does."""
    snapshot = cluster()
    snapshot.nominations.set(pod("shop/promised", "3", priority=5), N1)
    assert not fits(snapshot, pod("shop/equal", "2", priority=5))
    assert not fits(snapshot, pod("shop/lower", "2", priority=1))
    assert fits(snapshot, pod("shop/small", "1", priority=1))


def test_a_pod_of_higher_priority_need_not_respect_a_promise() -> None:
    snapshot = cluster()
    snapshot.nominations.set(pod("shop/promised", "3", priority=5), N1)
    assert fits(snapshot, pod("shop/higher", "2", priority=6))


def test_a_pod_does_not_stand_in_its_own_way() -> None:
    snapshot = cluster()
    promised = pod("shop/promised", "3", priority=5)
    snapshot.nominations.set(promised, N1)
    assert fits(snapshot, promised)


def test_a_promise_ends_and_its_room_is_free() -> None:
    snapshot = cluster()
    promised, waiting = pod("shop/promised", "3", priority=5), pod("shop/equal", "2", priority=5)
    snapshot.nominations.set(promised, N1)
    evaluation = evaluate(default_framework(), waiting, snapshot)
    snapshot.nominations.drop(promised.uid)
    assert evaluation.refresh()
    assert evaluation.feasible.tolist() == [True]
    assert fits(snapshot, waiting)
    snapshot.nominations.set(promised, N1)
    assert evaluation.refresh()
    assert evaluation.feasible.tolist() == [False]


def test_a_promise_to_the_pod_that_was_evaluated_counts_for_the_others_of_its_class() -> None:
    snapshot = cluster()
    first, second = pod("shop/first", "3", priority=5), pod("shop/second", "3", priority=5)
    classes = EvaluationCache(snapshot, lambda found: [each.judge_here() for each in found] and None)
    framework = default_framework()
    assert classes.evaluation(framework, first, own=False).feasible.tolist() == [True]
    snapshot.nominations.set(first, N1)
    assert classes.evaluation(framework, second, own=False).feasible.tolist() == [False]
    assert classes.evaluation(framework, first, own=True).feasible.tolist() == [True]


def test_promises_to_pods_that_are_decided_together_hold_none_of_them_back() -> None:
    """Source: backend/queue/scheduling_queue.go ``nominatedPodToInfo``."""
    snapshot = cluster()
    first, second, other = pod("shop/first", "3"), pod("shop/second", "3"), pod("shop/other", "3")
    snapshot.nominations.set(first, N1)
    classes = EvaluationCache(snapshot, lambda found: [each.judge_here() for each in found] and None)
    framework = default_framework()
    assert classes.evaluation(framework, second).feasible.tolist() == [False]
    with snapshot.nominations.silent_about({first.uid, second.uid}):
        assert classes.evaluation(framework, second).feasible.tolist() == [True]
        assert snapshot.nominations.node_of(first.uid) == N1
    assert classes.evaluation(framework, second).feasible.tolist() == [False]
    with snapshot.nominations.silent_about({second.uid}):
        assert classes.evaluation(framework, other).feasible.tolist() == [False]


@pytest.mark.parametrize(("priority", "fits"), [(1, True), (0, False), (-5, False)])
def test_of_pods_that_are_decided_together_a_name_is_left_that_counts_as_a_pod_without_priority(
    priority: int, fits: bool
) -> None:
    snapshot = Snapshot()
    snapshot.table.set_node(make_node("n1", cpu="4", pods="1"))
    first, second = pod("shop/first", "3", priority), pod("shop/second", "3", priority)
    snapshot.nominations.set(first, N1)
    classes = EvaluationCache(snapshot, lambda found: [each.judge_here() for each in found] and None)
    with snapshot.nominations.silent_about({first.uid, second.uid}):
        found = classes.evaluation(default_framework(), second)
    assert found.feasible.tolist() == [fits]
    if not fits:
        assert diagnose(found, 1).message == "0/1 nodes are available: 1 Too many pods."


def test_what_a_pod_was_promised_that_left_the_queue_holds_nobody_back() -> None:
    snapshot = cluster()
    first, second = pod("shop/first", "3"), pod("shop/second", "3")
    snapshot.nominations.pass_over(first.uid)
    snapshot.nominations.set(first, N1)
    classes = EvaluationCache(snapshot, lambda found: [each.judge_here() for each in found] and None)
    framework = default_framework()
    assert classes.evaluation(framework, second).feasible.tolist() == [False]
    snapshot.nominations.pass_over(first.uid)
    assert classes.evaluation(framework, second).feasible.tolist() == [True]
    assert snapshot.nominations.node_of(first.uid) == N1
    snapshot.nominations.set(first, N1)
    assert classes.evaluation(framework, second).feasible.tolist() == [False], "it is in the queue again"


def test_nominations_are_forgotten_in_order() -> None:
    nominations = cluster().nominations
    start = nominations.version
    assert nominations.changed_since(start) == set()
    for number in range(3000):
        nominations.set(pod(f"shop/p{number}", "1"), NodeName(f"n{number}"))
    assert nominations.changed_since(start) is None
    assert nominations.changed_since(nominations.version - 2) == {"n2998", "n2999"}


def test_a_trial_leaves_the_node_as_it_was() -> None:
    first, second, third = pod("shop/a", "1"), pod("shop/b", "1"), pod("shop/c", "1")
    snapshot = cluster(first, second, third)
    table = snapshot.table
    before = table.info(0).requested
    evaluation = evaluate(default_framework(), pod("shop/new", "2"), snapshot)
    with DryRun(default_framework(), evaluation.state, evaluation.pod, snapshot, 0) as trial:
        trial.remove(first)
        trial.add(pod("shop/other", "1"))
        trial.remove(third)
        assert trial.status() is None
        assert trial.filter().passed.tolist() == [True]
    assert [each.key for each in table.info(0).pods] == ["shop/a", "shop/b", "shop/c"]
    assert table.info(0).requested == before


def test_rejections_by_code() -> None:
    """A cordoned node cannot be helped by evictions, a full one can."""
    snapshot = cluster(pod("shop/big", "4"))
    snapshot.table.set_node(make_node("n2", cpu="4", unschedulable=True))
    framework, info = default_framework(), pod("shop/new", "2")
    evaluation = evaluate(framework, info, snapshot)
    attempt = FailedAttempt(framework, evaluation.state, info, snapshot, evaluation, diagnose(evaluation, 2))
    assert attempt.rejected_with(Code.UNSCHEDULABLE).tolist() == [0]
    assert attempt.rejected_with(Code.UNSCHEDULABLE_AND_UNRESOLVABLE).tolist() == [1]


@pytest.mark.parametrize(
    ("promised", "on_node"), [(("1",), ()), (("1", "2"), ()), (("1", "2", "1"), ()), (("3",), ("3",))]
)
def test_by_sums_of_requests_promised_pods_come_to_what_a_trial_comes_to(
    promised: tuple[str, ...], on_node: tuple[str, ...]
) -> None:
    """A promised pod that is on the node already takes its room once."""
    others = [pod(f"shop/promised{number}", cpu) for number, cpu in enumerate(promised)]
    snapshot, framework, info = cluster(*others[: len(on_node)]), default_framework(), pod("shop/new", "1")
    for other in others:
        snapshot.nominations.set(other, N1)
    evaluation = evaluate(framework, info, snapshot)
    table, before = snapshot.table, snapshot.table.info(0).requested
    asked = (framework, evaluation.state, info, snapshot, 0, info.uid)
    by_sums = filter_beside_nominated(*asked, evaluation.unsettled(0))
    assert by_sums == filter_beside_nominated(*asked, None)
    assert bool(by_sums) is (sum(map(int, promised)) > 3)
    assert table.info(0).requested == before and list(table.pods[0].values()) == others[: len(on_node)]
