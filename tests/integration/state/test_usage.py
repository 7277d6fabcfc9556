"""Node usage on a real Redis: exact sums, versions that the leader knows without asking, and a new leader's rebuild."""

import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.model.meta import NodeName
from dsched.scheduler.ports import QueueName, Seen
from dsched.state.queue import Queue
from dsched.state.reservations import CHANGED, OK, Reservations
from dsched.state.usage import Usage, read_names, read_usage, read_versions
from tests.integration.state.support import (
    NOW_MS,
    fly,
    move,
    node_fields,
    pod_of,
    request,
    system,
    take_over,
    used,
    with_node,
)

N1, N2 = NodeName("n1"), NodeName("n2")


def test_a_node_with_its_pods(store, epoch):
    usage = Usage(store, epoch)
    usage.set(N1, {"cpu": 4000, "nvidia.com/gpu": 8, "pods": 110})
    usage.add(N1, {"cpu": 100, "pods": 1})
    usage.add(N1, {"cpu": 250, "nvidia.com/gpu": 1, "pods": 1})
    usage.subtract(N1, {"cpu": 100, "pods": 1})
    assert node_fields(store, "n1") == {}
    usage.flush()
    assert read_usage(store, N1) == {
        "version": "4",
        "object": "1",
        "allocatable.cpu": "4000",
        "allocatable.nvidia.com/gpu": "8",
        "allocatable.pods": "110",
        "used.cpu": "250",
        "used.nvidia.com/gpu": "1",
        "used.pods": "1",
    }
    assert usage.seen(N1) == Seen(4, 1)


def test_a_node_that_changed_loses_what_it_no_longer_has_and_keeps_its_pods(store, epoch):
    usage = with_node(store, epoch, memory=1)
    usage.add(N1, {"cpu": 100})
    usage.set(N1, {"cpu": 2000})
    usage.flush()
    fields = node_fields(store, "n1")
    assert {name: value for name, value in fields.items() if "." in name} == {
        "allocatable.cpu": "2000",
        "used.cpu": "100",
    }
    assert (fields["version"], fields["object"]) == ("3", "2")


def test_a_node_that_is_gone_is_forgotten_and_comes_back_new(store, epoch):
    usage = with_node(store, epoch)
    usage.add(N1, {"cpu": 100})
    usage.gone(N1)
    usage.add(N1, {"cpu": 100})
    usage.subtract(N1, {"cpu": 100})
    usage.flush()
    assert node_fields(store, "n1") == {}
    assert usage.seen(N1) == Seen(0, 0)
    usage.set(N1, {"cpu": 1})
    usage.flush()
    assert node_fields(store, "n1") == {"version": "1", "object": "1", "allocatable.cpu": "1"}


def test_pods_do_not_make_up_a_node_that_redis_has_lost(store, epoch):
    usage = with_node(store, epoch)
    store.redis.delete(store.key("node:n1"))
    usage.add(N1, {"cpu": 100})
    usage.subtract(N1, {"cpu": 100})
    usage.flush()
    assert node_fields(store, "n1") == {}


def test_many_changes_are_written_in_order_a_part_at_a_time(monkeypatch, store, epoch):
    monkeypatch.setattr("dsched.state.pieces.AT_MOST", 3)
    usage = Usage(store, epoch)
    for number in range(10):
        usage.set(NodeName(f"n{number}"), {"cpu": number})
        usage.gone(NodeName(f"n{number - 1}"))
    usage.flush()
    assert read_names(store) == ["n9"]
    assert read_usage(store, NodeName("n9"))["allocatable.cpu"] == "9"


def test_amounts_are_exact_beyond_what_a_double_counts(store, epoch):
    usage = with_node(store, epoch, memory=2**63 - 1)
    usage.add(N1, {"memory": 2**62 + 1})
    usage.add(N1, {"memory": 2**62 - 2})
    usage.flush()
    assert used(store, "n1") == {"memory": 2**63 - 1}
    assert node_fields(store, "n1")["allocatable.memory"] == str(2**63 - 1)


EIGHT_EI = 2**63


def test_sums_beyond_int64_are_exact_and_come_back(store, epoch):
    usage = with_node(store, epoch, memory=2**63 - 1)
    for _ in range(3):
        usage.add(N1, {"memory": EIGHT_EI - 1, "pods": 1})
    usage.flush()
    assert used(store, "n1") == {"memory": 3 * (EIGHT_EI - 1), "pods": 3}
    for left in (2, 1, 0):
        usage.subtract(N1, {"memory": EIGHT_EI - 1, "pods": 1})
        usage.flush()
        assert {name: amount for name, amount in used(store, "n1").items() if amount} == (
            {"memory": left * (EIGHT_EI - 1), "pods": left} if left else {}
        )
    assert usage.seen(N1) == read_versions(store, [N1])[N1]


