"""Reserving on a real Redis: what is granted, and what a node is charged with."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dsched.model.meta import NodeName
from dsched.scheduler.ports import QueueName
from dsched.state import keys
from dsched.state.queue import Queue
from dsched.state.reservations import CHANGED, GONE, LIMITED, OK, TOGETHER, Reservation, Reservations, read_reservations
from dsched.state.usage import Usage, read_usage
from tests.integration.state.support import (
    NOW_MS,
    dump,
    fly,
    move,
    node_fields,
    places,
    pod_of,
    put,
    records,
    request,
    reserve,
    system,
    take_over,
    used,
    with_node,
)

N1 = NodeName("n1")
ONE = {"cpu": 1000, "pods": 1}

# -- reserve -----------------------------------------------------------------------------------------------------------


def test_a_reservation_charges_the_node_and_takes_the_pod_out_of_flight(store, epoch, queue, held, usage):
    fly(queue, "a")
    assert held.reserve([request("a", usage)], NOW_MS) == [OK]
    assert used(store, "n1") == ONE
    assert places(store) == {"[reserved]": ["ns/a"]}
    assert records(store)["ns/a"]["node"] == "n1"
    key, uid = pod_of("a")
    assert read_reservations(store) == [Reservation(uid, key, N1, epoch, "reserved", 1, NOW_MS)]


def test_permit_may_hold_a_reserved_pod_back(store, queue, held, usage):
    reserve(held, queue, usage, "a", deadline_ms=NOW_MS + 5)
    assert places(store) == {"waiting": ["ns/a"], "[waiting]": ["ns/a"]}
    assert store.redis.zscore(store.key("queue:waiting"), "ns/a") == NOW_MS + 5
    assert [reservation.state for reservation in read_reservations(store)] == ["waiting"]


def test_a_batch_expects_the_node_as_its_predecessors_leave_it(store, queue, held, usage):
    fly(queue, *"abcd")
    version = usage.seen(N1).version
    asked = [request(name, usage, version=version + number) for number, name in enumerate("abcd")]
    assert held.reserve(asked, NOW_MS) == [OK] * 4
    assert used(store, "n1") == {"cpu": 4000, "pods": 4}
    assert int(node_fields(store, "n1")["version"]) == version + 4


def test_a_version_that_a_refused_predecessor_left_is_not_enough(store, queue, held, usage):
    """The first pod is refused because the node object has changed. That change moved the version to where the second
    pod expects it, as if its predecessor had been charged."""
    fly(queue, "a", "b")
    version = usage.seen(N1).version
    asked = [request("a", usage, version=version), request("b", usage, version=version + 1)]
    for field in ("version", "object"):
        store.redis.hincrby(store.key("node:n1"), field, 1)
    assert held.reserve(asked, NOW_MS) == [CHANGED, CHANGED]
    assert used(store, "n1") == {}


def test_a_node_as_it_was_seen_is_not_checked_again(store, queue, held, usage):
    """What Filter lets pass is Filter's business: a pod that names no CPU fits a node that has none left."""
    reserve(held, queue, usage, "a", cpu=5000)
    assert used(store, "n1")["cpu"] == 5000


@pytest.mark.parametrize(
    ("cpu", "verdict"),
    # 4000 allocatable, 1000 taken meanwhile
    [(3000, OK), (3001, CHANGED)],
)
def test_a_node_that_changed_has_to_have_room(store, queue, held, usage, cpu, verdict):
    fly(queue, "a", "b")
    seen_before = request("b", usage, cpu=cpu)
    held.reserve([request("a", usage)], NOW_MS)
    before = dump(store)
    assert held.reserve([seen_before], NOW_MS) == [verdict]
    if verdict == CHANGED:
        assert dump(store) == before
    else:
        assert used(store, "n1") == {"cpu": 1000 + cpu, "pods": 2}


def test_a_node_that_changed_has_to_have_room_for_one_more_pod(store, epoch, queue, held):
    usage = with_node(store, epoch, pods=1)
    fly(queue, "a", "b")
    asked = [request("a", usage), request("b", usage, cpu=1)]
    assert held.reserve(asked, NOW_MS) == [OK, CHANGED]


