"""The node table: whatever was done to it, it is what a table built from its nodes and pods is."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.framework.pod_info import PodInfo
from dsched.framework.table import CPU, MEMORY, NodeTable
from dsched.model.meta import NodeName
from dsched.model.node import Node
from dsched.model.pod import Pod
from tests.builders import make_container, make_node, make_pod, make_table

NODE_NAMES = [f"n{number}" for number in range(5)]
POD_NAMES = [f"p{number}" for number in range(6)]
LABELS = ["zone", "disk"]
TAINTS = ["a:NoSchedule", "b=1:PreferNoSchedule"]

IMAGES = ("web:1", "log:1")
STARTED = {"startTime": "2026-01-01T00:00:00Z"}
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
RESIZED = {"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]}
NODES = st.builds(
    make_node,
    st.sampled_from(NODE_NAMES),
    cpu=st.sampled_from(["1", "2500m"]),
    pods=st.integers(0, 3),
    allocatable=st.sampled_from([{}, {"nvidia.com/gpu": 4}, {"example.com/fpga": 1, "ephemeral-storage": "5Gi"}]),
    labels=st.dictionaries(st.sampled_from(LABELS), st.sampled_from("abc")),
    taints=st.lists(st.sampled_from(TAINTS), max_size=2),
    unschedulable=st.booleans(),
    images=st.dictionaries(st.sampled_from(IMAGES), st.integers(1, 9)),
)
PODS = st.builds(
    lambda name, **facts: make_pod(f"shop/{name}", **facts),
    st.sampled_from(POD_NAMES),
    cpu=st.none() | st.sampled_from(["100m", "1"]),
    requests=st.sampled_from([{}, {"nvidia.com/gpu": 1}, {"example.com/net": 2}]),
    ports=st.lists(st.sampled_from(["80", "81/UDP", "127.0.0.1:80"]), max_size=2),
    status=st.sampled_from([{}, STARTED, READY, RESIZED]),
)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("set_node"), NODES),
        st.tuples(st.just("remove_node"), st.sampled_from(NODE_NAMES)),
        st.tuples(st.just("add_pod"), PODS, st.sampled_from(NODE_NAMES)),
        st.tuples(st.just("remove_pod"), st.sampled_from(POD_NAMES)),
        st.tuples(st.just("label"), st.sampled_from(LABELS)),
    ),
    max_size=30,
)


def facts(table: NodeTable) -> dict[str, Any]:
    """All that the table says of its nodes, by name; what is of no meaning (row numbers, ids) left out."""
    labels = {key: table.label(key) for key in LABELS}
    images = {image: state for image in IMAGES if (state := table.images.get(image)) is not None}
    return {
        name: {
            "allocatable": {key: amount for key, amount in table.info(row).allocatable.items() if amount},
            "requested": {key: amount for key, amount in table.info(row).requested.items() if amount},
            "nonzero": [int(table.nonzero_requested(resource)[row]) for resource in (CPU, MEMORY)],
            "unschedulable": bool(table.unschedulable[row]),
            "taints": table.taint_sets[table.taint_set[row]],
            "labels": {key: column.values[column.ids[row]] for key, column in labels.items()},
            "images": {image: state.size for image, state in images.items() if table.serials[row] in state.sizes},
            "ports": table.ports.get(row, {}),
            "pods": {pod.uid: pod.pod for pod in table.info(row).pods},
            "node": table.nodes[row],
        }
        for name, row in table.index.items()
    }


def counting(found: dict[str, Any]) -> dict[str, Any]:
    """The facts with what counts of each pod: a newer version that counts as before takes its place unnoticed."""

    def counts(pod: Pod) -> tuple[Any, ...]:
        info = PodInfo(pod)
        since = pod.metadata.deletion_timestamp, pod.status.start_time
        return info.class_key, info.demand, since, pod.named_claims

    return {name: {**of, "pods": {uid: counts(pod) for uid, pod in of["pods"].items()}} for name, of in found.items()}


def images_of(found: dict[str, Any]) -> dict[str, Any]:
    """The images a node holds, taken out of the facts."""
    return {name: of_node.pop("images", None) for name, of_node in found.items()}


class World:
    """What should be in the table."""

    def __init__(self) -> None:
        self.table = NodeTable()
        self.nodes: dict[str, Node] = {}
        self.homes: dict[str, tuple[str, PodInfo]] = {}

    def do(self, action: str, *given: Any) -> None:
        match action, given:
            case "set_node", (node,):
                self.table.set_node(node)
                self.nodes[node.name] = node
            case "remove_node", (name,):
                self.table.remove_node(name)
                self.nodes.pop(name, None)
            case "add_pod", (pod, name):
                self.table.add_pod(PodInfo(pod), name)
                self.homes[pod.uid] = (name, PodInfo(pod))
            case "remove_pod", (name,):
                removed = self.table.remove_pod(f"uid-{name}")
                known = self.homes.pop(f"uid-{name}", None)
                assert (removed is None) == (known is None)
            case "label", (key,):
                self.table.label(key)

    def fresh(self) -> NodeTable:
        """Nodes in the table's order, then the pods."""
        table = make_table(self.nodes[name] for name in self.table.names)
        for name, pod in self.homes.values():
            table.add_pod(pod, NodeName(name))
        return table


