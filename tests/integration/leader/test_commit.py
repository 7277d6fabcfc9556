"""From a decision to a reservation: what Redis refuses is decided again, but not for ever."""

from typing import Any

import pytest

from dsched.leader.commit import NODE_KEPT_CHANGING, ROUNDS
from dsched.leader.events import LONGEST_UNSCHEDULABLE_S
from dsched.metrics import RESERVATIONS_REFUSED, UNREADABLE
from dsched.state import keys
from tests.integration.leader.checker import Checker
from tests.integration.leader.rig import Rig
from tests.manifests import node_manifest, pod_manifest
from tests.metrics import value

WEB = "shop/web"


def port(number: int) -> dict[str, Any]:
    return {"name": "m", "ports": [{"containerPort": 80, "hostPort": number}], "resources": {"requests": {"cpu": "1"}}}


def moved(rig: Rig, node: str, *fields: str) -> None:
    """The node's versions in Redis are other ones than the leader knows."""
    for field in fields:
        rig.store.redis.hincrby(rig.store.key(f"node:{node}"), field, 1)


def refused() -> float:
    return value(RESERVATIONS_REFUSED.labels("changed"))


def unreadable() -> float:
    return value(UNREADABLE.labels(keys.NODE.name))


def test_a_batch_on_one_node(rig: Rig, check: Checker) -> None:
    """Each pod expects the node as its predecessors leave it."""
    rig.apply(node_manifest("n1"), *(pod_manifest(f"shop/p{number}") for number in range(10)))
    before = refused()
    led = rig.lead()
    led.term.batches.decide()
    assert len(rig.reserved()) == 10
    assert refused() == before
    check.settled()
    led.run()
    check.at_rest()


def test_a_changed_node_that_still_has_room_takes_the_pod(rig: Rig, check: Checker) -> None:
    rig.apply(node_manifest("n1"), pod_manifest(WEB))
    led = rig.lead()
    moved(rig, "n1", "version")
    before = refused()
    led.run(agree=False)
    assert rig.node_of(WEB) == "n1"
    assert refused() == before
    check.at_rest()


@pytest.mark.parametrize("why", ["garbled", "lost", "gone"])
def test_a_node_whose_versions_somebody_has_spoiled_is_written_anew(rig: Rig, check: Checker, why: str) -> None:
    rig.apply(node_manifest("n1"), pod_manifest(WEB))
    led = rig.lead()
    key = rig.store.key("node:n1")
    if why == "garbled":
        rig.store.redis.hset(key, "object", b"\xceQ")
    elif why == "lost":
        rig.store.redis.hdel(key, "object")
    else:
        rig.store.redis.delete(key)
    before = refused(), unreadable()
    led.term.batches.decide()
    assert (refused(), unreadable()) == (before[0] + 1, before[1] + 1)
    assert rig.reserved() == {WEB: ("n1", "reserved")}
    led.run()
    check.at_rest()


@pytest.mark.parametrize("why", ["object", "full", "ports"])
def test_a_changed_node_is_decided_again_at_once(rig: Rig, check: Checker, why: str) -> None:
    containers = [port(8080)] if why == "ports" else [{"name": "m", "resources": {"requests": {"cpu": "1"}}}]
    rig.apply(node_manifest("n1"), pod_manifest(WEB, containers=containers))
    led = rig.lead()
    moved(rig, "n1", "version")
    if why == "object":
        moved(rig, "n1", "object")
    if why == "full":
        rig.store.redis.hset(rig.store.key("node:n1"), "used.cpu", "4000")
    before = refused()
    led.term.batches.decide()
    if why == "full":  # the leader knows better what is used: it goes by versions the second time
        rig.store.redis.hset(rig.store.key("node:n1"), "used.cpu", "1000")
    assert refused() == before + 1
    assert rig.reserved() == {WEB: ("n1", "reserved")}
    assert rig.record(WEB)["attempts"] == "1"
    led.run()
    check.at_rest()


