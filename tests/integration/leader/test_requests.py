"""What is asked of the leader: `dsched queue requeue` does what it says, and nothing else to any pod."""

from collections.abc import Callable

import msgspec
import pytest

from dsched import config
from dsched.errors import StaleEpoch, StateError
from dsched.leader.requests import CommandRequests
from dsched.model.meta import PodKey
from dsched.state import keys, replies, requests
from dsched.state.client import Store
from dsched.state.lease import Lease
from dsched.state.requests import DROP, REQUEUE, Answer, Request
from tests.integration.leader.checker import Checker
from tests.integration.leader.rig import LONG_MS, Led, Rig
from tests.manifests import group_manifest, node_manifest, pod_manifest
from tests.unit.scheduler.grouped import features

SSD = {"disk": "ssd"}


def asked(rig: Rig, led: Led, *names: str, namespace: str | None = None, what: str = REQUEUE) -> Answer:
    """Leave a request as a command does, let the leader answer, read it."""
    request = Request("r1", what, tuple(map(PodKey, names)), namespace)
    rig.store.redis.rpush(rig.store.key(keys.REQUESTS.name), msgspec.json.encode(request))
    term = led.term
    CommandRequests(rig.store, led.epoch, term.memory.frameworks, term.memory.pending, term.memory.events).answer()
    reply = replies.take(rig.store, "r1", 0.05)
    assert reply is not None
    return msgspec.json.decode(reply, type=Answer)


@pytest.fixture
def led(rig: Rig) -> Led:
    rig.apply(node_manifest("n1"))
    return rig.lead()


def test_an_unschedulable_pod_is_tried_at_once_whatever_its_pause(rig: Rig, led: Led, check: Checker) -> None:
    rig.apply(pod_manifest("shop/web", nodeSelector=SSD))
    led.run()
    assert rig.queue("shop/web") == "unschedulable"
    answer = asked(rig, led, "shop/web")
    assert (answer.done, answer.pods[0].place) == (1, "unschedulable")
    assert rig.queue("shop/web") == led.place("shop/web") == "active"
    check.settled()
    led.run()
    assert (rig.queue("shop/web"), rig.record("shop/web")["attempts"]) == ("unschedulable", "2")


def test_a_pod_in_backoff_is_tried_before_its_time(rig: Rig, led: Led) -> None:
    rig.apply(pod_manifest("shop/web", nodeSelector=SSD))
    led.run()
    rig.apply(node_manifest("n2", labels=SSD))
    led.hear()
    led.term.memory.events.apply()
    assert rig.queue("shop/web") == "backoff"
    assert asked(rig, led, "shop/web").done == 1
    assert rig.queue("shop/web") == "active"
    led.run()
    assert rig.node_of("shop/web") == "n2"


def test_all_unschedulable_pods_of_a_namespace_or_of_all(rig: Rig, led: Led, check: Checker) -> None:
    named = ("shop/a", "shop/b", "bank/c")
    rig.apply(*(pod_manifest(name, nodeSelector=SSD) for name in named))
    rig.apply(pod_manifest("shop/gated", schedulingGates=[{"name": "quota"}]))
    led.run()
    assert asked(rig, led, namespace="bank").done == 1
    assert [rig.queue(name) for name in named] == ["unschedulable", "unschedulable", "active"]
    assert asked(rig, led).done == 2
    assert [rig.queue(name) for name in (*named, "shop/gated")] == ["active", "active", "active", "gated"]
    check.settled()


def test_pods_that_cannot_be_put_back_say_why(rig: Rig, led: Led) -> None:
    rig.apply(pod_manifest("shop/gated", schedulingGates=[{"name": "quota"}]), pod_manifest("shop/bound"))
    led.run()
    rig.apply(pod_manifest("shop/reserved"))
    led.turn()
    rig.apply(pod_manifest("shop/active"))
    led.hear()
    before = rig.dump()
    answer = asked(rig, led, "shop/gated", "shop/bound", "shop/reserved", "shop/active", "shop/none")
    assert answer.done == 0
    said = {pod.pod.removeprefix("shop/"): (pod.place, pod.message) for pod in answer.pods}
    assert said["gated"][0] == "gated"
    assert "SchedulingGates" in said["gated"][1]
    assert said["bound"] == said["none"] == ("", "is not pending here")
    assert said["reserved"] == ("reserved", "has a node and is being bound")
    assert said["active"] == ("active", "is in the active queue already")
    assert rig.dump() == before


def test_a_request_that_nobody_knows_is_answered(rig: Rig, led: Led) -> None:
    assert "does not know what 'shuffle'" in asked(rig, led, what="shuffle").error


def test_a_request_that_cannot_be_read_holds_nobody_up(rig: Rig, led: Led) -> None:
    rig.store.redis.rpush(rig.store.key(keys.REQUESTS.name), b"{")
    assert asked(rig, led).done == 0


