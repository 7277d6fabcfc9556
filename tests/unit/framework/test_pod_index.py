"""The index of pods: after any history it says what counting the pods one by one says."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.arithmetic.affinity_terms import PodTerms, pod_terms
from dsched.arithmetic.domains import DomainCounts
from dsched.arithmetic.pod_query import PodQuery
from dsched.framework import pod_index
from dsched.framework.pod_index import PodIndex, RowCounts, label_keys_of, terms_of
from dsched.framework.pod_info import PodInfo
from dsched.framework.table import NodeTable
from dsched.model import selectors
from dsched.model.meta import NodeName
from dsched.model.selectors import Selector
from tests.builders import make_node, make_pod, make_table
from tests.unit.plugins.neighbours import HOST, ZONE, affinity, deleting, term

NODE_NAMES = [f"n{number}" for number in range(5)]
KEYS = (HOST, ZONE)
POD_NAMES = [f"p{number}" for number in range(8)]
WEB = selectors.labels_equal({"app": "web"})
QUERIES = [
    PodQuery(frozenset({"a"}), WEB),
    PodQuery(frozenset({"a"}), WEB, deleting=False),
    PodQuery(frozenset({"a", "b"}), selectors.labels_equal({"tier": "x"})),
    PodQuery(None, WEB),
    PodQuery(None, selectors.EVERYTHING),
    PodQuery(None, Selector(nothing=True)),
]
SPECS = [
    {},
    {},
    affinity(apart=[term(HOST, "app In web")]),
    affinity(near=[term(ZONE, "app In web")], dislikes=[(3, term(HOST, "app In web"))]),
]
PODS = st.builds(
    lambda namespace, name, labels, spec, gone: (deleting if gone else lambda pod: pod)(
        make_pod(f"{namespace}/{name}", labels=labels, spec=spec)
    ),
    st.sampled_from("ab"),
    st.sampled_from(POD_NAMES),
    st.sampled_from([{}, {"app": "web"}, {"app": "web", "tier": "x"}, {"tier": "x"}]),
    st.sampled_from(SPECS),
    st.sampled_from([False, False, False, True]),
)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("add"), PODS, st.sampled_from(NODE_NAMES)),
        st.tuples(st.just("add"), PODS, st.sampled_from(NODE_NAMES)),
        st.tuples(st.just("remove"), st.sampled_from(POD_NAMES)),
        st.tuples(st.just("node"), st.sampled_from(NODE_NAMES), st.sampled_from([None, "z1", "z2"])),
        st.tuples(st.just("node-gone"), st.sampled_from(NODE_NAMES)),
        st.tuples(st.just("ask"), st.sampled_from(QUERIES)),
    ),
    max_size=40,
)


def do(table: NodeTable, what: str, *args: Any) -> None:
    match what, args:
        case "add", (pod, node):
            table.add_pod(PodInfo(pod), NodeName(node))
        case "remove", (name,):
            table.remove_pod(f"uid-{name}")  # type: ignore[arg-type]
        case "node", (name, zone):
            table.set_node(make_node(name, labels={HOST: name} if zone is None else {HOST: name, ZONE: zone}))
        case "node-gone", (name,):
            table.remove_node(name)
        case "ask", (query,):
            assert table.pod_index.matching(query).tolist() == counted(table, query)
            assert by_domain(table, query) == {key: summed(table, key, counted(table, query)) for key in KEYS}


def by_domain(table: NodeTable, query: PodQuery) -> dict[str, dict[str, int]]:
    """By topology key and value, from the counts that follow the table."""
    return {key: named(table, key, table.pod_index.by_domain(query, table.division(key))) for key in KEYS}


def named(table: NodeTable, key: str, counts: DomainCounts) -> dict[str, int]:
    assert counts.total == counts.counts.sum()
    values = table.label(key).values[: len(counts.counts)]
    return {str(value): count for value, count in zip(values, counts.counts.tolist(), strict=True) if count}


def summed(table: NodeTable, key: str, by_row: list[int]) -> dict[str, int]:
    """What `named` has, node by node."""
    found = Counter[str]()
    for node, count in zip(table.nodes, by_row, strict=True):
        found[node.metadata.labels.get(key, "")] += count
    del found[""]
    return {value: count for value, count in found.items() if count}


def counted(table: NodeTable, query: PodQuery) -> list[int]:
    return [sum(query.admits_pod(pod.pod) for pod in table.info(row).pods) for row in range(len(table))]


def grouped(table: NodeTable) -> dict[PodTerms, dict[int, int]]:
    """Rows of the pods that have terms, counted by terms."""
    found: dict[PodTerms, dict[int, int]] = {}
    for row in range(len(table)):
        for pod in table.info(row).pods:
            terms = pod_terms(pod.pod)
            if not terms.empty:
                rows = found.setdefault(terms, Counter())
                rows[row] += 1
    return {terms: dict(rows) for terms, rows in found.items()}


def groups(index: PodIndex) -> dict[PodTerms, dict[int, int]]:
    found = {}
    for group in index.groups:
        rows, counts = group.pods.nonzero()
        found[group.terms] = dict(zip(rows.tolist(), counts.tolist(), strict=True))
        assert group.pods.total == counts.sum()
    return found


def same(table: NodeTable) -> None:
    for query in QUERIES:
        assert table.pod_index.matching(query).tolist() == counted(table, query)
        assert by_domain(table, query) == {key: summed(table, key, counted(table, query)) for key in KEYS}
    assert groups(table.pod_index) == grouped(table)
    for group in table.pod_index.groups:
        by_row = [grouped(table)[group.terms].get(row, 0) for row in range(len(table))]
        for key in KEYS:
            assert named(table, key, group.by_domain(table.division(key))) == summed(table, key, by_row)


@settings(max_examples=200, deadline=None)
@given(CHANGES, st.integers(0, 40))
def test_any_history_leads_to_what_counting_gives(changes: list[tuple[Any, ...]], used_from: int) -> None:
    """``used_from``: at which change the index is used for the first time."""
    table = make_table([make_node("n0"), make_node("n1")])
    for number, change in enumerate(changes):
        if change[0] != "ask" or number >= used_from:
            do(table, *change)
        if number == used_from:
            same(table)
    same(table)


@settings(max_examples=50, deadline=None)
@given(CHANGES)
def test_so_it_does_where_little_is_remembered(changes: list[tuple[Any, ...]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pod_index, "_MOST_CHANGES", 3)
        patch.setattr(pod_index, "_FEW_ROWS", 1)
        patch.setattr(pod_index, "MOST_QUERIES", 2)
        table = make_table([make_node("n0"), make_node("n1")])
        for change in changes:
            do(table, *change)
        same(table)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3))), st.sampled_from([1, 4, 256]))
def test_counts_by_row(added: list[tuple[int, int]], few: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pod_index, "_FEW_ROWS", few)
        tested, expected = RowCounts(), Counter[int]()
        for row, amount in added:
            tested.add(row, amount)
            expected[row] += amount
        for row, amount in added[::2]:
            tested.add(row, -amount)
            expected[row] -= amount
    rows, counts = tested.nonzero()
    assert dict(zip(rows.tolist(), counts.tolist(), strict=True)) == {row: n for row, n in expected.items() if n}
    assert tested.total == expected.total()


def test_versions_of_groups() -> None:
    table = make_table([make_node("n0")])
    index = table.pod_index
    assert not index.groups and index.groups_version == 0
    guards = [PodInfo(make_pod(f"a/g{number}", spec=SPECS[2])) for number in range(2)]
    table.add_pod(guards[0], NodeName("n0"))
    (group,) = index.groups
    seen = [(index.groups_version, group.version)]
    table.add_pod(guards[1], NodeName("n0"))
    table.add_pod(PodInfo(make_pod("a/plain")), NodeName("n0"))
    seen.append((index.groups_version, group.version))
    assert seen == [(1, 1), (1, 2)]
    for guard in guards:
        table.remove_pod(guard.uid)
    assert not index.groups and index.groups_version == 2
    table.add_pod(guards[0], NodeName("n0"))
    (again,) = index.groups
    assert again.number != group.number


def test_counts_are_kept_for_so_many_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_index, "MOST_QUERIES", 2)
    index = make_table([make_node("n0")]).pod_index
    for query in (QUERIES[0], QUERIES[1], QUERIES[0], QUERIES[2]):
        index.matching(query)
    assert list(index._columns) == [QUERIES[0], QUERIES[2]]


def test_what_no_query_asked_for_is_not_noted() -> None:
    table = make_table([make_node("n0")])
    index = table.pod_index
    table.add_pod(PodInfo(make_pod("a/p")), NodeName("n0"))
    assert index._kinds is None and not index._changes
    assert index.matching(QUERIES[4]).tolist() == [1]


def test_a_table_that_grows() -> None:
    table = make_table([make_node("n0")])
    assert table.pod_index.matching(QUERIES[3]).tolist() == [0]
    for number in range(1, 200):
        table.set_node(make_node(f"n{number}"))
        table.add_pod(PodInfo(make_pod(f"a/p{number}", labels={"app": "web"}, spec=SPECS[2])), NodeName(f"n{number}"))
        assert len(table.pod_index.matching(QUERIES[3])) == number + 1
    assert np.array_equal(table.pod_index.matching(QUERIES[3]), [0] + [1] * 199)
    same(table)


def test_terms_are_parsed_once_for_pods_that_have_the_same() -> None:
    one, two = (PodInfo(make_pod(f"a/{name}", spec=SPECS[3], labels={"of": name})) for name in ("one", "two"))
    assert terms_of(one) is terms_of(two)
    assert terms_of(PodInfo(make_pod())).empty


@pytest.mark.parametrize("taken", ["matchLabelKeys", "mismatchLabelKeys"])
def test_terms_that_take_values_of_the_pods_labels_are_told_apart(taken: str) -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, taken: ["version"]}
    spec = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    old, new, same = (
        PodInfo(make_pod(f"a/{number}", spec=spec, labels={"version": version, "of": f"{number}"}))
        for number, version in enumerate("122")
    )
    assert terms_of(old) != terms_of(new)
    assert terms_of(new) is terms_of(same)
    assert label_keys_of(new) == {"app", "version"}


def test_it_knows_at_which_labels_the_terms_of_its_pods_look() -> None:
    table = NodeTable()
    table.set_node(make_node("n1"))
    asking = [PodInfo(make_pod(f"a/{number}", spec=spec)) for number, spec in enumerate(SPECS * 2)]
    for pod in asking:
        table.add_pod(pod, NodeName("n1"))
    for pod in asking:
        assert table.pod_index.label_keys == frozenset().union(*(terms_of(each).label_keys for each in asking))
        table.remove_pod(pod.uid)
        asking = asking[1:]
    assert not table.pod_index.label_keys


def test_so_many_divisions_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_index, "_MOST_DIVISIONS", 2)
    table = make_table([make_node("n0", labels={HOST: "n0", ZONE: "z"})])
    first, second, third = (table.division(key) for key in (HOST, ZONE, "rack"))
    known = [table.pod_index.by_domain(QUERIES[0], division) for division in (first, second, third)]
    assert table.pod_index.by_domain(QUERIES[0], third) is known[2]
    assert table.pod_index.by_domain(QUERIES[0], second) is known[1]
    assert table.pod_index.by_domain(QUERIES[0], first) is not known[0]


def test_what_was_counted_of_the_nodes_as_they_were_is_not_kept() -> None:
    table = make_table([make_node("n0", labels={HOST: "n0"})])
    before = table.division(HOST)
    counted = table.pod_index.by_domain(QUERIES[0], before)
    assert table.pod_index.by_domain(QUERIES[0], before) is counted
    table.set_node(make_node("n0", labels={HOST: "n0", ZONE: "z"}))
    table.pod_index.by_domain(QUERIES[0], table.division(HOST))
    assert table.pod_index.by_domain(QUERIES[0], before) is not counted


def test_sums_of_a_group_on_few_nodes_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_index, "_FEW_ROWS", 1)
    table = make_table([make_node(name, labels={HOST: name}) for name in ("n0", "n1")])
    kept = []
    for name in ("n0", "n1"):
        table.add_pod(PodInfo(make_pod(f"a/{name}", spec=SPECS[2])), NodeName(name))
        (group,) = table.pod_index.groups
        kept.append(group.by_domain(table.division(HOST)) is group.by_domain(table.division(HOST)))
    assert kept == [False, True]