def test_amounts_beyond_what_a_double_counts_are_charged_exactly(store, epoch, queue, held):
    most = 2**63 - 1
    usage = with_node(store, epoch, memory=most)
    fly(queue, "a")
    assert held.reserve([replace(request("a", usage), amounts={"memory": most})], NOW_MS) == [OK]
    assert used(store, "n1") == {"memory": most}
    assert held.release([(move("a", QueueName.RESERVED, QueueName.NOWHERE), N1, {"memory": most - 1})]) == [True]
    assert used(store, "n1") == {"memory": 1}


def test_more_resources_than_lua_hands_on_at_once_are_charged_and_given_back(store, epoch, queue, held):
    many = {f"example.com/r{number}": number + 1 for number in range(5000)}
    usage = with_node(store, epoch, **many)
    fly(queue, "a")

    def taken() -> dict[str, int]:
        fields = node_fields(store, "n1")
        return {resource: int(fields[f"used.{resource}"]) for resource in many}

    assert held.reserve([replace(request("a", usage), amounts=many)], NOW_MS) == [OK]
    assert taken() == many
    assert held.release([(move("a", QueueName.RESERVED, QueueName.NOWHERE), N1, many)]) == [True]
    assert not any(taken().values())


def test_a_resource_that_the_node_does_not_have_does_not_fit(store, queue, held, usage):
    fly(queue, "a")
    asked = replace(request("a", usage, version=0), amounts={"nvidia.com/gpu": 1, "pods": 1})
    assert held.reserve([asked], NOW_MS) == [CHANGED]


def test_host_ports_are_evaluated_again_whenever_the_node_changed(store, queue, held, usage):
    fly(queue, "a", "b")
    assert held.reserve([request("a", usage, ports=True), request("b", usage, cpu=1, ports=True)], NOW_MS) == [
        OK,
        CHANGED,
    ]


def test_a_node_object_that_changed_is_evaluated_again_though_there_is_room(store, queue, held, usage):
    fly(queue, "a")
    asked = request("a", usage, cpu=1)
    usage.set(N1, {"cpu": 8000, "pods": 110})
    usage.flush()
    assert held.reserve([asked], NOW_MS) == [CHANGED]


@pytest.mark.parametrize("back", [False, True])
def test_a_node_that_went_is_evaluated_again_even_when_it_came_back(store, queue, held, usage, back):
    usage.set(N1, {"cpu": 4000, "pods": 110})
    usage.flush()
    fly(queue, "a")
    asked = request("a", usage)
    usage.gone(N1)
    if back:
        usage.set(N1, {"cpu": 4000, "pods": 110})
    usage.flush()
    before = dump(store)
    assert held.reserve([asked], NOW_MS) == [CHANGED]
    assert dump(store) == before


def test_a_pod_that_is_no_longer_in_flight_is_gone(store, queue, held, usage):
    fly(queue, "requeued", "removed", "replaced")
    queue.move(
        [
            move("requeued", QueueName.INFLIGHT, QueueName.ACTIVE),
            move("replaced", QueueName.NOWHERE, QueueName.ACTIVE, uid="2"),
        ]
    )
    queue.remove([pod_of("removed")])
    put(queue, "queued")
    before = dump(store)
    names = ["requeued", "removed", "replaced", "queued", "unheard-of"]
    assert held.reserve([request(name, usage) for name in names], NOW_MS) == [GONE] * len(names)
    assert dump(store) == before


def test_a_dead_pod_gets_no_room_through_a_new_one_of_its_name_in_flight(store, queue, held, usage):
    fly(queue, "a")
    asked = request("a", usage)
    queue.move([move("a", QueueName.NOWHERE, QueueName.ACTIVE, uid="uid-new")])
    assert len(queue.pop("1-2", 1, NOW_MS, from_backoff=False)) == 1
    before = dump(store)
    assert held.reserve([asked], NOW_MS) == [GONE]
    assert dump(store) == before


