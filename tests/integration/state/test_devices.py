"""Devices on a real Redis: charged with the reservation, given back with it, promised once."""

import json

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from dsched.model.claim_requests import DeviceCharge
from dsched.model.meta import NodeName, PodUid
from dsched.scheduler.ports import QueueName
from dsched.state import devices, keys
from dsched.state.client import Store
from dsched.state.devices import Devices, read_held, read_used
from dsched.state.queue import Queue
from dsched.state.reservations import CHANGED, OK, TAKEN, Reservations
from tests.integration.state.support import (
    NOW_MS,
    dump,
    fly,
    move,
    places,
    pod_of,
    request,
    reserve,
    system,
    take_over,
    used,
    with_node,
)

N1 = NodeName("n1")
GPU = "gpu.example.com/n1/gpu-0"
LARGE = 2**60


def charge(holder: str = "claim", limit: int | None = None, **amounts: int) -> DeviceCharge:
    given = amounts or {GPU: 1}
    return DeviceCharge(holder, given, {} if limit is None else dict.fromkeys(given, limit))


def held_by(store: Store, name: str) -> devices.Held:
    return read_held(store)[0].get(pod_of(name)[1], {})


def give_up(held: Reservations, name: str) -> bool:
    return held.release([(move(name, QueueName.RESERVED, QueueName.BACKOFF), N1, {"cpu": 1000, "pods": 1})])[0]


def test_a_reservation_charges_its_devices(store, queue, held, usage):
    reserve(held, queue, usage, "a", devices=[charge("c1"), charge("c2", memory=LARGE, limit=LARGE)])
    assert held_by(store, "a") == {"c1": {GPU: 1}, "c2": {"memory": LARGE}}
    assert read_used(store) == {GPU: "1", "memory": str(LARGE)}


def test_a_device_in_use_refuses_the_pod_and_charges_nothing(store, queue, held, usage):
    reserve(held, queue, usage, "a", devices=[charge("c1")])
    fly(queue, "b")
    before = dump(store)
    assert held.reserve([request("b", usage, devices=[charge("c2"), charge("c3", other=1)])], NOW_MS) == [TAKEN]
    assert dump(store) == before
    assert places(store)["inflight"] == ["ns/b"]


def test_a_predecessor_in_the_batch_counts(store, queue, held, usage):
    fly(queue, "a", "b", "c")
    seen = usage.seen(N1).version
    asked = [request(name, usage, version=seen + n, devices=[charge(name)]) for n, name in enumerate("abc")]
    assert held.reserve(asked, NOW_MS) == [OK, TAKEN, TAKEN]
    assert used(store, "n1") == {"cpu": 1000, "pods": 1}


def test_two_claims_of_one_pod_do_not_get_the_same_device(queue, held, usage):
    fly(queue, "a")
    assert held.reserve([request("a", usage, devices=[charge("c1"), charge("c2")])], NOW_MS) == [TAKEN]


def test_shares_are_given_up_to_the_limit(store, queue, held, usage):
    reserve(held, queue, usage, "a", devices=[charge("c1", share=LARGE, limit=2 * LARGE)])
    reserve(held, queue, usage, "b", devices=[charge("c2", share=LARGE, limit=2 * LARGE)])
    fly(queue, "c")
    assert held.reserve([request("c", usage, devices=[charge("c3", share=1, limit=2 * LARGE)])], NOW_MS) == [TAKEN]
    assert read_used(store) == {"share": str(2 * LARGE)}
    assert give_up(held, "a")
    assert read_used(store) == {"share": str(LARGE)}


def test_what_goes_with_a_release_goes_once(store, queue, held, usage):
    reserve(held, queue, usage, "a", devices=[charge()])
    assert give_up(held, "a")
    usage.moved(N1)
    assert (read_held(store), read_used(store)) == (({}, {}), {})
    reserve(held, queue, usage, "b", devices=[charge()])
    assert not give_up(held, "a")
    assert read_used(store) == {GPU: "1"}


def test_a_bound_pod_holds_devices_by_its_claims_alone(store, queue, held, usage):
    reserve(held, queue, usage, "a", devices=[charge()])
    reserve(held, queue, usage, "b")
    assert held.confirm([pod_of("a"), pod_of("b"), pod_of("a")]) == [True, True, False]
    assert (read_held(store), read_used(store)) == (({}, {}), {})


def test_a_claim_that_shows_in_the_cluster_is_no_longer_charged(store, epoch, queue, held, usage):
    reserve(held, queue, usage, "a", devices=[charge("c1"), charge("c2", other=1)])
    uid = pod_of("a")[1]
    own = Devices(store, epoch)
    assert own.release([(uid, "c1"), (uid, "c1"), (PodUid("none"), "c1")]) == [True, False, False]
    assert held_by(store, "a") == {"c2": {"other": 1}}
    assert read_used(store) == {"other": "1"}
    assert own.release([(uid, "c2")]) == [True]
    assert store.redis.hlen(store.key(keys.DEVICES.name)) == 0


