"""The gang plugin of the examples in a leader that is driven step by step: all members or none, whatever happens."""

import importlib
from pathlib import Path
from typing import Any

import pytest

from tests.integration.leader.checker import Checker
from tests.integration.leader.rig import Led, Rig
from tests.manifests import node_manifest, pod_manifest

EXAMPLE = Path(__file__).parents[3] / "examples" / "02-gang-plugin"
DEADLINE_S = 10
"""As the example's scheduler.yaml has it."""
Json = dict[str, Any]


@pytest.fixture(autouse=True)
def _gang_plugin(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE / "src"))
    plugin = importlib.import_module("dsched_gang").GangPlugin
    rig.configure((EXAMPLE / "scheduler.yaml").read_text(), plugin)


def member(gang: str, number: int, size: int = 3, *, one_zone: bool = False, **spec: Any) -> Json:
    """Pod ``shop/GANG-NUMBER`` of one CPU."""
    labels = {"example.com/gang": gang, "example.com/gang-size": str(size)}
    labels |= {"example.com/gang-one-zone": "true"} if one_zone else {}
    return pod_manifest(f"shop/{gang}-{number}", labels=labels, **{"containers": one_cpu(), **spec})


def members(gang: str, size: int = 3, **more: Any) -> list[Json]:
    return [member(gang, number, size, **more) for number in range(size)]


def one_cpu() -> list[Json]:
    return [{"name": "main", "image": "nginx", "resources": {"requests": {"cpu": "1"}}}]


def room(cpus: int, name: str = "n1", **labels: str) -> Json:
    return node_manifest(name, labels=labels, cpu=str(cpus))


def bound(rig: Rig, gang: str) -> list[str]:
    """Nodes of the members that are bound, by number of the member."""
    pods = sorted(rig.cluster.list().pods, key=lambda pod: pod.key)
    return [pod.node_name for pod in pods if pod.key.startswith(f"shop/{gang}-") and pod.node_name]


def places(rig: Rig, gang: str, size: int = 3) -> list[str]:
    return [rig.queue(f"shop/{gang}-{number}") for number in range(size)]


def led_with(rig: Rig, *objects: Json) -> Led:
    rig.apply(*objects)
    led = rig.lead()
    led.run()
    return led


def pass_by(led: Led, seconds: int) -> None:
    """Time goes by, a second at a time, and all that is due happens."""
    for _ in range(seconds):
        led.rig.clock.advance(1)
        led.run()


# -- all or none -------------------------------------------------------------------------------------------------------


def test_a_gang_that_fits_is_bound_whole(rig: Rig, check: Checker) -> None:
    led_with(rig, room(3), *members("a"))
    assert bound(rig, "a") == ["n1", "n1", "n1"]
    check.at_rest()


def test_a_gang_that_does_not_fit_gives_its_room_back_and_rests(rig: Rig, check: Checker) -> None:
    led = led_with(rig, room(2), *members("a"))
    assert sorted(places(rig, "a")) == ["unschedulable", "waiting", "waiting"]
    assert rig.used("n1") == {"cpu": 2000, "pods": 2}
    pass_by(led, DEADLINE_S)
    assert places(rig, "a") == ["unschedulable"] * 3
    assert rig.used("n1") == {}
    check.at_rest()
    attempts = [rig.record(f"shop/a-{number}")["attempts"] for number in range(3)]
    pass_by(led, 60)
    assert [rig.record(f"shop/a-{number}")["attempts"] for number in range(3)] == attempts
    assert bound(rig, "a") == []


@pytest.mark.parametrize("after_s", [0, 5, DEADLINE_S, 60])
def test_it_lands_whole_when_room_appears(rig: Rig, check: Checker, after_s: int) -> None:
    led = led_with(rig, room(2), *members("a"))
    pass_by(led, after_s)
    rig.apply(room(1, "n2"))
    pass_by(led, DEADLINE_S)
    assert sorted(bound(rig, "a")) == ["n1", "n1", "n2"]
    check.at_rest()


def test_it_lands_whole_when_pods_go(rig: Rig, check: Checker) -> None:
    led = led_with(rig, room(3), pod_manifest("shop/other", containers=one_cpu()))
    rig.apply(*members("a"))
    led.run()
    pass_by(led, DEADLINE_S)
    rig.delete_pod("shop/other")
    pass_by(led, DEADLINE_S)
    assert bound(rig, "a") == ["n1", "n1", "n1"]
    check.at_rest()


def test_more_members_than_have_to_be_bound_together(rig: Rig, check: Checker) -> None:
    led_with(rig, room(4), *(member("a", number, 3) for number in range(5)))
    assert len(bound(rig, "a")) == 4
    check.at_rest()


