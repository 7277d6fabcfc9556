"""Searches for devices that would hold up all other pods, done elsewhere."""

from collections.abc import Sequence
from typing import Any

import pytest

from dsched.clock import ManualClock
from dsched.engine.evaluation import Evaluation
from dsched.engine.evaluation_cache import EvaluationCache
from dsched.framework.interface import Code
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName
from dsched.plugins.dynamic_resources import device_search
from dsched.plugins.dynamic_resources.reserved import charges_of
from tests.builders import make_node, make_pod
from tests.devices import asking, make_claim, make_class, make_device, make_slice, result
from tests.unit.plugins.dynamic_resources.judging import (
    InTurn,
    claiming,
    cluster,
    framework,
    judged,
    plugin,
    put,
    reasons,
)

Json = dict[str, Any]

NUMA = "gpu.example.com/numa"
LATE = "node n1: timed out trying to allocate devices"


def judge(evaluations: Sequence[Evaluation]) -> None:
    for each in evaluations:
        each.judge_here()


class Attempts:
    """Attempts at pods, as the leader makes them.

    Attributes:
        waits: how often a pod had to wait.
    """

    def __init__(self, snapshot: Snapshot, minor: int = 37, **gates: bool) -> None:
        self.searches, self.clock = InTurn(), ManualClock()
        self.framework = framework(snapshot, minor, gates, searches=self.searches, clock=self.clock)
        self.snapshot = snapshot
        self.waits = 0
        self._cache = EvaluationCache(snapshot, judge)

    def begin(self, pod: PodInfo) -> Evaluation:
        """What is known at once."""
        return self._cache.evaluation(self.framework, pod)

    def make(self, pod: PodInfo) -> Evaluation:
        found = self.begin(pod)
        while found.failure is not None and found.failure.code is Code.WAIT:
            self.waits += 1
            assert self.searches.do()
            found = self.begin(pod)
        self.clock.advance(1)
        return found


def failure(evaluation: Evaluation) -> str:
    assert evaluation.failure is not None
    return evaluation.failure.message.removeprefix('running "DynamicResources" filter plugin: ')