@pytest.mark.parametrize("text", ["", "nonsense", '{"c":{"x":1}}'])
def test_whether_devices_are_held(store, queue, held, usage, text):
    uid = pod_of("a")[1]
    assert not devices.holds(store, (uid, ["claim"], [GPU]))
    reserve(held, queue, usage, "a", devices=[charge(), charge("other", more=1)])
    assert devices.holds(store, (uid, ["none", "claim"], [GPU]))
    assert devices.holds(store, (uid, ["claim"], []))
    assert not devices.holds(store, (uid, ["claim", "other"], [GPU, "more"]))
    store.redis.hset(store.key(keys.DEVICES.name), uid, text)
    assert not devices.holds(store, (uid, ["claim"], [GPU]))


def test_what_moves_while_it_is_read_is_told_apart(store, queue, held, usage, monkeypatch):
    reserve(held, queue, usage, "a", devices=[charge("c1", x=1)])
    read = devices.read_used

    def meanwhile(store: Store) -> dict[str, str]:
        reserve(held, queue, usage, "b", devices=[charge("c2", y=1)])
        return read(store)

    monkeypatch.setattr(devices, "read_used", meanwhile)
    ledger = devices.read_ledger(store)
    assert (ledger.used, ledger.moving) == ({"x": "1", "y": "1"}, {"y"})


def test_reservations_that_nobody_can_read_hold_nothing(store, queue, held, usage):
    reserve(held, queue, usage, "a", devices=[charge()])
    store.redis.hset(store.key(keys.RESERVATIONS.name), pod_of("a")[1], "nonsense")
    assert held.drop_unreadable() == {pod_of("a")[1]: "nonsense"}
    assert (read_held(store), read_used(store)) == (({}, {}), {})


@pytest.mark.parametrize("text", ["nonsense", "[]", '{"c":1}', '{"c":{"x":"one"}}', '{"c":{"x":1}}', "null"])
def test_what_somebody_else_wrote_keeps_nobody_from_going_on(store, epoch, queue, held, usage, text):
    reserve(held, queue, usage, "a", devices=[charge()])
    store.redis.hset(store.key(keys.DEVICES.name), pod_of("a")[1], text)
    store.redis.hset(store.key(keys.DEVICES_USED.name), "y", "many")
    assert read_held(store)[1] == {pod_of("a")[1]: text} or text in ("[]", "null")
    assert give_up(held, "a")
    assert Devices(store, epoch).recount([]) >= 1
    assert (read_held(store), read_used(store)) == (({}, {}), {})


def test_a_new_leader_counts_again(store, epoch, queue, held, usage):
    for name, device in (("a", "x"), ("b", "y")):
        reserve(held, queue, usage, name, devices=[charge(f"claim-{name}", **{device: 1})])
    store.redis.hset(store.key(keys.DEVICES_USED.name), mapping={"x": 3, "z": 1})
    store.redis.hset(store.key(keys.DEVICES.name), "uid-gone", json.dumps({"c": {"w": "1"}}))
    own = Devices(store, take_over(store))
    assert own.recount([pod_of("a")[1]]) == 5
    assert read_held(store) == ({pod_of("a")[1]: {"claim-a": {"x": 1}}}, {})
    assert read_used(store) == {"x": "1"}
    assert own.recount([pod_of("a")[1]]) == 0


