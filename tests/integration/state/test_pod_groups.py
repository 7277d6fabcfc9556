"""Pod groups on a real Redis: pods beside their group, and reservations of a group whole or not at all."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dsched.model.claim_requests import DeviceCharge
from dsched.model.meta import NodeName
from dsched.scheduler.ports import Move, Popped, QueueName, group_of
from dsched.state import keys, pieces
from dsched.state.queue import Queue
from dsched.state.reservations import CHANGED, GONE, OK, TAKEN, TOGETHER, Reservations
from dsched.state.standings import Asked, Lookout, Member, read_standings
from dsched.state.usage import Usage
from tests.integration.state.support import (
    NOW_MS,
    dump,
    fly,
    move,
    places,
    pod_of,
    put,
    records,
    request,
    system,
    take_over,
    used,
    with_node,
)

GROUP = "ns/gang"
N1, N2 = NodeName("n1"), NodeName("n2")
QUEUES = (QueueName.ACTIVE, QueueName.BACKOFF, QueueName.GATED, QueueName.INFLIGHT)


def beside(store) -> list[tuple[str, int]]:
    """Pods that stand beside groups, with their scores."""
    found = store.redis.zrange(store.key(keys.GROUP.name), 0, -1, withscores=True)
    return [(member.decode(), int(score)) for member, score in found]


def join(name: str, source: QueueName, queued_us: int = 7) -> Move:
    """A pod's move to its group."""
    return move(name, source, QueueName.GROUP, score=queued_us, place=GROUP, order=queued_us, group=GROUP)


def leave(name: str, target: QueueName) -> Move:
    return move(name, QueueName.GROUP, target, place=GROUP, order=7, group=GROUP)


# -- beside a group ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [QueueName.NOWHERE, *QUEUES])
def test_a_pod_joins_its_group(store, queue, source):
    if source is QueueName.INFLIGHT:
        fly(queue, "a")
    elif source:
        put(queue, "a", source)
    assert queue.move([join("a", source)]) == []
    assert beside(store) == [(f"{GROUP} ns/a", 7)]
    assert places(store) == {"[group]": ["ns/a"]}
    assert (records(store)["ns/a"]["place"], records(store)["ns/a"]["group"]) == (GROUP, GROUP)
    before = dump(store)
    assert queue.move([join("a", source)]) == [0]
    assert dump(store) == before


@pytest.mark.parametrize("target", QUEUES)
def test_a_pod_leaves_its_group(store, queue, epoch, target):
    assert queue.move([join("a", QueueName.NOWHERE)]) == []
    assert queue.move([leave("a", target)]) == []
    assert beside(store) == []
    assert places(store) == {target.value: ["ns/a"], f"[{target}]": ["ns/a"]}
    if target is QueueName.INFLIGHT:
        assert store.redis.hget(store.key(keys.INFLIGHT.name), "ns/a") == f"{epoch} group".encode()


def test_pods_beside_a_group_are_forgotten_and_replaced_as_others_are(store, queue):
    assert queue.move([join("a", QueueName.NOWHERE), join("b", QueueName.NOWHERE)]) == []
    assert queue.remove([pod_of("a")]) == [QueueName.GROUP]
    assert queue.move([move("b", QueueName.NOWHERE, QueueName.ACTIVE, uid="new")]) == []
    assert beside(store) == []
    assert places(store) == {"active": ["ns/b"], "[active]": ["ns/b"]}


def test_pods_beside_a_group_are_not_popped_and_it_is(store, queue):
    put(queue, "entity")
    assert queue.move([join("a", QueueName.NOWHERE)]) == []
    key, uid = pod_of("entity")
    assert queue.pop("1-1", 9, NOW_MS, from_backoff=True) == [Popped(key, uid, 1)]
    assert beside(store) == [(f"{GROUP} ns/a", 7)]


def test_a_new_leader_puts_a_group_into_the_queue_and_its_pods_beside_it(store, queue):
    put(queue, "entity")
    assert queue.move([join(name, QueueName.NOWHERE, number) for number, name in enumerate("abc")]) == []
    queue.pop("1-1", 9, NOW_MS, from_backoff=False)
    flying = [move(name, QueueName.GROUP, QueueName.INFLIGHT, place=GROUP, order=5, attempts=1) for name in "ab"]
    assert queue.move(flying) == []
    after = Queue(store, take_over(store))
    assert (after.recover(), after.recover()) == (3, 0)
    assert beside(store) == [(f"{GROUP} ns/c", 2), (f"{GROUP} ns/a", 5), (f"{GROUP} ns/b", 5)]
    assert places(store) == {
        "active": ["ns/entity"],
        "[active]": ["ns/entity"],
        "[group]": ["ns/a", "ns/b", "ns/c"],
    }
    assert [records(store)[f"ns/{name}"].get("crashes") for name in "abc"] == ["1", "1", None]


