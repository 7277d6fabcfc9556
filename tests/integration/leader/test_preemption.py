"""Preemption by a leader: promises end, and nobody evicts for ever."""

from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest

from dsched import config
from dsched.cluster.interface import BindVerdict
from dsched.config import Features
from dsched.framework.interface import Code, Status
from dsched.leader.binders.tracker import OVERDUE_S, PRE_BIND_POLL_S
from dsched.leader.term import PROMISES_EVERY_S
from dsched.metrics import (
    PREEMPTION_ATTEMPTS,
    PREEMPTION_EXECUTION,
    PREEMPTION_STOPPED,
    PREEMPTION_VICTIMS,
    PROMISES_EXPIRED,
)
from dsched.model.messages import BindRequest
from dsched.model.meta import PodKey
from dsched.scheduler.nominations import EVICTIONS_ALLOWED, FIRST_STOP_S, PROMISE_S
from dsched.state.results import WAITING, Outcome
from tests.integration.leader.checker import Checker
from tests.integration.leader.rig import Led, Rig
from tests.manifests import Json, node_manifest, pod_manifest
from tests.metrics import count, total, value
from tests.versions import V35, V36, V37

BIG = "shop/big"
SMALL = "shop/small"


def pod(key: str, cpu: str, priority: int = 0, **spec: Any) -> Json:
    containers = [{"name": "m", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    return pod_manifest(key, containers=containers, priority=priority, **spec)


def linger(rig: Rig, grace_s: int = 0) -> list[str]:
    """Victims are marked as going and never go, as with a finalizer that nobody takes away."""
    asked: list[str] = []

    def mark(pods: Any, reason: str, message: str) -> None:
        for key, _ in pods:
            asked.append(key)
            going = pod(key, "2", nodeSelector={"kubernetes.io/hostname": rig.node_of(key)}, nodeName=rig.node_of(key))
            until = datetime.fromtimestamp(rig.clock.now_ms() // 1000 + grace_s, UTC)
            going["metadata"] |= {"deletionTimestamp": until.strftime("%Y-%m-%dT%H:%M:%SZ")}
            condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
            going["status"] = {"conditions": [condition]}
            rig.apply(going)

    rig.cluster.delete_pods = mark  # type: ignore[method-assign]
    return asked


def nominated(rig: Rig, key: str) -> str:
    (found,) = rig.cluster.get_pods([PodKey(key)])
    assert found is not None
    return str(found.status.nominated_node_name)


def labelled(name: str, **more: str) -> Json:
    return node_manifest(name, labels={"kubernetes.io/hostname": name}, **more)


def stuck(rig: Rig, *nodes: str) -> Led:
    """A pod of high priority that was promised a node whose victim does not go."""
    rig.apply(*(labelled(name) for name in nodes))
    led = rig.lead()
    rig.apply(*(pod(f"shop/low-{name}", "2", nodeSelector={"kubernetes.io/hostname": name}) for name in nodes))
    led.run()
    rig.apply(pod(BIG, "3", 10))
    led.run()
    return led


def wait(rig: Rig, led: Led, seconds: float) -> None:
    """The clock goes on, and so does the leader."""
    rig.clock.advance(seconds)
    led.run()


def test_an_attempt_is_counted_whether_or_not_it_evicts(rig: Rig) -> None:
    rig.apply(labelled("n1"))
    led = rig.lead()
    before, evicting = value(PREEMPTION_ATTEMPTS), total(PREEMPTION_VICTIMS)
    executed = PREEMPTION_EXECUTION.labels("pod", "success")
    carried_out = count(executed)

    def counted() -> tuple[float, float]:
        led.run()
        return value(PREEMPTION_ATTEMPTS) - before, total(PREEMPTION_VICTIMS) - evicting

    rig.apply(pod("shop/low", "2"))
    assert counted() == (0, 0)  # it fits
    rig.apply(pod("shop/huge", "64", 10))
    assert counted() == (1, 0)  # evicting helps nobody
    rig.apply(pod("shop/never", "3", 10, preemptionPolicy="Never"))
    assert counted() == (2, 0)  # it must not evict, which the plugin finds out
    rig.apply(pod(BIG, "3", 10))
    assert counted()[0] >= 3
    assert counted()[1] == 1
    assert count(executed) == carried_out + 1


def test_victims_that_are_leaving_anyway_count(rig: Rig) -> None:
    """Source: framework/preemption/executor.go ``observeVictims``."""
    asked = linger(rig)
    led = stuck(rig, "n1")
    before = total(PREEMPTION_VICTIMS)
    gone = len(asked)
    rig.apply(pod("shop/urgent", "3", 20))
    led.run()
    assert total(PREEMPTION_VICTIMS) == before + 1
    assert len(asked) == gone, "nobody is asked twice to go"


def test_a_promise_whose_victims_never_go_ends(rig: Rig, check: Checker) -> None:
    asked = linger(rig)
    led = stuck(rig, "n1")
    assert (asked, nominated(rig, BIG)) == (["shop/low-n1"], "n1")
    rig.apply(pod(SMALL, "2"))
    led.run()
    assert rig.node_of(SMALL) == ""
    before = value(PROMISES_EXPIRED)
    wait(rig, led, PROMISE_S - 1)
    assert (rig.node_of(SMALL), nominated(rig, BIG)) == ("", "n1")
    wait(rig, led, 1 + PROMISES_EVERY_S)
    assert value(PROMISES_EXPIRED) == before + 1
    assert nominated(rig, BIG) == ""
    assert "NominationExpired" in [reason for reason, _ in rig.events(BIG)]
    assert rig.condition(BIG)[1].endswith("1 node(s) did not become free in time when promised to the pod.")
    assert rig.node_of(SMALL) == "n1"  # it has room: 2 of 4 are taken
    check.at_rest()


def test_after_its_promise_has_ended_the_pod_makes_room_elsewhere(rig: Rig) -> None:
    """kubernetes#95752: with its promise the pod may not preempt anywhere else while its victims end."""
    asked = linger(rig)
    led = stuck(rig, "n1", "n2")
    first = nominated(rig, BIG)
    wait(rig, led, PROMISE_S + PROMISES_EVERY_S)
    second = nominated(rig, BIG)
    assert {first, second} == {"n1", "n2"}
    assert asked == [f"shop/low-{first}", f"shop/low-{second}"]


def test_pods_that_still_have_time_to_end_keep_the_promise(rig: Rig) -> None:
    """A grace period may be longer than a promise lasts."""
    asked = linger(rig, grace_s=3600)
    led = stuck(rig, "n1")
    wait(rig, led, 3600 + PROMISE_S - 2 * PROMISES_EVERY_S)
    assert nominated(rig, BIG) == "n1"
    wait(rig, led, 3 * PROMISES_EVERY_S)
    assert nominated(rig, BIG) == ""
    assert asked == ["shop/low-n1"]


def test_a_promise_is_as_old_under_the_next_leader(rig: Rig) -> None:
    linger(rig)
    stuck(rig, "n1")
    rig.clock.advance(PROMISE_S - 10)
    led = rig.lead()
    led.run()
    assert nominated(rig, BIG) == "n1"
    wait(rig, led, 10 + PROMISES_EVERY_S)
    assert nominated(rig, BIG) == ""
    avoided = rig.record(BIG)["avoided"]
    assert avoided.startswith("n1=")
    rig.lead().run()
    assert rig.record(BIG)["avoided"] == avoided
    assert nominated(rig, BIG) == ""


def test_a_reserved_pod_has_no_promise_under_the_next_leader(rig: Rig, check: Checker) -> None:
    """The pod says so until it is bound; it would count twice on its node, and for ever if it is bound elsewhere."""
    rig.apply(labelled("n1"))
    led = rig.lead()
    rig.apply(pod("shop/low", "2"))
    led.run()
    rig.apply(pod(BIG, "3", 10))
    led.turns()
    rig.clock.advance(10)  # its pause after the attempt that made room
    led.turns()
    assert rig.reserved()[BIG][0] == "n1"
    led = rig.lead()
    assert (rig.queue(BIG), nominated(rig, BIG)) == ("reserved", "n1")
    rig.apply(pod(SMALL, "1"))
    led.turns()
    assert rig.reserved()[SMALL][0] == "n1"
    rig.apply(labelled("n2"))
    rig.bind_foreign(BIG, "n2")
    led.turns()
    rig.apply(pod("shop/medium", "3", nodeSelector={"kubernetes.io/hostname": "n1"}))
    led.run()
    assert rig.node_of("shop/medium") == "n1"
    check.at_rest()


class Refilled:
    """Whenever a pod is evicted another scheduler's takes its place at once."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.evicted = 0
        self._delete = rig.cluster.delete_pods
        rig.cluster.delete_pods = self.delete_pods  # type: ignore[method-assign]
        self.fill()

    def fill(self) -> None:
        key = f"shop/foreign-{self.evicted}"
        self.rig.apply(pod(key, "4", schedulerName="other"))
        self.rig.bind_foreign(key, "n1")

    def delete_pods(self, pods: Any, reason: str, message: str) -> None:
        self._delete(pods, reason, message)
        self.evicted += len(pods)
        self.fill()


def test_a_pod_that_evicts_again_and_again_without_landing_is_stopped(rig: Rig) -> None:
    rig.apply(node_manifest("n1"))
    others = Refilled(rig)
    led = rig.lead()
    before = value(PREEMPTION_STOPPED)
    rig.apply(pod(BIG, "3", 10))
    led.run()
    assert others.evicted == EVICTIONS_ALLOWED
    assert value(PREEMPTION_STOPPED) == before + 1
    wait(rig, led, 11)
    assert others.evicted == EVICTIONS_ALLOWED
    assert "preemption: not eligible after 5 preemptions without landing on a node" in rig.condition(BIG)[1]
    led = rig.lead()  # the next leader goes on counting
    wait(rig, led, 11)
    assert others.evicted == EVICTIONS_ALLOWED
    rig.clock.advance(FIRST_STOP_S)
    rig.lead().run()
    assert others.evicted == EVICTIONS_ALLOWED + 1
    assert value(PREEMPTION_STOPPED) == before + 2
    assert rig.record(BIG)["evictions"] == "6"


def test_a_stopped_pod_lands_when_there_is_room(rig: Rig, check: Checker) -> None:
    rig.apply(node_manifest("n1"))
    Refilled(rig)
    led = rig.lead()
    rig.apply(pod(BIG, "3", 10))
    for _ in range(EVICTIONS_ALLOWED + 2):
        wait(rig, led, 11)
    assert rig.node_of(BIG) == ""
    rig.apply(node_manifest("n2"))
    wait(rig, led, 11)
    assert rig.node_of(BIG) == "n2"
    assert rig.record(BIG) == {}


def test_a_promised_pod_that_is_deleted_gives_the_room_to_others(rig: Rig, check: Checker) -> None:
    linger(rig)
    led = stuck(rig, "n1")
    rig.apply(pod(SMALL, "2"))
    led.run()
    assert rig.node_of(SMALL) == ""
    rig.delete_pod(BIG)
    wait(rig, led, 2)
    assert rig.node_of(SMALL) == "n1"
    check.at_rest()


def test_a_displaced_promise_is_taken_back(rig: Rig) -> None:
    """A pod of higher priority is promised the same node: the other's promise ends, on the pod too."""
    linger(rig)
    led = stuck(rig, "n1")
    rig.apply(pod("shop/bigger", "4", 20))
    led.run()
    assert (nominated(rig, BIG), nominated(rig, "shop/bigger")) == ("", "n1")
    assert rig.record("shop/bigger")["promised"] == "n1"


class Refuses:
    """Turns the big pod away from every node that is chosen for it."""

    name = "Refuses"
    code: ClassVar[Code]

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def reserve(self, state: Any, pod: Any, node: Any) -> Status | None:
        return Status(self.code, ("no",)) if pod.key == BIG else None

    def unreserve(self, state: Any, pod: Any, node: Any) -> None:
        pass


REFUSING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    reserve: {enabled: [{name: Refuses}]}
"""


def test_a_pod_that_fits_and_is_turned_away_is_no_attempt(rig: Rig) -> None:
    Refuses.code = Code.UNSCHEDULABLE
    rig.configure(REFUSING, Refuses)
    rig.apply(labelled("n1"), pod(BIG, "3", 10))
    before = value(PREEMPTION_ATTEMPTS)
    rig.lead().run()
    assert "Unschedulable" in rig.condition(BIG)[0]
    assert value(PREEMPTION_ATTEMPTS) == before


@pytest.mark.parametrize("code", [Code.UNSCHEDULABLE, Code.ERROR])
def test_a_promised_pod_that_is_turned_away_gives_the_room_to_others(rig: Rig, check: Checker, code: Code) -> None:
    """Source: pkg/scheduler/schedule_one.go ``schedulingCycle``, where it returns clearNominatedNode."""
    Refuses.code = code
    rig.configure(REFUSING, Refuses)
    led = stuck(rig, "n1")
    rig.apply(pod(SMALL, "2"))
    led.run()
    assert nominated(rig, BIG) == ""
    assert led.term.memory.cache.snapshot.nominations.nodes() == []
    wait(rig, led, 2)
    # The big one may have evicted it again since: what counts is that it was not kept out.
    assert (SMALL, "n1") in [(key, node) for key, _, node in rig.binds()]
    check.at_rest()


def pre_bind_waits(rig: Rig, led: Led, request: BindRequest) -> None:
    """A binder begins, and says that PreBind of a plugin is not ready."""
    outcomes = [
        Outcome(item.key, item.uid, item.node, WAITING, "being made", item.attempt, "VolumeBinding")
        for item in rig.binder.begin(request)
    ]
    rig.binder.report(request, outcomes)
    led.settle()


def low_handed_out(rig: Rig) -> tuple[Led, BindRequest]:
    """A leader with a pod of low priority in the binders' queue."""
    rig.apply(labelled("n1"))
    led = rig.lead()
    rig.apply(pod("shop/low", "2"))
    led.turns()
    (request,) = led.requests()
    return led, request


def with_low(rig: Rig, features: Features, *, waits: bool) -> Led:
    """A leader with a pod of low priority in the binders' queue, or one for which PreBind waits."""
    rig.configuration = config.default(features)
    led, request = low_handed_out(rig)
    if waits:
        pre_bind_waits(rig, led, request)
    rig.apply(pod(BIG, "3", 10))
    return led


@pytest.mark.parametrize("features", [V36, V37], ids=["1.36", "1.37"])
def test_a_victim_for_which_pre_bind_waits_is_queued_again(rig: Rig, check: Checker, features: Features) -> None:
    """Source: framework/preemption/executor.go ``PreemptPod``, runtime/pods_in_prebind_map.go."""
    before = total(PREEMPTION_VICTIMS)
    led = with_low(rig, features, waits=True)
    led.run()
    why = 'running PreBind plugin "VolumeBinding": preempted by DefaultPreemption'
    assert rig.condition("shop/low") == ("SchedulerError", why)
    assert rig.queue("shop/low") == "backoff"
    assert [reason for reason, _ in rig.events("shop/low")] == ["Preempted", "FailedScheduling"]
    assert total(PREEMPTION_VICTIMS) == before + 1
    if features is V36:
        wait(rig, led, 10)  # nobody wakes the preemptor before its pause is over
    assert rig.node_of(BIG) == "n1"
    check.at_rest()


@pytest.mark.parametrize(("features", "waits"), [(V35, True), (V37, False)], ids=["1.35", "without PreBind"])
def test_other_victims_are_deleted(rig: Rig, features: Features, waits: bool) -> None:
    with_low(rig, features, waits=waits).run()
    assert rig.cluster.get_pods([PodKey("shop/low")]) == [None]
    assert rig.node_of(BIG) == "n1"


@pytest.mark.parametrize("begun", [False, True])
def test_one_that_is_handed_out_again_is_deleted_once_a_binder_has_begun(rig: Rig, check: Checker, begun: bool) -> None:
    led = with_low(rig, V37, waits=True)
    rig.clock.advance(PRE_BIND_POLL_S)
    led.term.binding.look_up_overdue()
    if begun:
        (request,) = led.requests()
        assert rig.binder.begin(request)
    led.run()
    assert (rig.cluster.get_pods([PodKey("shop/low")]) == [None]) is begun
    assert rig.node_of(BIG) == "n1"
    check.at_rest()


class Prepares:
    """Has something to do in PreBind of each pod."""

    name = "Prepares"

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def pre_bind_pre_flight(self, state: Any, pod: Any, node: Any) -> None:
        return None

    def pre_bind(self, state: Any, pod: Any, node: Any) -> None:
        return None


PREPARING = REFUSING.replace("reserve: {enabled: [{name: Refuses}]}", "preBind: {enabled: [{name: Prepares}]}")


@pytest.mark.parametrize("begun", [False, True])
def test_a_victim_whose_pre_bind_no_binder_has_begun_is_queued_again(rig: Rig, check: Checker, begun: bool) -> None:
    """Its job is void from then on, also when it has been reserved there once more.

    Source: pkg/scheduler/schedule_one.go ``bindingCycle``, ``AddPodInPreBind``."""
    rig.configure(PREPARING, Prepares)
    led, old = low_handed_out(rig)
    if begun:
        assert rig.binder.begin(old)
    rig.apply(pod(BIG, "3", 10))
    led.run()
    assert rig.node_of(BIG) == "n1"
    if begun:
        assert rig.cluster.get_pods([PodKey("shop/low")]) == [None]
        return
    assert rig.condition("shop/low") == ("SchedulerError", "preempted by DefaultPreemption")
    rig.delete_pod(BIG)
    rig.clock.advance(10)
    led.turns()
    (new,) = led.requests()
    assert [item.key for item in new.pods] == ["shop/low"]
    assert rig.binder.work(old)[0].verdict == BindVerdict.RESERVATION_LOST.value
    led.settle()
    rig.binder.work(new)
    led.run()
    assert rig.node_of("shop/low") == "n1"
    check.at_rest()


@pytest.mark.parametrize("checks", [True, False], ids=["standalone", "Kubernetes"])
def test_one_that_a_binder_may_have_still_is_deleted_where_it_could_be_bound_all_the_same(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, checks: bool
) -> None:
    """An API server asks for no reservation."""
    monkeypatch.setattr(type(rig.cluster), "checks_reservations", checks)
    rig.configuration = config.default(V37)
    led, request = low_handed_out(rig)
    assert rig.binder.begin(request)  # and nobody hears of it again
    rig.clock.advance(OVERDUE_S + 1)
    led.turns()
    (request,) = led.requests()
    pre_bind_waits(rig, led, request)
    rig.apply(pod(BIG, "3", 10))
    led.run()
    assert (rig.cluster.get_pods([PodKey("shop/low")]) == [None]) is not checks