class Machine(RuleBasedStateMachine):
    """Pods come, get devices, are bound or given up, in any order; what is in Redis is what a plain count says."""

    store: Store

    def __init__(self) -> None:
        super().__init__()
        self.epoch = take_over(self.store)
        self.queue, self.held = Queue(self.store, self.epoch), Reservations(self.store, self.epoch)
        self.usage = with_node(self.store, self.epoch, cpu=10**9, pods=10**6)
        self.count = 0
        self.holds: dict[str, dict[str, dict[str, int]]] = {}

    @rule(wanted=st.dictionaries(st.sampled_from("xyz"), st.integers(1, 2), max_size=2), limit=st.integers(1, 3))
    def reserve(self, wanted: dict[str, int], limit: int) -> None:
        name = f"p{self.count}"
        self.count += 1
        fly(self.queue, name)
        taken = devices.sums(self.holds.values())
        fits = all(taken.get(device, 0) + amount <= limit for device, amount in wanted.items())
        charges = [DeviceCharge(f"c-{name}", wanted, dict.fromkeys(wanted, limit))] if wanted else []
        asked = request(name, self.usage, devices=charges)
        assert self.held.reserve([asked], NOW_MS) == [OK if fits else TAKEN]
        if fits:
            self.usage.moved(N1)
            self.holds[name] = {f"c-{name}": wanted} if wanted else {}

    @rule(wanted=st.dictionaries(st.sampled_from("xyz"), st.integers(1, 2), min_size=1), limit=st.integers(1, 3))
    def reserve_together(self, wanted: dict[str, int], limit: int) -> None:
        """Three pods of a group use one claim; one of them has one of its own as well, for the same devices."""
        names = [f"p{self.count + number}" for number in range(3)]
        self.count += 3
        fly(self.queue, *names)
        shared = f"c-{names[0]}"
        holds = {name: {shared: wanted} for name in names}
        holds[names[1]] = {**holds[names[1]], f"c-{names[1]}": wanted}
        taken = devices.sums(self.holds.values())
        fits = all(taken.get(device, 0) + 2 * amount <= limit for device, amount in wanted.items())
        seen = self.usage.seen(N1).version
        asked = [
            msgspec.structs.replace(
                request(
                    name,
                    self.usage,
                    version=seen + number,
                    devices=[DeviceCharge(of, it, dict.fromkeys(it, limit)) for of, it in holds[name].items()],
                ),
                group="ns/group",
            )
            for number, name in enumerate(names)
        ]
        said = self.held.reserve(asked, NOW_MS)
        assert said == [OK] * 3 if fits else TAKEN in said and OK not in said
        if fits:
            for name in names:
                self.usage.moved(N1)
                self.holds[name] = holds[name]

    @rule(number=st.integers(0, 10))
    def show_all(self, number: int) -> None:
        """A claim shows its devices: nobody holds them for it any more."""
        holder = f"c-p{number}"
        having = [name for name, holds in self.holds.items() if holder in holds]
        shown = Devices(self.store, self.epoch).release([(pod_of(name)[1], holder) for name in having])
        assert shown == [True] * len(having)
        for name in having:
            self.holds[name] = {of: amounts for of, amounts in self.holds[name].items() if of != holder}

    @rule(number=st.integers(0, 10), again=st.booleans())
    def end(self, number: int, again: bool) -> None:
        for name in [f"p{number}"] * (1 + again):
            stood = name in self.holds
            assert give_up(self.held, name) is stood
            if stood:
                self.usage.moved(N1)
                del self.holds[name]

    @rule(number=st.integers(0, 10))
    def bind(self, number: int) -> None:
        name = f"p{number}"
        assert self.held.confirm([pod_of(name)]) == [name in self.holds]
        self.holds.pop(name, None)

    @rule(number=st.integers(0, 10))
    def show(self, number: int) -> None:
        name = f"p{number}"
        shown = Devices(self.store, self.epoch).release([(pod_of(name)[1], f"c-{name}")])
        assert shown == [f"c-{name}" in self.holds.get(name, {})]
        self.holds.get(name, {}).pop(f"c-{name}", None)

    @invariant()
    def counted(self) -> None:
        found, unreadable = read_held(self.store)
        assert unreadable == {}
        assert found == {pod_of(name)[1]: holds for name, holds in self.holds.items() if holds}
        total = devices.sums(self.holds.values())
        assert read_used(self.store) == {name: str(amount) for name, amount in total.items()}
        assert Devices(self.store, self.epoch).recount([pod_of(name)[1] for name in self.holds]) == 0


def test_whatever_happens_the_sums_are_right(redis_server):
    class Own(Machine):
        def __init__(self) -> None:
            self.own = system(redis_server)
            self.store = self.own.__enter__()
            super().__init__()

        def teardown(self) -> None:
            self.own.__exit__(None, None, None)

    run_state_machine_as_test(Own, settings=settings(max_examples=30, stateful_step_count=25, deadline=None))


def test_pods_of_a_group_hold_the_devices_of_their_claim_together(store, epoch, queue, held, usage):
    fly(queue, "a", "b")
    seen = usage.seen(N1).version
    asked = [
        msgspec.structs.replace(request(name, usage, version=seen + number, devices=[charge("ours")]), group="ns/g")
        for number, name in enumerate("ab")
    ]
    assert held.reserve(asked, NOW_MS) == [OK, OK]
    assert read_used(store) == {GPU: "1", "sharers/ours": "1"}
    assert held_by(store, "a") == held_by(store, "b") == {"ours": {GPU: 1}}
    fly(queue, "c")
    assert held.reserve([request("c", usage, devices=[charge("ours")])], NOW_MS) == [TAKEN], (
        "it was not decided with them"
    )
    assert Devices(store, epoch).recount([pod_of("a")[1], pod_of("b")[1]]) == 0
    assert give_up(held, "a")
    assert read_used(store) == {GPU: "1"}
    assert Devices(store, epoch).release([(pod_of("b")[1], "ours")]) == [True]
    assert (read_held(store), read_used(store)) == (({}, {}), {})


@pytest.mark.parametrize(("holder", "verdict"), [("uid-a", OK), ("claim", CHANGED)])
def test_devices_of_the_pod_itself_stand_for_what_a_node_has_nothing_of(store, queue, held, usage, holder, verdict):
    """The node has got another pod since this one was decided on; devices of a claim say nothing of resources."""
    fly(queue, "a")
    asked = request("a", usage, devices=[charge(holder)])
    asked = msgspec.structs.replace(asked, amounts={**asked.amounts, "example.com/gpu": 1})
    reserve(held, queue, usage, "b")
    assert held.reserve([asked], NOW_MS) == [verdict]
