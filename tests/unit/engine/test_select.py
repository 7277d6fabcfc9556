"""Choosing the host: how many nodes are looked for, in which order, and who wins among equals."""

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.engine.evaluation import Evaluation, evaluate
from dsched.engine.select import Choice, Selector, Walk, nodes_to_find, zone_order
from dsched.framework.interface import Normalization, Scope, Verdict, unresolvable, unschedulable
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName
from dsched.model.node import Node
from tests.builders import make_node, make_pod, make_snapshot, make_table, make_term
from tests.unit.framework.frameworks import default_framework, framework_of

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"


@pytest.mark.parametrize(
    ("percentage", "nodes", "wanted"),
    [
        (0, 0, 0),
        (0, 10, 10),
        (40, 10, 10),
        (1, 99, 99),
        (1, 100, 100),
        (0, 100, 100),  # 50 - 0 = 50 % = 50, at least 100
        (0, 1000, 420),  # 50 - 1000/125 = 42 %
        (40, 1000, 400),
        (5, 1000, 100),  # 50, at least 100
        (0, 6000, 300),  # 50 - 48 = 2 %, at least 5 %
        (40, 6000, 2400),
        (100, 6000, 6000),
    ],
)
def test_how_many_nodes_are_looked_for(percentage: int, nodes: int, wanted: int) -> None:
    """Source: schedule_one_test.go ``TestNumFeasibleNodesToFind``."""
    assert nodes_to_find(percentage, nodes) == wanted


def zoned(name: str, zone: str = "", region: str = "") -> Node:
    labels = {key: value for key, value in ((ZONE, zone), (REGION, region)) if value}
    return make_node(name, labels=labels)


def test_sampling_goes_round_the_zones() -> None:
    """Source: node_tree_test.go ``TestNodeTree_List``."""
    nodes = [
        zoned("a1", "a"),
        zoned("a2", "a"),
        zoned("a3", "a"),
        zoned("b1", "b"),
        zoned("none"),
        zoned("a4", "a", "r"),
    ]
    table = make_table(nodes)
    assert [table.names[row] for row in zone_order(table)] == ["a1", "b1", "none", "a4", "a2", "a3"]


def test_old_zone_labels_count_where_the_new_ones_are_absent() -> None:
    old = make_node("old", labels={"failure-domain.beta.kubernetes.io/zone": "a"})
    table = make_table([zoned("a1", "a"), old, zoned("b1", "b")])
    assert [table.names[row] for row in zone_order(table)] == ["a1", "b1", "old"]


class Picky:
    """Rejects the nodes that are listed; scores the others by their number, modulo 5."""

    name = "Picky"
    filter_scope = score_scope = Scope.NODE
    normalization = Normalization.MAX
    rejected: frozenset[str] = frozenset()

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def filter_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Verdict:
        names = [table.names[row] for row in np.arange(len(table))[rows]]
        return Verdict.where(np.array([name in self.rejected for name in names], dtype=np.bool_), unschedulable("no"))

    def score_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
        return [int(table.names[row][1:]) % 5 for row in np.arange(len(table))[rows]]


def picky(*rejected: int) -> type[Any]:
    return type("Picky", (Picky,), {"rejected": frozenset(f"n{number:03}" for number in rejected)})


def many(count: int) -> Snapshot:
    return make_snapshot(make_node(f"n{number:03}") for number in range(count))


def choose(selector: Selector, plugin: type[Any], snapshot: Snapshot, percentage: int) -> Choice | None:
    evaluation = evaluate(framework_of(plugin), PodInfo(make_pod()), snapshot)
    return selector.choose(evaluation, snapshot.table, "uid", 1, percentage)


def test_sampling_stops_at_the_wanted_number_and_goes_on_from_there() -> None:
    """200 nodes, 50 %: 100 feasible ones are wanted. n000..n009 are rejected: 110 are examined, then from n110 on."""
    selector, snapshot = Selector(0), many(200)
    first = choose(selector, picky(*range(10)), snapshot, 50)
    assert first is not None
    assert first.examined == 110
    assert first.best.tolist() == [row for row in range(10, 110) if row % 5 == 4]
    assert selector.next_start == 110
    second = choose(selector, picky(*range(10)), snapshot, 50)
    assert second is not None
    # 110..199 are 90, then 10 rejected ones, then 010..019
    assert second.examined == 110
    assert second.best.tolist() == [row for row in (*range(10, 20), *range(110, 200)) if row % 5 == 4]
    assert selector.next_start == 20


def test_a_sample_is_scored_as_if_there_were_no_other_nodes() -> None:
    """The best of all 200 lies beyond the first 100; among these the highest score becomes 100."""

    class Rising(Picky):
        def score_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
            return np.arange(len(table))[rows]

    found = choose(Selector(0), Rising, many(200), 50)
    assert found is not None
    assert found.best.tolist() == [99]


