"""Pods of a node that together request more than 64 bits hold: the node is full, and nobody starts over."""

from typing import Any

import pytest

from dsched.leader.audit import compare
from dsched.model.meta import NodeName
from dsched.model.quantity import LARGEST
from dsched.state import beyond, keys
from dsched.state.beyond import BeyondSum
from dsched.state.usage import read_usage
from tests.integration.leader.checker import Checker
from tests.integration.leader.rig import Led, Rig
from tests.manifests import Json, node_manifest, pod_manifest


def pod(name: str, memory: str, **spec: Any) -> Json:
    containers = [{"name": "m", "resources": {"requests": {"memory": memory}}}]
    return pod_manifest(f"shop/{name}", containers=containers, **spec)


def tells(led: Led) -> list[BeyondSum]:
    """What the leader tells of sums beyond 64 bits, a while later."""
    led.rig.clock.advance(2)
    led.turns()
    return beyond.read(led.rig.store)


def crowded(rig: Rig) -> None:
    """Two nodes, and on the first one three pods that ask for all that a number can say."""
    rig.apply(node_manifest("n1", labels={"name": "n1"}), node_manifest("n2"))
    rig.apply(*(pod(f"great-{number}", "8Ei", nodeName="n1") for number in range(3)))


def test_nothing_more_goes_there_until_the_sum_is_right_again(rig: Rig, check: Checker) -> None:
    crowded(rig)
    led = rig.lead()
    rig.apply(pod("small", "1"), pod("pinned", "1", nodeSelector={"name": "n1"}))
    led.run()
    assert (rig.node_of("shop/small"), rig.node_of("shop/pinned")) == ("n2", "")
    assert rig.used("n1")["memory"] == 3 * LARGEST
    assert tells(led) == [BeyondSum("n1", "memory", str(3 * LARGEST))]
    for left in (2, 1):
        rig.delete_pod(f"shop/great-{left}")
        led.run()
        assert rig.used("n1")["memory"] == left * LARGEST
        assert [each.requested for each in tells(led)] == ([str(2 * LARGEST)] if left == 2 else [])
        assert rig.node_of("shop/pinned") == ""
    rig.delete_pod("shop/great-0")
    led.run()
    assert (rig.node_of("shop/pinned"), rig.used("n1")["memory"]) == ("n1", 1)
    check.at_rest()


def test_pods_that_come_to_a_node_of_a_leader_that_leads(rig: Rig) -> None:
    rig.apply(node_manifest("n1"), pod("small", "1"))
    led = rig.lead()
    led.run()
    rig.apply(*(pod(f"great-{number}", "8Ei", nodeName="n1") for number in range(2)))
    led.run()
    assert rig.used("n1")["memory"] == 2 * LARGEST + 1
    next_one = rig.lead()
    next_one.run()
    assert rig.used("n1")["memory"] == 2 * LARGEST + 1


def test_the_comparer_has_nothing_to_say_of_an_exact_sum_and_repairs_a_wrapped_one(rig: Rig) -> None:
    crowded(rig)
    led = rig.lead()
    led.run()
    node, made = rig.store.key(keys.NODE.name + "n1"), led.term.audit
    assert not made._wrong_usage("n1", read_usage(rig.store, NodeName("n1")))
    for text in ("-2", "--5", "a lot", str(LARGEST)):
        rig.store.redis.hset(node, "used.memory", text)
        for seconds in (compare.EVERY_S, compare.UNHEARD_S, compare.EVERY_S):
            rig.clock.advance(seconds)
            made.step()
            while made.looking:
                made.step()
        assert rig.used("n1")["memory"] == 3 * LARGEST, text


@pytest.mark.parametrize("field", ["used.memory", "version", "object"])
@pytest.mark.parametrize("text", ["-2", "--5", "", "a lot", "9" * 400, str(LARGEST)])
def test_a_leader_that_finds_something_else_there_counts_anew(rig: Rig, field: str, text: str) -> None:
    """Also where it has to give a reservation back before it counts."""
    crowded(rig)
    led = rig.lead()
    rig.apply(pod("small", "1"))
    led.turns()
    assert list(rig.reserved()) == ["shop/small"]
    for name in ("n1", "n2"):
        rig.store.redis.hset(rig.store.key(keys.NODE.name + name), field, text)
    rig.delete_pod("shop/small")
    next_one = rig.lead()
    next_one.run()
    assert rig.used("n1")["memory"] == 3 * LARGEST
    assert "memory" not in rig.used("n2")