def test_what_stands_beside_groups_is_read_as_it_is(store, queue):
    assert queue.move([join("a", QueueName.NOWHERE)]) == []
    member = Member(QueueName.GROUP, f"{GROUP} ns/a", 7)
    key, _ = pod_of("a")
    assert read_standings(store)[key].members == [member]
    store.redis.hset(store.key(keys.POD.name + key), "place", "elsewhere")
    looked = Lookout(store).look([Asked(key)])
    assert looked is not None and looked.pods[key].members == [member]


@pytest.mark.parametrize(
    ("key", "group"),
    [("podgroup/ns/gang", GROUP), ("ns/gang", ""), ("podgroup/gang", ""), ("other/ns/gang", "")],
)
def test_groups_are_told_from_pods_by_their_keys(key, group):
    assert group_of(key) == group


# -- reservations of groups --------------------------------------------------------------------------------------------


def requests(usage: Usage, names: str, node: str = "n1", cpu: int = 1000, group: str = GROUP, **how) -> list:
    """Requests of one group, each expecting the node as those before it leave it."""
    version = usage.seen(NodeName(node)).version
    return [
        request(name, usage, node, cpu, group=group, version=version + number, **how)
        for number, name in enumerate(names)
    ]


def test_a_group_is_reserved_whole(store, queue, held, usage):
    fly(queue, *"abc")
    assert held.reserve(requests(usage, "abc"), NOW_MS) == [OK] * 3
    assert used(store, "n1") == {"cpu": 3000, "pods": 3}
    assert places(store) == {"[reserved]": ["ns/a", "ns/b", "ns/c"]}


def test_a_group_of_which_one_is_gone_is_not_reserved(store, queue, held, usage):
    fly(queue, "a", "c")
    before = dump(store)
    assert held.reserve(requests(usage, "abc"), NOW_MS) == [TOGETHER, GONE, TOGETHER]
    assert dump(store) == before


def test_a_group_whose_node_changed_has_to_fit_whole(store, queue, held, usage):
    """4000 are allocatable: two of 1500 fit, three do not, though each of them would."""
    fly(queue, *"abcde")
    stale = [replace(each, version=0) for each in requests(usage, "abc", cpu=1500)]
    before = dump(store)
    assert held.reserve(stale, NOW_MS) == [TOGETHER, TOGETHER, CHANGED]
    assert dump(store) == before
    assert held.reserve(stale[:2], NOW_MS) == [OK, OK]
    assert used(store, "n1") == {"cpu": 3000, "pods": 2}


def test_groups_and_pods_of_one_batch_do_not_take_each_other_along(store, epoch, queue, held, usage):
    """The second group has no room left after the first; the pod by itself has."""
    fly(queue, *"abcdx")
    asked = requests(usage, "ab", cpu=1500, group="ns/one")
    asked += [replace(each, version=0) for each in requests(usage, "cd", cpu=600, group="ns/two")]
    asked.append(replace(request("x", usage, cpu=1000), version=0))
    assert held.reserve(asked, NOW_MS) == [OK, OK, TOGETHER, CHANGED, OK]
    assert used(store, "n1") == {"cpu": 4000, "pods": 3}


def test_a_group_on_nodes_as_they_were_seen_is_reserved_without_a_sum(store, queue, held, usage):
    """What its pods take of the nodes was decided over the very same state."""
    fly(queue, *"ab")
    assert held.reserve(requests(usage, "ab", cpu=3000), NOW_MS) == [OK, OK]


def test_devices_are_added_up_over_a_group(store, queue, held, usage):
    fly(queue, *"ab")
    charges = [DeviceCharge(f"claim of {name}", {"gpu": 1}, {}) for name in "ab"]
    asked = [replace(each, devices=(own,)) for each, own in zip(requests(usage, "ab"), charges, strict=True)]
    before = dump(store)
    assert held.reserve(asked, NOW_MS) == [TOGETHER, TAKEN]
    assert dump(store) == before
    assert held.reserve(asked[:1], NOW_MS) == [OK]


def test_a_group_larger_than_a_piece_is_one_script(store, epoch, queue, held, monkeypatch):
    usage = with_node(store, epoch, cpu=40_000)
    monkeypatch.setattr(pieces, "AT_MOST", 2)
    fly(queue, *"abcdef")
    asked = requests(usage, "abcde")
    queue.remove([pod_of("e")])
    assert held.reserve(asked, NOW_MS) == [TOGETHER] * 4 + [GONE]
    assert used(store, "n1") == {}


