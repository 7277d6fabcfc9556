"""DefaultPreemption: who has to go, and where the least is lost."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.config import Features
from dsched.engine.diagnosis import diagnose
from dsched.engine.evaluation import Evaluation, evaluate
from dsched.engine.failed_attempt import FailedAttempt
from dsched.framework.interface import Code, PostFilterResult, Status, unschedulable
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot
from dsched.metrics import PREEMPTION_EVALUATION, PREEMPTION_VIOLATIONS
from dsched.model.meta import NodeName
from dsched.plugins.default_preemption import plugin
from dsched.plugins.default_preemption.plugin import (
    ERR_TERMINATING,
    Candidate,
    DefaultPreemption,
    best,
)
from dsched.plugins.default_preemption.victims import ERR_NEVER
from tests.builders import make_node, make_pod
from tests.metrics import count, value
from tests.unit.framework.frameworks import default_framework, framework_of
from tests.versions import V34, V36, V37


def pod(name: str, cpu: str, priority: int = 0, start: str = "", **more: Any) -> PodInfo:
    made = make_pod(f"shop/{name}", cpu=cpu, priority=priority, **more)
    return PodInfo(msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, start_time=start)))


def cluster(**nodes: list[PodInfo]) -> Snapshot:
    """Nodes of 4 CPUs with their pods."""
    snapshot = Snapshot()
    for name, pods in nodes.items():
        snapshot.table.set_node(make_node(name, cpu="4"))
        for each in pods:
            snapshot.table.add_pod(each, NodeName(name))
    return snapshot


def attempted(snapshot: Snapshot, info: PodInfo, framework: Framework) -> FailedAttempt:
    evaluation = evaluate(framework, info, snapshot)
    diagnosis = diagnose(evaluation, len(snapshot.table))
    return FailedAttempt(framework, evaluation.state, info, snapshot, evaluation, diagnosis)


def preempt(snapshot: Snapshot, info: PodInfo, features: Features = V34) -> PostFilterResult:
    attempt = attempted(snapshot, info, default_framework())
    assert isinstance(attempt.evaluation, Evaluation)
    assert not attempt.evaluation.feasible.any()
    return DefaultPreemption(None, None, features).post_filter(attempt)


def names(result: PostFilterResult) -> list[str]:
    return [victim.pod.metadata.name for victim in result.victims]


def test_only_as_many_go_as_have_to() -> None:
    """3 CPUs wanted of 4, taken by 2 + 1 + 1: sparing the most important first keeps c (1), then a (2) no longer fits
    beside 3, then b (1): 1 + 1 + 3 = 5 > 4, so b goes too."""
    snapshot = cluster(n1=[pod("a", "2", 1), pod("b", "1", 1), pod("c", "1", 2)])
    result = preempt(snapshot, pod("new", "3", 10))
    assert result.nominated == "n1"
    assert sorted(names(result)) == ["a", "b"]


def test_of_pods_that_have_not_started_upstreams_clock_decides() -> None:
    """Since v1.37 it is looked at once for each pod, before for each comparison."""

    def gone(features: Features, *pods: PodInfo) -> list[str]:
        return names(preempt(cluster(n1=list(pods)), pod("new", "3", 10), features))

    same = [pod(name, "1") for name in "abcd"]
    assert gone(V37, *same) == ["b", "c", "d"]
    assert gone(V36, *same) == ["c", "b", "a"]
    started = pod("e", "1", start="2026-01-01T00:00:00Z")
    assert gone(V36, *same[:3], started) == ["c", "b", "a"]
    assert gone(V37, *same[:3], started) == ["a", "b", "c"]


def test_of_more_pods_than_are_inserted_there_is_no_rule() -> None:
    many = [pod(f"p{number:02}", "300m") for number in range(13)]
    for features in (V36, V37):
        result = preempt(cluster(n1=many), pod("new", "3", 10), features)
        assert names(result) == [f"p{number:02}" for number in range(3, 13)]


def test_equals_and_betters_are_never_victims() -> None:
    snapshot = cluster(n1=[pod("equal", "3", 10)], n2=[pod("better", "3", 11)])
    result = preempt(snapshot, pod("new", "3", 10))
    assert (result.nominated, result.victims) == ("", ())
    assert result.status.message == (
        "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
    )


def test_what_evictions_cannot_help_is_said() -> None:
    snapshot = cluster(n1=[])
    result = preempt(snapshot, pod("new", "5", 10))
    assert result.status.message == ("preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.")


class Crowded:
    """A filter that rejects nodes with pods."""

    name = "Crowded"

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        return unschedulable("crowded") if node.pods else None


class Unsure:
    """A filter that cannot tell of nodes with this name."""

    name = "Unsure"
    errs: tuple[str, ...] = ()

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        return Status(Code.ERROR, ("cannot tell",)) if node.name in self.errs else None


def test_a_filter_that_cannot_tell_in_a_trial_speaks_of_that_node_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the nodes as they are it is not asked: they are rejected before."""
    monkeypatch.setattr(Unsure, "errs", ("n1",))
    framework = framework_of(Crowded, Unsure)

    def preempting(**nodes: list[PodInfo]) -> PostFilterResult:
        snapshot, info = cluster(**nodes), pod("new", "3", 10)
        evaluation = evaluate(framework, info, snapshot)
        diagnosis = diagnose(evaluation, len(nodes))
        attempt = FailedAttempt(framework, evaluation.state, info, snapshot, evaluation, diagnosis)
        return DefaultPreemption(None, None, V37).post_filter(attempt)

    found = preempting(n1=[pod("a", "2")], n2=[pod("b", "2")])
    assert (found.nominated, names(found)) == ("n2", ["b"])
    alone = preempting(n1=[pod("a", "2")])
    assert (alone.status.code, alone.status.message) == (
        Code.ERROR,
        'preemption: running "Unsure" filter plugin: cannot tell',
    )


