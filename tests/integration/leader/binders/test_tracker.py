"""Binds that succeed, fail, come late, come twice, or never: failures.md 7 to 9."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from dsched.cluster.interface import BindVerdict
from dsched.errors import RedisUnavailable, StateError
from dsched.framework.interface import Code, Status
from dsched.leader.binders import tracker
from dsched.leader.binders.tracker import (
    FEWEST_PODS_A_MESSAGE,
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    OVERDUE_S,
    PRE_BIND_POLL_S,
)
from dsched.metrics import REBINDS, SCHEDULE_ATTEMPTS, STALE_RESULTS
from dsched.model.messages import BindRequest
from dsched.model.meta import PodKey
from dsched.model.pod import Pod
from dsched.state.results import OTHER_CONFIGURATION, WAITING
from tests.integration.leader.checker import Checker
from tests.integration.leader.rig import Led, Rig, SteppedBinder
from tests.manifests import node_manifest, pod_manifest
from tests.metrics import value

WEB = "shop/web"
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture
def led(rig: Rig) -> Led:
    """A leader that has just handed a pod out."""
    rig.apply(node_manifest("n1"), pod_manifest(WEB))
    found = rig.lead()
    found.term.batches.decide()
    return found


@pytest.fixture
def request_(led: Led) -> BindRequest:
    (request,) = led.requests()
    return request


class Counted:
    """How far a counter went on since."""

    def __init__(self, counter: Any) -> None:
        self._counter = counter
        self._before = value(counter)

    def __call__(self) -> float:
        return value(self._counter) - self._before


def scheduled() -> Counted:
    return Counted(SCHEDULE_ATTEMPTS.labels("scheduled", "default-scheduler"))


def test_what_is_handed_out(rig: Rig, led: Led, request_: BindRequest) -> None:
    (item,) = request_.pods
    assert (item.key, item.uid, item.node, item.attempt) == (WEB, rig.uid(WEB), "n1", 1)
    assert (request_.epoch, request_.profile) == (led.epoch, "default-scheduler")
    assert request_.config == rig.configuration.hash


def test_many_pods_go_in_several_messages(rig: Rig, led: Led) -> None:
    led.requests()
    rig.apply(node_manifest("n1", cpu="100"))
    rig.apply(*(pod_manifest(f"shop/p{number:03}") for number in range(FEWEST_PODS_A_MESSAGE + 6)))
    led.term.batches.size = 512
    led.turns()
    assert [len(request.pods) for request in led.requests()] == [FEWEST_PODS_A_MESSAGE, 6]


def test_bound(rig: Rig, check: Checker, led: Led, request_: BindRequest) -> None:
    counted = scheduled()
    rig.binder.work(request_)
    led.settle()
    assert (rig.node_of(WEB), counted()) == ("n1", 1)
    led.hear()
    check.at_rest()
    assert counted() == 1


@pytest.mark.parametrize(
    ("verdict", "message"),
    [
        ("rejected", "volume is busy"),
        (BindVerdict.REFUSED, 'running Bind plugin "DefaultBinder": volume is busy'),
        (BindVerdict.NOT_NOW, 'running Bind plugin "DefaultBinder": volume is busy'),
    ],
)
def test_failed(
    rig: Rig, check: Checker, led: Led, request_: BindRequest, verdict: BindVerdict | str, message: str
) -> None:
    rig.binder.says(request_, verdict, "volume is busy")
    led.settle()
    check.settled()
    assert (rig.queue(WEB), rig.record(WEB)["error"], rig.record(WEB)["attempts"]) == ("backoff", "1", "1")
    assert rig.condition(WEB) == ("SchedulerError", message)
    assert rig.events(WEB) == [("FailedScheduling", 1)]
    assert rig.used("n1") == {}
    led.turns()
    assert rig.queue(WEB) == "backoff"  # after an error it is not popped before its time
    rig.clock.advance(2)
    led.run()
    assert rig.node_of(WEB) == "n1"
    check.at_rest()


class Closed:
    """PreEnqueue: nobody enters while it is closed."""

    name = "Closed"
    closed = False

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def pre_enqueue(self, pod: Any) -> Status | None:
        return Status(Code.UNSCHEDULABLE, ("closed",)) if Closed.closed else None


def test_who_may_not_enter_any_more_is_gated_after_a_failed_bind(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Source: backend/queue/scheduling_queue.go ``moveToBackoffQ``."""
    rig.configure(HEAD + "profiles:\n- plugins: {preEnqueue: {enabled: [{name: Closed}]}}\n", Closed)
    rig.apply(node_manifest("n1"), pod_manifest(WEB))
    led = rig.lead()
    led.term.batches.decide()
    (request,) = led.requests()
    monkeypatch.setattr(Closed, "closed", True)
    rig.binder.says(request, "rejected", "volume is busy")
    led.settle()
    assert (rig.queue(WEB), rig.record(WEB)["plugins"]) == ("gated", "Closed")
    assert rig.condition(WEB) == ("SchedulerError", "volume is busy")
    monkeypatch.setattr(Closed, "closed", False)
    rig.clock.advance(600)
    led.term.rescue()
    led.run()
    assert rig.node_of(WEB) == "n1"


