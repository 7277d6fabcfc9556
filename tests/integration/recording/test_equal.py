"""What a leader decided is decided again when its recording is replayed, whatever happened around it."""

import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsched import config
from dsched.plugins import registry
from tests.integration.leader.rig import Rig
from tests.integration.recording.conftest import MakeRig, MakeTape, comparing, replayed
from tests.integration.recording.scene import CONFIGURATION, Couple, Scene, make_node, make_pod

BINPACKING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: Couple}]}}
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""


def test_a_quiet_recording_is_replayed_to_the_same_decisions(rig: Rig, tape: MakeTape) -> None:
    rig.apply(*(make_node(f"n{number}") for number in range(5)))
    led = rig.lead()
    taped = tape(rig)
    taped.seen_by(led)
    rig.apply(*(make_pod(f"shop/web-{number}") for number in range(12)), make_pod("shop/big", "64"))
    led.run()
    found = replayed(taped.lines(), rig.plugins)
    assert (found.decisions, found.same, found.pods, found.equal, found.first) == (13, 13, 13, True, "")
    assert found.recorded_unschedulable == found.replayed_unschedulable
    assert list(found.recorded_unschedulable.values()) == [1]
    assert {each.resource: (each.recorded, each.replayed) for each in found.resources}["pods"] == (12, 12)


def test_a_pod_that_is_refused_is_decided_again_in_the_replay_too(rig: Rig, tape: MakeTape) -> None:
    rig.apply(make_node("n1"), make_node("n2"))
    led = rig.lead()
    taped = tape(rig)
    taped.seen_by(led)
    for name in ("n1", "n2"):
        rig.store.redis.hincrby(rig.store.key(f"node:{name}"), "version", 1)
        rig.store.redis.hincrby(rig.store.key(f"node:{name}"), "object", 1)
    rig.apply(*(make_pod(f"shop/web-{number}", "3") for number in range(3)))
    led.run(agree=False)
    lines = taped.lines()
    found = replayed(lines, rig.plugins)
    assert [line.again for line in lines if hasattr(line, "again")][:2] == [False, True]
    assert found.decisions > 3
    assert (found.equal, found.first) == (True, "")


def scene(make_rig: MakeRig, chance: random.Random) -> Scene:
    """A scene with a plugin that holds pods back, and sometimes with so many nodes that not all are looked at."""
    rig = make_rig()
    many = chance.random() < 0.2
    rig.configure(CONFIGURATION.format(percentage=90 if many else 100), Couple)
    return Scene(rig, chance, nodes=120 if many else 0)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32))
def test_every_decision_is_the_same(make_rig: MakeRig, tape: MakeTape, seed: int) -> None:
    chance = random.Random(seed)
    played = scene(make_rig, chance)
    for _ in range(chance.randint(0, 30)):
        played.act()
    taped = tape(played.rig)
    taped.seen_by(played.led)
    for _ in range(40):
        played.act()
    if chance.random() < 0.3:
        played.change_leader()
        taped.seen_by(played.led)
    for _ in range(20):
        played.act()
    found = replayed(taped.lines(), played.rig.plugins)
    assert found.first == ""
    assert found.equal
    assert (found.moved, found.gained, found.lost, found.reasons) == ([], [], [], [])
    assert all(each.recorded == each.replayed for each in found.resources)
    assert found.recorded_evicted == found.replayed_evicted


@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32))
def test_a_replay_that_goes_its_own_way_stays_a_cluster(make_rig: MakeRig, tape: MakeTape, seed: int) -> None:
    """Each pod stands in one place, what is told of it is where it is, and nobody is forgotten."""
    chance = random.Random(seed)
    played = scene(make_rig, chance)
    taped = tape(played.rig)
    taped.seen_by(played.led)
    for _ in range(70):
        played.act()
    lines = taped.lines()
    known = registry.served(played.rig.plugins)
    for configured, own in ((None, 1), (config.load(BINPACKING, "other.yaml", plugins=known), None)):
        made = comparing(lines, played.rig.plugins, configured, own)
        replay = made.replay
        assert replay is not None
        table = replay.memory.snapshot.table
        for uid, fate in replay.fates.items():
            here = table.node_of(uid)
            assert here == (None if fate.gone else fate.node or None), (fate, here)
        homes = Counter(info.uid for _, info in table.placed())
        assert set(homes.values()) <= {1}
        # Who is there at the end in the recording is there in the replay, or it is known what became of it.
        there = {info.uid for _, info in replay.recorded.table.placed()}
        lost = {uid for uid in there if table.node_of(uid) is None and uid not in replay.fates}
        assert lost == set()
        found = made.conclude()
        assert found.pods == len(replay.fates.keys() | replay.recorded.fates.keys())


