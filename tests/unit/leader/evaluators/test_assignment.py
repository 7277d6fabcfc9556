"""Who holds which parts of the table: all parts, evenly by nodes, and as they were where nobody comes or goes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dsched.engine.partitions import PARTS
from dsched.leader.evaluators.assignment import KEPT_S, Assignment

NAMES = st.sets(st.sampled_from([f"evaluator-{number}" for number in range(7)]), min_size=1)
EVEN = np.full(PARTS, 5)
NODES = st.sampled_from([0, 1, 9]).flatmap(lambda most: st.integers(0, 2**32).map(lambda seed: _some(seed, most)))


def _some(seed: int, most: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, most + 1, PARTS)


@given(st.lists(st.tuples(NAMES, NODES), min_size=1, max_size=6))
def test_every_part_is_held_once_and_each_has_its_share_of_the_nodes(turns: list[tuple[set[str], np.ndarray]]) -> None:
    shares, now_s = Assignment(), 0.0
    before: dict[str, set[int]] = {}
    for names, nodes in turns:
        now_s += KEPT_S
        found = {name: set(parts) for name, parts in shares.among(names, nodes, now_s).items()}
        assert sorted(part for parts in found.values() for part in parts) == list(range(PARTS))
        assert found.keys() == names
        if found.keys() != before.keys():
            held = [int(nodes[list(parts)].sum()) for parts in found.values()]
            assert max(held) <= nodes.sum() / len(held) + nodes.max() + 1  # the fullest is whom the leader waits for
        before = found


@given(st.lists(NAMES, min_size=2, max_size=6))
def test_nobody_both_gets_parts_and_lets_parts_go(turns: list[set[str]]) -> None:
    shares, now_s = Assignment(), 0.0
    before: dict[str, set[int]] = {}
    for names in turns:
        now_s += KEPT_S
        found = {name: set(parts) for name, parts in shares.among(names, EVEN, now_s).items()}
        for name in before.keys() & found.keys():
            assert found[name] <= before[name] or before[name] <= found[name]
        before = found


def test_who_comes_takes_from_the_others_and_they_only_let_go() -> None:
    shares = Assignment()
    first = {name: set(parts) for name, parts in shares.among(["a", "b"], EVEN, 0.0).items()}
    then = {name: set(parts) for name, parts in shares.among(["a", "b", "c"], EVEN, 1.0).items()}
    assert then["a"] < first["a"]
    assert then["b"] < first["b"]
    assert then["c"] == set(range(PARTS)) - then["a"] - then["b"]


def test_a_few_nodes_are_shared_out_too() -> None:
    nodes = np.zeros(PARTS, dtype=np.intp)
    nodes[100:110] = 1
    found = Assignment().among(["a", "b"], nodes, 0.0)
    assert [int(nodes[list(parts)].sum()) for parts in found.values()] == [5, 5]
    assert [len(parts) for parts in found.values()] == [PARTS // 2] * 2


def test_parts_are_dealt_out_again_where_nodes_have_come_to_one() -> None:
    shares, nodes = Assignment(), np.zeros(PARTS, dtype=np.intp)
    first = shares.among(["a", "b"], nodes, 0.0)
    nodes[list(first["a"])] = 1
    assert shares.among(["a", "b"], nodes, KEPT_S - 1) == first
    then = shares.among(["a", "b"], nodes, KEPT_S)
    assert abs(int(nodes[list(then["a"])].sum()) - int(nodes[list(then["b"])].sum())) <= 2
    nodes[then["b"][0]] += 8
    assert shares.among(["a", "b"], nodes, 3 * KEPT_S) == then


def test_more_evaluators_than_parts() -> None:
    found = Assignment().among([f"e{number}" for number in range(PARTS + 3)], EVEN, 0.0)
    assert sorted(len(parts) for parts in found.values()) == [0] * 3 + [1] * PARTS


def test_nobody() -> None:
    assert Assignment().among([], EVEN, 0.0) == {}


def test_who_is_away_for_a_while_keeps_its_parts() -> None:
    shares = Assignment()
    first = {name: list(parts) for name, parts in shares.among(["a", "b"], EVEN, 0.0).items()}
    assert shares.among(["b"], EVEN, KEPT_S - 1) == first
    assert shares.among(["a", "b"], EVEN, KEPT_S + 1) == first
    assert shares.among(["b"], EVEN, 2 * KEPT_S) == first
    assert shares.among(["b"], EVEN, 2 * KEPT_S + 1) == {"b": list(range(PARTS))}
