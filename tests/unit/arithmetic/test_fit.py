"""Requested against allocatable."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dsched.arithmetic import fit
from dsched.arithmetic.fit import Shortage
from dsched.framework.table import Amounts
from tests.builders import make_node, make_pod, make_table

GIB = 1024**3


def judged(requests: dict[str, int], *, cpu: str = "4", used: str = "1", pods: int = 110) -> Shortage | None:
    """One node with 8Gi and one pod of 1Gi on it."""
    table = make_table([make_node("n1", cpu, "8Gi", pods)], [make_pod(cpu=used, memory="1Gi", node="n1")])
    index, kinds = fit.shortages(requests, table, table.all_rows)
    return kinds[index[0] - 1] if index[0] else None


def test_an_exact_fit_fits() -> None:
    # 4000 - 1000 free
    assert judged({"cpu": 3000, "memory": 7 * GIB}) is None
    assert judged({"cpu": 3001}) == Shortage(("cpu",), unresolvable=False)


def test_more_than_the_node_has_is_beyond_help() -> None:
    assert judged({"cpu": 4000}) == Shortage(("cpu",), unresolvable=False)
    assert judged({"cpu": 4001}) == Shortage(("cpu",), unresolvable=True)


def test_all_shortages_are_named_and_one_beyond_help_is_enough() -> None:
    assert judged({"cpu": 9000, "memory": 8 * GIB}, pods=1) == Shortage(("pods", "cpu", "memory"), unresolvable=True)


def test_what_is_not_requested_cannot_run_short() -> None:
    assert judged({"memory": GIB}, used="9") is None


def test_one_pod_too_many() -> None:
    assert judged({}, pods=1) == Shortage(("pods",), unresolvable=False)
    assert judged({}, pods=2) is None


def test_a_resource_that_no_node_has() -> None:
    assert judged({"example.com/fpga": 1}) == Shortage(("example.com/fpga",), unresolvable=True)


def test_nodes_with_the_same_shortage_share_a_kind() -> None:
    table = make_table([make_node("n1", "1"), make_node("n2", "4"), make_node("n3", "1"), make_node("n4", "1", pods=0)])
    index, kinds = fit.shortages({"cpu": 2000}, table, table.all_rows)
    assert len(kinds) == 2
    assert [kinds[number - 1].resources if number else () for number in index] == [
        ("cpu",),
        (),
        ("cpu",),
        ("pods", "cpu"),
    ]


def test_no_rows() -> None:
    table = make_table([make_node("n1")])
    index, kinds = fit.shortages({"cpu": 1}, table, np.zeros(0, dtype=np.intp))
    assert len(index) == 0 and kinds == ()


@settings(deadline=None)
@given(
    choices=st.lists(st.integers(0, 2**130 - 1), min_size=1, max_size=3),
    picks=st.lists(st.integers(0, 2), min_size=1, max_size=12),
    flags=st.integers(1, 130),
)
def test_distinct_groups_exactly_the_equal_columns(choices: list[int], picks: list[int], flags: int) -> None:
    bits = [choices[pick % len(choices)] for pick in picks]
    columns = [[bool(number >> place & 1) for place in range(flags)] for number in bits]
    array = np.array(columns, dtype=np.bool_).T
    group, patterns = fit.distinct(array)
    assert np.array_equal(patterns[:, group], array)
    assert patterns.shape[1] == len({tuple(column) for column in columns})


class Drawn:
    """Columns as they were drawn."""

    def __init__(self, amounts: dict[str, list[tuple[int, int]]], pods: list[tuple[int, int]]) -> None:
        self._amounts = amounts
        self._pods = np.array(pods, dtype=np.int64)

    def allocatable(self, resource: str) -> NDArray[np.int64]:
        return np.array([has for has, _ in self._amounts[resource]], dtype=np.int64)

    def requested(self, resource: str) -> NDArray[np.int64]:
        return np.array([used for _, used in self._amounts[resource]], dtype=np.int64)

    def amounts(self, resource: str) -> fit.Amounts:
        return Amounts(self.allocatable(resource).tolist(), self.requested(resource).tolist(), [])

    @property
    def pod_count(self) -> NDArray[np.int64]:
        return self._pods[:, 0]

    @property
    def allowed_pods(self) -> NDArray[np.int64]:
        return self._pods[:, 1]


HELD = st.one_of(st.integers(0, 20), st.integers(0, 2**63 - 1), st.integers(2**63 - 20, 2**63 - 1))
AMOUNT = st.one_of(st.integers(1, 20), st.integers(1, 2**63 - 1))
NODE = st.tuples(st.integers(0, 3), st.integers(0, 3), *(st.tuples(HELD, HELD) for _ in range(3)))


@settings(max_examples=400, deadline=None)
@given(
    nodes=st.lists(NODE, min_size=1, max_size=6),
    amounts=st.lists(AMOUNT, max_size=3),
    picks=st.lists(st.integers(0, 5), max_size=8),
)
def test_of_few_nodes_the_same_is_said(nodes: list[Any], amounts: list[int], picks: list[int]) -> None:
    """Zero and the largest amounts included: what is full to the brim of int64 has room for nothing."""
    names = [f"resource-{number}" for number in range(len(amounts))]
    columns = Drawn(
        {name: [node[2 + number] for node in nodes] for number, name in enumerate(names)},
        [(node[0], node[1]) for node in nodes],
    )
    requests, rows = dict(zip(names, amounts, strict=True)), [pick % len(nodes) for pick in picks]
    index, kinds = fit.shortages(requests, columns, np.array(rows, dtype=np.intp))
    expected = [kinds[number - 1] if number else None for number in index]
    assert fit.few_shortages(requests, columns, rows) == expected
    for row, shortage in zip(rows, expected, strict=True):
        for number, name in enumerate(names):
            has, used = nodes[row][2 + number]
            assert (used + amounts[number] > has) == (shortage is not None and name in shortage.resources)
