"""Changes as records: whoever repeats them has the same snapshot."""

from random import Random

import msgspec
import pytest

from dsched.engine import replica_delta
from dsched.engine.replica_delta import Delta, NodeGone, NodeSet, ObjectGone, ObjectSet, PodOff, PodOn
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName, PodUid
from tests.builders import make_node, make_pod
from tests.unit.framework.random_clusters import random_class, random_node, random_pod


def random_delta(rng: Random, snapshot: Snapshot, number: int) -> Delta:
    table, draw = snapshot.table, rng.random()
    if draw < 0.3 or not len(table):
        return NodeSet(random_node(rng, rng.randrange(8)))
    if draw < 0.6:
        return PodOn(rng.choice(table.names), random_pod(rng, f"p{rng.randrange(20)}", random_class(rng, 8)))
    if draw < 0.75:
        uid = PodUid(f"uid-p{rng.randrange(20)}")
        return PodOff(uid, table.node_of(uid) or NodeName("nowhere"))
    if draw < 0.85:
        return NodeGone(rng.choice(table.names))
    if draw < 0.95:
        return ObjectSet("Namespace", f"ns{rng.randrange(3)}", {"metadata": {"name": "x"}, "number": number})
    return ObjectGone("Namespace", f"ns{rng.randrange(3)}")


def requested(snapshot: Snapshot, row: int) -> dict[str, int]:
    return {name: amount for name, amount in snapshot.table.info(row).requested.items() if amount}


def same(one: Snapshot, other: Snapshot) -> None:
    assert one.table.names == other.table.names
    assert one.table.nodes == other.table.nodes
    assert one.others("Namespace") == other.others("Namespace")
    for row in range(len(one.table)):
        assert requested(one, row) == requested(other, row)
        assert [pod.pod for pod in one.table.info(row).pods] == [pod.pod for pod in other.table.info(row).pods]
    assert {pod.uid: name for name, pod in one.table.placed()} == {pod.uid: name for name, pod in other.table.placed()}


@pytest.mark.parametrize("seed", range(10))
def test_who_repeats_the_changes_has_the_same_snapshot(seed: int) -> None:
    rng, leader, replica, late = Random(seed), Snapshot(), Snapshot(), Snapshot()
    for number in range(60):
        changes = [random_delta(rng, leader, number) for _ in range(3)]
        for change in changes:
            replica_delta.apply(leader, change)
        for change in replica_delta.decode(replica_delta.encode(changes)):
            replica_delta.apply(replica, change)
    for change in replica_delta.decode(replica_delta.encode(replica_delta.whole(leader))):
        replica_delta.apply(late, change)
    same(leader, replica)
    same(leader, late)


def test_what_is_no_list_of_changes_is_refused() -> None:
    for raw in (b"", b"\xc1", msgspec.msgpack.encode([["unheard-of", 1]]), msgspec.msgpack.encode({"a": 1})):
        with pytest.raises(msgspec.DecodeError):
            replica_delta.decode(raw)


def test_a_cleared_snapshot_is_the_same_object_and_empty() -> None:
    snapshot = Snapshot()
    snapshot.table.set_node(make_node("n1"))
    snapshot.table.add_pod(PodInfo(make_pod()), "n1")
    snapshot.put("Namespace", "shop", {})
    snapshot.clear()
    assert (len(snapshot.table), list(snapshot.every_other()), list(snapshot.table.placed())) == (0, [], [])
