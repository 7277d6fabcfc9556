"""How reservations end on a real Redis: released or bound, once, whoever asks how often and however late."""

import pytest
from msgspec.structs import replace

from dsched.cluster.interface import Binding, BindVerdict
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.errors import StaleEpoch
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.scheduler.ports import QueueName
from dsched.state import keys
from dsched.state.reservations import OK, Reservations, read_reservations
from dsched.state.results import Binds
from tests.integration.state.support import (
    LONG_MS,
    NOW_MS,
    dump,
    move,
    node_fields,
    places,
    pod_of,
    records,
    request,
    reserve,
    take_over,
    used,
)
from tests.manifests import apply, node_manifest, pod_manifest

N1 = NodeName("n1")
ONE = {"cpu": 1000, "pods": 1}

# -- release -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("waiting", [False, True])
@pytest.mark.parametrize("target", [QueueName.ACTIVE, QueueName.BACKOFF, QueueName.UNSCHEDULABLE])
def test_release_gives_back_once_and_queues_the_pod(store, queue, held, usage, target, waiting):
    reserve(held, queue, usage, "a", deadline_ms=NOW_MS + 5 if waiting else 0)
    released = (move("a", QueueName.RESERVED, target, place="new", message="why"), N1, ONE)
    version = int(node_fields(store, "n1")["version"])
    assert held.release([released]) == [True]
    assert used(store, "n1") == {}
    assert int(node_fields(store, "n1")["version"]) == version + 1
    assert places(store) == {target.value: ["ns/a"], f"[{target}]": ["ns/a"]}
    record = records(store)["ns/a"]
    assert (record["place"], record["message"], record["attempts"]) == ("new", "why", "1")
    assert "node" not in record
    before = dump(store)
    assert held.release([released]) == [False]
    assert dump(store) == before


def test_nothing_is_settled_once_something_was_given_back(store, queue, held, usage):
    reserve(held, queue, usage, "a")
    queue.mark_intake(7, ["default-scheduler"], settled=True)
    held.release([(move("a", QueueName.RESERVED, QueueName.UNSCHEDULABLE), N1, ONE)])
    assert store.redis.hkeys(store.key(keys.INTAKE.name)) == [b"version", b"schedulers", b"cluster", b"held_back"]


def test_release_to_nowhere_forgets_the_pod(store, queue, held, usage):
    at_rest = set(dump(store))
    reserve(held, queue, usage, "a")
    assert held.release([(move("a", QueueName.RESERVED, QueueName.NOWHERE), N1, ONE)]) == [True]
    assert set(dump(store)) == at_rest


@pytest.mark.parametrize("wrong", ["node", "key"])
def test_release_of_another_reservation_is_refused(store, queue, held, usage, wrong):
    reserve(held, queue, usage, "a")
    released = move("a", QueueName.RESERVED, QueueName.ACTIVE)
    if wrong == "key":
        released = replace(released, key=PodKey("ns/b"))
    before = dump(store)
    assert held.release([(released, NodeName("n2") if wrong == "node" else N1, ONE)]) == [False]
    assert dump(store) == before


def test_a_pod_replaced_by_one_of_its_name_gives_back_and_leaves_the_new_one_alone(store, queue, held, usage):
    reserve(held, queue, usage, "a", deadline_ms=NOW_MS + 5)
    queue.move([move("a", QueueName.NOWHERE, QueueName.GATED, uid="uid-new")])
    there = places(store), records(store)
    assert held.release([(move("a", QueueName.RESERVED, QueueName.BACKOFF), N1, ONE)]) == [True]
    assert (places(store), records(store)) == there
    assert used(store, "n1") == {}


def test_release_on_a_node_that_is_gone_leaves_no_node_behind(store, queue, held, usage):
    reserve(held, queue, usage, "a")
    usage.gone(N1)
    usage.flush()
    assert held.release([(move("a", QueueName.RESERVED, QueueName.BACKOFF), N1, ONE)]) == [True]
    assert node_fields(store, "n1") == {}
    assert read_reservations(store) == []