def test_a_failed_bind_makes_room_for_others(rig: Rig, check: Checker, led: Led, request_: BindRequest) -> None:
    """Releasing a reservation is to the others as if a pod had been deleted."""
    rig.apply(node_manifest("n1", pods="1"))
    rig.apply(pod_manifest("shop/other"))
    led.turns()
    assert rig.queue("shop/other") == "unschedulable"
    rig.clock.advance(20)
    rig.binder.says(request_, "rejected")
    led.settle()
    led.term.memory.events.apply()
    assert rig.queue("shop/other") == "active"


@pytest.mark.parametrize("verdict", [BindVerdict.UNKNOWN, BindVerdict.GONE, BindVerdict.CONFLICT])
def test_unclear_is_looked_up_and_handed_out_again(
    rig: Rig, check: Checker, led: Led, request_: BindRequest, verdict: BindVerdict
) -> None:
    again = Counted(REBINDS)
    rig.binder.says(request_, verdict, "timed out")
    led.settle()
    check.settled()
    assert rig.reserved() == {WEB: ("n1", "reserved")}
    led.turns()
    assert (again(), led.requests()) == (0, [])
    rig.clock.advance(FIRST_PAUSE_S)
    led.run()
    assert again() == 1
    assert rig.node_of(WEB) == "n1"
    check.at_rest()


@pytest.mark.parametrize("verdict", [BindVerdict.UNKNOWN, OTHER_CONFIGURATION])
def test_what_stays_unclear_is_handed_out_more_and_more_seldom(
    rig: Rig, led: Led, request_: BindRequest, verdict: BindVerdict | str
) -> None:
    """1, 2, 4, … 30 s; several answers to one job count once."""
    pauses, since_s, request = [], 0.0, request_
    for _ in range(8):
        for _ in range(2):
            rig.binder.says(request, verdict, "why")
        led.settle()
        while not (found := led.requests()):
            rig.clock.advance(0.5)
            since_s += 0.5
            led.turns()
        (request,) = found
        pauses.append(since_s)
        since_s = 0.0
    assert pauses == [1, 2, 4, 8, 16, LONGEST_PAUSE_S, LONGEST_PAUSE_S, LONGEST_PAUSE_S]


@pytest.mark.parametrize(("verdict", "refused"), [(BindVerdict.UNKNOWN, False), (OTHER_CONFIGURATION, True)])
def test_what_a_binder_refuses_for_its_configuration_goes_to_one_that_has_the_right_one(
    rig: Rig, led: Led, request_: BindRequest, verdict: BindVerdict | str, refused: bool
) -> None:
    assert led.dispatcher.refused == [False]
    rig.binder.says(request_, verdict, "why")
    led.settle()
    rig.clock.advance(FIRST_PAUSE_S)
    led.run()
    assert led.dispatcher.refused == [False, refused]


