"""The other extension points: order, what ends them, and plugins that fail."""

from asyncio import CancelledError
from functools import partial
from typing import Any

import numpy as np
import pytest
from prometheus_client import REGISTRY

from dsched.config import PluginRef, Profile
from dsched.engine.diagnosis import diagnose
from dsched.engine.evaluation import evaluate
from dsched.engine.failed_attempt import FailedAttempt
from dsched.errors import PluginError
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import (
    SKIP,
    Code,
    PermitResult,
    PostFilterResult,
    PreFilterResult,
    Scope,
    Status,
    Verdict,
    unresolvable,
    unschedulable,
)
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import MAX_PERMIT_WAIT_S, Framework
from dsched.framework.snapshot import Snapshot
from dsched.framework.validation import PluginFailure, guarded
from dsched.metrics import collect
from tests.builders import make_node, make_pod, make_snapshot
from tests.unit.framework.frameworks import framework_of

POD = PodInfo(make_pod("shop/web"))
CALLS: list[str] = []


@pytest.fixture(autouse=True)
def _no_calls_yet() -> None:
    CALLS.clear()


def plugin(called: str, **answers: Any) -> type[Any]:
    """A plugin with these methods, each answering with a value, or raising it; it notes its calls."""

    def method(point: str, answer: Any) -> Any:
        def call(self: Any, *given: Any) -> Any:
            CALLS.append(f"{called}.{point}")
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call

    methods = {point: method(point, answer) for point, answer in answers.items()}
    return type(called, (), {"name": called, "__init__": lambda self, args, handle: None, **methods})


def names(*found: str) -> PreFilterResult:
    return PreFilterResult(frozenset(found))


# -- building ------------------------------------------------------------------------------------------------------


def test_a_plugin_that_is_in_no_registry() -> None:
    with pytest.raises(PluginError, match="profile mine: there is no plugin Gone"):
        Framework(Profile("mine", None, {"filter": (PluginRef("Gone"),)}, {}), {}, None)


def test_a_plugin_that_cannot_be_built() -> None:
    def factory(args: Any, handle: Any) -> Any:
        raise ValueError("no token")

    with pytest.raises(PluginError, match="profile mine: plugin Broken cannot be built: no token"):
        Framework(Profile("mine", None, {"filter": (PluginRef("Broken"),)}, {}), {"Broken": factory}, None)


def test_one_object_serves_all_points_of_a_plugin() -> None:
    framework = framework_of(plugin("Both", reserve=None, unreserve=None, permit=PermitResult()))
    assert framework.at("reserve") == framework.at("permit")
    assert framework.plugin("Both") is framework.at("permit")[0]
    assert framework.plugin("Other") is None


# -- PreEnqueue, QueueSort -----------------------------------------------------------------------------------------


def test_the_first_rejection_gates_the_pod() -> None:
    framework = framework_of(
        plugin("A", pre_enqueue=None), plugin("B", pre_enqueue=unresolvable("b")), plugin("C", pre_enqueue=None)
    )
    assert framework.run_pre_enqueue(POD.pod) == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("b",), "B")
    assert CALLS == ["A.pre_enqueue", "B.pre_enqueue"]


def test_a_pre_enqueue_that_fails_keeps_the_pod_out() -> None:
    status = framework_of(plugin("A", pre_enqueue=LookupError("x"))).run_pre_enqueue(POD.pod)
    assert status is not None
    assert (status.code, status.plugin) == (Code.ERROR, "A")


def test_a_profile_without_queue_sort() -> None:
    with pytest.raises(PluginError, match="no queue sort plugin"):
        framework_of().sort_key(POD.pod, 1)


# -- PreFilter -----------------------------------------------------------------------------------------------------


def pre_filtered(*plugins: type[Any]) -> tuple[Status | None, frozenset[str] | None, set[str]]:
    status, nodes, narrowing = framework_of(*plugins).run_pre_filter(CycleState(), POD, Snapshot())
    return status, nodes, set(narrowing)