def test_a_pod_that_never_preempts() -> None:
    never = make_pod("shop/new", cpu="3", priority=10)
    spec = msgspec.structs.replace(never.spec, preemption_policy="Never")
    result = preempt(cluster(n1=[pod("low", "3")]), PodInfo(msgspec.structs.replace(never, spec=spec)))
    assert result.status.message == f"preemption: {ERR_NEVER}"
    assert result.nominated is None


def test_victims_that_are_going_are_waited_for() -> None:
    going = make_pod("shop/low", cpu="3").metadata
    leaving = msgspec.structs.replace(going, deletion_timestamp="2026-01-01T00:00:00Z")
    low = make_pod("shop/low", cpu="3")
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    status = msgspec.convert({"conditions": [condition]}, type(low.status))
    low = msgspec.structs.replace(low, metadata=leaving, status=status)
    snapshot, new = cluster(n1=[PodInfo(low)]), pod("new", "3", 10)
    snapshot.nominations.set(new, NodeName("n1"))
    assert preempt(snapshot, new).status.message == f"preemption: {ERR_TERMINATING}"


BUDGET = {
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"selector": {"matchLabels": {"app": "web"}}},
    "status": {"disruptionsAllowed": 0},
}


def test_budgets_are_violated_last() -> None:
    """1 CPU more is needed and either pod would do: the one without a budget goes."""
    guarded, plain = pod("guarded", "2", 1, labels={"app": "web"}), pod("plain", "2", 1)
    snapshot = cluster(n1=[plain, guarded])
    snapshot.put("PodDisruptionBudget", "shop/web", BUDGET)
    assert names(preempt(snapshot, pod("new", "2", 10))) == ["plain"]


def test_what_it_takes_and_the_budgets_it_violates_are_counted() -> None:
    snapshot = cluster(n1=[pod("a", "2", 1, labels={"app": "web"}), pod("b", "2", 1, labels={"app": "web"})])
    snapshot.put("PodDisruptionBudget", "shop/web", BUDGET)
    ends = [PREEMPTION_EVALUATION.labels("pod", result) for result in ("Success", "Unschedulable", "Error")]
    violated = PREEMPTION_VIOLATIONS.labels("pod")
    before = [*map(count, ends), value(violated)]

    def counted() -> list[float]:
        return [now - then for now, then in zip([*map(count, ends), value(violated)], before, strict=True)]

    preempt(snapshot, pod("new", "3", 10))
    assert counted() == [1, 0, 0, 2]
    preempt(snapshot, pod("equal", "3", 1))
    assert counted() == [1, 1, 0, 2]
    with pytest.raises(AttributeError):  # nothing of an attempt: the plugin fails
        DefaultPreemption(None, None, V37).post_filter(None)  # type: ignore[arg-type]
    assert counted() == [1, 1, 1, 2]


class TestTheChoice:
    """The six criteria; each case ties in all earlier ones."""

    def only(self, *candidates: Candidate) -> list[str]:
        return [candidate.node for candidate in best(candidates)]

    def candidate(self, node: str, *victims: PodInfo, violations: int = 0) -> Candidate:
        return Candidate(NodeName(node), tuple(victims), violations)

    def test_fewest_violations(self) -> None:
        a = self.candidate("a", pod("x", "1", 9))
        b = self.candidate("b", pod("y", "1", 1), violations=1)
        assert self.only(a, b) == ["a"]

    def test_lowest_highest_priority(self) -> None:
        a = self.candidate("a", pod("x", "1", 5))
        b = self.candidate("b", pod("y", "1", 4), pod("z", "1", 4))
        assert self.only(a, b) == ["b"]

    def test_smallest_sum_of_priorities(self) -> None:
        """Highest 5 on both; 5 + 4 against 5 + 3."""
        a = self.candidate("a", pod("w", "1", 5), pod("x", "1", 4))
        b = self.candidate("b", pod("y", "1", 5), pod("z", "1", 3))
        assert self.only(a, b) == ["b"]

    def test_negative_priorities_are_shifted(self) -> None:
        """Unshifted, -1 + -1 would be the smaller sum; shifted, one victim is."""
        a = self.candidate("a", pod("w", "1", -1), pod("x", "1", -1))
        b = self.candidate("b", pod("y", "1", -1))
        assert self.only(a, b) == ["b"]

    def test_latest_start_of_the_longest_running(self) -> None:
        a = self.candidate("a", pod("x", "1", 5, start="2026-01-01T00:00:00Z"))
        b = self.candidate("b", pod("y", "1", 5, start="2026-01-02T00:00:00Z"))
        assert self.only(a, b) == ["b"]

    def test_only_victims_of_highest_priority_count_for_the_start(self) -> None:
        old, young = "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z"
        a = self.candidate("a", pod("w", "1", 5, start=young), pod("x", "1", 1, start=old))
        b = self.candidate("b", pod("y", "1", 5, start="2026-01-02T00:00:00Z"), pod("z", "1", 1, start=young))
        assert self.only(a, b) == ["a"]

    def test_chance_decides_among_the_rest(self) -> None:
        assert self.only(self.candidate("a", pod("x", "1", 5)), self.candidate("b", pod("y", "1", 5))) == ["a", "b"]


