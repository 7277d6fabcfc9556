"""Pods and nodes come, change and go while pods are on their way: failures.md 16 to 18."""

from typing import Any

import pytest
from prometheus_client import REGISTRY

from dsched.cluster.interface import BindVerdict, Change, Event
from dsched.leader.binders.tracker import LANDED_S
from dsched.leader.sources import Heard
from dsched.model.meta import PodKey
from tests.integration.leader.checker import Checker
from tests.integration.leader.rig import Led, Rig
from tests.manifests import Json, node_manifest, other_manifest, pod_manifest

GATE = [{"name": "example.com/later"}]
WEB = "shop/web"
SAID = ("FailedScheduling", 1)
RESIZED = {"name": "main", "resources": {"requests": {"cpu": "300m"}}}
NO_FIT = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}
"""


def web(uid: str = "", cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}]
    return pod_manifest(WEB, uid=uid, containers=containers, **spec)


def bound_to(rig: Rig, node: str) -> None:
    """Bound by a leader and a binder, and everybody knows."""
    assert rig.node_of(WEB) == node


# -- the way of one pod --------------------------------------------------------------------------------------------


def test_a_pod_is_bound(rig: Rig, check: Checker) -> None:
    rig.apply(node_manifest("n1"))
    led = rig.lead()
    rig.apply(web())
    led.hear()
    assert (rig.queue(WEB), led.place(WEB)) == ("active", "active")
    check.settled()
    led.term.batches.decide()
    assert rig.reserved() == {WEB: ("n1", "reserved")}
    check.settled()
    led.run()
    bound_to(rig, "n1")
    assert rig.used("n1") == {"cpu": 100, "pods": 1}
    check.at_rest()


def ending(pod: Json) -> Json:
    """The pod while it is being deleted, and somebody holds it back."""
    over = {"deletionTimestamp": "2023-11-14T22:13:20Z", "finalizers": ["example.com/held"]}
    return {**pod, "metadata": {**pod["metadata"], **over}}


def test_a_pod_that_is_being_deleted_stands_in_the_queue_until_its_turn_comes(rig: Rig, check: Checker) -> None:
    """As kube-scheduler has it: then it is told that it is not tried, and leaves the queue."""
    pod = web("one", cpu="2")
    rig.apply(node_manifest("n1", cpu="1"), pod)
    led = rig.lead()
    led.run()
    rig.apply(ending(pod))
    led.run()
    assert (rig.queue(WEB), led.place(WEB), rig.events(WEB)) == ("unschedulable", "unschedulable", [SAID])
    check.at_rest()
    rig.apply(node_manifest("n2", cpu="4"))
    rig.clock.advance(2)
    led.run()
    assert (rig.record(WEB), rig.node_of(WEB), rig.events(WEB)) == ({}, "", [SAID, SAID])
    check.at_rest()
    relabelled = ending(pod)
    relabelled["metadata"]["labels"] = {"app": "web"}
    rig.apply(relabelled)  # a change of it is heard of as a new pod's coming
    led.run()
    assert (rig.record(WEB), rig.events(WEB)) == ({}, [SAID, ("FailedScheduling", 2)])
    led = rig.lead()
    led.run()
    assert (rig.record(WEB), rig.node_of(WEB)) == ({}, ""), "nor is it tried by the next leader"
    rig.delete_pod(WEB)
    led.run()
    check.at_rest()


def test_what_a_pod_was_promised_that_is_being_deleted_is_for_others_once_it_has_left_the_queue(rig: Rig) -> None:
    pod, low = web("one", cpu="2", priority=10), pod_manifest("shop/low", nodeName="n1")
    low["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}}
    rig.apply(node_manifest("n1", cpu="2"), low)
    led = rig.lead()
    led.run()
    rig.apply(pod, pod_manifest("shop/second", priority=10))
    led.turn()
    led.hear()
    rig.apply(ending(pod))
    rig.clock.advance(2)
    led.run()
    assert (rig.record(WEB), rig.node_of("shop/second")) == ({}, "n1")


def test_a_reserved_pod_that_is_being_deleted_is_given_up(rig: Rig, check: Checker) -> None:
    pod = web("one")
    rig.apply(node_manifest("n1"), pod)
    led = rig.lead()
    led.hear()
    led.term.batches.decide()
    assert rig.reserved() == {WEB: ("n1", "reserved")}
    rig.apply(ending(pod))
    led.run()
    assert (rig.reserved(), rig.record(WEB), rig.used("n1").get("pods", 0), rig.events(WEB)) == ({}, {}, 0, [SAID])
    check.at_rest()


def test_pods_are_decided_in_queue_order(rig: Rig) -> None:
    rig.apply(node_manifest("n1", pods="2"))
    rig.apply(*(pod_manifest(f"shop/low{number}") for number in range(2)), pod_manifest("shop/high", priority=10))
    led = rig.lead()
    led.run()
    assert rig.node_of("shop/high") == "n1"
    assert sorted(rig.queue(f"shop/low{number}") for number in range(2)) == ["", "unschedulable"]


def test_an_unschedulable_pod_says_why(rig: Rig, check: Checker) -> None:
    rig.apply(node_manifest("n1", cpu="1"), web(cpu="2"))
    led = rig.lead()
    led.run()
    text = "0/1 nodes are available: 1 Insufficient cpu."
    reason, message = rig.condition(WEB)
    assert (reason, message.startswith(text)) == ("Unschedulable", True)
    assert rig.events(WEB) == [("FailedScheduling", 1)]
    record = rig.record(WEB)
    assert (record["queue"], record["plugins"], record["attempts"]) == ("unschedulable", "NodeResourcesFit", "1")
    assert record["message"] == message
    check.at_rest()


@pytest.mark.parametrize(
    ("helpful", "expected"),
    [
        (lambda rig: rig.delete_pod("shop/full"), "n1"),
        (lambda rig: rig.apply(node_manifest("n2", cpu="2")), "n2"),
        (lambda rig: rig.apply(node_manifest("n1", cpu="8")), "n1"),
        (lambda rig: rig.apply(node_manifest("n2", cpu="1")), ""),
        (lambda rig: rig.apply(other_manifest("Namespace", "v1", "other")), ""),
    ],
)
def test_an_event_that_may_help_brings_a_pod_back(rig: Rig, check: Checker, helpful: Any, expected: str) -> None:
    """The pod that goes was bound by this very leader; nothing else tells its node."""
    full = pod_manifest("shop/full", containers=[{"name": "m", "resources": {"requests": {"cpu": "3"}}}])
    rig.apply(node_manifest("n1"), full)
    led = rig.lead()
    led.run()
    rig.apply(web(cpu="2"))
    led.run()
    assert rig.queue(WEB) == "unschedulable"
    rig.clock.advance(20)  # longer than any backoff
    helpful(rig)
    led.run()
    assert rig.node_of(WEB) == expected
    assert rig.queue(WEB) == ("" if expected else "unschedulable")
    check.at_rest()


def test_a_pod_that_failed_waits_out_its_pause(rig: Rig) -> None:
    rig.apply(node_manifest("n1", cpu="1"), web(cpu="2"), pod_manifest("shop/busy", priority=-1))
    led = rig.lead()
    led.turns()
    rig.apply(node_manifest("n2"))
    led.hear()
    led.term.memory.events.apply()
    assert rig.queue(WEB) == "backoff"
    rig.clock.advance(0.9)
    led.term.timers.run()
    assert rig.queue(WEB) == "backoff"
    rig.clock.advance(1.2)
    led.term.timers.run()
    assert (rig.queue(WEB), led.place(WEB)) == ("active", "active")


def test_a_pod_nobody_helped_is_rescued(rig: Rig) -> None:
    rig.apply(node_manifest("n1", cpu="1"), web(cpu="2"))
    led = rig.lead()
    led.turns()
    rig.clock.advance(299)
    led.turns()
    assert rig.record(WEB)["attempts"] == "1"
    rig.clock.advance(31)
    led.turns()
    assert rig.record(WEB)["attempts"] == "2"


# -- gates and changes of pending pods -----------------------------------------------------------------------------


def test_a_gated_pod_waits_for_its_gates(rig: Rig, check: Checker) -> None:
    rig.apply(node_manifest("n1"), web(schedulingGates=[*GATE, {"name": "example.com/other"}]))
    led = rig.lead()
    led.run()
    assert (rig.queue(WEB), led.place(WEB)) == ("gated", "gated")
    assert rig.record(WEB)["message"] == "waiting for scheduling gates: [example.com/later example.com/other]"
    check.at_rest()
    rig.apply(web(schedulingGates=GATE))
    led.run()
    assert rig.queue(WEB) == "gated"
    rig.apply(web(schedulingGates=[]))
    led.run()
    bound_to(rig, "n1")
    check.at_rest()


def test_a_gate_that_goes_before_the_leader_has_heard_of_the_pod(rig: Rig, check: Checker) -> None:
    rig.apply(node_manifest("n1"))
    led = rig.lead()
    rig.apply(web(schedulingGates=GATE))
    rig.apply(web(schedulingGates=[]))
    led.run()
    bound_to(rig, "n1")
    check.at_rest()


def test_a_change_of_the_pod_that_helps_it(rig: Rig, check: Checker) -> None:
    rig.apply(node_manifest("n1") | {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}, web())
    led = rig.lead()
    led.run()
    assert rig.queue(WEB) == "unschedulable"
    rig.clock.advance(20)
    rig.apply(web(tolerations=[{"key": "a", "operator": "Exists"}]))
    led.run()
    bound_to(rig, "n1")
    check.at_rest()


def reprioritized(rig: Rig, led: Led, priority: int) -> None:
    """The API server would not let it happen; a QueueSort plugin may sort by something that changes, though."""
    (pod,) = rig.cluster.get_pods([PodKey(WEB)])
    assert pod is not None
    import msgspec

    changed = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, priority=priority))
    event = Event(Change.MODIFIED, "Pod", WEB, led.term.marks.version, pod.uid, changed)
    led.term.hear([Heard([event], led.term.marks.version)])


@pytest.mark.parametrize("place", ["active", "backoff", "unschedulable"])
def test_a_pod_whose_turn_changes(rig: Rig, check: Checker, place: str) -> None:
    rig.apply(node_manifest("n1", cpu="1"), web(cpu="2"))
    led = rig.lead()
    if place != "active":
        led.turns()
        assert rig.queue(WEB) == "unschedulable"
    if place == "backoff":
        rig.apply(node_manifest("n1", cpu="1500m"), node_manifest("n2", cpu="3"))
        led.hear()
        led.term.memory.events.apply()
    assert rig.queue(WEB) == place
    rig.apply(pod_manifest("shop/other", priority=5))
    led.hear()
    reprioritized(rig, led, 10)
    assert rig.queue(WEB) == place
    check.always()
    if place == "unschedulable":
        rig.apply(node_manifest("n2", cpu="3"))
        led.hear()
    rig.clock.advance(20)
    led.term.memory.events.apply()
    led.term.timers.run()
    popped = led.term.state.queue.pop("test", 1, rig.clock.now_ms(), from_backoff=False)
    assert [pod.key for pod in popped] == [WEB]


# -- 16: pods go, and come again, in every state -------------------------------------------------------------------


def to_place(rig: Rig, led: Led, place: str) -> None:
    """Bring the pod into a place."""
    rig.apply(web(uid="first", cpu="100m", **({"schedulingGates": GATE} if place == "gated" else {})))
    if place == "unheard":
        return
    led.hear()
    if place == "unschedulable":
        rig.delete_node("n1")
        led.hear()
        rig.apply(node_manifest("tiny", cpu="1m"))
        led.hear()
        led.term.batches.decide()
    elif place in ("reserved", "binding", "bound unreported", "bound unread"):
        led.term.batches.decide()
        (request,) = led.requests()
        if place != "reserved":
            items = rig.binder.begin(request)
            if place != "binding":
                outcomes = rig.binder.bind(request, items)
                if place == "bound unread":
                    rig.binder.report(request, outcomes)
    elif place == "bound":
        led.run()


PLACES = [
    "unheard",
    "active",
    "gated",
    "unschedulable",
    "reserved",
    "binding",
    "bound unreported",
    "bound unread",
    "bound",
]


@pytest.mark.parametrize("place", PLACES)
def test_a_pod_that_goes(rig: Rig, check: Checker, place: str) -> None:
    rig.apply(node_manifest("n1"))
    led = rig.lead()
    to_place(rig, led, place)
    check.always()
    rig.delete_pod(WEB)
    led.run()
    assert rig.record(WEB) == {}
    assert rig.used("n1") == {}
    check.at_rest()


@pytest.mark.parametrize("heard", ["one by one", "together"])
@pytest.mark.parametrize("place", PLACES)
def test_a_pod_that_goes_and_comes_again(rig: Rig, check: Checker, place: str, heard: str) -> None:
    rig.apply(node_manifest("n1"))
    led = rig.lead()
    to_place(rig, led, place)
    stale = list(led.dispatcher.binds)
    rig.delete_pod(WEB)
    if heard == "one by one":
        led.hear()
        check.settled()
    if place == "unschedulable":
        rig.apply(node_manifest("n1"))
    rig.apply(web(uid="second", cpu="200m"))
    led.hear()
    check.always()
    for request in stale:  # delivered again: nothing may be bound for the dead one
        assert all(outcome.verdict != "bound" for outcome in rig.binder.work(request))
    led.run()
    assert rig.uid(WEB) == "second"
    assert [uid for _, uid, _ in rig.binds()].count("second") == 1
    assert rig.used("n1") == {"cpu": 200, "pods": 1}
    check.at_rest()


def test_a_pod_that_is_replaced_by_one_that_is_gated(rig: Rig, check: Checker) -> None:
    rig.apply(node_manifest("n1"), web(uid="first"))
    led = rig.lead()
    rig.apply(web(uid="second", schedulingGates=GATE))
    led.run()
    assert (rig.queue(WEB), rig.record(WEB)["uid"]) == ("gated", "second")
    check.at_rest()


def test_a_pod_that_has_ended_frees_its_node(rig: Rig, check: Checker) -> None:
    rig.apply(node_manifest("n1"), web())
    led = rig.lead()
    led.run()
    rig.apply(web() | {"status": {"phase": "Succeeded"}})
    led.run()
    assert rig.used("n1") == {}
    check.at_rest()


def test_pods_of_other_schedulers_are_left_alone(rig: Rig, check: Checker) -> None:
    rig.apply(node_manifest("n1"), web(schedulerName="somebody-else"))
    led = rig.lead()
    led.run()
    assert rig.record(WEB) == {}
    assert rig.node_of(WEB) == ""


# -- 17: nodes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("begun", [False, True])
def test_a_node_that_goes_while_a_pod_is_reserved_on_it(rig: Rig, check: Checker, begun: bool) -> None:
    rig.apply(node_manifest("n1"), web())
    led = rig.lead()
    led.term.batches.decide()
    (request,) = led.requests()
    items = rig.binder.begin(request) if begun else []
    rig.delete_node("n1")
    rig.apply(node_manifest("n2"))
    if begun:
        outcomes = rig.binder.bind(request, items)
        assert [outcome.verdict for outcome in outcomes] == ["refused"]
        rig.binder.report(request, outcomes)
    led.hear()
    check.settled()
    assert rig.reserved() == {}
    assert rig.queue(WEB) == "backoff"
    assert "n1" in rig.condition(WEB)[1]
    assert rig.events(WEB) == [("FailedScheduling", 1)]
    rig.binder.work(request)
    rig.clock.advance(20)
    led.run()
    bound_to(rig, "n2")
    check.at_rest()


@pytest.mark.parametrize(
    ("status", "writes"),
    [
        ({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}, False),
        ({"phase": "Running", "containerStatuses": [RESIZED]}, True),
    ],
)
def test_what_a_kubelet_reports_of_a_pod(rig: Rig, check: Checker, status: dict[str, Any], writes: bool) -> None:
    """The pod is known as it is now; only what changes its demand is written."""
    rig.apply(node_manifest("n1"), web())
    led = rig.lead()
    led.run()
    before = rig.store.redis.hgetall(rig.store.key("node:n1"))
    rig.apply(web() | {"status": status})
    led.run()
    known = led.term.memory.cache.snapshot.table.pod(rig.uid(WEB))
    assert known is not None and known.pod.status.phase == "Running"
    assert (rig.store.redis.hgetall(rig.store.key("node:n1")) != before) is writes
    assert rig.used("n1")["cpu"] == (300 if writes else 100)
    check.at_rest()


def test_a_node_that_goes_and_comes_again_counts_its_pods(rig: Rig, check: Checker) -> None:
    rig.apply(node_manifest("n1"), web())
    led = rig.lead()
    led.run()
    rig.delete_node("n1")
    rig.apply(node_manifest("n1", cpu="2"))
    led.run()
    assert rig.used("n1") == {"cpu": 100, "pods": 1}
    check.at_rest()
    rig.apply(*(pod_manifest(f"shop/p{number}") for number in range(3)))
    led.run()
    assert rig.used("n1") == {"cpu": 400, "pods": 4}
    check.at_rest()


def test_a_node_that_changes_between_decision_and_reservation(rig: Rig, check: Checker) -> None:
    """Its object has another version in Redis than the decision was made on: decided again at once."""
    rig.apply(node_manifest("n1"), node_manifest("n2"), web())
    led = rig.lead()
    for node in ("n1", "n2"):
        rig.store.redis.hincrby(rig.store.key(f"node:{node}"), "version", 1)
        rig.store.redis.hincrby(rig.store.key(f"node:{node}"), "object", 1)
    led.run(agree=False)
    assert rig.node_of(WEB) in ("n1", "n2")
    assert rig.record(WEB) == {}
    check.at_rest()


# -- 18: somebody else takes the room, or the pod ------------------------------------------------------------------


def test_a_foreign_pod_takes_the_room(rig: Rig, check: Checker) -> None:
    rig.apply(node_manifest("n1", cpu="1"))
    led = rig.lead()
    rig.apply(web(cpu="800m"))
    led.hear()
    rig.apply(pod_manifest("kube-system/static", nodeName="n1", containers=[cpu("500m")]))
    led.hear()
    led.run()
    assert rig.queue(WEB) == "unschedulable"
    assert rig.used("n1") == {"cpu": 500, "pods": 1}
    check.at_rest()


def cpu(amount: str) -> dict[str, Any]:
    return {"name": "main", "resources": {"requests": {"cpu": amount}}}


@pytest.mark.parametrize("place", ["active", "reserved", "binding"])
@pytest.mark.parametrize("elsewhere", ["n1", "n2"])
def test_somebody_else_binds_the_pod(
    rig: Rig, check: Checker, caplog: pytest.LogCaptureFixture, place: str, elsewhere: str
) -> None:
    rig.apply(node_manifest("n1"))
    led = rig.lead()
    to_place(rig, led, place)
    requests = list(led.dispatcher.binds)
    rig.apply(node_manifest("n2"))
    before = foreign_binds()
    rig.bind_foreign(WEB, elsewhere)
    if place == "binding":
        outcomes = rig.binder.work(requests[0])
        assert [outcome.verdict for outcome in outcomes] == ["bound" if elsewhere == "n1" else "conflict"]
    led.run()
    assert rig.node_of(WEB) == elsewhere
    assert rig.used(elsewhere) == {"cpu": 100, "pods": 1}
    assert rig.record(WEB) == {}
    ours = place != "active" and elsewhere == "n1"  # nobody can tell it from our own bind
    assert foreign_binds() - before == (not ours)
    assert ("does another scheduler answer to the same schedulerName?" in caplog.text) is not ours
    check.at_rest()


def foreign_binds() -> float:
    return REGISTRY.get_sample_value("dsched_foreign_binds_total") or 0.0


def test_of_another_scheduler_is_told_once_a_minute(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    rig.apply(node_manifest("n1"))
    led = rig.lead()
    before = foreign_binds()
    for number in range(4):
        key = f"default/p{number}"
        rig.apply(pod_manifest(key))
        led.hear()
        rig.bind_foreign(key, "n1")
        led.run()
        rig.clock.advance(25)
    assert foreign_binds() - before == 4
    told = [record for record in caplog.records if getattr(record, "action", "") == "foreign_bind"]
    assert [(record.binds, record.pod) for record in told] == [(1, "default/p0"), (4, "default/p3")]


def test_what_a_watch_repeats_of_a_pod_that_was_bound_meanwhile(rig: Rig, check: Checker) -> None:
    """A listing may show more than the version it is complete up to; the watch then begins with older news."""
    rig.apply(node_manifest("n1"))
    before = rig.cluster.newest_version()
    rig.apply(web())
    rig.bind_foreign(WEB, "n1")
    led = rig.lead()
    led.term.marks.version = before
    led.hear()
    assert rig.record(WEB) == {}
    led.run()
    assert rig.used("n1") == {"cpu": 100, "pods": 1}
    check.at_rest()


def test_what_a_watch_repeats_of_a_pod_that_was_replaced(rig: Rig, check: Checker) -> None:
    rig.apply(node_manifest("n1"))
    before = rig.cluster.newest_version()
    rig.apply(web(uid="first"))
    rig.apply(web(uid="second"))
    led = rig.lead()
    led.term.marks.version = before
    led.run()
    assert rig.uid(WEB) == "second"
    assert rig.node_of(WEB) == "n1"
    check.at_rest()


def test_bound_is_told_by_the_watch_before_the_binder_says_so(rig: Rig, check: Checker) -> None:
    rig.apply(node_manifest("n1"), web())
    led = rig.lead()
    led.term.batches.decide()
    (request,) = led.requests()
    rig.binder.work(request)
    led.hear()
    assert rig.reserved() == {}
    led.settle()
    check.at_rest()
    assert BindVerdict.BOUND.value == "bound"


def pod(name: str, cpu: str = "1") -> Json:
    return pod_manifest(f"shop/{name}", containers=[{"name": "m", "resources": {"requests": {"cpu": cpu}}}])


def reserved(rig: Rig) -> Led:
    """Three pods on a node of four CPUs, in this order."""
    rig.apply(node_manifest("n1", cpu="4"))
    led = rig.lead()
    for name in ("first", "second", "third"):
        rig.apply(pod(name))
        led.turns()
    assert list(rig.reserved()) == ["shop/first", "shop/second", "shop/third"]
    return led


def test_who_was_reserved_last_gives_way(rig: Rig, check: Checker) -> None:
    led = reserved(rig)
    rig.apply(node_manifest("n1", cpu="2"))
    led.hear()
    assert list(rig.reserved()) == ["shop/first", "shop/second"]
    assert rig.queue("shop/third") == "backoff"
    assert rig.condition("shop/third")[1] == "node n1 has become too small for it"
    led.run()
    rig.apply(node_manifest("n2"))
    rig.clock.advance(10)
    led.run()
    assert [rig.node_of(f"shop/{name}") for name in ("first", "second", "third")] == ["n1", "n1", "n2"]
    check.at_rest()


def test_bound_pods_stay_and_the_others_give_way_to_them(rig: Rig) -> None:
    rig.apply(node_manifest("n1", cpu="4"), pod("bound", "2"))
    led = rig.lead()
    led.run()
    rig.apply(pod("small"), pod_manifest("shop/free", containers=[{"name": "m"}]))
    led.turns()
    rig.apply(node_manifest("n1", cpu="1"))
    led.hear()
    assert list(rig.reserved()) == ["shop/free"]
    led.run()
    assert (rig.node_of("shop/bound"), rig.node_of("shop/small"), rig.node_of("shop/free")) == ("n1", "", "n1")


def test_a_node_that_grows_takes_nothing_away(rig: Rig) -> None:
    led = reserved(rig)
    rig.apply(node_manifest("n1", cpu="8"))
    led.hear()
    assert len(rig.reserved()) == 3


def test_a_bind_that_was_faster_counts(rig: Rig) -> None:
    led = reserved(rig)
    requests = led.requests()
    rig.apply(node_manifest("n1", cpu="2"))
    for request in requests:
        rig.binder.work(request)
    led.run()
    assert [rig.node_of(f"shop/{name}") for name in ("first", "second", "third")] == ["n1", "n1", "n1"]


def test_an_api_server_may_be_binding_it_this_very_moment(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(rig.cluster), "checks_reservations", False)
    led = reserved(rig)
    rig.apply(node_manifest("n1", cpu="2"))
    led.turns()
    assert len(rig.reserved()) == 3
    rig.clock.advance(LANDED_S + 1)
    led.turns()
    assert list(rig.reserved()) == ["shop/first", "shop/second"]
    assert rig.queue("shop/third") == "backoff"


def test_profiles_that_do_not_look_at_resources_do_not_mind(rig: Rig) -> None:
    rig.configure(NO_FIT)
    led = reserved(rig)
    rig.apply(node_manifest("n1", cpu="1"))
    led.hear()
    assert len(rig.reserved()) == 3