def test_pre_filter_narrows_to_what_all_allow() -> None:
    found = pre_filtered(
        plugin("A", pre_filter=names("n1", "n2")),
        plugin("B", pre_filter=None),
        plugin("C", pre_filter=names("n2", "n3")),
    )
    assert found == (None, frozenset({"n2"}), {"A", "C"})


def test_pre_filter_that_leaves_no_node() -> None:
    """Source: runtime/framework.go ``RunPreFilterPlugins``; the plugins are named in alphabetical order."""
    status, _, narrowing = pre_filtered(plugin("B", pre_filter=names("n1")), plugin("A", pre_filter=names("n2")))
    assert status is not None
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message == "node(s) didn't satisfy plugin(s) [A B] simultaneously"
    assert narrowing == {"A", "B"}
    alone, _, _ = pre_filtered(plugin("A", pre_filter=names()))
    assert alone is not None
    assert alone.message == "node(s) didn't satisfy plugin A"


def test_a_final_rejection_ends_pre_filter() -> None:
    status, _, narrowing = pre_filtered(
        plugin("A", pre_filter=names("n1")), plugin("B", pre_filter=unresolvable("b")), plugin("C", pre_filter=None)
    )
    assert status == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("b",), "B")
    assert CALLS == ["A.pre_filter", "B.pre_filter"]
    assert narrowing == set()


def test_after_a_rejection_that_preemption_could_lift_the_others_are_still_asked() -> None:
    """Preemption needs the state of all of them. Source: kubernetes#119770."""
    status, _, narrowing = pre_filtered(
        plugin("A", pre_filter=unschedulable("a")), plugin("B", pre_filter=names("n1")), plugin("C", pre_filter=None)
    )
    assert status == Status(Code.UNSCHEDULABLE, ("a",), "A")
    assert CALLS == ["A.pre_filter", "B.pre_filter", "C.pre_filter"]
    assert narrowing == {"B"}
    later, _, _ = pre_filtered(plugin("A", pre_filter=unschedulable("a")), plugin("B", pre_filter=unresolvable("b")))
    assert later == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("b",), "B")


def test_a_skipped_plugin_does_not_filter() -> None:
    framework = framework_of(plugin("A", pre_filter=SKIP, filter=LookupError("asked")))
    evaluation = evaluate(framework, POD, make_snapshot([make_node()]))
    assert evaluation.failure is None
    assert evaluation.feasible.tolist() == [True]


@pytest.mark.parametrize("answer", [LookupError("x"), Status(Code.ERROR, ("x",)), Status(Code.WAIT), "junk", True])
def test_a_pre_filter_that_breaks_its_contract(answer: Any) -> None:
    evaluation = evaluate(framework_of(plugin("A", pre_filter=answer)), POD, make_snapshot([make_node()]))
    assert evaluation.failure is not None
    assert evaluation.failure.plugin == "A"


def test_diagnosis_of_a_narrowed_search() -> None:
    framework = framework_of(
        plugin("A", pre_filter=names("n1", "n2", "gone")), plugin("B", filter=unschedulable("busy"))
    )
    snapshot = make_snapshot([make_node(f"n{number}") for number in range(5)])
    found = diagnose(evaluate(framework, POD, snapshot), 5)
    assert found.message == "0/5 nodes are available: 2 busy, 3 node(s) didn't satisfy plugin(s) [A]."
    assert found.unschedulable_plugins == {"A", "B"}


# -- PreScore ------------------------------------------------------------------------------------------------------


def test_a_skipped_plugin_does_not_score() -> None:
    framework = framework_of(plugin("A", pre_score=SKIP, score=LookupError("asked")), plugin("B", score=7))
    evaluation = evaluate(framework, POD, make_snapshot([make_node()]))
    assert evaluation.totals.tolist() == [7]
    assert set(evaluation.score_columns()) == {"B"}


@pytest.mark.parametrize("answer", [LookupError("x"), unschedulable("x"), Status(Code.ERROR, ("x",)), "junk"])
def test_a_pre_score_that_breaks_its_contract(answer: Any) -> None:
    evaluation = evaluate(framework_of(plugin("A", pre_score=answer, score=1)), POD, make_snapshot([make_node()]))
    assert evaluation.failure is not None
    assert evaluation.failure.plugin == "A"


