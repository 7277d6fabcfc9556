"""What is measured of extension points and plugins, and under which names."""

import pytest
from prometheus_client import REGISTRY

from dsched.engine.evaluation import evaluate
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import SKIP, Code, Scope, Status, unschedulable
from dsched.framework.long_search import NotYet
from dsched.framework.pod_info import PodInfo
from dsched.framework.validation import PluginFailure, outcome
from dsched.metrics import collect
from tests.builders import make_node, make_pod, make_snapshot
from tests.unit.framework.frameworks import NAME, framework_of

POD = PodInfo(make_pod("shop/web"))
POINTS = "scheduler_framework_extension_point_duration_seconds_count"
CALLS = "scheduler_plugin_execution_duration_seconds_count"
EVALUATIONS = "scheduler_plugin_evaluation_total"


class Picky:
    """Answers as a test says."""

    name = "Measured"
    filter_scope = score_scope = Scope.NODE
    answer = None

    def __init__(self, args, handle):
        pass

    def pre_filter(self, state, pod, snapshot):
        return self.answer

    def filter(self, state, pod, node):
        return None

    def score(self, state, pod, node):
        return 1

    def reserve(self, state, pod, node):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def unreserve(self, state, pod, node):
        pass


@pytest.fixture
def answer(monkeypatch):
    def answer(value):
        monkeypatch.setattr(Picky, "answer", value)

    return answer


@pytest.fixture
def every_call(monkeypatch):
    monkeypatch.setattr(collect, "SAMPLED", 1.0)


class Counts:
    def __init__(self):
        collect.flush()
        self._before = self._now()

    def _now(self):
        collect.flush()
        return {
            (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
            for family in REGISTRY.collect()
            for sample in family.samples
        }

    def more(self, *key):
        return self._now().get(key, 0) - self._before.get(key, 0)


def two_nodes():
    return make_snapshot([make_node("n1"), make_node("n2")], [])


def test_filter_and_score_are_one_run_for_all_nodes():
    counts = Counts()
    evaluate(framework_of(Picky), POD, two_nodes())
    for point in ("PreFilter", "Filter", "Score"):
        assert counts.more(POINTS, point, NAME, "Success") == 1
        assert counts.more(EVALUATIONS, point, "Measured", NAME) == 1
    assert counts.more(POINTS, "PreScore", NAME, "Success") == 0  # no plugin is there


def test_a_plugin_that_skips_the_pod_is_not_counted_as_run(answer):
    answer(SKIP)
    counts = Counts()
    evaluate(framework_of(Picky), POD, two_nodes())
    assert counts.more(POINTS, "PreFilter", NAME, "Success") == 1
    assert counts.more(EVALUATIONS, "PreFilter", "Measured", NAME) == 0
    assert counts.more(EVALUATIONS, "Filter", "Measured", NAME) == 0


def test_a_rejection_is_told_by_its_code(answer):
    answer(unschedulable("no"))
    counts = Counts()
    evaluate(framework_of(Picky), POD, two_nodes())
    assert counts.more(POINTS, "PreFilter", NAME, "Unschedulable") == 1
    assert counts.more(POINTS, "Filter", NAME, "Success") == 0


@pytest.mark.parametrize(
    ("value", "status"), [(None, "Success"), (unschedulable("no"), "Unschedulable"), (ValueError("odd"), "Error")]
)
def test_reserve_runs_for_each_pod(answer, every_call, value, status):
    answer(value)
    counts = Counts()
    framework = framework_of(Picky)
    for _ in range(3):
        framework.run_reserve(CycleState(), POD, "n1")
    assert counts.more(POINTS, "Reserve", NAME, status) == 3
    assert counts.more(CALLS, "Reserve", "Measured", status) == 3


def test_a_failing_point_is_an_error(answer):
    answer("what is this?")
    counts = Counts()
    with pytest.raises(PluginFailure):
        framework_of(Picky).run_pre_filter(CycleState(), POD, two_nodes())
    assert counts.more(POINTS, "PreFilter", NAME, "Error") == 1


def test_an_answer_that_is_not_there_yet_is_no_error(monkeypatch):
    def not_yet(self, state, pod, node):
        raise NotYet("Measured", "it is searched for")

    monkeypatch.setattr(Picky, "filter", not_yet)
    counts = Counts()
    failure = evaluate(framework_of(Picky), POD, two_nodes()).failure
    assert failure == Status(Code.WAIT, ("it is searched for",), "Measured")
    assert (counts.more(POINTS, "Filter", NAME, "Wait"), counts.more(POINTS, "Filter", NAME, "Error")) == (1, 0)


def test_plugins_are_measured_call_by_call(every_call):
    counts = Counts()
    evaluate(framework_of(Picky), POD, two_nodes())
    assert counts.more(CALLS, "Filter", "Measured", "Success") == 2
    assert counts.more(CALLS, "Score", "Measured", "Success") == 2


def test_no_call_is_measured_that_is_not_sampled(monkeypatch):
    monkeypatch.setattr(collect, "SAMPLED", 0.0)
    counts = Counts()
    evaluate(framework_of(Picky), POD, two_nodes())
    assert counts.more(CALLS, "Filter", "Measured", "Success") == 0


def test_measuring_changes_no_answer(answer):
    answer(unschedulable("no"))
    status = framework_of(Picky).run_reserve(CycleState(), POD, "n1")
    assert isinstance(status, Status)
    assert status.reasons == ("no",)
    assert status.plugin == "Measured"


def test_an_answer_without_anything_in_it_is_no_status() -> None:
    """As a plugin may give it that is asked for something else than a status."""
    assert outcome(()) == outcome(None) == "Success"