def test_only_the_refused_pods_of_a_batch_are_decided_again(rig: Rig, check: Checker) -> None:
    names = [f"shop/p{number}" for number in range(6)]
    rig.apply(node_manifest("n1", pods="3"), node_manifest("n2", pods="3"), *(pod_manifest(name) for name in names))
    led = rig.lead()
    rig.store.redis.hincrby(rig.store.key("node:n2"), "version", 100)
    moved(rig, "n2", "object")
    decided: list[list[str]] = []
    decide = led.term.commit._cycle.decide

    def note(batch: Any, **how: bool) -> Any:
        decided.append([candidate.info.key for candidate in batch])
        return decide(batch, **how)

    led.term.commit._cycle.decide = note
    led.term.batches.decide()
    assert [len(batch) for batch in decided] == [6, 3]
    assert {node for node, _ in rig.reserved().values()} == {"n1", "n2"}
    assert len(rig.reserved()) == 6
    check.settled()
    led.run()
    check.at_rest()


def test_a_node_that_keeps_changing_sends_the_pod_to_backoff(rig: Rig, check: Checker) -> None:
    rig.apply(node_manifest("n1"), pod_manifest(WEB))
    led = rig.lead()
    reserve = led.term.commit._reservations.reserve_ahead
    rounds = 0

    def change_first(requests: Any, now_ms: int, then: Any) -> Any:
        nonlocal rounds
        rounds += 1
        moved(rig, "n1", "version", "object")
        return reserve(requests, now_ms, then)

    led.term.commit._reservations.reserve_ahead = change_first
    led.term.batches.decide()
    assert rounds == ROUNDS == 5
    assert (rig.queue(WEB), rig.record(WEB)["error"], rig.record(WEB)["attempts"]) == ("backoff", "1", "1")
    assert rig.condition(WEB) == ("SchedulerError", NODE_KEPT_CHANGING)
    check.settled()
    led.term.commit._reservations.reserve_ahead = reserve
    rig.clock.advance(2)
    led.run()
    assert rig.node_of(WEB) == "n1"
    check.at_rest()


def test_a_pod_that_is_no_longer_in_flight_is_let_go(rig: Rig) -> None:
    """Somebody took the record away underneath (Redis lost it): nothing is reserved."""
    rig.apply(node_manifest("n1"), pod_manifest(WEB))
    led = rig.lead()
    reserve = led.term.commit._reservations.reserve_ahead

    def vanish_first(requests: Any, now_ms: int, then: Any) -> Any:
        rig.store.redis.delete(rig.store.key(f"pod:{WEB}"))
        return reserve(requests, now_ms, then)

    led.term.commit._reservations.reserve_ahead = vanish_first
    led.term.batches.decide()
    assert rig.reserved() == {}
    assert led.requests() == []
    assert led.term.memory.cache.snapshot.table.pod_count.tolist() == [0]


def test_host_ports_are_never_given_twice(rig: Rig, check: Checker) -> None:
    pods = [pod_manifest(f"shop/p{number}", containers=[port(8080)]) for number in range(4)]
    rig.apply(node_manifest("n1"), node_manifest("n2"), *pods)
    led = rig.lead()
    led.run()
    placed = [rig.node_of(f"shop/p{number}") for number in range(4)]
    assert sorted(filter(None, placed)) == ["n1", "n2"]
    check.at_rest()


def test_more_pods_than_there_is_room_for(rig: Rig, check: Checker) -> None:
    names = [f"shop/p{number:02}" for number in range(40)]
    rig.apply(node_manifest("n1", cpu="1"), node_manifest("n2", cpu="500m"), *(pod_manifest(name) for name in names))
    led = rig.lead()
    led.run()
    bound = [name for name in names if rig.node_of(name)]
    assert len(bound) == 15  # 10 and 5 of 100m
    check.at_rest()
    for name in bound[:4]:
        rig.delete_pod(name)
    rig.clock.advance(30)
    led.run()
    assert sum(bool(rig.node_of(name)) for name in names if name not in bound[:4]) == 15
    check.at_rest()
    assert LONGEST_UNSCHEDULABLE_S == 300


def test_the_decisions_file_has_a_line_for_each_decision(rig: Rig, tmp_path: Any) -> None:
    import json

    path = tmp_path / "decisions"
    rig.apply(node_manifest("n1", cpu="150m"), pod_manifest("shop/a"), pod_manifest("shop/b"))
    rig.decisions = path
    led = rig.lead()
    led.run()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["sequence"] for line in lines] == [1, 2]
    assert {line["pod"] for line in lines} == {"shop/a", "shop/b"}
    placed = next(line for line in lines if "node" in line)
    assert (placed["node"], placed["attempt"], placed["epoch"]) == ("n1", 1, led.epoch)
    other = next(line for line in lines if "node" not in line)
    assert other["diagnosis"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