def test_another_seed_changes_only_the_choice_among_equals(rig: Rig, tape: MakeTape) -> None:
    rig.apply(*(make_node(f"n{number}") for number in range(9)))
    led = rig.lead()
    taped = tape(rig)
    taped.seen_by(led)
    rig.apply(*(make_pod(f"shop/web-{number}", uid=f"uid-{number}") for number in range(9)))
    led.run()
    lines = taped.lines()
    found = replayed(lines, rig.plugins, seed=12345)
    assert found.moved
    assert not found.equal
    assert not (found.gained or found.lost or found.reasons)
    assert found.first.startswith("pod shop/web-")
    assert [each.replayed for each in found.resources] == [each.recorded for each in found.resources]


def test_another_configuration_makes_room(rig: Rig, tape: MakeTape) -> None:
    """Spread out, small pods leave no node for a large one; packed, they do."""
    rig.configure(BINPACKING, Couple)
    packed = rig.configuration
    rig.configure(CONFIGURATION.format(percentage=100), Couple)
    rig.apply(*(make_node(f"n{number}") for number in range(4)))
    led = rig.lead()
    taped = tape(rig)
    taped.seen_by(led)
    rig.apply(*(make_pod(f"shop/small-{number}") for number in range(4)))
    led.run()
    rig.apply(make_pod("shop/large", "4"))
    led.run()
    lines = taped.lines()
    assert replayed(lines, rig.plugins).equal
    found = replayed(lines, rig.plugins, packed)
    assert [(each.pod, each.recorded) for each in found.gained] == [("shop/large", "")]
    assert found.lost == []
    assert len(found.moved) == 3
    assert (found.recorded_unschedulable.total(), found.replayed_unschedulable.total()) == (1, 0)
    cpu = next(each for each in found.resources if each.resource == "cpu")
    assert (cpu.recorded, cpu.replayed, cpu.allocatable) == (4000, 8000, 16000)
    # Recorded: 3 of 4 cores free on each node, of no use for the large pod, which is one of five.
    assert cpu.recorded_fragmentation == pytest.approx(1 / 5)
    assert cpu.replayed_fragmentation == pytest.approx(0.0)


def test_who_was_evicted_needlessly_stays(rig: Rig, tape: MakeTape) -> None:
    """Spread out, a large pod of high priority evicts a small one; packed, it finds room."""
    rig.configure(BINPACKING, Couple)
    packed = rig.configuration
    rig.configure(CONFIGURATION.format(percentage=100), Couple)
    rig.apply(make_node("n1"), make_node("n2"))
    led = rig.lead()
    taped = tape(rig)
    taped.seen_by(led)
    rig.apply(make_pod("shop/small-1"), make_pod("shop/small-2"))
    led.run()
    rig.apply(make_pod("shop/large", "4", 9))
    led.run()
    rig.clock.advance(2.0)
    led.run()
    lines = taped.lines()
    found = replayed(lines, rig.plugins)
    assert (found.equal, found.recorded_evicted, found.replayed_evicted) == (True, 1, 1)
    found = replayed(lines, rig.plugins, packed)
    assert (found.recorded_evicted, found.replayed_evicted) == (1, 0)
    assert found.not_tried == 1
    assert {each.resource: each.replayed for each in found.resources}["pods"] == 3


def test_who_is_evicted_only_in_the_replay_is_gone_there(rig: Rig, tape: MakeTape) -> None:
    """The other way round: packed as recorded, spread in the replay."""
    rig.configure(CONFIGURATION.format(percentage=100), Couple)
    spread = rig.configuration
    rig.configure(BINPACKING, Couple)
    rig.apply(make_node("n1"), make_node("n2"))
    led = rig.lead()
    taped = tape(rig)
    taped.seen_by(led)
    rig.apply(make_pod("shop/small-1"), make_pod("shop/small-2"))
    led.run()
    rig.apply(make_pod("shop/large", "4", 9))
    led.run()
    found = replayed(taped.lines(), rig.plugins, spread)
    assert (found.recorded_evicted, found.replayed_evicted) == (0, 1)
    assert found.extra == 1
    assert {each.resource: each.replayed for each in found.resources}["pods"] == 2
    (lost,) = [each for each in found.moved + found.lost + found.gained if each.evicted] or [None]
    assert lost is None or lost.pod.startswith("shop/small-")