def test_asking_twice_reserves_once(store, queue, held, usage):
    reserve(held, queue, usage, "a")
    before = dump(store)
    assert held.reserve([request("a", usage)], NOW_MS) == [GONE]
    assert dump(store) == before


# -- sums --------------------------------------------------------------------------------------------------------------

PODS = [f"p{number}" for number in range(6)]
NODES = ["n1", "n2"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["reserve", "reserve", "release", "confirm"]),
            st.sampled_from(PODS),
            st.sampled_from(NODES),
            st.booleans(),
        ),
        min_size=8,
        max_size=40,
    )
)
def test_usage_is_the_sum_of_what_is_reserved_and_bound_after_any_sequence(redis_server, steps):
    """Each pod asks for a CPU of its own, so that no wrong sum looks right."""
    cpu = {name: 2**number for number, name in enumerate(PODS)}
    reserved: dict[str, str] = {}
    bound: dict[str, str] = {}
    with system(redis_server) as store:
        epoch = take_over(store)
        queue, held, usage = Queue(store, epoch), Reservations(store, epoch), Usage(store, epoch)
        for node in NODES:
            usage.set(NodeName(node), {"cpu": 40, "pods": 3})
        usage.flush()
        for name in PODS:
            put(queue, name)
        queue.pop("1-1", len(PODS), NOW_MS, from_backoff=False)
        for what, name, node, waits in steps:
            if what == "reserve":
                taken = sum(cpu[pod] for pods in (reserved, bound) for pod, on in pods.items() if on == node)
                count = sum(on == node for pods in (reserved, bound) for on in pods.values())
                free = taken + cpu[name] <= 40 and count < 3
                wanted = GONE if name in reserved or name in bound else OK if free else CHANGED
                stale = request(name, usage, node, cpu[name], version=0, deadline_ms=NOW_MS * waits)
                assert held.reserve([stale], NOW_MS) == [wanted]
                if wanted == OK:
                    reserved[name] = node
            elif what == "release":
                back = move(name, QueueName.RESERVED, QueueName.ACTIVE)
                stood = reserved.get(name) == node
                assert held.release([(back, NodeName(node), {"cpu": cpu[name], "pods": 1})]) == [stood]
                if stood:
                    del reserved[name]
                    assert len(queue.pop("1-2", 1, NOW_MS, from_backoff=False)) == 1
            else:
                assert held.confirm([pod_of(name)]) == [name in reserved]
                if name in reserved:
                    bound[name] = reserved.pop(name)
            for each in NODES:
                on_node = [pod for pods in (reserved, bound) for pod, on in pods.items() if on == each]
                wanted_sum = {"cpu": sum(cpu[pod] for pod in on_node), "pods": len(on_node)} if on_node else {}
                assert used(store, each) == wanted_sum


# -- limits of queues --------------------------------------------------------------------------------------------------


def charged(store, queue: str) -> dict[str, str]:
    fields = read_usage(store, NodeName(queue), keys.QUOTA)
    return {field: text for field, text in fields.items() if field.startswith("used.")}


@pytest.fixture
def limits(store, epoch):
    """Queue a below queue top, with limits of two cores and of three."""
    found = Usage(store, epoch, keys.QUOTA)
    found.rebuild([(NodeName("a"), {"cpu": 2000}, {}), (NodeName("top"), {"cpu": 3000}, {})])
    return found


def asked(name: str, usage: Usage, **how):
    queues = (("a", {"cpu": 1000}), ("top", {"cpu": 1000}))
    return replace(request(name, usage, **how), queues=how.pop("queues", queues))


def test_a_reservation_is_charged_to_the_queues_above_it_and_refused_beyond_a_limit(store, queue, held, usage, limits):
    fly(queue, *"abc")
    version = usage.seen(N1).version
    requests = [asked(name, usage, version=version + number) for number, name in enumerate("abc")]
    assert held.reserve(requests, NOW_MS) == [OK, OK, LIMITED]
    assert charged(store, "a") == charged(store, "top") == {"used.cpu": "2000"}
    assert used(store, "n1") == {"cpu": 2000, "pods": 2}