def test_pods_of_no_gang_do_not_wait(rig: Rig) -> None:
    led = led_with(rig, room(3), *members("a", 5))
    rig.apply(
        room(1, "n2", disk="ssd"),
        pod_manifest("shop/alone", nodeSelector={"disk": "ssd"}, containers=[{"name": "main"}]),
    )
    led.run()
    assert rig.node_of("shop/alone") == "n2"


# -- several gangs -----------------------------------------------------------------------------------------------------


def interleaved(*gangs: str) -> list[Json]:
    return [member(gang, number) for number in range(3) for gang in gangs]


def test_of_two_gangs_with_room_for_one_the_first_lands(rig: Rig, check: Checker) -> None:
    led = led_with(rig, room(4), *interleaved("a", "b"))
    assert bound(rig, "a") == ["n1"] * 3
    pass_by(led, 3 * DEADLINE_S)
    assert bound(rig, "b") == []
    check.at_rest()
    for number in range(3):
        rig.delete_pod(f"shop/a-{number}")
    pass_by(led, DEADLINE_S)
    assert bound(rig, "b") == ["n1"] * 3
    check.at_rest()


@pytest.mark.parametrize("order", [interleaved("a", "b", "c"), [pod for gang in "abc" for pod in members(gang)]])
def test_gangs_that_all_fit_all_land(rig: Rig, check: Checker, order: list[Json]) -> None:
    led_with(rig, room(9), *order)
    assert [bound(rig, gang) for gang in "abc"] == [["n1"] * 3] * 3
    check.at_rest()


def test_gangs_of_which_none_fits_come_to_rest(rig: Rig, check: Checker) -> None:
    led = led_with(rig, room(2), *interleaved("a", "b"))
    pass_by(led, 4 * DEADLINE_S)
    assert places(rig, "a") + places(rig, "b") == ["unschedulable"] * 6
    check.at_rest()
    rig.apply(room(1, "n2"))
    pass_by(led, 4 * DEADLINE_S)
    assert sorted([len(bound(rig, "a")), len(bound(rig, "b"))]) == [0, 3]
    check.at_rest()
    rig.apply(room(3, "n3"))
    pass_by(led, 2 * DEADLINE_S)
    assert [len(bound(rig, "a")), len(bound(rig, "b"))] == [3, 3]
    check.at_rest()


def test_a_small_gang_lands_after_a_large_one_was_turned_away(rig: Rig, check: Checker) -> None:
    led = led_with(rig, room(3), *members("large", 4), *members("small", 2))
    assert bound(rig, "small") == []
    pass_by(led, 2 * DEADLINE_S)
    assert bound(rig, "small") == ["n1", "n1"]
    assert bound(rig, "large") == []
    check.at_rest()


# -- members that come, go, or are kept out ----------------------------------------------------------------------------


def test_a_gang_waits_for_its_members_outside_the_queue(rig: Rig, check: Checker) -> None:
    led = led_with(rig, room(3), member("a", 0), member("a", 1))
    assert places(rig, "a") == ["gated", "gated", ""]
    assert rig.record("shop/a-0")["message"] == "gang a: 1 of 3 members exist"
    assert rig.used("n1") == {}
    rig.apply(member("a", 2))
    led.run()
    assert bound(rig, "a") == ["n1"] * 3
    check.at_rest()


@pytest.mark.parametrize("size", ["", "many", "0", "-3"])
def test_a_size_that_is_no_number(rig: Rig, size: str) -> None:
    pod = member("a", 0)
    pod["metadata"]["labels"]["example.com/gang-size"] = size.strip("-") or "x"
    led_with(rig, room(3), pod)
    assert places(rig, "a", 1) == ["gated"]


def test_a_member_with_a_scheduling_gate(rig: Rig, check: Checker) -> None:
    gated = member("a", 2, schedulingGates=[{"name": "example.com/later"}])
    led = led_with(rig, room(3), member("a", 0), member("a", 1), gated)
    pass_by(led, DEADLINE_S)
    assert (places(rig, "a"), rig.used("n1")) == (["unschedulable", "unschedulable", "gated"], {})
    check.at_rest()
    rig.apply(member("a", 2))
    pass_by(led, DEADLINE_S)
    assert bound(rig, "a") == ["n1"] * 3
    check.at_rest()


