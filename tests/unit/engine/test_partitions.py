"""Parts of the node table: every node is in one, whatever other nodes there are."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dsched.engine.partitions import PARTS, Partitions, keep_only, part_of
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model.meta import NodeName
from tests.builders import make_node, make_pod, make_snapshot

NAMES = st.lists(st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True), unique=True, max_size=20)


@given(NAMES, st.integers(1, PARTS))
def test_shards_have_each_row_once(names: list[str], shards: int) -> None:
    table, partitions = NodeTable(), Partitions()
    for name in names:
        table.set_node(make_node(name))
    rows = [partitions.rows(table, range(number, PARTS, shards)).tolist() for number in range(shards)]
    assert sorted(row for shard in rows for row in shard) == list(range(len(names)))
    assert all(shard == sorted(shard) for shard in rows)


def test_rows_are_counted_by_part() -> None:
    table, partitions = NodeTable(), Partitions()
    assert partitions.counts(table).tolist() == [0] * PARTS
    for number in range(30):
        table.set_node(make_node(f"n{number}"))
    counts = Counter(part_of(name) for name in table.names)
    assert partitions.counts(table).tolist() == [counts[part] for part in range(PARTS)]


def test_rows_that_moved_are_found_again() -> None:
    table, partitions = NodeTable(), Partitions()
    for number in range(5):
        table.set_node(make_node(f"n{number}"))
        own = [part_of(NodeName(f"n{number}"))]
        assert partitions.rows(table, own).tolist() == [number]
    table.remove_node(NodeName("n1"))
    assert partitions.rows(table, own).tolist() == [3]
    other = NodeTable()
    other.set_node(make_node("n4"))
    assert partitions.rows(other, own).tolist() == [0]


def test_names_that_count_up_are_spread_evenly() -> None:
    counts = Counter(part_of(NodeName(f"node-{number:05}")) for number in range(20 * PARTS))
    assert len(counts) == PARTS
    assert max(counts.values()) < 2 * min(counts.values())


def test_a_snapshot_keeps_some_parts_only() -> None:
    """With the pods on their nodes, also where a node is not there yet; objects of other kinds stay."""
    names = [f"n{number}" for number in range(4)]
    pods = [make_pod(f"shop/{name}", node=name) for name in [*names, "n9", "n8"]]
    snapshot = make_snapshot([make_node(name) for name in names], pods)
    snapshot.put("Namespace", "shop", {})
    kept = [part_of(NodeName(name)) for name in ("n1", "n3", "n9")]
    keep_only(snapshot, kept)
    assert snapshot.table.names == ["n1", "n3"]
    assert {name: pod.uid for name, pod in snapshot.table.placed()} == {
        "n1": "uid-n1",
        "n3": "uid-n3",
        "n9": "uid-n9",
    }
    assert snapshot.others("Namespace") == {"shop": {}}
    keep_only(snapshot, [])
    assert (len(snapshot.table), list(snapshot.table.placed())) == (0, [])
    assert isinstance(snapshot, Snapshot)
