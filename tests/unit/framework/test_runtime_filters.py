"""Filter and Score plugins behind the whole-table form: what they may answer, and what happens when they do not."""

from typing import Any

import numpy as np
import pytest

from dsched.engine.evaluation import Evaluation, evaluate
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Code, Normalization, Scope, Status, Verdict, unresolvable, unschedulable
from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NodeName
from tests.builders import make_node, make_pod, make_snapshot
from tests.unit.framework.answers import said
from tests.unit.framework.frameworks import framework_of

NODES = [make_node(f"n{number}", cpu=str(1 + number % 3), labels={"zone": "abc"[number % 3]}) for number in range(7)]
POD = PodInfo(make_pod("shop/web", cpu="1500m"))


class Plugin:
    """Base of the plugins here."""

    def __init__(self, args: Any, handle: Any) -> None:
        pass


def evaluated(*plugins: type[Any]) -> Evaluation:
    return evaluate(framework_of(*plugins), POD, make_snapshot(NODES))


def filtering(answer: Any) -> type[Any]:
    """A filter whose table form answers so."""

    class Filters(Plugin):
        name = "Filters"

        def filter_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
            return answer(np.arange(len(table))[rows])

    return Filters


def scoring(answer: Any, how: Normalization = Normalization.NONE) -> type[Any]:
    class Scores(Plugin):
        name = "Scores"
        normalization = how

        def score_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
            return answer(np.arange(len(table))[rows])

    return Scores


def failing(rows: Any) -> Any:
    raise LookupError("no such zone")


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (failing, "LookupError: no such zone"),
        (lambda rows: None, "NoneType"),
        (lambda rows: [0] * len(rows), "list"),
        (lambda rows: Verdict(np.zeros(len(rows) - 1, dtype=np.int32), ()), "judged"),
        (lambda rows: Verdict(np.zeros((len(rows), 1), dtype=np.int32), ()), "judged"),
        (lambda rows: Verdict(np.full(len(rows), 2, dtype=np.int32), (unschedulable("a"),)), "status 2"),
        (lambda rows: Verdict(np.full(len(rows), -1, dtype=np.int32), (unschedulable("a"),)), "status -1"),
        (lambda rows: Verdict(np.zeros(len(rows)), ()), "float64"),
        (lambda rows: Verdict.where(rows >= 0, Status(Code.ERROR, ("disk on fire",))), "disk on fire"),
        (lambda rows: Verdict.where(rows >= 0, Status(Code.SKIP)), "Skip"),
        (lambda rows: Verdict.where(rows >= 0, Status(Code.WAIT)), "Wait"),
    ],
)
def test_a_filter_that_breaks_its_contract_fails_the_pod(answer: Any, cause: str) -> None:
    failure = evaluated(filtering(answer)).failure
    assert failure is not None
    assert (failure.code, failure.plugin) == (Code.ERROR, "Filters")
    assert failure.message.startswith(('running plugin "Filters": ', 'running "Filters" filter plugin: '))
    assert cause in failure.message


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (failing, "LookupError: no such zone"),
        (lambda rows: None, "scored"),
        (lambda rows: np.zeros(len(rows) + 1, dtype=np.int64), "scored"),
        (lambda rows: 3, "scored"),
        (lambda rows: np.full(len(rows), 0.5), "float64"),
        (lambda rows: np.array(["7"] * len(rows)), "<U1"),
        (lambda rows: np.full(len(rows), 101), "[0, 100]"),
        (lambda rows: np.full(len(rows), -1), "[0, 100]"),
    ],
)
def test_a_score_that_breaks_its_contract_fails_the_pod(answer: Any, cause: str) -> None:
    failure = evaluated(scoring(answer)).failure
    assert failure is not None
    assert failure.plugin == "Scores"
    assert cause in failure.message


@pytest.mark.parametrize(
    "answer", [lambda rows: [5] * len(rows), lambda rows: rows > 2, lambda rows: rows.astype("i2")]
)
def test_whole_numbers_in_any_form_are_scores(answer: Any) -> None:
    evaluation = evaluated(scoring(answer))
    assert evaluation.failure is None
    assert evaluation.totals.tolist() == [int(value) for value in answer(np.arange(len(NODES)))]