def test_nobody_is_asked_for_scores_where_nothing_fits() -> None:
    framework = framework_of(plugin("A", filter=unschedulable("no"), pre_score=LookupError("asked"), score=1))
    evaluation = evaluate(framework, POD, make_snapshot([make_node()]))
    assert evaluation.failure is None
    assert "A.pre_score" not in CALLS


# -- PostFilter ----------------------------------------------------------------------------------------------------


def post(code: Code, *reasons: str, nominated: Any = None) -> PostFilterResult:
    return PostFilterResult(nominated, Status(code, reasons))


def post_filtered(*plugins: type[Any]) -> PostFilterResult | None:
    framework = framework_of(*plugins)
    snapshot = make_snapshot([make_node()])
    evaluation = evaluate(framework, POD, snapshot)
    attempt = FailedAttempt(framework, CycleState(), POD, snapshot, evaluation, diagnose(evaluation, 1))
    return framework.run_post_filter(attempt)


def test_no_post_filter() -> None:
    assert post_filtered() is None


def test_post_filter_ends_with_the_first_that_makes_room() -> None:
    found = post_filtered(
        plugin("A", post_filter=post(Code.UNSCHEDULABLE, "a")),
        plugin("B", post_filter=post(Code.SUCCESS, nominated="n1")),
        plugin("C", post_filter=post(Code.SUCCESS, nominated="n2")),
    )
    assert found == PostFilterResult("n1", Status(Code.SUCCESS, (), "B"))
    assert CALLS == ["A.post_filter", "B.post_filter"]


def test_post_filter_ends_with_the_first_that_knows_nothing_can() -> None:
    found = post_filtered(
        plugin("A", post_filter=post(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "a")), plugin("B", post_filter=LookupError())
    )
    assert found is not None
    assert found.status == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("a",), "A")


def test_a_post_filter_without_an_answer_has_succeeded_without_a_node() -> None:
    """Source: runtime/framework.go ``RunPostFilterPlugins``: a nil status is success, which ends it."""
    found = post_filtered(plugin("A", post_filter=None), plugin("B", post_filter=post(Code.SUCCESS)))
    assert found == PostFilterResult(None, Status(Code.SUCCESS, (), "A"))
    assert CALLS == ["A.post_filter"]


def test_rejections_of_post_filters_are_merged() -> None:
    """Reasons of all, the name of the first, the last nomination that says something."""
    found = post_filtered(
        plugin("A", post_filter=post(Code.UNSCHEDULABLE, "a", nominated="")),
        plugin("B", post_filter=post(Code.UNSCHEDULABLE, "b1", "b2")),
    )
    assert found == PostFilterResult("", Status(Code.UNSCHEDULABLE, ("a", "b1", "b2"), "A"))


@pytest.mark.parametrize("answer", [LookupError("x"), post(Code.ERROR, "x"), post(Code.SKIP), False, "junk"])
def test_a_post_filter_that_breaks_its_contract(answer: Any) -> None:
    with pytest.raises(PluginFailure) as raised:
        post_filtered(plugin("A", post_filter=answer))
    assert raised.value.status.plugin == "A"


# -- Reserve, Permit -----------------------------------------------------------------------------------------------


def reserving(called: str, answer: Any = None) -> type[Any]:
    return plugin(called, reserve=answer, unreserve=None)


def test_reserve_runs_in_order() -> None:
    assert framework_of(reserving("A"), reserving("B")).run_reserve(CycleState(), POD, "n1") is None
    assert CALLS == ["A.reserve", "B.reserve"]


@pytest.mark.parametrize("answer", [unschedulable("b"), LookupError("b"), "junk"])
def test_a_failed_reserve_is_undone_in_reverse_order(answer: Any) -> None:
    status = framework_of(reserving("A"), reserving("B", answer), reserving("C")).run_reserve(CycleState(), POD, "n1")
    assert status is not None
    assert status.plugin == "B"
    assert CALLS == ["A.reserve", "B.reserve", "C.unreserve", "B.unreserve", "A.unreserve"]