# -- confirm and allow -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("waiting", [False, True])
def test_confirm_ends_the_reservation_once_and_keeps_the_charge(store, queue, held, usage, waiting):
    reserve(held, queue, usage, "a", deadline_ms=NOW_MS + 5 if waiting else 0)
    assert held.confirm([pod_of("a"), pod_of("a")]) == [True, False]
    assert read_reservations(store) == []
    assert places(store) == {}
    assert used(store, "n1") == ONE
    before = dump(store)
    assert held.confirm([pod_of("a")]) == [False]
    assert dump(store) == before


@pytest.mark.parametrize("target", [QueueName.ACTIVE, QueueName.BACKOFF, QueueName.UNSCHEDULABLE])
def test_confirm_after_release_leaves_the_pod_in_its_queue(store, queue, held, usage, target):
    reserve(held, queue, usage, "a")
    held.release([(move("a", QueueName.RESERVED, target), N1, ONE)])
    before = dump(store)
    assert held.confirm([pod_of("a")]) == [False]
    assert dump(store) == before


def test_release_after_confirm_keeps_the_charge(store, queue, held, usage):
    reserve(held, queue, usage, "a")
    held.confirm([pod_of("a")])
    before = dump(store)
    assert held.release([(move("a", QueueName.RESERVED, QueueName.BACKOFF), N1, ONE)]) == [False]
    assert dump(store) == before


def test_confirm_leaves_a_new_pod_of_the_name_alone(store, queue, held, usage):
    reserve(held, queue, usage, "a")
    queue.move([move("a", QueueName.NOWHERE, QueueName.ACTIVE, uid="uid-new")])
    assert held.confirm([pod_of("a")]) == [True]
    assert places(store) == {"active": ["ns/a"], "[active]": ["ns/a"]}


def test_allow_lets_a_waiting_pod_go_on_once(store, queue, held, usage):
    reserve(held, queue, usage, "a", deadline_ms=NOW_MS + 5)
    assert held.allow([pod_of("a"), pod_of("b")]) == [True, False]
    assert places(store) == {"[reserved]": ["ns/a"]}
    assert [reservation.state for reservation in read_reservations(store)] == ["reserved"]
    before = dump(store)
    assert held.allow([pod_of("a")]) == [False]
    assert dump(store) == before


def test_allow_of_a_dead_pod_leaves_a_new_one_of_its_name_waiting(store, queue, held, usage):
    reserve(held, queue, usage, "a", deadline_ms=NOW_MS + 5)
    queue.move([move("a", QueueName.NOWHERE, QueueName.ACTIVE, uid="uid-new")])
    queue.pop("1-2", 1, NOW_MS, from_backoff=False)
    again = replace(request("a", usage, deadline_ms=NOW_MS + 9), uid=PodUid("uid-new"))
    assert held.reserve([again], NOW_MS) == [OK]
    before = dump(store)
    assert held.allow([pod_of("a")]) == [False]
    assert dump(store) == before
    assert held.allow([(PodKey("ns/a"), PodUid("uid-new"))]) == [True]


def test_nothing_to_do_needs_no_server(connect):
    held = Reservations(connect("nobody leads here"), 1)
    assert (held.release([]), held.confirm([]), held.allow([])) == ([], [], [])


# -- binding and adopting ----------------------------------------------------------------------------------------------