def same(world: World) -> None:
    fresh = world.fresh()
    assert facts(world.table) == facts(fresh)
    assert world.table.names == list(world.nodes)
    assert world.table.name_hashes.tolist() == fresh.name_hashes.tolist()
    assert (np.diff(world.table.serials) > 0).all()
    assert [world.table.index[name] for name in world.table.names] == list(range(len(world.table)))
    assert {uid: world.table.node_of(uid) for uid in world.homes} == {
        uid: name for uid, (name, _) in world.homes.items()
    }
    assert {(name, pod.uid) for name, pod in world.table.placed()} == {
        (name, uid) for uid, (name, _) in world.homes.items()
    }


@settings(max_examples=150, deadline=None)
@given(CHANGES)
def test_any_history_leads_to_the_same_table_as_building_it(changes: list[tuple[Any, ...]]) -> None:
    world = World()
    for change in changes:
        world.do(*change)
    same(world)


@settings(max_examples=100, deadline=None)
@given(CHANGES, CHANGES)
def test_the_journal_names_every_row_that_changed(before: list[tuple[Any, ...]], after: list[tuple[Any, ...]]) -> None:
    world = World()
    for change in before:
        world.do(*change)
    noted, layout, position = counting(facts(world.table)), world.table.layout, world.table.position
    version, objects_version = world.table.version, world.table.objects_version
    for change in after:
        world.do(*change)
    now = counting(facts(world.table))
    if now != noted:
        assert world.table.version > version
    if images_of(now) != images_of(noted):  # another node's report may have changed what counts for this one
        assert world.table.objects_version > objects_version or world.table.layout > layout
    if world.table.layout != layout:
        return
    changed = world.table.changed_since(position)
    assert changed is not None
    assert len(changed) == len(set(changed))
    assert {world.table.index[name] for name in now if now[name] != noted[name]} <= set(changed)


@settings(max_examples=100, deadline=None)
@given(CHANGES, CHANGES)
def test_rows_move_only_with_a_new_layout(before: list[tuple[Any, ...]], after: list[tuple[Any, ...]]) -> None:
    world = World()
    for change in before:
        world.do(*change)
    layout, names = world.table.layout, list(world.table.names)
    for change in after:
        world.do(*change)
    if world.table.layout == layout:
        assert world.table.names == names