GREAT = st.one_of(
    st.integers(1, 9), st.integers(2**53 - 2, 2**53 + 2), st.integers(1, EIGHT_EI - 1), st.just(EIGHT_EI - 1)
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), GREAT), min_size=1, max_size=40), st.integers(0, 2**70))
def test_any_sequence_of_great_amounts_is_summed_up_exactly(redis_server, steps, begun):
    """What comes and goes in any order, more of it going than came included, and from a sum that is there already."""
    with system(redis_server) as store:
        usage = Usage(store, take_over(store))
        usage.rebuild([(N1, {"memory": 1}, {"memory": begun})])
        for comes, amount in steps:
            (usage.add if comes else usage.subtract)(N1, {"memory": amount})
        usage.flush()
        text = read_usage(store, N1)["used.memory"]
        assert text == str(begun + sum(amount if comes else -amount for comes, amount in steps))
        assert usage.seen(N1) == read_versions(store, [N1])[N1]


@settings(max_examples=60, deadline=None)
@given(GREAT, GREAT, GREAT, st.integers(-2, 2))
def test_a_node_that_changed_is_measured_exactly(redis_server, first, second, amount, off):
    """Doubles, which Lua counts in, would let pods in up to some 1 KiB beyond what there is of many PiB."""
    has = min(first + second + amount + off, EIGHT_EI - 1)
    with system(redis_server) as store:
        epoch = take_over(store)
        queue, held, usage = Queue(store, epoch), Reservations(store, epoch), Usage(store, epoch)
        usage.rebuild([(N1, {"cpu": has, "pods": 9}, {"cpu": first})])
        fly(queue, "a")
        asked = request("a", usage, "n1", amount)
        usage.add(N1, {"cpu": second})
        usage.flush()
        assert held.reserve([asked], NOW_MS) == [OK if first + second + amount <= has else CHANGED]


@pytest.mark.parametrize("field", ["used.cpu", "version", "object"])
@pytest.mark.parametrize("text", ["", "--5", "a lot", "-2", str(2**63 - 1), "9" * 400])
def test_what_somebody_wrote_there_stops_nobody_and_a_new_leader_counts_anew(store, epoch, field, text):
    usage = with_node(store, epoch)
    store.redis.hset(store.key("node:n1"), field, text)
    usage.add(N1, {"cpu": 100, "pods": 1})
    usage.set(N1, {"cpu": 1000, "pods": 9})
    usage.subtract(N1, {"cpu": 100, "pods": 1})
    usage.flush()
    assert read_usage(store, N1)["used.pods"] == "0"
    after = Usage(store, take_over(store))
    after.rebuild([(N1, {"cpu": 1000}, {"cpu": 2**64})])
    fields = read_usage(store, N1)
    assert {name: text for name, text in fields.items() if "." in name} == {
        "allocatable.cpu": "1000",
        "used.cpu": str(2**64),
    }
    assert after.seen(N1) == read_versions(store, [N1])[N1]


def test_a_node_with_an_unreadable_sum_is_not_taken_for_a_free_one(store, epoch):
    queue, held, usage = Queue(store, epoch), Reservations(store, epoch), with_node(store, epoch)
    fly(queue, "a")
    asked = request("a", usage, "n1", 1)
    usage.add(N1, {"pods": 1})
    usage.flush()
    store.redis.hset(store.key("node:n1"), "used.cpu", "a lot")
    assert held.reserve([asked], NOW_MS) == [CHANGED]


def test_a_new_leader_rebuilds_every_node_and_drops_the_others(store, epoch):
    before = with_node(store, epoch)
    before.add(N1, {"cpu": 100, "memory": 7})
    before.set(N2, {"cpu": 1})
    before.flush()
    after = Usage(store, take_over(store))
    after.set(NodeName("noted before the rebuild"), {"cpu": 1})
    after.rebuild([(N1, {"cpu": 3000}, {"cpu": 250, "pods": 2}), (NodeName("n3"), {"cpu": 1}, {})])
    assert sorted(read_names(store)) == ["n1", "n3"]
    assert {name: value for name, value in read_usage(store, N1).items() if "." in name} == {
        "allocatable.cpu": "3000",
        "used.cpu": "250",
        "used.pods": "2",
    }
    assert after.seen(N1) == read_versions(store, [N1])[N1]
    assert after.seen(N1).version > before.seen(N1).version
    assert after.seen(N1).object_version != before.seen(N1).object_version


