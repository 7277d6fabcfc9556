"""Requested against allocatable."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.arithmetic import fit
from dsched.arithmetic.fit import Shortage
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