def test_an_older_leader_takes_no_request(rig: Rig, led: Led) -> None:
    rig.lead()
    with pytest.raises(StaleEpoch):
        asked(rig, led)
    assert rig.store.redis.llen(rig.store.key(keys.REQUESTS.name)) == 1


# -- the side that asks --------------------------------------------------------------------------------------------


def test_where_nobody_leads_it_says_so_and_leaves_nothing(store: Store) -> None:
    with pytest.raises(StateError, match="nobody leads"):
        requests.ask(store, REQUEUE, 0.05)
    assert store.redis.llen(store.key(keys.REQUESTS.name)) == 0


def test_a_request_that_is_not_taken_in_time_is_withdrawn(store: Store) -> None:
    assert Lease(store, "asleep", LONG_MS).acquire()
    with pytest.raises(StateError, match=r"asleep.*withdrawn"):
        requests.ask(store, REQUEUE, 0.05)
    assert store.redis.llen(store.key(keys.REQUESTS.name)) == 0


def test_a_leader_that_dies_over_a_request(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = Lease(store, "mortal", LONG_MS)
    assert lease.acquire()
    take: Callable[..., bytes | None] = replies.take

    def taken_and_forgotten(*args: object) -> bytes | None:
        assert requests.Requests(store, lease.epoch).take()
        return take(*args)

    monkeypatch.setattr(replies, "take", taken_and_forgotten)
    with pytest.raises(StateError, match="has not answered"):
        requests.ask(store, REQUEUE, 0.05)


def test_requests_expire(store: Store) -> None:
    assert Lease(store, "asleep", LONG_MS).acquire()
    seen: list[int] = []

    def expiry(*_: object) -> None:
        seen.append(store.redis.ttl(store.key(keys.REQUESTS.name)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replies, "take", expiry)
        with pytest.raises(StateError):
            requests.ask(store, REQUEUE, 0.05)
    assert 0 < seen[0] <= requests.KEPT_S


# -- drop --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["active", "unschedulable"])
def test_a_dropped_pod_is_not_tried_until_it_changes(rig: Rig, led: Led, check: Checker, place: str) -> None:
    rig.apply(pod_manifest("shop/web", nodeSelector=SSD))
    if place == "active":
        led.hear()
    else:
        led.run()
    answer = asked(rig, led, "shop/web", what=DROP)
    assert (answer.done, answer.pods[0].place) == (1, place)
    rig.apply(node_manifest("n2", labels=SSD))
    led.run()
    assert rig.queue("shop/web") == led.place("shop/web") == "gated"
    check.settled()
    led = rig.lead()
    led.run()
    assert led.place("shop/web") == "gated", "a new leader leaves it where it is"
    assert asked(rig, led, "shop/web", what=DROP).pods[0].message == "was dropped already"
    rig.apply(pod_manifest("shop/web", nodeSelector=SSD, labels={"changed": "yes"}))
    led.run()
    assert rig.node_of("shop/web") == "n2"


def test_a_dropped_pod_can_be_put_back(rig: Rig, led: Led) -> None:
    rig.apply(pod_manifest("shop/web"))
    led.hear()
    asked(rig, led, "shop/web", what=DROP)
    assert asked(rig, led, "shop/web").pods[0].place == "gated"
    led.run()
    assert rig.node_of("shop/web") == "n1"


def test_a_pod_that_has_a_node_or_is_not_there_is_not_dropped(rig: Rig, led: Led) -> None:
    rig.apply(pod_manifest("shop/web"))
    led.turns()
    answer = asked(rig, led, "shop/web", "shop/nobody", what=DROP)
    assert [each.message for each in answer.pods] == ["has a node and is being bound", "is not pending here"]
    assert answer.done == 0
    led.run()
    assert rig.node_of("shop/web") == "n1"


# -- pod groups --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pods", "place", "told"), [(1, "gated", "is held back by GangScheduling"), (2, "backoff", "")]
)
def test_a_pod_of_a_group_is_tried_with_its_group(rig: Rig, pods: int, place: str, told: str) -> None:
    rig.configuration = config.default(features())
    rig.apply(node_manifest("n1"), group_manifest("shop/train", min_count=2))
    led = rig.lead()
    names = [f"shop/train-{number}" for number in range(pods)]
    rig.apply(*(pod_manifest(name, schedulingGroup={"podGroupName": "train"}, nodeSelector=SSD) for name in names))
    led.run()
    assert rig.queue("podgroup/shop/train") == place
    dropped = asked(rig, led, names[0], what=DROP).pods[0]
    assert (dropped.done, dropped.message) == (False, "is scheduled with its pod group")
    answer = asked(rig, led, names[0]).pods[0]
    assert (answer.done, answer.place) == (not told, place)
    assert answer.message == f"its pod group {told or 'was put from backoff to the active queue'}"
    assert rig.queue(names[0]) == "group"
    assert rig.queue("podgroup/shop/train") == ("gated" if told else "active")