def test_an_unreserve_that_fails_does_not_keep_the_others_from_theirs() -> None:
    framework = framework_of(reserving("A"), plugin("B", reserve=None, unreserve=LookupError("b")), reserving("C"))
    framework.run_unreserve(CycleState(), POD, "n1")
    assert CALLS == ["C.unreserve", "B.unreserve", "A.unreserve"]


def wait(seconds: float) -> PermitResult:
    return PermitResult(Status(Code.WAIT), seconds)


def test_permit_gathers_waits() -> None:
    decision = framework_of(
        plugin("A", permit=wait(3)), plugin("B", permit=PermitResult()), plugin("C", permit=wait(10**6))
    ).run_permit(CycleState(), POD, "n1")
    assert decision.status is None
    assert decision.waits == {"A": 3, "C": MAX_PERMIT_WAIT_S}
    assert MAX_PERMIT_WAIT_S == 900


def test_the_first_rejection_ends_permit() -> None:
    decision = framework_of(
        plugin("A", permit=wait(3)), plugin("B", permit=PermitResult(unschedulable("b"))), plugin("C", permit=wait(3))
    ).run_permit(CycleState(), POD, "n1")
    assert decision.status == Status(Code.UNSCHEDULABLE, ("b",), "B")
    assert decision.waits == {}
    assert CALLS == ["A.permit", "B.permit"]


@pytest.mark.parametrize("answer", [None, PermitResult(), PermitResult(Status(Code.SUCCESS))])
def test_permit_allows(answer: Any) -> None:
    """Source: runtime/framework.go ``RunPermitPlugins``: a nil status is success."""
    decision = framework_of(plugin("A", permit=answer)).run_permit(CycleState(), POD, "n1")
    assert (decision.status, decision.waits) == (None, {})


@pytest.mark.parametrize("answer", [LookupError("x"), False, Status(Code.WAIT), "junk"])
def test_a_permit_that_breaks_its_contract(answer: Any) -> None:
    decision = framework_of(plugin("A", permit=answer)).run_permit(CycleState(), POD, "n1")
    assert decision.status is not None
    assert (decision.status.code, decision.status.plugin) == (Code.ERROR, "A")


@pytest.mark.parametrize(
    "made",
    [
        lambda: Status(3, ("x",)),  # type: ignore[arg-type]
        lambda: Status(Code.ERROR, "text"),  # type: ignore[arg-type]
        lambda: Status(Code.ERROR, (b"bytes",)),  # type: ignore[arg-type]
        lambda: PermitResult(Code.WAIT, 3),  # type: ignore[arg-type]
        lambda: PermitResult(Status(Code.WAIT), float("nan")),
        lambda: PermitResult(Status(Code.WAIT), "3"),  # type: ignore[arg-type]
        lambda: PreFilterResult(["n1"]),  # type: ignore[arg-type]
        lambda: PostFilterResult(POD, Status(Code.SUCCESS)),  # type: ignore[arg-type]
        lambda: PostFilterResult("n1", None),  # type: ignore[arg-type]
        lambda: PostFilterResult("n1", Status(Code.SUCCESS), ("shop/web",)),  # type: ignore[arg-type]
    ],
)
def test_an_answer_of_wrong_parts_cannot_be_made(made: Any) -> None:
    with pytest.raises(TypeError):
        made()


def test_reasons_without_an_end_are_cut() -> None:
    status = Status(Code.ERROR, ("x" * 10**6, "y"))
    assert len(status.message) < 5000
    assert status.message.endswith(" … (1000003 characters)")


class Wordless(Exception):
    def __str__(self) -> str:
        raise LookupError("no words")


class Endless(Exception):
    def __str__(self) -> str:
        return "x" * 10**6