@pytest.fixture(autouse=True)
def none_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever counting does not tell is searched elsewhere."""
    monkeypatch.setattr(device_search, "MOST_S", -1.0)


def pairs(node: str, pairs: int) -> Json:
    """Devices, two on each NUMA node."""
    return make_slice(node, [make_device(f"d{at}", attributes={NUMA: at % pairs}) for at in range(2 * pairs)])


def aligned(name: str, count: int) -> Json:
    """A claim for devices on one NUMA node, one a request."""
    requests = [asking(f"r{at}") for at in range(count)]
    return make_claim(f"default/{name}", *requests, constraints=[{"matchAttribute": NUMA}])


def test_a_pod_waits_once_and_gets_what_it_would_have_got() -> None:
    objects = [make_class("gpu"), pairs("n1", 3), make_slice("n2", ["d0"]), aligned("mine", 2)]
    snapshot, alone, pod = cluster(*objects), cluster(*objects), PodInfo(claiming("mine"))
    attempts, by_itself = Attempts(snapshot), framework(alone)
    evaluation = attempts.make(pod)
    assert attempts.waits == 1
    assert [snapshot.table.names[row] for row in evaluation.best_rows()] == ["n1"]
    assert reasons(evaluation, snapshot) == dict.fromkeys(("n2", "n3"), "cannot allocate all claims")
    charges = []
    for of, found in ((attempts.framework, evaluation), (by_itself, judged(by_itself, pod.pod, alone))):
        state = found.state.clone()
        assert plugin(of).reserve(state, pod, NodeName("n1")) is None
        charges.append(charges_of(state))
    assert charges[0] == charges[1] != ()


@pytest.mark.parametrize("minor", [35, 37])
def test_where_the_time_is_over_each_attempt_is_told_so(minor: int) -> None:
    snapshot, pod = cluster(make_class("gpu"), pairs("n1", 3), aligned("mine", 3)), PodInfo(claiming("mine"))
    attempts = Attempts(snapshot, minor)
    plugin(attempts.framework)._filter_timeout_s = 1e-9
    for number in range(1, 4):
        evaluation = attempts.make(pod)
        if minor == 35:  # it rules the node out, and is kept like other rejections
            assert reasons(evaluation, snapshot)["n1"] == LATE.partition(": ")[2]
        else:
            assert (failure(evaluation), attempts.waits) == (LATE, number)
            assert failure(attempts.begin(pod)) != LATE  # a second later


def test_an_attempt_may_ask_twice_about_the_time() -> None:
    snapshot, pod = cluster(make_class("gpu"), pairs("n1", 3), aligned("mine", 3)), PodInfo(claiming("mine"))
    attempts = Attempts(snapshot)
    plugin(attempts.framework)._filter_timeout_s = 1e-9
    attempts.begin(pod)
    attempts.searches.do()
    assert [failure(attempts.begin(pod)) for _ in range(2)] == [LATE, LATE]


@pytest.mark.parametrize(("later_s", "waits"), [(5.2, True), (6.0, False)])
def test_all_questions_of_an_attempt_have_one_time(
    later_s: float, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_search, "MOST_S", 5.0)
    snapshot, pod = cluster(make_class("gpu"), pairs("n1", 3), aligned("mine", 2)), PodInfo(claiming("mine"))
    attempts = Attempts(snapshot)
    assert attempts.begin(pod).feasible.any()
    put(snapshot, make_claim("default/other", asking(), allocated=[result("d0", pool="n1")]))
    attempts.clock.advance(later_s)
    found = attempts.begin(pod).failure
    assert (found is not None and found.code is Code.WAIT) is waits


def test_what_changes_meanwhile_is_searched_anew() -> None:
    other = make_claim("default/other", asking())
    snapshot = cluster(make_class("gpu"), pairs("n1", 1), aligned("mine", 2), other)
    attempts, pod = Attempts(snapshot), PodInfo(claiming("mine"))
    attempts.begin(pod)
    taken = make_claim("default/other", asking(), allocated=[result("d0", pool="n1")])
    attempts.searches.do(between=lambda: put(snapshot, taken))
    assert reasons(attempts.make(pod), snapshot)["n1"] == "cannot allocate all claims"
    assert attempts.waits == 1


def test_what_changes_again_and_again_ends_the_attempt() -> None:
    snapshot = cluster(make_class("gpu"), pairs("n1", 2), aligned("mine", 2))
    attempts, pod = Attempts(snapshot), PodInfo(claiming("mine"))

    def change() -> None:
        holds = [result("d0", pool="n1")] if attempts.waits % 2 else []
        put(snapshot, make_claim("default/other", asking(), allocated=holds))

    while (found := attempts.begin(pod)).failure is not None and found.failure.code is Code.WAIT:
        attempts.waits += 1
        attempts.searches.do(between=change)
    assert (failure(found), attempts.waits) == (LATE, device_search.MOST_TIMES)


def test_a_search_that_ends_without_an_answer_is_an_error_of_one_attempt() -> None:
    snapshot, pod = cluster(make_class("gpu"), pairs("n1", 3), aligned("mine", 2)), PodInfo(claiming("mine"))
    attempts = Attempts(snapshot)
    attempts.begin(pod)
    (search,) = attempts.searches.asked
    attempts.searches.asked.clear()
    search.begin()
    search.done(None)
    assert failure(attempts.begin(pod)) == device_search.ENDED.message
    attempts.clock.advance(1)
    assert attempts.make(pod).feasible.any()


def test_pods_of_a_class_wait_for_one_search() -> None:
    snapshot = cluster(make_class("gpu"), pairs("n1", 3), aligned("one", 2), aligned("two", 2))
    attempts = Attempts(snapshot)
    for name in ("one", "two"):
        attempts.begin(PodInfo(claiming(name, name=name)))
    assert len(attempts.searches.asked) == 1
    attempts.searches.do()
    assert all(attempts.make(PodInfo(claiming(name, name=name))).feasible.any() for name in ("one", "two"))
    assert not attempts.waits


def test_nodes_that_another_filter_rejects_are_not_searched() -> None:
    """They are as soon as it does not reject them any more."""
    nodes = [make_node("n1", unschedulable=True), make_node("n2")]
    objects = [make_class("gpu"), pairs("n1", 3), pairs("n2", 3), aligned("mine", 2)]
    snapshot, pod = cluster(*objects, nodes=nodes), PodInfo(claiming("mine"))
    attempts = Attempts(snapshot)
    attempts.begin(pod)
    (search,) = attempts.searches.asked
    search.begin()
    assert b"n2" in search.work() and b"n1" not in search.work()
    assert reasons(attempts.make(pod), snapshot) == {"n1": "node(s) were unschedulable"}
    snapshot.table.set_node(make_node("n1"))
    assert list(attempts.make(pod).feasible) == [True, True]
    assert attempts.waits == 2


def test_pods_of_a_group_do_not_wait() -> None:
    snapshot = cluster(make_class("gpu"), pairs("n1", 3), aligned("mine", 2))
    claims = [{"name": "c", "resourceClaimName": "mine"}]
    pod = make_pod("default/web", spec={"resourceClaims": claims, "schedulingGroup": {"podGroupName": "g"}})
    attempts = Attempts(snapshot, GenericWorkload=True)
    assert attempts.begin(PodInfo(pod)).feasible.any()
    assert not attempts.searches.asked
