"""I5: a leader whose time is over can change nothing, whatever it was about to do."""

from collections.abc import Callable
from typing import Any

import pytest

from dsched.errors import StaleEpoch
from dsched.leader.binders.tracker import OVERDUE_S
from tests.integration.leader.checker import Checker
from tests.integration.leader.rig import Led, Rig
from tests.integration.leader.test_waiting import CONFIGURATION, Pair
from tests.manifests import node_manifest, pod_manifest

FULL = [{"name": "main", "resources": {"requests": {"cpu": "9"}}}]


@pytest.fixture
def old(rig: Rig) -> Led:
    """A leader with pods in every place, and things that it has not heard of yet."""
    rig.configure(CONFIGURATION, Pair)
    rig.apply(node_manifest("n1"), node_manifest("n2"))
    rig.apply(
        pod_manifest("shop/reserved"),
        pod_manifest("shop/big", containers=FULL),
        pod_manifest("shop/gated", schedulingGates=[{"name": "a/b"}]),
        pod_manifest("shop/half", labels={"pair": "one"}),
    )
    led = rig.lead()
    led.turns()
    rig.apply(pod_manifest("shop/active"))
    led.hear()
    rig.apply(pod_manifest("shop/unheard"), node_manifest("n3"), pod_manifest("shop/gated", schedulingGates=[]))
    assert {name: rig.queue(f"shop/{name}") for name in ("reserved", "big", "half", "active")} == {
        "reserved": "reserved",
        "big": "unschedulable",
        "half": "waiting",
        "active": "active",
    }
    return led


def waiting(led: Led) -> Any:
    (found,) = led.term.memory.waiting
    return found


def say(led: Led, verdict: str) -> None:
    (request,) = led.requests()
    led.rig.binder.says(request, verdict)


def pass_by(led: Led, seconds: float) -> None:
    led.rig.clock.advance(seconds)


ACTS: dict[str, tuple[Callable[[Led], Any], Callable[[Led], Any]]] = {
    "hear of the cluster": (lambda led: None, lambda led: led.hear()),
    "decide": (lambda led: None, lambda led: led.term.batches.decide()),
    "act on a failed bind": (lambda led: say(led, "rejected"), lambda led: led.settle()),
    "flush the backoff": (lambda led: pass_by(led, 20), lambda led: led.term.flush_backoff()),
    "rescue": (lambda led: pass_by(led, 400), lambda led: led.term.rescue()),
    "look up what is overdue": (
        lambda led: (pass_by(led, OVERDUE_S + 1), led.rig.delete_pod("shop/reserved")),
        lambda led: led.term.binding.look_up_overdue(),
    ),
    "let a waiting pod go": (lambda led: waiting(led).allow("Pair"), lambda led: led.term.commit.settle_waiting()),
    "turn a waiting pod away": (lambda led: pass_by(led, 60), lambda led: led.term.commit.settle_waiting()),
    "take over once more": (lambda led: None, lambda led: led.take_over()),
    "publish the node table": (
        lambda led: None,
        lambda led: led.term.memory.cache.log.publish(led.term.memory.cache.snapshot),
    ),
    "drop results": (
        lambda led: say(led, "rejected"),
        lambda led: (led.term.state.results.ack(led.unread()), led.term.state.line.settle()),
    ),
}


@pytest.mark.parametrize("taken_over", [False, True])
@pytest.mark.parametrize("act", ACTS)
def test_the_old_leader_changes_nothing(rig: Rig, check: Checker, old: Led, act: str, taken_over: bool) -> None:
    before, does = ACTS[act]
    before(old)
    new = rig.lead() if taken_over else rig.elect()
    dump = rig.dump()
    with pytest.raises(StaleEpoch):
        does(old)
    assert rig.dump() == dump
    if taken_over:
        new.run()
        check.settled()


def test_what_the_old_leader_hands_out_binds_nothing(rig: Rig, check: Checker, old: Led) -> None:
    (request,) = old.requests()
    begun = rig.binder.begin(request)
    new = rig.lead()
    assert rig.binder.work(request) == []
    outcomes = rig.binder.bind(request, begun)  # this binder had asked before the old leader fell
    assert [outcome.verdict for outcome in outcomes] == ["reservation-lost"]
    rig.binder.report(request, outcomes)
    assert rig.node_of("shop/reserved") == ""
    new.run()
    assert rig.node_of("shop/reserved") in ("n1", "n2", "n3")
    check.settled()


def test_an_old_leader_that_only_reads_does_no_harm(rig: Rig, old: Led) -> None:
    rig.elect()
    dump = rig.dump()
    old.term.memory.events.apply()
    old.term.timers.run()
    assert rig.dump() == dump