def test_a_pod_whose_pre_bind_waits_is_asked_again_every_second(rig: Rig, led: Led, request_: BindRequest) -> None:
    """Source: plugins/volumebinding/binder.go ``BindPodVolumes``."""
    request = request_
    for _ in range(5):
        rig.binder.says(request, WAITING, "being made")
        led.settle()
        led.turns()
        assert led.requests() == []
        rig.clock.advance(PRE_BIND_POLL_S)
        led.turns()
        (request,) = led.requests()
    assert PRE_BIND_POLL_S == 1.0
    rig.binder.work(request)
    led.run()
    assert rig.node_of(WEB) == "n1"


def test_unknown_after_the_cluster_had_bound(rig: Rig, check: Checker, led: Led, request_: BindRequest) -> None:
    counted = scheduled()
    rig.binder.bind(request_, rig.binder.begin(request_))
    rig.binder.says(request_, BindVerdict.UNKNOWN, "timed out")
    led.settle()
    assert (rig.reserved(), led.requests(), counted()) == ({}, [], 1)
    led.hear()
    check.at_rest()


def test_gone(rig: Rig, check: Checker, led: Led, request_: BindRequest) -> None:
    rig.delete_pod(WEB)
    rig.binder.work(request_)
    led.settle()
    assert (rig.reserved(), rig.record(WEB), rig.used("n1")) == ({}, {}, {})
    led.hear()
    check.at_rest()


def test_a_lost_reservation_makes_the_leader_start_over(rig: Rig, led: Led, request_: BindRequest) -> None:
    rig.store.redis.delete(rig.store.key("reservations"))
    rig.binder.work(request_)
    with pytest.raises(StateError, match="shop/web: its reservation is no longer in Redis"):
        led.settle()


def test_after_a_lost_reservation_the_next_leader_puts_things_right(
    rig: Rig, check: Checker, led: Led, request_: BindRequest
) -> None:
    rig.store.redis.delete(rig.store.key("reservations"))
    rig.binder.work(request_)
    rig.lead().run()
    assert rig.node_of(WEB) == "n1"
    check.at_rest()


# -- 8: twice ------------------------------------------------------------------------------------------------------


def test_delivered_to_two_binders_at_once(rig: Rig, check: Checker, led: Led, request_: BindRequest) -> None:
    counted = scheduled()
    binders = [rig.binder, SteppedBinder(rig.store, rig.cluster, "other")]
    begun = [binder.begin(request_) for binder in binders]
    outcomes = [binder.bind(request_, items) for binder, items in zip(binders, begun, strict=True)]
    assert [outcome.verdict for (outcome,) in outcomes] == ["bound", "bound"]
    for binder, reported in zip(binders, outcomes, strict=True):
        binder.report(request_, reported)
    led.settle()
    led.hear()
    check.at_rest()
    assert counted() == 1


@pytest.mark.parametrize(
    "verdicts",
    [
        (BindVerdict.UNKNOWN, BindVerdict.UNKNOWN),
        (BindVerdict.REFUSED, BindVerdict.REFUSED),
        (BindVerdict.GONE, BindVerdict.REFUSED),
        (BindVerdict.UNKNOWN, "rejected"),
        ("rejected", BindVerdict.UNKNOWN),
        ("rejected", "rejected"),
    ],
)
def test_two_outcomes_of_one_pod_in_one_go(
    rig: Rig, check: Checker, led: Led, request_: BindRequest, verdicts: tuple[BindVerdict | str, ...]
) -> None:
    """Released at most once, handed out at most once."""
    unreserved: list[str] = []
    framework = led.term.memory.frameworks["default-scheduler"]
    framework.run_unreserve = lambda state, pod, node: unreserved.append(node)
    for verdict in verdicts:
        rig.binder.says(request_, verdict, "why")
    led.settle()
    check.settled()
    assert len(unreserved) <= 1
    rig.clock.advance(FIRST_PAUSE_S)
    led.term.timers.run()
    assert len(led.requests()) + len(unreserved) == 1
    assert rig.queue(WEB) == ("backoff" if unreserved else "reserved")
    record, pod = rig.record(WEB), led.term.memory.pending.get(WEB)
    assert (record["place"], record["queued_us"]) == (pod.turn, str(pod.queued_us))
    rig.clock.advance(20)
    led.run()
    assert rig.node_of(WEB) == "n1"
    check.at_rest()