@pytest.mark.parametrize("error", [Wordless(), Endless(), GeneratorExit(), CancelledError(), SystemExit(3)])
def test_whatever_is_raised_is_the_plugins_failure(error: BaseException) -> None:
    def raises(*given: Any) -> Any:
        raise error

    with pytest.raises(PluginFailure) as raised:
        guarded("A", raises)
    assert raised.value.status.message.startswith(f'running plugin "A": {type(error).__name__}: ')
    assert len(raised.value.status.message) < 5000


@pytest.mark.parametrize("answer", [LookupError("x"), [], ({},), np.zeros(3)])
@pytest.mark.parametrize("method", ["skip_version", "answer_version"])
def test_a_version_that_cannot_be_compared(method: str, answer: Any) -> None:
    more: dict[str, Any] = {method: answer}
    more |= {"pre_filter": SKIP if method == "skip_version" else None, "filter": None}
    wide = plugin("A", **more)
    wide.filter_scope = Scope.CLUSTER
    framework, state = framework_of(wide), CycleState()
    framework.run_pre_filter(state, POD, Snapshot())
    ask = framework.skips if method == "skip_version" else partial(framework.answers, scored=False)
    with pytest.raises(PluginFailure):
        ask(state, POD, Snapshot())


@pytest.mark.parametrize("answer", [LookupError("x"), [0], np.zeros(1), np.array([1]), np.array([-1]), np.array([[0]])])
def test_rows_that_are_none_of_the_table(answer: Any) -> None:
    wide = plugin("A", pre_filter=None, pre_filter_placed=answer, filter_table=None)
    wide.filter_scope = Scope.CLUSTER
    with pytest.raises(PluginFailure):
        framework_of(wide).run_pre_filter_placed(CycleState(), POD, make_snapshot([make_node()]), 0, ["A"])


def test_rows_of_several_plugins() -> None:
    """Who does not say, and who has another PreFilter than the plugin that it is made from, begins anew."""

    def named(name: str, **more: Any) -> type[Any]:
        wide = plugin(name, pre_filter=None, filter_table=None, **more)
        wide.filter_scope = Scope.CLUSTER
        return wide

    first, second = (named(name, pre_filter_placed=np.array([row])) for name, row in (("A", 1), ("B", 0)))
    heir = type("D", (first,), {"name": "D", "pre_filter": lambda *given: None})
    framework = framework_of(first, second, named("C"), heir, named("E", pre_filter_placed=None))
    snapshot = make_snapshot([make_node("n1"), make_node("n2")])

    def rows(*moved: str) -> list[int] | None:
        found = framework.run_pre_filter_placed(CycleState(), POD, snapshot, 0, moved)
        return None if found is None else sorted(found.tolist())

    assert rows("A", "B") == [0, 1]
    assert [rows("A", each) for each in "CDE"] == [None, None, None]


@pytest.mark.parametrize("answer", [LookupError("x"), np.zeros(3)])
def test_alike_that_breaks_its_contract(answer: Any) -> None:
    with pytest.raises(PluginFailure):
        framework_of(plugin("A", filter=None, alike=answer)).alike("A", POD, POD)


@pytest.mark.parametrize("verdict", [Verdict([0], ()), Verdict(np.array([1]), ["x"]), Verdict(np.array([1]), ("x",))])  # type: ignore[arg-type]
def test_a_verdict_of_wrong_parts(verdict: Verdict) -> None:
    evaluation = evaluate(framework_of(plugin("A", filter_table=verdict)), POD, make_snapshot([make_node()]))
    assert evaluation.failure is not None
    assert evaluation.failure.plugin == "A"


# -- the binding cycle ---------------------------------------------------------------------------------------------


def test_pre_bind_ends_with_the_first_failure() -> None:
    framework = framework_of(
        plugin("A", pre_bind=None), plugin("B", pre_bind=LookupError("b")), plugin("C", pre_bind=None)
    )
    (status,) = framework.run_pre_bind([(CycleState(), POD, "n1")], lambda number: None)
    assert status is not None
    assert status.plugin == "B"
    assert CALLS == ["A.pre_bind", "B.pre_bind"]


