"""Which volumes are in use where, kept up to date: the same as counting anew."""

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.framework.table import NodeTable
from dsched.model.meta import NodeName
from dsched.model.pod import Pod
from dsched.plugins.volumes import usage as volume_usage
from dsched.plugins.volumes.usage import VolumeUsage
from tests.builders import make_node, make_pod, make_table
from tests.storage import claiming, info, with_volumes

EBS: dict[str, Any] = {"awsElasticBlockStore": {"volumeID": "e"}}


def gce(name: str, read_only: bool) -> dict[str, Any]:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def test_claims_disks_and_attachments() -> None:
    pods = [
        claiming("data", key="shop/a", node="n1"),
        with_volumes({"ephemeral": {}}, gce("d", True), EBS, {"emptyDir": {}}, key="shop/b", node="n2"),
        with_volumes(gce("d", False), key="shop/c", node="n3"),
        make_pod("shop/d", node="n3"),
        claiming("lost", key="shop/e", node="gone"),
    ]
    usage = volume_usage.of(make_table([make_node("n1"), make_node("n2"), make_node("n3")], pods))
    assert usage.claim_used("shop/data")
    assert not usage.claim_used("shop/lost")  # its node is not there
    assert not usage.claim_used("shop/b-v0")
    assert usage.holders(("gce", "d"), writers_only=False) == [1, 2]
    assert usage.holders(("gce", "d"), writers_only=True) == [2]
    assert usage.holders(("ebs", "e"), writers_only=True) == [1]
    assert usage.holders(("gce", "other"), writers_only=False) == []
    assert usage.counts(slice(0, 3)).tolist() == [1, 3, 1]
    uses = [(use.pod.metadata.name, use.claim.key if use.claim else "") for use in usage.uses[1]]
    assert uses == [("b", "shop/b-v0"), ("b", ""), ("b", "")]


def test_rows_that_did_not_change_keep_their_entry() -> None:
    table = make_table([make_node("n1"), make_node("n2")], [claiming("x", key="shop/a", node="n1")])
    kept = volume_usage.of(table).uses[0]
    table.add_pod(info(claiming("y", key="shop/b")), NodeName("n2"))
    assert volume_usage.of(table).uses[0] is kept
    table.add_pod(info(claiming("y", key="shop/c")), NodeName("n1"))
    assert volume_usage.of(table).uses[0] is not kept


def told(usage: VolumeUsage, table: NodeTable) -> Any:
    disks = [("gce", "d"), ("ebs", "e")]
    return (
        [len(usage.uses.get(row, ())) for row in range(len(table))],
        usage.counts(slice(0, len(table))).tolist(),
        {key: usage.claim_used(key) for key in ("shop/x", "shop/y")},
        [sorted(usage.holders(disk, writers_only=writers)) for disk in disks for writers in (True, False)],
    )


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 4), st.integers(0, 2), st.integers(0, 4)),
        st.tuples(st.just("remove"), st.integers(0, 4)),
        st.tuples(st.just("node"), st.integers(0, 3)),
        st.tuples(st.just("gone"), st.integers(0, 3)),
        st.just(("ask",)),
    ),
    max_size=30,
)
KINDS: list[Callable[[str], Pod]] = [
    lambda key: claiming("x", key=key),
    lambda key: claiming("x", "y", key=key),
    lambda key: with_volumes(gce("d", True), key=key),
    lambda key: with_volumes(gce("d", False), EBS, key=key),
    make_pod,
]


@settings(max_examples=150, deadline=None)
@given(steps=STEPS)
def test_it_follows_whatever_happens_to_the_table(steps: list[Any]) -> None:
    table = make_table([make_node("n0"), make_node("n1"), make_node("n2")])
    usage = volume_usage.of(table)
    for step in steps:
        match step:
            case ("add", pod, node, kind):
                table.add_pod(info(KINDS[kind](f"shop/p{pod}")), NodeName(f"n{node}"))
            case ("remove", pod):
                table.remove_pod(make_pod(f"shop/p{pod}").uid)
            case ("node", node):
                table.set_node(make_node(f"n{node}"))
            case ("gone", node):
                table.remove_node(NodeName(f"n{node}"))
            case _:
                usage.follow()
    usage.follow()
    anew = VolumeUsage(table)
    anew.follow()
    assert told(usage, table) == told(anew, table)