CHANGES = st.lists(
    st.tuples(st.sampled_from(["add", "add", "go", "promise", "budget", "node"]), st.integers(0, 3)), max_size=12
)


@settings(max_examples=60)
@given(CHANGES)
def test_what_is_kept_is_what_is_found_anew(changes: list[tuple[str, int]]) -> None:
    """A plugin that has looked at the nodes before finds the same candidates as one that has not."""
    snapshot = cluster(**{f"n{number}": [pod(f"old{number}", "3", number % 3)] for number in range(4)})
    kept, framework = DefaultPreemption(None, None), default_framework()
    for number, (change, place) in enumerate(changes):
        wanted = pod("new", "2", 10, labels={"signature": str(number % 2)})
        table, node = snapshot.table, NodeName(f"n{place}")
        match change:
            case "add":
                table.add_pod(pod(f"more{number}", "1", number % 12, labels={"app": "web"}), node)
            case "go" if table.pods[place]:
                table.remove_pod(next(iter(table.pods[place])))
            case "promise":
                snapshot.nominations.set(pod(f"promised{number}", "1", number % 12), node)
            case "budget":
                spec = {"selector": {"matchLabels": {"app": "web"}}}
                budget = {"metadata": {"namespace": "shop"}, "spec": spec, "status": {"disruptionsAllowed": number % 2}}
                snapshot.put("PodDisruptionBudget", "shop/web", budget)
            case "node":
                table.set_node(make_node(f"n{place}", cpu=str(3 + number % 3)))
        attempt = attempted(snapshot, wanted, framework)
        position, version = table.position, table.version
        assert kept.candidates(attempt) == DefaultPreemption(None, None).candidates(attempt)
        assert (table.position, table.version) == (position, version), "trying leaves no trace"


def test_what_came_of_trying_a_pod_counts_for_pods_that_differ_in_labels_at_which_nobody_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    snapshot = cluster(**{f"n{number}": [pod(f"old{number}", "3")] for number in range(4)})
    tried: list[int] = []
    monkeypatch.setattr(plugin, "victims_on", lambda _, row, *__, **___: tried.append(row) or unschedulable("no"))
    preemption, framework = DefaultPreemption(None, None), default_framework()
    for number in range(3):
        wanted = pod(f"new{number}", "2", 10, labels={"signature": str(number)})
        preemption.candidates(attempted(snapshot, wanted, framework))
    assert sorted(tried) == [0, 1, 2, 3]


def test_a_preemptor_need_not_respect_its_own_promise() -> None:
    """What was found for another pod of its class, which had to respect it, does not count for that node."""
    snapshot = cluster(n1=[pod("low", "3", 1)])
    plugin, framework = DefaultPreemption(None, None), default_framework()
    first, second = pod("first", "3", 10), pod("second", "3", 10)
    snapshot.nominations.set(first, NodeName("n1"))
    found = {}
    for each in (second, first):
        evaluation = evaluate(framework, each, snapshot)
        attempt = FailedAttempt(framework, evaluation.state, each, snapshot, evaluation, diagnose(evaluation, 1))
        found[each.key] = plugin.candidates(attempt)[0]
    assert found["shop/second"] == []
    assert [victim.key for victim in found["shop/first"][0].victims] == ["shop/low"]


def test_since_1_37_the_node_that_was_found_is_told() -> None:
    """Victims that are leaving anyway count, though they are not deleted again."""
    leaving = pod("leaving", "2", 1)
    meta = msgspec.structs.replace(leaving.pod.metadata, deletion_timestamp="2024-01-01T00:00:00Z")
    gone = PodInfo(msgspec.structs.replace(leaving.pod, metadata=meta))
    words = []
    for features in (V36, V37):
        snapshot = cluster(n1=[gone, pod("a", "2", 1)])
        result = preempt(snapshot, pod("new", "4", 10), features)
        assert names(result) == ["a"]
        words.append(result.status.message)
    assert words == ["", "preemption: found a potential placement for pod on node n1, preempting 2 victims"]
