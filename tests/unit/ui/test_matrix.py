"""An explanation as a table of nodes and plugins, from the engine's own answers."""

from dsched.plugins import registry
from dsched.scheduler.memory import Memory
from dsched.simulation.explanation import explain
from dsched.simulation.live_cluster import LiveCluster
from dsched.ui.matrix import NOT_ASKED, PASSED, REJECTED, Matrix, matrix
from tests.builders import make_node, make_pod
from tests.unit.simulation.worlds import configured


def told(*nodes, cpu=1.0, **how) -> Matrix:
    memory = Memory()
    for node in nodes:
        memory.snapshot.table.set_node(node)
    standing = LiveCluster(memory, make_pod("shop/web", cpu=cpu))
    return matrix(explain(configured(), registry.intree(), standing), **how)


def test_nodes_that_fit_come_first_then_those_that_do_not():
    table = told(make_node("small", cpu=1), make_node("big", cpu=8), make_node("off", cpu=8, unschedulable=True), cpu=2)
    assert [row.node for row in table.rows] == ["big", "off", "small"]
    assert (table.nodes, table.fitting) == (3, 1)
    assert table.rows[0].marks == ["chosen"]
    assert table.rows[0].total is not None
    assert all(score is not None for score in table.rows[0].scores)


def test_who_was_asked_about_a_node():
    table = told(make_node("small", cpu=1), make_node("off", cpu=8, unschedulable=True), cpu=2)
    cells = {row.node: dict(zip(table.filters, row.filters, strict=True)) for row in table.rows}
    assert cells == {
        "small": {"NodeUnschedulable": PASSED, "NodeResourcesFit": REJECTED},
        "off": {"NodeUnschedulable": REJECTED, "NodeResourcesFit": NOT_ASKED},
    }
    assert {(row.plugin, row.why) for row in table.rows} == {
        ("NodeResourcesFit", "Insufficient cpu"),
        ("NodeUnschedulable", "node(s) were unschedulable"),
    }
    assert sorted(count for _, _, count in table.reasons) == [1, 1]


def test_filters_that_let_every_node_through_are_columns_only_when_asked_for():
    few, all_of_them = told(make_node("n1")), told(make_node("n1"), every_filter=True)
    assert few.filters == []
    assert set(all_of_them.filters) == set(few.passed_all)
    assert "NodeResourcesFit" in few.passed_all


def test_only_nodes_with_a_text_and_only_a_page():
    nodes = [make_node(f"n{number:03}", cpu=1 if number % 2 else 8) for number in range(250)]
    table = told(*nodes, cpu=2)
    assert (len(table.rows), table.more, table.fitting) == (100, True, 125)
    assert table.reasons == [("NodeResourcesFit", "Insufficient cpu", 125)]
    last = told(*nodes, cpu=2, page=3)
    assert (len(last.rows), last.more) == (50, False)
    assert all(row.total is None for row in last.rows)
    assert [row.node for row in told(*nodes, cpu=2, query="N007").rows] == ["n007"]
    assert len(told(*nodes, cpu=2, query="insufficient").rows) == 100


def test_where_the_pod_is():
    rows = {row.node: row.marks for row in told(make_node("n1"), make_node("n2", cpu=1), here="n2").rows}
    assert "is here" in rows["n2"]
    assert "is here" not in rows["n1"]