@settings(max_examples=150, deadline=None)
@given(CHANGES, st.lists(NODES, max_size=5))
def test_a_bare_table_is_one_of_other_nodes_without_pods_and_leaves_no_trace(
    changes: list[tuple[Any, ...]], others: list[Node]
) -> None:
    world = World()
    for change in changes:
        world.do(*change)
    table = world.table
    before, versions = facts(table), (table.version, table.objects_version, table.layout, table.position)
    ids = {key: (table.label(key).ids.tolist(), list(table.label(key).values)) for key in LABELS}
    given = {table.index[NodeName(node.name)]: node for node in others if node.name in table.index}
    bare = table.bare(given)
    wanted = facts(make_table(given.get(row, node) for row, node in enumerate(table.nodes)))
    images_of(wanted)
    found = facts(bare)
    assert set(map(str, images_of(found).values())) <= {"{}"}
    assert found == wanted
    for key, (_, values) in ids.items():
        assert bare.label(key).values[: len(values)] == values
    assert (bare.cluster, table.cluster) == (table, table)
    assert (facts(table), (table.version, table.objects_version, table.layout, table.position)) == (before, versions)
    assert {key: (table.label(key).ids.tolist(), list(table.label(key).values)) for key in LABELS} == ids
    same(world)


def test_growing_beyond_the_first_rows_keeps_everything() -> None:
    world = World()
    for number in range(200):
        world.do("set_node", make_node(f"m{number}", labels={"zone": f"z{number % 7}"}, pods=number))
        if number == 10:
            world.do("label", "zone")
        if number % 3 == 0:
            world.do("add_pod", make_pod(f"shop/q{number}", cpu="1", ports=[80]), f"m{number}")
    world.do("remove_node", "m77")
    same(world)


def test_a_pod_waits_for_its_node_and_outlives_it() -> None:
    table = NodeTable()
    table.add_pod(PodInfo(make_pod("shop/web", cpu="1", ports=[80])), NodeName("n1"))
    assert table.pod("uid-web") is not None
    table.set_node(make_node("n1"))
    assert table.info(0).requested == {"cpu": 1000, "memory": 0, "ephemeral-storage": 0, "pods": 1}
    table.remove_node(NodeName("n1"))
    assert table.node_of("uid-web") == "n1"
    table.set_node(make_node("n1"))
    assert [int(table.requested("cpu")[0]), len(table.ports[0])] == [1000, 1]
    assert table.remove_pod("uid-web") is not None
    assert table.remove_pod("uid-web") is None


def test_what_scheduling_does_not_see_changes_nothing() -> None:
    table = make_table([make_node("n1", labels={"zone": "a"})])
    before = (table.version, table.layout, table.position, table.objects_version)
    node = make_node("n1", labels={"zone": "a"})
    assert table.set_node(node) is False
    assert table.nodes[0] is node
    assert (table.version, table.layout, table.position, table.objects_version) == before
    assert table.set_node(make_node("n1", labels={"zone": "b"})) is True
    assert table.objects_version > before[3]


def test_putting_the_same_pod_again_is_no_change() -> None:
    table = make_table([make_node("n1"), make_node("n2")])
    pod = PodInfo(make_pod("shop/web", cpu="1"))
    table.add_pod(pod, NodeName("n1"))
    version = table.version
    table.add_pod(pod, NodeName("n1"))
    assert table.version == version
    table.add_pod(pod, NodeName("n2"))
    assert [int(count) for count in table.pod_count] == [0, 1]


def test_a_journal_that_no_longer_reaches_back_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dsched.framework.journal.LENGTH", 4)
    table = make_table([make_node("n1"), make_node("n2")])
    start = table.position
    pod = PodInfo(make_pod("shop/web"))
    for number in range(20):
        table.add_pod(pod, NodeName(f"n{number % 2 + 1}"))
    assert table.changed_since(start) is None
    recent = table.position - 3
    assert table.changed_since(recent) == [0, 1]
    assert table.changed_since(table.position) == []


def test_amounts_beyond_int64_are_taken_for_the_largest() -> None:
    table = make_table([make_node("n1", memory="16Ei")])
    assert int(table.allocatable("memory")[0]) == 2**63 - 1