def test_a_score_may_be_a_view_into_the_table() -> None:
    class Counts(Plugin):
        name = "Counts"
        score_scope = Scope.USAGE
        normalization = Normalization.NONE

        def score_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
            return table.pod_count[rows]

    snapshot = make_snapshot(NODES)
    evaluation = evaluate(framework_of(Counts), POD, snapshot)
    snapshot.table.add_pod(PodInfo(make_pod("shop/other")), "n2")
    assert evaluation.totals.tolist() == [0] * 7
    assert evaluation.refresh()
    assert evaluation.totals.tolist() == [0, 0, 1, 0, 0, 0, 0]
    assert snapshot.table.pod_count.tolist() == [0, 0, 1, 0, 0, 0, 0]


def test_an_error_of_a_filter_counts_only_where_an_earlier_one_let_the_node_through() -> None:
    """As with kube-scheduler, a node that one filter has rejected is not asked about again."""

    class First(Plugin):
        name = "First"

        def filter_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
            return Verdict.where(np.arange(len(table))[rows] > 3, unschedulable("late"))

    trouble = filtering(lambda rows: Verdict.where(rows > 3, Status(Code.ERROR, ("on fire",))))
    assert evaluated(First, trouble).failure is None
    assert evaluated(trouble, First).failure is not None


def test_statuses_that_no_node_got_do_not_matter() -> None:
    unused = filtering(lambda rows: Verdict.where(rows < 0, Status(Code.ERROR, ("on fire",))))
    assert evaluated(unused).failure is None


@pytest.mark.parametrize("plugin", [type("Bare", (Plugin,), {"name": "Bare", "filter": None})])
def test_a_plugin_with_neither_form(plugin: type[Any]) -> None:
    from dsched.config import PluginRef, Profile
    from dsched.framework.runtime import Framework

    points = {"filter": (PluginRef("Bare"),)}
    framework = Framework(Profile("x", None, points, {}), {"Bare": plugin}, None)
    failure = evaluate(framework, POD, make_snapshot(NODES)).failure
    assert failure is not None
    assert "neither filter_table nor filter" in failure.message


# -- the per-node form ---------------------------------------------------------------------------------------------


class ZoneTable(Plugin):
    """Rejects zone a and too small nodes; likes later letters and CPU."""

    name = "Zone"
    normalization = Normalization.MAX

    def filter_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Verdict:
        index = np.zeros(len(np.arange(len(table))[rows]), dtype=np.int32)
        index[table.allocatable("cpu")[rows] < pod.demand.requests["cpu"]] = 2
        index[table.label("zone").is_in(["a"], rows)] = 1
        return Verdict(index, (unschedulable("zone a"), unresolvable("too small", "for web")))

    def score_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
        letters = np.array([ord(table.nodes[row].metadata.labels["zone"]) for row in np.arange(len(table))[rows]])
        return letters + table.allocatable("cpu")[rows]


class ZoneByNode(Plugin):
    """The same, node by node."""

    name = "Zone"
    normalization = Normalization.MAX

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        if node.node.metadata.labels["zone"] == "a":
            return unschedulable("zone a")
        if node.allocatable["cpu"] < pod.demand.requests["cpu"]:
            return unresolvable("too small", "for web")
        return Status(Code.SUCCESS)

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return ord(node.node.metadata.labels["zone"]) + int(node.allocatable["cpu"])


def test_per_node_plugins_equal_their_table_form() -> None:
    snapshot = make_snapshot(NODES)
    for number in range(3):
        by_table = evaluate(framework_of(ZoneTable), POD, snapshot)
        by_node = evaluate(framework_of(ZoneByNode), POD, snapshot)
        assert said(by_node, snapshot.table) == said(by_table, snapshot.table)
        snapshot.table.set_node(make_node(f"n{number}", cpu="8", labels={"zone": "c"}))