def test_all_nodes_are_examined_where_too_few_fit() -> None:
    selector = Selector(0)
    selector.next_start = 33
    found = choose(selector, picky(*range(5, 200)), many(200), 50)
    assert found is not None
    assert (found.examined, found.best.tolist(), selector.next_start) == (200, [4], 33)


@pytest.mark.parametrize(("percentage", "cpu"), [(50, "1"), (100, "1"), (50, "64")])
def test_a_search_of_the_nodes_that_pre_filter_left_moves_the_start_by_as_many(percentage: int, cpu: str) -> None:
    """Also where none of them fits, and where this profile does not sample: the start is that of all profiles."""
    selector, snapshot = Selector(0), many(200)
    selector.next_start = 199
    terms = [make_term(fields=[f"metadata.name In {name}"]) for name in ("n003", "n007", "gone")]
    pod = PodInfo(make_pod(required=terms, cpu=cpu))
    evaluation = evaluate(default_framework(snapshot), pod, snapshot)
    found = selector.choose(evaluation, snapshot.table, pod.uid, 1, percentage)
    assert (found is None, selector.next_start) == (cpu == "64", 1)


def test_few_nodes_are_never_sampled() -> None:
    selector = Selector(0)
    found = choose(selector, picky(), many(99), 1)
    assert found is not None
    assert (found.examined, selector.next_start) == (99, 0)


def test_the_start_stays_within_a_cluster_that_shrank() -> None:
    selector = Selector(0)
    selector.next_start = 150
    snapshot = many(120)
    assert choose(selector, picky(), snapshot, 10) is not None
    assert 0 <= selector.next_start < 120


@pytest.mark.parametrize("percentage", [100, 30])
def test_a_pod_that_pre_filter_rejected_has_no_host(percentage: int) -> None:
    snapshot = many(150)
    pod = PodInfo(make_pod(required=[make_term(fields=["metadata.name In x", "metadata.name In y"])]))
    evaluation = evaluate(default_framework(), pod, snapshot)
    assert evaluation.rejection is not None
    assert Selector(0).choose(evaluation, snapshot.table, pod.uid, 1, percentage) is None


@given(begin=st.integers(0, 179), full=st.sets(st.integers(0, 149)), percentage=st.sampled_from([0, 50, 90]))
def test_a_placement_is_searched_as_a_cluster_of_its_nodes(begin: int, full: set[int], percentage: int) -> None:
    names = [f"n{place:03}" for place in range(150)]
    nodes = [make_node(name, cpu="0" if place in full else "4") for place, name in enumerate(names)]
    more = [make_node(f"other{place}", cpu="4") for place in range(30)]
    together, alone = make_snapshot([*more[:10], *nodes, *more[10:]]), make_snapshot(nodes)
    pod, rows = PodInfo(make_pod(cpu="1")), np.array([together.table.index[name] for name in names], dtype=np.intp)
    part = Evaluation(default_framework(together), pod, together, among=rows)
    part.judge_here()
    whole, found = evaluate(default_framework(alone), pod, alone), []
    for evaluation, table in ((part, together.table), (whole, alone.table)):
        selector = Selector(0)
        selector.next_start = begin if table is together.table else begin % len(alone.table)
        looked, examined = selector.search(evaluation, table, percentage)
        names_of = {table.names[row] for row in looked}
        best = {table.names[row] for row in evaluation.best_among(looked)} if len(looked) else set()
        found.append((names_of, examined, selector.next_start, best))
    assert found[0] == found[1]


def test_a_narrowed_search_is_not_sampled() -> None:
    snapshot = many(150)
    pod = PodInfo(make_pod(required=[make_term(fields=["metadata.name In n149"])]))
    found = Selector(0).choose(evaluate(default_framework(), pod, snapshot), snapshot.table, pod.uid, 1, 30)
    assert found is not None
    assert found.row == 149


def test_the_order_of_the_zones_follows_their_labels() -> None:
    """A node that moves to another zone moves in the order of the search, too."""
    snapshot = make_snapshot(zoned(f"n{number:03}", "a" if number < 100 else "b") for number in range(200))
    selector, plugin = Selector(0), picky()
    choose(selector, plugin, snapshot, 50)
    for number in range(100):
        snapshot.table.set_node(zoned(f"n{number:03}", "b"))
    selector.next_start = 0
    found = choose(selector, plugin, snapshot, 50)
    fresh = choose(Selector(0), plugin, snapshot, 50)
    assert found is not None
    assert fresh is not None
    assert found.best.tolist() == fresh.best.tolist()


# -- the choice among equals ---------------------------------------------------------------------------------------


def drawn(names: list[str], seed: int, uid: str, attempt: int = 1) -> str:
    snapshot = make_snapshot(make_node(name) for name in names)
    evaluation = evaluate(framework_of(), PodInfo(make_pod()), snapshot)
    found = Selector(seed).choose(evaluation, snapshot.table, uid, attempt, 100)
    assert found is not None
    assert len(found.best) == len(names)
    return snapshot.table.names[found.row]