PODS = [PodInfo(make_pod(f"shop/web-{number}")) for number in range(3)]


def pre_bound(*plugins: type[Any]) -> tuple[list[Status | None], list[int]]:
    """What PreBind says of three pods, and which pod each call was about."""
    about: list[int] = []
    found = framework_of(*plugins).run_pre_bind([(CycleState(), pod, "n1") for pod in PODS], about.append)
    return found, about


def test_pre_bind_of_several_pods_is_that_of_each() -> None:
    class Picky:
        name = "Picky"

        def __init__(self, args: Any, handle: Any) -> None: ...

        def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
            CALLS.append(f"Picky {pod.key}")
            return unschedulable("no") if pod is PODS[1] else Status(Code.SUCCESS)

    found, about = pre_bound(Picky, plugin("B", pre_bind=None, pre_bind_together=[None, Status(Code.WAIT, ("later",))]))
    assert [None if status is None else (status.plugin, status.code) for status in found] == [
        None,
        ("Picky", Code.UNSCHEDULABLE),
        ("B", Code.WAIT),
    ]
    assert [*(f"Picky {pod.key}" for pod in PODS), "B.pre_bind_together"] == CALLS
    assert about == [0, 1, 2, 0]


@pytest.mark.parametrize("answer", [LookupError("b"), [None], None, "abc", [None, None, 3]])
def test_pre_bind_together_that_breaks_its_contract(answer: Any) -> None:
    found, _ = pre_bound(plugin("B", pre_bind=None, pre_bind_together=answer))
    said = [None if status is None else (status.plugin, status.code) for status in found]
    assert said[2] == ("B", Code.ERROR)
    assert said[0] == (None if isinstance(answer, list) and len(answer) == 3 else ("B", Code.ERROR))


def test_pre_bind_and_what_is_asked_before_it_are_measured_apart() -> None:
    def observed(point: str, status: str) -> float:
        collect.flush()
        labels = {"extension_point": point, "status": status, "profile": "default-scheduler"}
        return REGISTRY.get_sample_value("scheduler_framework_extension_point_duration_seconds_count", labels) or 0.0

    framework = framework_of(plugin("A", pre_bind=None, pre_bind_pre_flight=SKIP))
    points = [("PreBind", "Success"), ("PreBindPreFlight", "Skip"), ("PreBindPreFlight", "Success")]
    before = [observed(*each) for each in points]
    assert not framework.run_pre_bind_pre_flights(CycleState(), POD, "n1")
    framework.run_pre_bind([(CycleState(), POD, "n1"), (CycleState(), POD, "n2")], lambda number: None)
    other = framework_of(plugin("A", pre_bind=None, pre_bind_pre_flight=None))
    assert other.will_pre_bind(CycleState(), POD, "n1")  # asked once more, for somebody else: not measured
    assert other.run_pre_bind_pre_flights(CycleState(), POD, "n1")
    assert [observed(*each) for each in points] == [before[0] + 2, before[1] + 1, before[2] + 1]


def test_bind_bound_skip_failed() -> None:
    framework = framework_of(
        plugin("A", bind=None), plugin("B", bind=SKIP), plugin("C", bind=LookupError("c")), plugin("D", bind="junk")
    )
    found = [framework.run_bind(called, CycleState(), POD, "n1") for called in "ABCD"]
    assert [None if status is None else status.code for status in found] == [None, Code.SKIP, Code.ERROR, Code.ERROR]


def test_a_post_bind_that_fails_does_not_keep_the_others_from_theirs() -> None:
    framework_of(plugin("A", post_bind=LookupError("a")), plugin("B", post_bind=None)).run_post_bind(
        CycleState(), POD, "n1"
    )
    assert CALLS == ["A.post_bind", "B.post_bind"]


# -- caching -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "cacheable"),
    [
        ({"filter_scope": Scope.NODE}, True),
        ({"filter_scope": Scope.CLUSTER}, True),
        ({"filter_scope": Scope.ANYTHING}, False),
        ({}, False),
    ],
)
def test_what_is_cached(more: dict[str, Any], cacheable: bool) -> None:
    made = plugin("A", filter=None)
    for key, value in more.items():
        setattr(made, key, value)
    assert framework_of(made).cacheable is cacheable
    assert framework_of().cacheable