def test_per_node_plugins_are_asked_only_about_nodes_that_are_still_in() -> None:
    asked: list[tuple[str, str]] = []

    class Nosy(Plugin):
        name = "Nosy"

        def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
            asked.append(("filter", node.name))
            return unschedulable("last") if node.name == "n6" else None

        def score(self, state: Any, pod: Any, node: Any) -> int:
            asked.append(("score", node.name))
            return 1

    even = filtering(lambda rows: Verdict.where(rows % 2 == 0, unschedulable("even")))
    odd_ones_out = filtering(lambda rows: Verdict.where(rows % 2 == 1, unschedulable("odd")))
    evaluated(even, Nosy)
    assert asked == [(point, f"n{number}") for point in ("filter", "score") for number in (1, 3, 5)]
    asked.clear()
    evaluated(odd_ones_out, Nosy)
    assert [name for point, name in asked if point == "score"] == ["n0", "n2", "n4"]


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("filter", lambda *given: "no"),
        ("filter", lambda *given: True),
        ("filter", failing),
        ("filter", lambda *given: Status(Code.ERROR, ("on fire",))),
        ("filter", lambda *given: Status(Code.SKIP)),
        ("score", lambda *given: None),
        ("score", lambda *given: "7"),
        ("score", lambda *given: 7.5),
        ("score", lambda *given: 2**70),
        ("score", failing),
        ("score", lambda *given: 101),
    ],
)
def test_a_per_node_plugin_that_breaks_its_contract_fails_the_pod(method: str, answer: Any) -> None:
    odd = type("Odd", (Plugin,), {"name": "Odd", method: lambda self, state, pod, node: answer(node)})
    failure = evaluated(odd).failure
    assert failure is not None
    assert failure.plugin == "Odd"


def test_a_failed_class_is_evaluated_anew() -> None:
    evaluation = evaluated(filtering(failing))
    assert not evaluation.refresh()


def test_a_plugin_that_fails_while_rows_are_judged_again() -> None:
    class Moody(Plugin):
        name = "Moody"
        filter_scope = Scope.USAGE
        angry = False

        def filter_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Verdict:
            if Moody.angry:
                raise LookupError("not now")
            return Verdict.where(np.zeros(len(np.arange(len(table))[rows]), dtype=np.bool_), unschedulable(""))

    snapshot = make_snapshot(NODES)
    evaluation = evaluate(framework_of(Moody), POD, snapshot)
    Moody.angry = True
    snapshot.table.add_pod(PodInfo(make_pod("shop/other")), "n2")
    evaluation.refresh()
    assert evaluation.failure is not None
    Moody.angry = False
    assert not evaluation.refresh()