@pytest.mark.parametrize("later", [BindVerdict.UNKNOWN, BindVerdict.REFUSED, BindVerdict.GONE, "rejected"])
@pytest.mark.parametrize("bound_first", [True, False])
def test_bound_by_one_and_something_else_by_the_other(
    rig: Rig, check: Checker, led: Led, request_: BindRequest, later: BindVerdict | str, bound_first: bool
) -> None:
    """The pod is bound, whatever a second binder made of the job; its room must not be given away."""
    counted = scheduled()
    outcomes = rig.binder.bind(request_, rig.binder.begin(request_))
    if bound_first:
        rig.binder.report(request_, outcomes)
    rig.binder.says(request_, later, "why")
    if not bound_first:
        rig.binder.report(request_, outcomes)
    led.settle()
    assert rig.used("n1") == {"cpu": 100, "pods": 1}
    assert (rig.reserved(), rig.record(WEB), led.requests()) == ({}, {}, [])
    assert counted() == 1
    led.run()
    check.at_rest()


# -- 7: late ---------------------------------------------------------------------------------------------------------


def test_a_late_outcome_of_an_earlier_attempt(rig: Rig, check: Checker, led: Led, request_: BindRequest) -> None:
    stale = Counted(STALE_RESULTS)
    rig.binder.says(request_, "rejected", "first")
    led.settle()
    rig.clock.advance(2)
    led.turns()
    (second,) = led.requests()
    assert second.pods[0].attempt == 2
    rig.binder.says(request_, "rejected", "first, again")
    rig.binder.says(request_, BindVerdict.RESERVATION_LOST, "first, again")
    led.settle()
    assert rig.queue(WEB) == "reserved"
    assert stale() == 2
    rig.binder.work(second)
    led.run()
    check.at_rest()


@pytest.mark.parametrize("verdict", ["rejected", *BindVerdict])
def test_a_late_outcome_of_an_earlier_epoch(
    rig: Rig, check: Checker, led: Led, request_: BindRequest, verdict: BindVerdict | str
) -> None:
    """It is no more than a reason to look the pod up."""
    new = rig.lead()
    (adopted,) = new.requests()
    rig.binder.says(request_, verdict, "late")
    if verdict is BindVerdict.BOUND:  # who says so is believed; then it has to be true
        rig.binder.bind(adopted, rig.binder.begin(adopted))
    new.settle()
    assert rig.queue(WEB) in ("reserved", "")
    new.run()
    for request in new.dispatcher.binds:
        rig.binder.work(request)
    new.run()
    assert rig.node_of(WEB) == "n1"
    check.at_rest()


def test_an_outcome_of_a_pod_that_nothing_is_reserved_for(rig: Rig, led: Led, request_: BindRequest) -> None:
    rig.binder.work(request_)
    led.settle()
    before = rig.dump()
    rig.binder.says(request_, "rejected")
    led.settle()
    assert rig.dump() == before | {"bind:results": rig.dump()["bind:results"]}


# -- 9: never ------------------------------------------------------------------------------------------------------


def test_a_bind_that_nobody_answers_is_handed_out_again(
    rig: Rig, check: Checker, led: Led, request_: BindRequest
) -> None:
    rig.clock.advance(OVERDUE_S - 0.1)
    led.turns()
    assert led.requests() == []
    rig.clock.advance(1.2)
    led.turns()
    (again,) = led.requests()
    assert again.pods == request_.pods
    check.settled()
    rig.binder.work(again)
    rig.binder.work(request_)  # the first one comes after all
    led.run()
    check.at_rest()