@pytest.mark.parametrize("amounts", [("9223372036854775807", "1"), ("9223372036854775807",) * 3, ("5", "7")])
def test_sums_end_at_the_largest_int64_and_are_exact_again(amounts: tuple[str, ...]) -> None:
    table = make_table([make_node("n1"), make_node("n2")])
    pods = [PodInfo(make_pod(f"shop/p{number}", memory=amount)) for number, amount in enumerate(amounts)]
    for pod in pods:
        table.add_pod(pod, NodeName("n2"))
    exact = sum(map(int, amounts))
    total = min(exact, 2**63 - 1)
    for sums in (table.requested("memory"), table.nonzero_requested("memory")):
        assert sums.tolist() == [0, total]
    assert table.info(1).requested == {"cpu": 0, "memory": total, "ephemeral-storage": 0, "pods": len(pods)}
    assert table.info(1).charged == {"memory": exact, "pods": len(pods)}
    assert list(table.beyond()) == ([("n2", "memory", exact)] if exact > total else [])
    with table.supposing_on(1, there=pods[:1], gone=pods[1:]):
        assert table.pod_count.tolist() == [0, 2]
    with table.supposing(np.array([0, 1]), pods[0]):
        assert table.requested("memory").tolist() == [int(amounts[0]), min(exact + int(amounts[0]), 2**63 - 1)]
    assert table.requested("memory").tolist() == [0, total]
    table.remove_node(NodeName("n1"))
    for pod in pods:
        table.remove_pod(pod.uid)
        exact -= int(pod.pod.spec.containers[0].resources.requests["memory"])
        assert table.requested("memory").tolist() == [min(exact, 2**63 - 1)]
        assert table.nonzero_requested("memory").tolist() == [min(exact, 2**63 - 1)]
    assert not list(table.beyond())


GREAT = st.one_of(st.integers(1, 9), st.integers(2**62, 2**63 - 1), st.integers(2**63 - 9, 2**63 - 1))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(GREAT, GREAT), min_size=1, max_size=8), st.data())
def test_pods_that_come_and_go_in_any_order_leave_the_sums_of_those_that_stay(
    amounts: list[tuple[int, int]], data: st.DataObject
) -> None:
    pods = [
        PodInfo(make_pod(f"shop/p{at}", cpu=f"{cpu}m", memory=str(memory))) for at, (cpu, memory) in enumerate(amounts)
    ]
    table = make_table([make_node("n0"), make_node("n1"), make_node("n2")])
    there: set[int] = set()
    for at in data.draw(st.lists(st.integers(0, len(pods) - 1), max_size=24)):
        if at in there:
            table.remove_pod(pods[at].uid)
        else:
            table.add_pod(pods[at], NodeName(f"n{at % 2 + 1}"))
        there ^= {at}
    if data.draw(st.booleans()):
        table.remove_node(NodeName("n0"))
    fresh = make_table(table.nodes)
    for at in sorted(there):
        fresh.add_pod(pods[at], NodeName(f"n{at % 2 + 1}"))
    for resource, place in (("cpu", 0), ("memory", 1)):
        wanted = [
            sum(amounts[at][place] for at in there if f"n{at % 2 + 1}" == name) if name != "n0" else 0
            for name in table.names
        ]
        for sums in (table.requested(resource), fresh.requested(resource), table.nonzero_requested(resource)):
            assert sums.tolist() == [min(each, 2**63 - 1) for each in wanted]
        assert [table.info(row).charged.get(resource, 0) for row in range(len(table))] == wanted
    assert list(table.beyond()) == list(fresh.beyond())


def test_resources_nobody_has_are_zero() -> None:
    table = make_table([make_node("n1"), make_node("n2")])
    assert table.allocatable("nvidia.com/gpu").tolist() == [0, 0]
    assert table.requested("nvidia.com/gpu").tolist() == [0, 0]


