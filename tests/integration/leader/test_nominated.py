"""Nominated pods: who is tried again when a promise ends, whoever ends it, and what others change on the pod.

Source: pkg/scheduler/eventhandlers.go ``updatePodInSchedulingQueue``, ``deletePodFromSchedulingQueue``;
backend/queue/nominator.go ``UpdateNominatedPod``.
"""

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from dsched.cluster.interface import Change, Event
from dsched.leader.sources import Heard
from dsched.model.meta import PodKey
from dsched.model.pod import Pod
from tests.integration.leader.checker import Checker
from tests.integration.leader.rig import Led, Rig
from tests.integration.leader.test_preemption import BIG, SMALL, labelled, linger, pod, stuck, wait
from tests.manifests import Json

HIGH = "shop/high"
NOWHERE: Json = {"nodeSelector": {"there-is": "no-such-node"}}


def told(rig: Rig, led: Led, key: str, **changes: Any) -> None:
    """An API server's watch says that somebody else has changed the pod."""
    (now,) = rig.cluster.get_pods([PodKey(key)])
    known = led.term.memory.pending.get(PodKey(key))
    assert now is not None and known is not None
    is_now = changed(known.info.pod, **changes)
    event = Event(Change.MODIFIED, "Pod", key, 0, now.uid, is_now)
    led.term.hear([Heard([event], led.term.heard)])
    led.term.state.line.settle()


def changed(pod: Pod, nominated: str | None = None, labels: dict[str, str] | None = None) -> Pod:
    if nominated is not None:
        pod = replace(pod, status=replace(pod.status, nominated_node_name=nominated))
    if labels is not None:
        pod = replace(pod, metadata=replace(pod.metadata, labels=labels))
    return pod


def waiting(rig: Rig, *pods: Json) -> Led:
    """A leader over a node of 4 cores whose pods have been tried."""
    rig.apply(labelled("n1"), labelled("n2", cpu="1"))
    led = rig.lead()
    rig.apply(*pods)
    led.run()
    return led


def promised(led: Led, key: str) -> str:
    known = led.term.memory.pending.get(PodKey(key))
    assert known is not None
    node = led.term.memory.cache.snapshot.nominations.node_of(known.uid) or ""
    assert known.preempting.node == node
    return str(node)


def test_a_promise_that_somebody_else_makes_is_kept(rig: Rig) -> None:
    led = waiting(rig, pod(BIG, "3", 10, **NOWHERE))
    told(rig, led, BIG, nominated="n1")
    assert promised(led, BIG) == "n1"
    rig.apply(pod(SMALL, "2", 10))
    led.run()
    assert led.place(SMALL) == "unschedulable"


def test_a_gated_pod_that_comes_with_a_promise_holds_the_room(rig: Rig) -> None:
    """As since v1.37 (``addPod``, kubernetes pull request 139057); before, it did so from its first change on."""
    gated = pod(BIG, "3", 10, schedulingGates=[{"name": "example.com/later"}])
    led = waiting(rig, {**gated, "status": {"nominatedNodeName": "n1"}})
    assert (led.place(BIG), promised(led, BIG)) == ("gated", "n1")
    rig.apply(pod(SMALL, "2", 10))
    led.run()
    assert led.place(SMALL) == "unschedulable"
    told(rig, led, BIG, nominated="")
    led.run()
    assert rig.node_of(SMALL) == "n1"


@pytest.mark.parametrize("after", ["n2", ""])
def test_a_promise_that_somebody_else_ends_gives_the_room_to_others(rig: Rig, check: Checker, after: str) -> None:
    led = waiting(rig, pod(BIG, "3", 10, **NOWHERE), pod(HIGH, "5", 11))
    told(rig, led, BIG, nominated="n1")
    rig.apply(pod(SMALL, "2", 10))
    led.run()
    told(rig, led, BIG, nominated=after)
    assert promised(led, BIG) == after
    led.term.memory.events.apply()
    assert (led.place(SMALL), led.place(HIGH), led.place(BIG)) == ("backoff", "unschedulable", "unschedulable")
    wait(rig, led, 2)
    assert rig.node_of(SMALL) == "n1"