def test_of_a_group_beyond_a_limit_none_is_reserved(store, queue, held, usage, limits):
    fly(queue, *"abc")
    version = usage.seen(N1).version
    requests = [asked(name, usage, version=version + number, group="g") for number, name in enumerate("abc")]
    assert held.reserve(requests, NOW_MS) == [TOGETHER, TOGETHER, LIMITED]
    assert charged(store, "a") == charged(store, "top") == {}


def test_a_limit_that_was_lowered_below_what_is_used_lets_nobody_in(store, queue, held, usage, limits):
    limits.rebuild([(NodeName("a"), {"cpu": 2000}, {"cpu": 5000})])
    fly(queue, "a")
    assert held.reserve([asked("a", usage)], NOW_MS) == [LIMITED]


@given(st.lists(st.integers(1, 1500), max_size=8), st.integers(0, 4000), st.integers(0, 4000))
@settings(max_examples=40, deadline=None)
def test_no_limit_is_exceeded_whatever_is_asked_for(redis_server, wanted, first, second):
    with system(redis_server) as store:
        epoch = take_over(store)
        queue, held, usage = Queue(store, epoch), Reservations(store, epoch), with_node(store, epoch, cpu=10**9)
        limits = [(NodeName("a"), {"cpu": first}, {}), (NodeName("b"), {"cpu": second}, {})]
        Usage(store, epoch, keys.QUOTA).rebuild(limits)
        sums = {"a": 0, "b": 0}
        for number, cpu in enumerate(wanted):
            fly(queue, f"p{number}")
            one = replace(request(f"p{number}", usage, cpu=cpu), queues=(("a", {"cpu": cpu}), ("b", {"cpu": cpu})))
            (verdict,) = held.reserve([one], NOW_MS)
            fits = sums["a"] + cpu <= first and sums["b"] + cpu <= second
            assert verdict == (OK if fits else LIMITED)
            if fits:
                usage.moved(N1)
                sums = {name: total + cpu for name, total in sums.items()}
        for name, total in sums.items():
            assert charged(store, name).get("used.cpu", "0") == str(total)


units = st.lists(st.lists(st.tuples(st.integers(1, 1500), st.sampled_from(["ab", "a", "b"])), min_size=1, max_size=3))


@given(units, st.integers(0, 4000), st.integers(0, 4000), st.sampled_from([1, 2**50]))
@settings(max_examples=60, deadline=None)
def test_a_batch_is_charged_to_queues_as_its_pods_one_after_the_other(redis_server, wanted, first, second, times):
    """Pods by themselves, and groups that are reserved together or not at all, in one script."""
    left, sums = {"a": first * times, "b": second * times}, {"a": 0, "b": 0}
    requests, expected = [], []
    with system(redis_server) as store:
        epoch = take_over(store)
        queue, held, usage = Queue(store, epoch), Reservations(store, epoch), with_node(store, epoch, cpu=10**9)
        Usage(store, epoch, keys.QUOTA).rebuild(
            [(NodeName(name), {"memory": limit}, {}) for name, limit in left.items()]
        )
        for number, unit in enumerate(wanted):
            ahead, verdicts = Counter(), []
            for place, (amount, queues) in enumerate(unit):
                name = f"p{number}-{place}"
                fly(queue, name)
                charges = tuple((each, {"memory": amount * times}) for each in queues)
                one = request(name, usage, cpu=1, version=0, group=f"g{number}" if len(unit) > 1 else "")
                requests.append(replace(one, queues=charges))
                fits = all(ahead[each] + amount * times <= left[each] for each in queues)
                verdicts.append(OK if fits else LIMITED)
                ahead.update(dict.fromkeys(queues, amount * times))
            if set(verdicts) == {OK}:
                sums = {name: total + ahead[name] for name, total in sums.items()}
                left = {name: room - ahead[name] for name, room in left.items()}
            else:
                verdicts = [TOGETHER if verdict == OK else verdict for verdict in verdicts]
            expected += verdicts
        assert held.reserve(requests, NOW_MS) == expected
        for name, total in sums.items():
            assert charged(store, name).get("used.memory", "0") == str(total)
