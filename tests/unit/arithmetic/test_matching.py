"""Node selectors and taints over whole columns: the same as node by node."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.arithmetic import matching
from dsched.model import node_selectors, selectors
from dsched.model.node import Taint
from tests.builders import make_node, make_pod, make_table, make_term

KEYS, VALUES = ["zone", "cpus"], ["a", "b", "4", "8", ""]
LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
EXPRESSIONS = st.one_of(
    st.builds("{} In {} {}".format, st.sampled_from(KEYS), st.sampled_from(VALUES), st.sampled_from(VALUES)),
    st.builds("{} NotIn {}".format, st.sampled_from(KEYS), st.sampled_from(VALUES)),
    st.builds("{} {}".format, st.sampled_from(KEYS), st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds("{} {} 5".format, st.sampled_from(KEYS), st.sampled_from(["Gt", "Lt"])),
)
FIELDS = st.builds(
    "{} {} {}".format,
    st.sampled_from(["metadata.name", "metadata.uid"]),
    st.sampled_from(["In", "NotIn"]),
    st.sampled_from(["n0", "n1", "gone", ""]),
)
TERMS = st.builds(
    lambda expressions, fields: make_term(*expressions, fields=fields),
    st.lists(EXPRESSIONS, max_size=3),
    st.lists(FIELDS, max_size=2),
)


@settings(deadline=None)
@given(
    labels=st.lists(LABELS, min_size=1, max_size=30),
    terms=st.none() | st.lists(TERMS, max_size=3),
    selector=LABELS,
)
def test_required_is_what_each_node_says(
    labels: list[dict[str, str]], terms: list[dict[str, Any]] | None, selector: dict[str, str]
) -> None:
    nodes = [make_node(f"n{number}", labels=each) for number, each in enumerate(labels)]
    wanted = node_selectors.required(make_pod(required=terms, node_selector=selector).spec)
    table = make_table(nodes)
    expected = [wanted.matches(node.metadata.labels, node.name) for node in nodes]
    assert matching.required(wanted, table, table.all_rows).tolist() == expected
    backwards = np.arange(len(nodes))[::-1]
    assert matching.required(wanted, table, backwards).tolist() == expected[::-1]


def test_nothing_matches_no_row() -> None:
    table = make_table([make_node("n1"), make_node("n2")])
    assert matching.labelled(selectors.NOTHING, table, table.all_rows).tolist() == [False, False]
    assert matching.labelled(selectors.EVERYTHING, table, table.all_rows).tolist() == [True, True]


def test_is_row() -> None:
    assert matching.is_row(3, slice(2, 5)).tolist() == [False, True, False]
    assert matching.is_row(7, slice(2, 5)).tolist() == [False, False, False]
    assert matching.is_row(None, slice(2, 5)).tolist() == [False, False, False]
    assert matching.is_row(4, np.array([4, 1])).tolist() == [True, False]


def test_each_list_of_taints_is_asked_once() -> None:
    class Lengths(matching.TaintSetNumbers):
        def __init__(self) -> None:
            super().__init__()
            self.asked: list[tuple[Taint, ...]] = []

        def number(self, taints: tuple[Taint, ...]) -> int:
            self.asked.append(taints)
            return len(taints)

    table, lengths = make_table([make_node("n1", taints=["a:NoSchedule"]), make_node("n2")]), Lengths()
    assert lengths.all(table)[table.taint_set].tolist() == [1, 0]
    table.set_node(make_node("n3", taints=["a:NoSchedule"]))
    table.set_node(make_node("n2", taints=["a:NoSchedule", "b:NoExecute"]))
    assert lengths.all(table)[table.taint_set].tolist() == [1, 2, 1]
    assert [len(taints) for taints in lengths.asked] == [0, 1, 2]