@pytest.mark.parametrize("answer", [None, 7, (1, 2), ("1", "a"), (2**60, "a"), LookupError("mad")])
def test_a_queue_sort_plugin_that_fails_puts_the_pod_last(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    class Sorts:
        name = "Sorts"

        def __init__(self, args: Any, handle: Any) -> None:
            pass

        def sort_key(self, pod: Any, queued_us: int) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

    framework = framework_of(Sorts)
    assert framework.sort_key(make_pod("shop/web"), 7) == (2**53, "00000000000000000007")
    assert "queue sort failed" in caplog.text


class Sorted:
    """Sorts by name."""

    name = "Sorted"

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def sort_key(self, pod: Any, queued_us: int) -> Any:
        return 1, pod.metadata.name

    def sort_keys(self, pods: Any, queued_us: Any) -> Any:
        return ((1, pod.metadata.name) for pod in pods)


class SortedBackwards(Sorted):
    """Says nothing of many at once, and so is asked about each."""

    def sort_key(self, pod: Any, queued_us: int) -> Any:
        return -1, pod.metadata.name


def test_many_pods_are_sorted_at_once() -> None:
    pods = [make_pod("shop/b"), make_pod("shop/a")]
    assert framework_of(Sorted).sort_keys(pods, [1, 2]) == [(1, "b"), (1, "a")]
    assert framework_of(SortedBackwards).sort_keys(pods, [1, 2]) == [(-1, "b"), (-1, "a")]
    with pytest.raises(PluginError):
        framework_of().sort_keys(pods, [1, 2])


@pytest.mark.parametrize("answer", [None, 7, [], [(1, "a"), (2**60, "b")], [(1, "a")], LookupError("mad")])
def test_where_that_fails_each_is_sorted_by_itself(answer: Any) -> None:
    class Fails(Sorted):
        def sort_key(self, pod: Any, queued_us: int) -> Any:
            return super().sort_key(pod, queued_us)

        def sort_keys(self, pods: Any, queued_us: Any) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

    assert framework_of(Fails).sort_keys([make_pod("shop/b"), make_pod("shop/a")], [1, 2]) == [(1, "b"), (1, "a")]


def test_pre_enqueue_is_not_asked_about_pods_without_what_it_looks_at() -> None:
    held = plugin("A", pre_enqueue=unresolvable("a"))
    held.pre_enqueue_fields = ("scheduling_gates",)
    gated = make_pod("shop/gated", gates=["g"])
    framework = framework_of(held, plugin("B", pre_enqueue=None))
    assert (framework.run_pre_enqueue(POD.pod), framework.may_gate(POD.pod)) == (None, True)  # nothing is known of B
    assert framework.run_pre_enqueue(gated) is not None
    framework = framework_of(plugin("B", pre_enqueue=unresolvable("b")), held)
    assert framework.run_pre_enqueue(POD.pod) is not None
    framework = framework_of(held)
    assert (framework.run_pre_enqueue(POD.pod), framework.may_gate(POD.pod)) == (None, False)
    assert framework.may_gate(gated)
    assert framework.run_pre_enqueue(gated) is not None

    class Inheriting(held):  # type: ignore[misc, valid-type]
        def pre_enqueue(self, pod: Any) -> Status | None:
            return unresolvable("b")

    assert framework_of(Inheriting).run_pre_enqueue(POD.pod) is not None


@pytest.mark.parametrize("fields", ["scheduling_gates", ("gates",), 7])
def test_fields_that_no_spec_has(fields: Any) -> None:
    wrong = plugin("A", pre_enqueue=None)
    wrong.pre_enqueue_fields = fields
    with pytest.raises(PluginError, match=r"plugin A: pre_enqueue_fields .*: expected fields of a pod's spec"):
        framework_of(wrong)