def test_the_choice_does_not_depend_on_the_order_of_rows() -> None:
    names, rng = [f"n{number}" for number in range(9)], Random(1)
    for number in range(50):
        shuffled = rng.sample(names, len(names))
        assert drawn(shuffled, 7, f"uid-{number}") == drawn(names, 7, f"uid-{number}")


def test_nor_do_names_of_equal_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dsched.framework.table._hash", lambda name: 7 if name < "n5" else 8)
    test_the_choice_does_not_depend_on_the_order_of_rows()


def test_the_choice_follows_nodes_that_come_and_go() -> None:
    names, rng, selector = [f"n{number}" for number in range(12)], Random(2), Selector(7)
    snapshot = make_snapshot(make_node(name) for name in names[:6])
    for number in range(60):
        name = rng.choice(names)
        if name in snapshot.table.index:
            snapshot.table.remove_node(NodeName(name))
        else:
            snapshot.table.set_node(make_node(name))
        there = list(snapshot.table.names)
        if not there:
            continue
        evaluation = evaluate(framework_of(), PodInfo(make_pod()), snapshot)
        found = selector.choose(evaluation, snapshot.table, f"uid-{number}", 1, 100)
        assert found is not None
        assert there[found.row] == drawn(there, 7, f"uid-{number}")


def test_the_choice_depends_on_nothing_but_seed_pod_attempt_and_nodes() -> None:
    names = [f"n{number}" for number in range(9)]
    snapshot = make_snapshot(make_node(name) for name in names)
    evaluation = evaluate(framework_of(), PodInfo(make_pod()), snapshot)
    busy = Selector(7)
    for number in range(20):
        busy.choose(evaluation, snapshot.table, f"uid-{number}", 1, 100)
    found = busy.choose(evaluation, snapshot.table, "uid-last", 1, 100)
    assert found is not None
    assert snapshot.table.names[found.row] == drawn(names, 7, "uid-last")


@pytest.mark.parametrize("equal", [300, 30, 3, 1])
def test_the_choice_is_the_same_whether_or_not_the_best_set_is_told(equal: int) -> None:
    """Of 300 nodes so many are best."""

    class Favours(Picky):
        def score_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
            return (np.arange(len(table))[rows] % 300 < equal).astype(np.int64)

    snapshot = many(300)
    evaluation = evaluate(framework_of(Favours), PodInfo(make_pod()), snapshot)
    telling, silent = Selector(5), Selector(5, tell_best=False)
    for number in range(100):
        told = telling.choose(evaluation, snapshot.table, f"uid-{number}", 1, 100)
        found = silent.choose(evaluation, snapshot.table, f"uid-{number}", 1, 100)
        assert told is not None and found is not None
        assert len(told.best) == equal
        assert found.row == told.row
        assert not len(found.best)


@pytest.mark.parametrize("places", [1, 2, 6, 97, 360])
def test_a_walk_visits_every_place_once(places: int) -> None:
    for number in range(20):
        walk = Walk.of(f"walk {number}", places)
        visited = (walk.start + walk.stride * np.arange(places)) % places
        assert sorted(visited.tolist()) == list(range(places))
        assert walk.steps_to(visited).tolist() == list(range(places))


@pytest.mark.parametrize("vary", ["uid", "attempt", "seed"])
def test_equals_win_equally_often(vary: str) -> None:
    """Chi-square with 7 degrees of freedom: 24.3 is exceeded once in a thousand times; the draws here are fixed."""
    names = [f"node-{number}" for number in range(8)]
    snapshot = make_snapshot(make_node(name) for name in names)
    evaluation = evaluate(framework_of(), PodInfo(make_pod()), snapshot)
    wins: Counter[int] = Counter()
    draws, selector = 4000, Selector(11)
    for number in range(draws):
        if vary == "seed":
            selector = Selector(number)
        uid, attempt = (f"uid-{number}" if vary == "uid" else "uid"), (number if vary == "attempt" else 1)
        found = selector.choose(evaluation, snapshot.table, uid, attempt, 100)
        assert found is not None
        wins[found.row] += 1
    expected = draws / len(names)
    assert sum((wins[row] - expected) ** 2 / expected for row in range(len(names))) < 24.3


def test_the_choice_among_some_of_the_nodes_is_fair_as_well() -> None:
    """Which two nodes are equal must not favour one of them."""
    wins: Counter[str] = Counter()
    for number in range(400):
        first, second = f"a{number}", f"b{number}"
        wins[drawn([first, second], 5, "uid")[0]] += 1
    assert 160 <= wins["a"] <= 240  # 200 ± 4 standard deviations


def test_no_nodes_at_all() -> None:
    snapshot = make_snapshot()
    evaluation = evaluate(default_framework(), PodInfo(make_pod()), snapshot)
    assert Selector(0).choose(evaluation, snapshot.table, "uid", 1, 100) is None
    assert unresolvable("x").rejected
