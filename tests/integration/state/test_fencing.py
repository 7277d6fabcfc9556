"""A leader that no longer leads, or that never did, changes nothing: every script that changes something refuses."""

from collections.abc import Callable

import msgspec
import pytest

from dsched.errors import StaleEpoch
from dsched.model.claim_requests import DeviceCharge
from dsched.model.meta import NodeName
from dsched.scheduler.ports import QueueName
from dsched.state import keys, misfits
from dsched.state.attempt_history import UNSCHEDULABLE, Attempt, AttemptHistory
from dsched.state.client import Store
from dsched.state.devices import Devices
from dsched.state.leader_config import LeaderConfig, publish
from dsched.state.lease import Lease
from dsched.state.node_log import NodeLog
from dsched.state.pieces import packed
from dsched.state.queue import Queue
from dsched.state.recording import RecordingStream
from dsched.state.requests import REQUEUE, Request, Requests
from dsched.state.reservations import Reservations
from dsched.state.results import Binds, Outcome, Results
from dsched.state.scripts import FOLDER, Script
from dsched.state.usage import Usage
from tests.builders import make_node, make_snapshot
from tests.integration.state.support import (
    LONG_MS,
    NOW_MS,
    dump,
    fly,
    move,
    pod_of,
    put,
    request,
    take_over,
    with_node,
)

N1 = NodeName("n1")


@pytest.fixture
def epoch(store: Store) -> int:
    """An epoch that others stand beside on both sides, in a system where every script finds something to change."""
    for _ in range(4):
        epoch = take_over(store)
    queue, reservations = Queue(store, epoch), Reservations(store, epoch)
    usage = with_node(store, epoch)
    fly(queue, "reserved", "waiting", "inflight")
    devices = [DeviceCharge("claim", {"gpu": 1})]
    assert reservations.reserve([request("reserved", usage, devices=devices)], NOW_MS) == ["ok"]
    usage.moved(N1)
    assert reservations.reserve([request("waiting", usage, deadline_ms=NOW_MS + 1)], NOW_MS) == ["ok"]
    put(queue, "active")
    put(queue, "backoff", QueueName.BACKOFF)
    put(queue, "unschedulable", QueueName.UNSCHEDULABLE)
    put(queue, "gated", QueueName.GATED)
    NodeLog(store, epoch).publish(make_snapshot([make_node("n1")]))
    Binds(store).report(epoch, "binder", [Outcome(*pod_of("reserved"), N1, "bound", "", 1)])
    store.redis.hset(store.key(keys.RESERVATIONS.name), "of nobody", "unreadable")
    store.redis.hset(store.key(keys.DEVICES.name), "of nobody", "{}")
    store.redis.set(store.key(keys.RECORDER.name), "token somebody")
    store.redis.rpush(store.key(keys.WORKERS.name), "of another type")
    store.redis.rpush(store.key(keys.REQUESTS.name), msgspec.json.encode(Request("1", REQUEUE)))
    return epoch


def renew(store: Store, epoch: int) -> None:
    lease = Lease(store, "somebody else", LONG_MS)
    lease.epoch = epoch
    lease.renew()


def write_nodes(store: Store, epoch: int) -> None:
    usage = Usage(store, epoch)
    usage.set(NodeName("n2"), {"cpu": 1})
    usage.gone(N1)
    usage.flush()


def release(store: Store, epoch: int) -> None:
    Reservations(store, epoch).release([(move("reserved", QueueName.RESERVED, QueueName.BACKOFF), N1, {"cpu": 1000})])


def reserve(store: Store, epoch: int) -> None:
    usage = Usage(store, epoch)
    usage.look_again(N1)
    Reservations(store, epoch).reserve([request("inflight", usage)], NOW_MS)


def explain(store: Store, epoch: int) -> None:
    key, uid = pod_of("active")
    AttemptHistory(store, epoch).keep([(key, Attempt(1, NOW_MS, epoch, uid, "default", UNSCHEDULABLE, 1))], NOW_MS)