def test_nodes_of_a_system_whose_name_looks_like_a_pattern_are_its_own(connect):
    tag = uuid.uuid4().hex
    stores = [connect(f"{name}-{tag}") for name in ("*", "[ab]", "a", "?")]
    for store in stores:
        with_node(store, take_over(store), store.name)
    assert [read_names(store) for store in stores] == [[store.name] for store in stores]


def test_who_is_refused_looks_again_and_knows_a_node_that_is_not_there_for_gone(store, epoch):
    usage, other = with_node(store, epoch), Usage(store, epoch)
    other.look_again(N1)
    assert other.seen(N1) == usage.seen(N1) == Seen(1, 1)
    usage.gone(N1)
    usage.flush()
    other.look_again(N1)
    other.add(N1, {"cpu": 1})
    assert other.seen(N1) == Seen(0, 0)
    other.set(N1, {"cpu": 1})
    other.flush()
    assert other.seen(N1) == read_versions(store, [N1])[N1]


NODES = st.sampled_from(["n1", "n2"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), NODES, st.integers(0, 5)),
        st.tuples(st.just("add"), NODES, st.integers(1, 5)),
        st.tuples(st.just("subtract"), NODES, st.integers(1, 5)),
        st.tuples(st.just("gone"), NODES, st.just(0)),
        st.tuples(st.just("reserve"), NODES, st.integers(1, 3)),
        st.tuples(st.just("release"), NODES, st.just(0)),
        st.tuples(st.just("rebuild"), NODES, st.integers(1, 5)),
        st.tuples(st.just("look again"), NODES, st.just(0)),
    ),
    min_size=5,
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_the_leader_knows_versions_and_sums_after_any_sequence(redis_server, steps):
    """Versions in the leader's memory and those in Redis, and the amounts in Redis and a plain sum."""
    allocatable: dict[str, int] = {}
    sums: dict[str, int] = {}
    standing: list[tuple[str, str, int]] = []
    with system(redis_server) as store:
        epoch = take_over(store)
        queue, held, usage = Queue(store, epoch), Reservations(store, epoch), Usage(store, epoch)
        for number, (what, node, amount) in enumerate(steps):
            name = NodeName(node)
            if what == "set":
                usage.set(name, {"cpu": amount})
                allocatable[node] = amount
                sums.setdefault(node, 0)
            elif what in ("add", "subtract"):
                getattr(usage, what)(name, {"cpu": amount})
                if node in sums:
                    sums[node] += amount if what == "add" else -amount
            elif what == "gone":
                usage.gone(name)
                sums.pop(node, None)
            elif what == "reserve":
                usage.flush()
                fly(queue, f"p{number}")
                if held.reserve([request(f"p{number}", usage, node, amount)], NOW_MS) == [OK]:
                    usage.moved(name)
                    sums[node] += amount
                    standing.append((f"p{number}", node, amount))
                else:
                    assert node not in sums
                    queue.remove([pod_of(f"p{number}")])
            elif what == "release" and standing:
                usage.flush()
                pod, on, taken = standing.pop(0)
                back = move(pod, QueueName.RESERVED, QueueName.NOWHERE)
                assert held.release([(back, NodeName(on), {"cpu": taken, "pods": 1})]) == [True]
                usage.moved(NodeName(on))
                if on in sums:
                    sums[on] -= taken
            elif what == "rebuild":
                usage.rebuild([(name, {"cpu": amount}, {"cpu": 9})])
                sums, allocatable = {node: 9}, {node: amount}
            elif what == "look again":
                usage.flush()
                usage.look_again(name)
        usage.flush()
        assert sorted(read_names(store)) == sorted(sums)
        for node, taken in sums.items():
            fields = node_fields(store, node)
            assert int(fields.get("used.cpu", 0)) == taken
            assert int(fields["allocatable.cpu"]) == allocatable[node]
            assert usage.seen(NodeName(node)) == Seen(int(fields["version"]), int(fields["object"]))


def test_what_a_script_writes_is_bounded_by_the_amounts_in_it(store, epoch, monkeypatch):
    usage = Usage(store, epoch)
    sizes = []
    ahead = usage._write.ahead

    def noted(names, arguments):
        sizes.append(len(arguments[1]))
        return ahead(names, arguments)

    monkeypatch.setattr(usage._write, "ahead", noted)
    for number in range(20):
        usage.set(NodeName(f"n{number}"), {f"example.com/r{name}": 1 for name in range(1000)})
    usage.flush()
    assert len(sizes) == 4 and max(sizes) < 200_000
    assert len(read_usage(store, NodeName("n19"))) == 1002