def test_an_answer_to_what_the_leader_wrote_itself_is_no_change(rig: Rig) -> None:
    """The watch tells late of promises that the leader has ended since, and made anew."""
    linger(rig)
    led = stuck(rig, "n1")
    rig.apply(pod("shop/bigger", "4", 20))
    led.turns()
    assert (promised(led, BIG), promised(led, "shop/bigger")) == ("", "n1")
    told(rig, led, BIG, nominated="n1")
    assert promised(led, BIG) == ""
    told(rig, led, BIG, nominated="")
    assert promised(led, BIG) == ""
    told(rig, led, BIG, nominated="n1")  # by now it is somebody else
    assert promised(led, BIG) == "n1"


def test_a_reserved_pod_is_promised_nothing(rig: Rig, check: Checker) -> None:
    rig.apply(labelled("n1"), pod(BIG, "3", 10))
    led = rig.lead()
    led.term.batches.decide()
    led.term.batches.finish()
    told(rig, led, BIG, nominated="n1")
    assert not led.term.memory.cache.snapshot.nominations
    rig.apply(pod(SMALL, "2"))
    led.turns()
    led.run()
    assert (rig.node_of(BIG), rig.node_of(SMALL)) == ("n1", "")
    check.settled()


@pytest.mark.parametrize("priority", [9, 10, 11])
def test_a_promised_pod_that_goes_wakes_nobody_of_higher_priority(rig: Rig, priority: int) -> None:
    linger(rig)
    led = stuck(rig, "n1")
    rig.apply(pod(HIGH, "5", priority))
    led.turns()
    assert led.place(HIGH) == "unschedulable"
    rig.delete_pod(BIG)
    led.hear()
    led.term.memory.events.apply()
    assert led.place(HIGH) == ("unschedulable" if priority > 10 else "backoff")


def test_a_pod_whose_promise_is_taken_is_tried_again_itself(rig: Rig) -> None:
    linger(rig)
    led = stuck(rig, "n1")
    assert led.place(BIG) == "unschedulable"
    rig.apply(pod("shop/bigger", "4", 20))
    led.hear()
    led.term.memory.events.apply()
    led.term.batches.decide()
    led.term.batches.finish()
    led.term.memory.events.apply()
    assert (led.place(BIG), led.place("shop/bigger")) == ("backoff", "unschedulable")


@pytest.mark.parametrize("ours", [True, False])
def test_a_promised_pod_that_is_bound_elsewhere_gives_the_room_to_others(rig: Rig, check: Checker, ours: bool) -> None:
    """Since 1.35 these are not told, and tried when they have waited for too long. Source: eventhandlers.go
    ``deletePodFromSchedulingQueue``, its ``inBinding``; kubernetes issue 134859."""
    linger(rig)
    rig.apply(labelled("n2") | {"spec": {"taints": [{"key": "own", "effect": "NoSchedule"}]}})
    led = stuck(rig, "n1")
    rig.apply(pod(SMALL, "2"), pod(HIGH, "5", 11))
    led.run()
    assert (led.place(SMALL), led.place(HIGH)) == ("unschedulable", "unschedulable")
    if ours:
        rig.apply(pod(BIG, "3", 10, tolerations=[{"key": "own", "operator": "Exists"}]))
    else:
        rig.bind_foreign(BIG, "n2")
    wait(rig, led, 2)
    assert rig.node_of(BIG) == "n2"
    wait(rig, led, 2)
    assert led.place(SMALL) == "unschedulable"
    wait(rig, led, 301)
    assert rig.node_of(SMALL) == "n1"
    assert led.place(HIGH) == "unschedulable"
    check.settled()


def test_a_promised_pod_counts_with_the_labels_that_it_has(rig: Rig) -> None:
    led = waiting(rig, pod(BIG, "1", 10, **NOWHERE))
    told(rig, led, BIG, nominated="n1")
    told(rig, led, BIG, labels={"app": "new"})
    term = {"labelSelector": {"matchLabels": {"app": "new"}}, "topologyKey": "kubernetes.io/hostname"}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    rig.apply(pod(SMALL, "2", affinity=anti))
    led.run()
    assert led.place(SMALL) == "unschedulable"