def test_an_image_keeps_its_size_whoever_reports_it_last() -> None:
    """Nodes may report different sizes of one image; what counts must not depend on who reported last, or a replica
    that starts from the whole table would score differently."""
    small, large = make_node("n1", images={"web:1": 100}), make_node("n2", images={"web:1": 200})
    changed = make_node("n1", images={"web:1": 100}, labels={"zone": "a"})
    history = make_table([small, large])
    history.set_node(changed)
    assert history.images.get("web:1") == make_table([changed, large]).images.get("web:1")


def test_a_trial_leaves_no_trace_unless_somebody_followed_it() -> None:
    table = make_table([make_node("n1"), make_node("n2")])
    there = PodInfo(make_pod("shop/there"))
    table.add_pod(there, NodeName("n1"))
    before, version = table.position, table.version
    mark = table.mark
    table.remove_pod(there.uid)
    table.restore(0, [there], mark)
    assert (table.position, table.version, table.changed_since(before)) == (before, version, [])

    mark = table.mark
    table.remove_pod(there.uid)
    followed = table.position
    table.restore(0, [there], mark)
    assert table.changed_since(followed) == [0], "who saw the pod go has to see it come back"


@pytest.mark.parametrize(
    ("before", "after", "seen"),
    [
        ({}, READY, False),
        (READY, {}, False),
        ({}, STARTED, True),
        ({}, RESIZED, True),
        (RESIZED, RESIZED | READY, False),
    ],
)
def test_a_newer_version_of_a_pod_is_a_change_where_scheduling_sees_one(
    before: dict[str, Any], after: dict[str, Any], seen: bool
) -> None:
    """What a kubelet reports of a pod several times while it starts makes nothing stale."""
    old, new = (
        PodInfo(make_pod("shop/a", containers=[make_container("main", "1")], status=status))
        for status in (before, after)
    )
    table = make_table([make_node("n1")])
    for pod in (old, PodInfo(make_pod("shop/b"))):
        table.add_pod(pod, NodeName("n1"))
    version, position = table.version, table.position
    table.add_pod(new, NodeName("n1"))
    assert table.pod(new.uid) is new
    assert (table.version != version, table.changed_since(position) == [0]) == (seen, seen)
    assert [pod.key for pod in table.info(0).pods] == (["shop/b", "shop/a"] if seen else ["shop/a", "shop/b"])


def test_what_a_node_has_is_told_without_what_only_others_have() -> None:
    nodes = [make_node(f"n{number}", allocatable={f"example.com/r{number}": "2"}) for number in range(3)]
    table = make_table(nodes)
    table.add_pod(PodInfo(make_pod(cpu="1", node="n1")), NodeName("n1"))
    info = table.info(table.index["n1"])
    assert "example.com/r0" in info.allocatable and "example.com/r0" not in info.offered
    for told, whole in ((info.offered, info.allocatable), (info.charged, info.requested)):
        assert told == {name: amount for name, amount in whole.items() if amount}


def test_resources_that_each_node_has_of_its_own_seldom_move_the_columns() -> None:
    table, moves = NodeTable(), []
    for number in range(1000):
        table.set_node(make_node(f"n{number}", allocatable={"cpu": "4", f"example.com/r{number}": "3"}))
        if not moves or table.amounts("cpu") is not moves[-1]:
            moves.append(table.amounts("cpu"))
    assert len(moves) <= 2 * (1000).bit_length()
    assert [table.allocatable(f"example.com/r{number}")[number] for number in range(1000)] == [3] * 1000
    assert table.allocatable("example.com/r7").sum() == 3


def test_a_resource_that_comes_is_no_longer_absent() -> None:
    table = NodeTable()
    table.set_node(make_node("n0", allocatable={"cpu": "4"}))
    assert table.amounts("example.com/r").allocatable[0] == 0
    table.set_node(make_node("n1", allocatable={"example.com/r": "3"}))
    assert table.amounts("example.com/r").allocatable[1] == 3
