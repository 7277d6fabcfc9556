"""Which rows may lack room for a demand, and the number that says whether anything about them has changed."""

from collections.abc import Callable
from typing import Any

import pytest

from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName
from dsched.plugins.volumes import attachments
from dsched.plugins.volumes.attachments import Crowd, Demand
from tests.builders import make_node
from tests.storage import (
    claiming,
    csi,
    info,
    make_attachment,
    make_claim,
    make_csi_node,
    make_volume,
    put,
    world,
)

DRIVER = "d"
ONE: Demand = frozenset({(DRIVER, 1)})


def bound(name: str, handle: str = "") -> list[Any]:
    claim = make_claim(f"shop/{name}", volume=f"pv-{name}")
    return [claim, make_volume(f"pv-{name}", claim=claim, csi=csi(DRIVER, handle or name))]


@pytest.fixture
def snapshot() -> Snapshot:
    """n1 takes one volume and has it; n2 takes five."""
    nodes = [make_node("n1"), make_node("n2")]
    found = world(nodes, (), make_csi_node("n1", {DRIVER: 1}), make_csi_node("n2", {DRIVER: 5}), *bound("a"))
    found.table.add_pod(info(claiming("a", key="shop/first")), NodeName("n1"))
    return found


def crowd(snapshot: Snapshot) -> tuple[list[str], int]:
    """The names of the nodes, and the number."""
    found: Crowd = attachments.of(snapshot, announced=False).crowd(ONE)
    return sorted(snapshot.table.names[row] for row in found.rows), found.number


CHANGES: dict[str, tuple[Callable[[Snapshot], None], list[str]]] = {
    "a pod comes to a full node": (
        lambda at: at.table.add_pod(info(claiming("b", key="shop/next")), NodeName("n1")),
        ["n1"],
    ),
    "its pod goes": (lambda at: at.table.remove_pod(info(claiming("a", key="shop/first")).uid), []),
    "another node takes less": (lambda at: put(at, make_csi_node("n2", {DRIVER: 0})), ["n1", "n2"]),
    "it takes more, and still too little": (lambda at: put(at, make_csi_node("n1", {DRIVER: 0})), ["n1"]),
    "a volume is said to be attached": (lambda at: put(at, make_attachment("va", "n1", "pv-a", DRIVER)), ["n1"]),
    "so many that another node is full": (
        lambda at: put(at, *(make_attachment(f"va{n}", "n2", f"pv-{n}", DRIVER) for n in range(5))),
        ["n1", "n2"],
    ),
    "a volume is another one": (lambda at: put(at, *bound("a", handle="b")), ["n1"]),
    "a claim has another volume": (lambda at: put(at, make_claim("shop/a", volume="pv-1")), ["n1"]),
    "a node goes and all rows are others": (lambda at: at.table.remove_node("n2"), ["n1"]),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_concerns_a_full_node_gives_another_number(snapshot: Snapshot, what: str) -> None:
    put(snapshot, *(each for n in range(5) for each in bound(str(n))))
    rows, number = crowd(snapshot)
    assert rows == ["n1"]
    change, after = CHANGES[what]
    change(snapshot)
    found = crowd(snapshot)
    assert found[0] == after
    assert found[1] != number
    assert crowd(snapshot) == found, "nothing has changed since"


def test_what_concerns_other_nodes_does_not(snapshot: Snapshot) -> None:
    before = crowd(snapshot)
    snapshot.table.add_pod(info(claiming("b", key="shop/next")), NodeName("n2"))
    assert crowd(snapshot) == before


def test_while_no_node_is_full_nothing_does(snapshot: Snapshot) -> None:
    snapshot.table.remove_pod(info(claiming("a", key="shop/first")).uid)
    before = crowd(snapshot)
    assert before[0] == []
    put(snapshot, make_csi_node("n2", {DRIVER: 4}), *bound("b"))
    assert crowd(snapshot) == before