def test_a_member_that_is_deleted_while_others_wait(rig: Rig, check: Checker) -> None:
    led = led_with(rig, room(2), *members("a"))
    waiting = [key for key, (_, state) in rig.reserved().items() if state == "waiting"]
    rig.delete_pod(waiting[0])
    pass_by(led, 3)
    assert rig.used("n1") == {}
    check.at_rest()
    rig.apply(room(1, "n2"), *members("a"))
    pass_by(led, DEADLINE_S)
    assert sorted(bound(rig, "a")) == ["n1", "n1", "n2"]
    check.at_rest()


def test_a_node_that_goes_while_members_wait_for_it(rig: Rig, check: Checker) -> None:
    led = led_with(rig, room(1), room(1, "n2"), *members("a"))
    rig.delete_node("n2")
    pass_by(led, DEADLINE_S)
    assert (bound(rig, "a"), rig.used("n1")) == ([], {})
    rig.apply(room(2, "n3"))
    pass_by(led, DEADLINE_S)
    assert sorted(bound(rig, "a")) == ["n1", "n3", "n3"]
    check.at_rest()


# -- zones -------------------------------------------------------------------------------------------------------------

ZONE = "topology.kubernetes.io/zone"


def zones(**nodes: int) -> list[Json]:
    """Nodes ``ZONE1, ZONE2, …`` of one CPU each."""
    return [room(1, f"{zone}{n}", **{ZONE: zone}) for zone, count in nodes.items() for n in range(count)]


@pytest.mark.parametrize("seed", range(5))
def test_a_gang_in_one_zone_goes_where_there_is_room_for_all(rig: Rig, seed: int) -> None:
    led_with(rig, room(64, "big"), *zones(a=2, b=3, c=1), *members(f"a{seed}", one_zone=True))
    assert sorted(bound(rig, f"a{seed}")) == ["b0", "b1", "b2"]


def test_a_gang_in_one_zone_is_not_split_over_two(rig: Rig, check: Checker) -> None:
    led = led_with(rig, room(64, "big"), *zones(a=2, b=2), *members("a", one_zone=True))
    pass_by(led, DEADLINE_S)
    assert bound(rig, "a") == []
    check.at_rest()
    rig.apply(room(1, "b9", **{ZONE: "b"}))
    pass_by(led, DEADLINE_S)
    assert sorted(bound(rig, "a")) == ["b0", "b1", "b9"]
    check.at_rest()


def test_members_are_put_close_together(rig: Rig) -> None:
    led_with(rig, *(room(2, f"{zone}{n}", **{ZONE: zone}) for zone in "abc" for n in range(2)), *members("a", 4))
    nodes = bound(rig, "a")
    assert len(nodes) == 4
    assert len({node[0] for node in nodes}) == 1


# -- leaders that are killed -------------------------------------------------------------------------------------------


def urgent() -> list[Json]:
    """Two pods that go first and evict nobody."""
    spec: Json = {"priority": 9, "preemptionPolicy": "Never", "containers": one_cpu()}
    return [pod_manifest(f"shop/urgent-{number}", **spec) for number in range(2)]


@pytest.mark.parametrize("turns", range(6))
def test_whenever_the_leader_is_killed_all_or_none_are_bound(rig: Rig, check: Checker, turns: int) -> None:
    """Pods of higher priority want the room as soon as it is given back."""
    rig.apply(room(3))
    led = rig.lead()
    rig.apply(*members("a"))
    for _ in range(turns):
        led.turn()
    rig.apply(*urgent())
    new = rig.lead()
    check.always()
    new.run()
    pass_by(new, DEADLINE_S)
    assert (len(bound(rig, "a")), len(bound(rig, "urgent"))) in ((3, 0), (0, 2))
    check.at_rest()


@pytest.mark.parametrize("turns", range(6))
def test_killed_while_the_last_member_comes(rig: Rig, check: Checker, turns: int) -> None:
    led = led_with(rig, room(2), *members("a"))
    rig.apply(room(1, "n2"))
    for _ in range(turns):
        led.turn()
    rig.apply(*urgent())
    new = rig.lead()
    check.always()
    new.run()
    pass_by(new, DEADLINE_S)
    assert (len(bound(rig, "a")), len(bound(rig, "urgent"))) in ((3, 0), (0, 2))
    check.at_rest()


def test_a_reservation_that_is_refused_turns_the_gang_away(rig: Rig, check: Checker) -> None:
    """The node of one member changed underneath."""
    rig.apply(*(room(1, f"n{number}") for number in range(3)), *members("a"))
    led = rig.lead()
    rig.apply(room(1, "n1", disk="new"))
    led.term.batches.decide()
    led.run()
    assert len(bound(rig, "a")) in (0, 3)
    pass_by(led, DEADLINE_S)
    assert sorted(bound(rig, "a")) == ["n0", "n1", "n2"]
    check.at_rest()