class Counting(Plugin):
    """A node takes two pods, the emptier the better; counts the rows that it is asked about one by one."""

    name = "Counting"
    filter_scope = Scope.USAGE
    score_scope = Scope.USAGE
    asked: list[int] = []

    def filter_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Verdict:
        return Verdict.where(table.pod_count[rows] >= 2, unschedulable("two"))

    def score_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
        return 90 - table.pod_count[rows]

    def filter_few(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
        self.asked.extend(rows)
        return [unschedulable("two") if table.pod_count[row] >= 2 else None for row in rows]

    def score_few(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
        self.asked.extend(rows)
        return [90 - int(table.pod_count[row]) for row in rows]


def after_two_pods(plugin: type[Any]) -> Evaluation:
    """Of all nodes, after two pods have come to one of them and one to another."""
    snapshot = make_snapshot(NODES)
    evaluation = evaluate(framework_of(plugin), POD, snapshot)
    for number, node in enumerate(("n2", "n5", "n2")):
        snapshot.table.add_pod(PodInfo(make_pod(f"shop/other{number}")), NodeName(node))
    evaluation.refresh()
    return evaluation


def test_the_form_for_few_rows_is_asked_about_those_that_changed() -> None:
    Counting.asked = []
    assert after_two_pods(Counting).totals.tolist() == [90, 90, -1, 90, 90, 89, 90]
    assert sorted(Counting.asked) == [2, 2, 5, 5]


def test_a_subclass_that_says_otherwise_of_the_table_is_asked_about_the_table() -> None:
    class Fuller(Counting):
        def filter_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Verdict:
            return Verdict.where(table.pod_count[rows] >= 1, unschedulable("one"))

    class Fullest(Counting):
        def __init__(self, args: Any, handle: Any) -> None:
            self.score_table = lambda state, pod, table, rows: table.pod_count[rows].copy()

    Counting.asked = []
    assert after_two_pods(Fuller).totals.tolist() == [90, 90, -1, 90, 90, -1, 90]
    assert after_two_pods(Fullest).totals.tolist() == [0, 0, -1, 0, 0, 1, 0]
    assert not Counting.asked


@pytest.mark.parametrize(
    ("form", "answer", "cause"),
    [
        ("filter_few", lambda rows: [None], "expected 2 statuses"),
        ("filter_few", lambda rows: None, "expected 2 statuses"),
        ("filter_few", lambda rows: [True] * len(rows), "answered with bool"),
        ("filter_few", lambda rows: [Status(Code.ERROR, ("disk on fire",))] * len(rows), "disk on fire"),
        ("filter_few", failing, "LookupError: no such zone"),
        ("score_few", lambda rows: [1], "expected 2 scores"),
        ("score_few", lambda rows: np.zeros(len(rows), dtype=np.int64), "expected 2 scores"),
        ("score_few", lambda rows: [0.5] * len(rows), "expected an int64"),
        ("score_few", lambda rows: [2**63] * len(rows), "expected an int64"),
        ("score_few", lambda rows: [101] * len(rows), "range of [0, 100]"),
        ("score_few", failing, "LookupError: no such zone"),
    ],
)
def test_a_form_for_few_rows_that_breaks_its_contract_fails_the_pod(form: str, answer: Any, cause: str) -> None:
    odd = type("Odd", (Counting,), {"name": "Odd", form: lambda self, state, pod, table, rows: answer(rows)})
    failure = after_two_pods(odd).failure
    assert failure is not None
    assert failure.plugin == "Odd"
    assert cause in failure.message


def test_what_reads_the_state_before_it_is_written() -> None:
    """NodePorts needs its PreFilter; a profile that leaves it out fails the pod and says what to do."""
    from dsched.plugins.node_ports import NodePorts

    class Only(NodePorts):
        pre_filter = None  # type: ignore[assignment]

    failure = evaluate(framework_of(Only), POD, make_snapshot(NODES)).failure
    assert failure is not None
    assert "enable it at preFilter" in failure.message
    assert CycleState().read(dict) is None


def test_an_error_counts_only_where_the_filter_is_asked_beside_the_pods_that_a_node_was_promised_to() -> None:
    """The node is rejected before, for the pod that it was promised to. Elsewhere the error ends it all."""

    class Crowded(Plugin):
        name = "Crowded"

        def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
            return unschedulable("crowded") if node.pods else None

    class Unsure(Plugin):
        name = "Unsure"
        errs = ("n1",)

        def filter_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
            erring = np.array([table.names[row] in self.errs for row in np.arange(len(table))[rows]])
            return Verdict.where(erring, Status(Code.ERROR, ("cannot tell",)))

    snapshot = make_snapshot([make_node("n1", cpu=2), make_node("n2", cpu=2)])
    snapshot.nominations.set(PodInfo(make_pod("shop/first", cpu=1, priority=10)), NodeName("n1"))
    framework = framework_of(Crowded, Unsure)
    found = evaluate(framework, POD, snapshot)
    assert found.failure is None
    assert said(found, snapshot.table)["feasible"] == {"n2"}
    assert [status.reasons for status, _ in found.rejections()] == [("crowded",)]
    assert not found.refresh()
    Unsure.errs = ("n1", "n2")
    failure = evaluate(framework, POD, snapshot).failure
    assert failure is not None
    assert failure.message == 'running "Unsure" filter plugin: cannot tell'


def test_an_error_about_a_rejected_node_counts_once_nobody_rejects_it_any_more() -> None:
    class Crowded(Plugin):
        name = "Crowded"
        filter_scope = Scope.USAGE

        def filter_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
            return Verdict.where(table.pod_count[rows] > 0, unschedulable("crowded"))

    class Unsure(Plugin):
        name = "Unsure"
        filter_scope = Scope.NODE

        def filter_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
            return Verdict.where(np.arange(len(table))[rows] == 0, Status(Code.ERROR, ("cannot tell",)))

    there = PodInfo(make_pod("shop/there"))
    snapshot = make_snapshot([make_node("n1"), make_node("n2")])
    snapshot.table.add_pod(there, NodeName("n1"))
    found = evaluate(framework_of(Crowded, Unsure), POD, snapshot)
    assert (found.failure, said(found, snapshot.table)["feasible"]) == (None, {"n2"})
    snapshot.table.remove_pod(there.uid)
    assert not found.refresh()
