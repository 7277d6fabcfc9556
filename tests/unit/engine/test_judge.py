"""Columns of answers: shards put together are the whole, and single rows can be written over."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.engine.evaluation import Evaluation, evaluate
from dsched.engine.judge import Columns, join, overwrite
from dsched.framework.interface import Scope, Status, Verdict, unresolvable, unschedulable
from dsched.framework.pod_info import PodInfo
from tests.builders import make_node, make_pod, make_snapshot
from tests.unit.framework.answers import said
from tests.unit.framework.frameworks import default_framework, framework_of
from tests.unit.framework.shards import replicas_of, through_the_wire

STATUSES = [unschedulable("a"), unschedulable("b"), unresolvable("a"), unschedulable("a", "b")]
ANSWERS = st.lists(st.sampled_from([None, *STATUSES]), max_size=12)


def verdict(answers: list[Status | None]) -> Verdict:
    """Statuses numbered in the order they come."""
    statuses = list(dict.fromkeys(status for status in answers if status is not None))
    index = [0 if status is None else statuses.index(status) + 1 for status in answers]
    return Verdict(np.array(index, dtype=np.int32), tuple(statuses))


def answers_of(column: Verdict) -> list[Status | None]:
    return [column.statuses[number - 1] if number else None for number in column.index]


@given(ANSWERS, st.data())
def test_overwriting_rows(before: list[Status | None], data: st.DataObject) -> None:
    at = data.draw(st.lists(st.sampled_from(range(len(before))), unique=True) if before else st.just([]))
    after = data.draw(st.lists(st.sampled_from([None, *STATUSES]), min_size=len(at), max_size=len(at)))
    found = overwrite(verdict(before), np.array(at, dtype=np.intp), verdict(after))
    expected = list(before)
    for place, status in zip(at, after, strict=True):
        expected[place] = status
    assert answers_of(found) == expected
    assert len(set(found.statuses)) == len(found.statuses)


ASKED: set[tuple[str, str]] = set()
"""Filter and node, of the filters that judge node by node."""


def filtering(number: int, scope: Scope, by_table: bool, rejects: frozenset[str]) -> type[Any]:
    """A filter that rejects some nodes and notes, where it judges node by node, which it is asked about."""

    class Filters:
        name = f"Filter{number}"
        filter_scope = scope

        def __init__(self, args: Any, handle: Any) -> None:
            pass

    def filter_table(self: Any, state: Any, pod: Any, table: Any, rows: Any) -> Verdict:
        names = np.array(table.names, dtype=object)[rows]
        return Verdict.where(np.isin(names, list(rejects)), unschedulable(self.name))

    def filter_node(self: Any, state: Any, pod: Any, node: Any) -> Status | None:
        ASKED.add((self.name, node.name))
        return unschedulable(self.name) if node.name in rejects else None

    setattr(Filters, *(("filter_table", filter_table) if by_table else ("filter", filter_node)))
    return Filters


def scoring(number: int, scope: Scope, by_table: bool) -> type[Any]:
    """A score of its own for each node; its PreScore counts on PreFilter of the same plugin."""

    class Kept(int):
        pass

    class Scores:
        name = f"Score{number}"
        score_scope = scope
        pre_filter_scope = scope

        def __init__(self, args: Any, handle: Any) -> None:
            pass

        def pre_filter(self, state: Any, pod: Any, snapshot: Any) -> None:
            state.write(Kept(number))

        def pre_score(self, state: Any, pod: Any, snapshot: Any, feasible: Any) -> None:
            state.write(Kept(state.read(Kept) + 1))

    def score_table(self: Any, state: Any, pod: Any, table: Any, rows: Any) -> Any:
        return np.array([len(name) + state.read(Kept) for name in table.names], dtype=np.int64)[rows]

    def score(self: Any, state: Any, pod: Any, node: Any) -> int:
        return len(node.name) + state.read(Kept)

    setattr(Scores, *(("score_table", score_table) if by_table else ("score", score)))
    return Scores


NODES = [make_node("n" * (1 + number % 3) + str(number)) for number in range(9)]
SCOPES, NAMES = st.sampled_from(list(Scope)), st.frozensets(st.sampled_from([node.name for node in NODES]))
POD = PodInfo(make_pod("shop/web"))


@settings(max_examples=150)
@given(
    st.lists(st.tuples(SCOPES, st.booleans(), NAMES), max_size=6),
    st.lists(st.tuples(SCOPES, st.booleans()), max_size=4),
    st.integers(1, 5),
)
def test_shards_joined_are_the_whole(filters: list[Any], scores: list[Any], shards: int) -> None:
    """Whatever the plugins look at, whatever form they have; and no node is asked about that would not be here."""
    plugins = [filtering(number, *each) for number, each in enumerate(filters)]
    plugins += [scoring(number, *each) for number, each in enumerate(scores)]
    framework, snapshot = framework_of(*plugins), make_snapshot(NODES)
    ASKED.clear()
    here = evaluate(framework, POD, snapshot)
    asked_here = ASKED.copy()
    ASKED.clear()
    there = Evaluation(framework, POD, snapshot)
    through_the_wire(there, snapshot, replicas_of(snapshot, shards, [framework]))
    assert said(there, snapshot.table) == said(here, snapshot.table)
    assert asked_here == ASKED


def test_who_looks_no_further_than_a_node_needs_no_more_than_a_shard() -> None:
    near, beyond = filtering(0, Scope.USAGE, False, frozenset()), filtering(1, Scope.CLUSTER, True, frozenset())
    assert framework_of(near, beyond, scoring(0, Scope.SUMS, True)).shards_suffice
    assert not framework_of(near, filtering(1, Scope.NODES, False, frozenset())).shards_suffice
    assert not framework_of(scoring(0, Scope.ANYTHING, False)).shards_suffice
    assert default_framework().shards_suffice


def test_columns_of_no_shard() -> None:
    assert len(join(framework_of(), Columns(np.zeros(0, dtype=np.bool_)), []).passed) == 0