def test_a_bind_whose_outcome_was_lost(rig: Rig, check: Checker, led: Led, request_: BindRequest) -> None:
    rig.binder.bind(request_, rig.binder.begin(request_))
    rig.clock.advance(OVERDUE_S + 1)
    led.term.timers.run()
    assert (rig.reserved(), led.requests()) == ({}, [])
    led.hear()
    check.at_rest()


@pytest.mark.parametrize("gone", [True, False])
def test_overdue_and_gone_or_bound_elsewhere(rig: Rig, check: Checker, led: Led, gone: bool) -> None:
    rig.apply(node_manifest("n2"))
    if gone:
        rig.delete_pod(WEB)
    else:
        rig.bind_foreign(WEB, "n2")
    rig.clock.advance(OVERDUE_S + 1)
    led.term.timers.run()
    assert rig.reserved() == {}
    led.run()
    assert rig.used("n2") == ({} if gone else {"cpu": 100, "pods": 1})
    check.at_rest()


def test_overdue_and_bound_but_being_deleted(
    rig: Rig, check: Checker, led: Led, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has its grace to go, and takes its room until it has gone."""
    rig.bind_foreign(WEB, "n1")
    get = rig.cluster.get_pods

    def leaving(keys: Sequence[PodKey]) -> list[Pod | None]:
        found = [pod for pod in get(keys) if pod is not None]
        about = [msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z") for pod in found]
        return [msgspec.structs.replace(pod, metadata=each) for pod, each in zip(found, about, strict=True)]

    with monkeypatch.context() as asked:
        asked.setattr(rig.cluster, "get_pods", leaving)
        rig.clock.advance(OVERDUE_S + 1)
        led.term.timers.run()
    assert rig.reserved() == {}
    assert rig.used("n1") == {"cpu": 100, "pods": 1}
    led.run()
    assert rig.used("n1") == {"cpu": 100, "pods": 1}
    check.at_rest()


def test_a_message_that_cannot_be_sent_is_looked_up_later(rig: Rig, check: Checker, led: Led) -> None:
    sent = led.dispatcher.bind

    def lose(request: BindRequest, *, refused: bool = False) -> None:
        raise RedisUnavailable("broker away")

    led.dispatcher.bind = lose  # type: ignore[method-assign]
    rig.apply(pod_manifest("shop/other"))
    led.turns()
    led.dispatcher.bind = sent  # type: ignore[method-assign]
    assert rig.queue("shop/other") == "reserved"
    rig.clock.advance(OVERDUE_S + 1)
    led.run()
    assert rig.node_of("shop/other") == "n1"
    check.at_rest()


def test_a_long_queue_is_not_overdue_while_the_watch_tells_of_binds(rig: Rig) -> None:
    rig.apply(node_manifest("n1"), pod_manifest("shop/first"), pod_manifest("shop/last"))
    led = rig.lead()
    led.turns()
    (request,) = led.requests()
    rig.clock.advance(OVERDUE_S + 1)
    standing = rig.binder.begin(request)
    rig.binder.bind(request, [item for item in standing if item.key == "shop/first"])
    led.hear()
    led.term.binding.look_up_overdue()
    assert led.requests() == []
    rig.clock.advance(OVERDUE_S + 1)
    led.term.binding.look_up_overdue()
    (again,) = led.requests()
    assert [item.key for item in again.pods] == ["shop/last"]


def test_no_more_is_decided_than_binders_can_take(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracker, "IN_BINDERS", 4)
    monkeypatch.setattr(tracker, "SOME_LEFT", 2)
    rig.apply(node_manifest("n1"), *(pod_manifest(f"shop/p{number}") for number in range(4)))
    led = rig.lead()
    led.turns()
    (request,) = led.requests()
    rig.apply(pod_manifest("shop/late"))
    led.turns()
    assert led.requests() == []
    assert rig.queue("shop/late") == "active"
    standing = rig.binder.begin(request)
    rig.binder.bind(request, standing[:2])
    led.turns()
    assert led.requests() == [], "two are left"
    rig.binder.bind(request, standing[2:3])
    led.turns()
    (after,) = led.requests()
    assert [item.key for item in after.pods] == ["shop/late"]