def test_a_binder_goes_on_as_often_as_it_asks_while_the_reservation_stands(store, epoch, queue, held, usage):
    reserve(held, queue, usage, "a")
    reserve(held, queue, usage, "waits", deadline_ms=NOW_MS + 5)
    binds = Binds(store)
    asked = [
        (*pod_of("a"), N1, 1),
        (*pod_of("waits"), N1, 1),
        (*pod_of("a"), NodeName("n2"), 1),
        (*pod_of("a"), N1, 2),
        (*pod_of("b"), N1, 1),
    ]
    for _ in range(2):
        assert binds.begin(epoch, asked) == [True, False, False, False, False]
        assert {str(each.key): each.state for each in read_reservations(store)} == {
            "ns/a": "binding",
            "ns/waits": "waiting",
        }
    held.confirm([pod_of("a")])
    assert binds.begin(epoch, asked[:1]) == [False]


def test_what_no_binder_has_begun_can_be_cancelled(store, epoch, queue, held, usage):
    for name in ("a", "b", "c"):
        reserve(held, queue, usage, name)
    reserve(held, queue, usage, "waits", deadline_ms=NOW_MS + LONG_MS)
    binds, jobs = Binds(store), [(*pod_of(name), N1, 1) for name in "abc"]
    binds.begin(epoch, jobs[1:])
    held.pause_ahead([pod_of("c")[1]])  # its PreBind was not ready
    uids = [pod_of(name)[1] for name in ("a", "b", "c", "waits", "unheard-of")]
    assert held.cancel(uids) == [True, False, True, False, False]
    assert held.cancel(uids[:1]) == [False]
    states = {str(each.key): each.state for each in read_reservations(store)}
    assert states == {"ns/a": "cancelled", "ns/b": "binding", "ns/c": "cancelled", "ns/waits": "waiting"}
    assert binds.begin(epoch, jobs) == [False, True, False]
    assert (held.cancel([]), held.pause_ahead([])) == ([], None)
    after = take_over(store)  # the leader was killed before it released them
    assert Reservations(store, after).adopt(uids) == 4
    assert binds.begin(after, jobs) == [True, True, True]


def test_a_new_leader_adopts_what_stands_and_voids_older_jobs(store, epoch, queue, held, usage):
    for name in ("reserved", "binding"):
        reserve(held, queue, usage, name)
    reserve(held, queue, usage, "waits", deadline_ms=NOW_MS + LONG_MS)
    job = [(*pod_of("binding"), N1, 1)]
    assert Binds(store).begin(epoch, job) == [True]
    charged = used(store, "n1")
    after = take_over(store)
    with pytest.raises(StaleEpoch):
        Binds(store).begin(epoch, job)
    assert Binds(store).begin(after, job) == [False]

    uids = [pod_of(name)[1] for name in ("reserved", "binding", "waits", "unheard-of")]
    assert Reservations(store, after).adopt(uids) == 3
    found = {str(each.key): (each.epoch, each.state, each.attempt, each.since_ms) for each in read_reservations(store)}
    assert found == {
        "ns/reserved": (after, "reserved", 1, NOW_MS),
        "ns/binding": (after, "reserved", 1, NOW_MS),
        "ns/waits": (after, "waiting", 1, NOW_MS),
    }
    assert used(store, "n1") == charged
    assert Binds(store).begin(after, job) == [True]
    assert Reservations(store, after).adopt([]) == 0


def test_the_cluster_binds_only_under_the_epoch_of_the_reservation(store, epoch, queue, held, usage, tmp_path):
    key, uid = pod_of("a")
    apply(store, tmp_path, node_manifest("n1"), pod_manifest("ns/a", uid=uid))
    reserve(held, queue, usage, "a")
    after = take_over(store)
    Reservations(store, after).adopt([uid])
    cluster = StandaloneCluster(store)
    (old,) = cluster.bind([Binding(key, uid, N1, epoch)])
    assert old.verdict is BindVerdict.RESERVATION_LOST
    assert [pod.node_name for pod in cluster.get_pods([key]) if pod] == [""]
    (new,) = cluster.bind([Binding(key, uid, N1, after)])
    assert new.verdict is BindVerdict.BOUND
    (again,) = cluster.bind([Binding(key, uid, N1, epoch)])
    assert again.verdict is BindVerdict.BOUND