def test_a_reserved_pod_goes_back_to_its_group(store, queue, held, usage):
    fly(queue, *"ab")
    assert held.reserve(requests(usage, "ab"), NOW_MS) == [OK, OK]
    back = join("a", QueueName.RESERVED)
    assert held.release([(back, N1, {"cpu": 1000, "pods": 1})]) == [True]
    assert held.release([(back, N1, {"cpu": 1000, "pods": 1})]) == [False]
    assert beside(store) == [(f"{GROUP} ns/a", 7)]
    assert (used(store, "n1"), "node" in records(store)["ns/a"]) == ({"cpu": 1000, "pods": 1}, False)


# -- any sequence ------------------------------------------------------------------------------------------------------

NAMES = "abcdefgh"
CPU = {name: 2**number for number, name in enumerate(NAMES)}
UNITS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(["n1", "n2"])),
    min_size=1,
    max_size=5,
    unique_by=lambda each: each[0],
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("reserve"), st.lists(UNITS, min_size=1, max_size=3)),
        st.tuples(st.sampled_from(["release", "confirm"]), st.sampled_from(NAMES)),
        st.tuples(st.just("take over"), st.none()),
    ),
    min_size=5,
    max_size=25,
)


class Groups:
    """What must come of it: where each pod is, and what is taken on each node.

    Attributes:
        on: pods with a node; bound: those that are bound there.
    """

    def __init__(self) -> None:
        self.on: dict[str, str] = {}
        self.bound: set[str] = set()

    def taken(self, node: str) -> dict[str, int]:
        pods = [name for name, on in self.on.items() if on == node]
        return {"cpu": sum(CPU[name] for name in pods), "pods": len(pods)} if pods else {}

    def reserve(self, unit: list[tuple[str, str]]) -> bool:
        """All of a unit have a node, or none."""
        after = {**self.on, **dict(unit)}
        sums = [[CPU[name] for name, on in after.items() if on == node] for node in ("n1", "n2")]
        fine = all(name not in self.on for name, _ in unit) and all(
            sum(each) <= 150 and len(each) <= 4 for each in sums
        )
        if fine:
            self.on = after
        return fine


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_groups_are_reserved_whole_or_not_at_all_after_any_sequence(redis_server, steps):
    """Each pod asks for a CPU of its own, so that no wrong sum looks right."""
    wanted = Groups()
    with system(redis_server) as store:
        epoch = take_over(store)
        queue, held, usage = Queue(store, epoch), Reservations(store, epoch), Usage(store, epoch)
        for node in (N1, N2):
            usage.set(node, {"cpu": 150, "pods": 4})
        usage.flush()
        assert queue.move([join(name, QueueName.NOWHERE) for name in NAMES]) == []
        fly_again(queue, NAMES)
        for what, given_to in steps:
            if what == "reserve":
                reserve_units(wanted, held, usage, given_to)
            elif what == "take over":
                epoch = take_over(store)
                queue, held = Queue(store, epoch), Reservations(store, epoch)
                flying = [name for name in NAMES if name not in wanted.on]
                assert queue.recover() == len(flying)
                assert {member for member, _ in beside(store)} == {f"{GROUP} ns/{name}" for name in flying}
                fly_again(queue, flying)
            else:
                end(wanted, queue, held, what, given_to)
            assert beside(store) == []
            for node in ("n1", "n2"):
                assert used(store, node) == wanted.taken(node)


def fly_again(queue: Queue, names) -> None:
    assert queue.move([leave(name, QueueName.INFLIGHT) for name in names]) == []


def reserve_units(wanted: Groups, held: Reservations, usage: Usage, units: list[list[tuple[str, str]]]) -> None:
    """Nobody knows the versions of nodes, so that all has to fit."""
    asked = [
        request(name, usage, node, CPU[name], version=0, group=f"ns/{number}")
        for number, unit in enumerate(units)
        for name, node in unit
    ]
    verdicts = iter(held.reserve(asked, NOW_MS))
    for unit in units:
        found = [next(verdicts) for _ in unit]
        if wanted.reserve(unit):
            assert found == [OK] * len(unit)
        else:
            assert OK not in found and set(found) & {CHANGED, GONE}


def end(wanted: Groups, queue: Queue, held: Reservations, what: str, name: str) -> None:
    node = wanted.on.get(name, "n1")
    stands = name in wanted.on and name not in wanted.bound
    if what == "confirm":
        assert held.confirm([pod_of(name)]) == [stands]
        wanted.bound |= {name} if stands else set()
        return
    back = (join(name, QueueName.RESERVED), NodeName(node), {"cpu": CPU[name], "pods": 1})
    assert held.release([back]) == [stands]
    if stands:
        del wanted.on[name]
        fly_again(queue, [name])