def test_a_promise_from_before_ends_as_one_of_this_leader(rig: Rig) -> None:
    """It ends before the leader has looked how old it is."""
    never = NOWHERE | {"preemptionPolicy": "Never"}
    led = waiting(rig, pod(BIG, "3", 10, **never) | {"status": {"nominatedNodeName": "n1"}})
    rig.apply(pod(SMALL, "2"))
    led.run()
    assert led.place(SMALL) == "unschedulable"
    led = rig.lead()
    assert promised(led, BIG) == "n1"
    told(rig, led, BIG, nominated="")
    led.run()
    wait(rig, led, 2)
    assert rig.node_of(SMALL) == "n1"


class Sequence:
    """Random changes that others make, and whom kube-scheduler tries again for them: pods that only resources keep from
    a node, and that preempt nobody."""

    def __init__(self, rig: Rig, seed: int) -> None:
        self.chance = Random(seed)
        self.rig = rig
        self.priorities: dict[str, int] = {}
        self.nominated: dict[str, str] = {}
        taints = {"spec": {"taints": [{"key": "others", "effect": "NoSchedule"}]}}
        rig.apply(labelled("n1"), labelled("n2", cpu="2"), labelled("theirs", cpu="100") | taints)
        self.led = rig.lead()

    def come(self) -> None:
        key = f"shop/p{len(self.nominated)}"
        self.priorities[key] = self.chance.randint(0, 3)
        self.nominated[key] = ""
        cpu = str(self.chance.randint(1, 5))
        self.rig.apply(pod(key, cpu, self.priorities[key], preemptionPolicy="Never"))
        self.led.turns()

    def pending(self) -> list[str]:
        return [key for key in self.priorities if self.led.place(key) == "unschedulable"]

    def change(self) -> set[str]:
        """Somebody changes something; returns who is to be tried again."""
        gone: list[tuple[int, bool]] = []
        key = self.chance.choice(list(self.priorities))
        bound, nominated = self.rig.node_of(key), self.nominated[key]
        what = self.chance.choice(["nominate", "nominate", "delete", "bind"])
        before = self.pending()
        if what == "delete":
            self.rig.delete_pod(key)
            priority = self.priorities.pop(key)
            gone += [(priority, not bound)] if bound or nominated else []
        elif bound or key not in before:
            return set()
        elif what == "bind":
            self.rig.bind_foreign(key, "theirs")  # since 1.35 nobody is told of the end of its promise
        else:
            self.nominated[key] = self.chance.choice(["", "n1", "n2"])
            told(self.rig, self.led, key, nominated=self.nominated[key])
            gone += [(self.priorities[key], True)] if nominated not in ("", self.nominated[key]) else []
        self.led.hear()
        self.led.term.memory.events.apply()
        still = [each for each in before if self.led.place(each)]
        return {each for each in still for at_most, promise in gone if not promise or self.priorities[each] <= at_most}


@pytest.mark.parametrize("seed", range(10))
def test_who_is_tried_again_is_whom_kube_scheduler_tries_again(rig: Rig, check: Checker, seed: int) -> None:
    """Source: eventhandlers.go; plugins/noderesources/fit.go ``isSchedulableAfterPodEvent``."""
    sequence, moved = Sequence(rig, seed), 0
    for _ in range(6):
        sequence.come()
    for _ in range(15):
        before = sequence.pending()
        wanted = sequence.change()
        assert set(before) - set(sequence.pending()) - {key for key in before if not sequence.led.place(key)} == wanted
        moved += len(wanted)
        rig.clock.advance(11)
        sequence.led.run()
        sequence.come()
    assert moved > 0
    check.settled()


def test_that_a_pod_is_bound_where_it_was_promised_wakes_nobody(rig: Rig, check: Checker) -> None:
    """Source: eventhandlers.go ``deletePodFromSchedulingQueue``, its ``inBinding``; since 1.35."""
    rig.apply(labelled("n1"), pod("shop/low", "3", -1))
    led = rig.lead()
    led.run()
    rig.apply(pod(BIG, "3", 10), pod(SMALL, "2", preemptionPolicy="Never"))
    led.run()
    wait(rig, led, 2)
    assert rig.node_of(BIG) == "n1"
    attempts = rig.record(SMALL)["attempts"]
    wait(rig, led, 30)
    assert rig.record(SMALL)["attempts"] == attempts == "2", "once when it came, once when the victim went"
    check.settled()