HELD = keys.names(keys.EPOCH, keys.DEVICES, keys.DEVICES_USED)
RELEASING = keys.names(keys.LEADER, keys.EPOCH, keys.RELEASED)

ACTS: dict[str, Callable[[Store, int], object]] = {
    "bind_begin": lambda store, epoch: Binds(store).begin(epoch, [(*pod_of("reserved"), N1, 1)]),
    "config_publish": lambda store, epoch: publish(store, LeaderConfig(epoch, "3f2a", "standalone")),
    "intake_mark": lambda store, epoch: Queue(store, epoch).mark_intake(1, ["default-scheduler"]),
    "keys_drop": lambda store, epoch: misfits.drop(store, epoch, misfits.SINGLE),
    "devices_release": lambda store, epoch: Devices(store, epoch).release([(pod_of("reserved")[1], "claim")]),
    "devices_write": lambda store, epoch: Script(store, "devices_write")(HELD, [epoch, packed([[0, "of nobody", ""]])]),
    "lease_release": lambda store, epoch: Script(store, "lease_release")(RELEASING, [epoch]),
    "lease_renew": renew,
    "log_append": lambda store, epoch: NodeLog(store, epoch).publish(make_snapshot()),
    "nodes_write": write_nodes,
    "queue_flush": lambda store, epoch: Queue(store, epoch).flush_backoff(NOW_MS),
    "queue_move": lambda store, epoch: Queue(store, epoch).move([move("new", QueueName.NOWHERE, QueueName.ACTIVE)]),
    "queue_pop": lambda store, epoch: Queue(store, epoch).pop("9-9", 1, NOW_MS, from_backoff=True),
    "explained_keep": explain,
    "requests_take": lambda store, epoch: Requests(store, epoch).take(),
    "queue_recover": lambda store, epoch: Queue(store, epoch).recover(),
    "queue_remove": lambda store, epoch: Queue(store, epoch).remove([pod_of("active")]),
    "reservation_adopt": lambda store, epoch: Reservations(store, epoch).adopt([pod_of("reserved")[1]]),
    "reservation_allow": lambda store, epoch: Reservations(store, epoch).allow([pod_of("waiting")]),
    "reservation_confirm": lambda store, epoch: Reservations(store, epoch).confirm([pod_of("reserved")]),
    "reservation_mark": lambda store, epoch: Reservations(store, epoch).cancel([pod_of("reserved")[1]]),
    "reservation_release": release,
    "reservation_drop": lambda store, epoch: Reservations(store, epoch).drop_unreadable(),
    "reserve": reserve,
    "results_ack": lambda store, epoch: Results(store, epoch).ack(Results(store, epoch).read("0", 0.001)),
    "tape_append": lambda store, epoch: RecordingStream(store, epoch).append("token", 1, b"{}"),
}
each_act = pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)


def test_no_script_that_changes_something_is_missing_here():
    scripts = {path.stem for path in FOLDER.glob("*.lua")}
    assert scripts - set(ACTS) == {"lease_acquire", "queue_look", "queue_scan"}


@each_act
@pytest.mark.parametrize("away", [-3, -1, 1, 1000])
def test_another_epoch_is_refused_and_changes_nothing(store, epoch, act, away):
    before = dump(store)
    with pytest.raises(StaleEpoch):
        act(store, epoch + away)
    assert dump(store) == before


@each_act
def test_the_present_epoch_does_change_something(store, epoch, act):
    if act is ACTS["reservation_adopt"]:
        epoch = take_over(store)
    before = dump(store)
    act(store, epoch)
    assert dump(store) != before


@each_act
def test_who_never_led_is_refused_where_nobody_has_led_yet(store, act):
    if act is ACTS["results_ack"]:
        Binds(store).report(0, "binder", [])
    before = dump(store)
    with pytest.raises(StaleEpoch):
        act(store, 0)
    assert dump(store) == before
