"""What a leader decided about pod groups is decided again when its recording is replayed."""

import random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsched import config
from dsched.config.feature_gates import NEWEST, features
from dsched.model import tape as told
from dsched.scheduler.queue import MOST_AHEAD_MS
from tests.integration.leader.rig import Rig
from tests.integration.recording.conftest import MakeRig, MakeTape, replayed
from tests.manifests import group_manifest, node_manifest, pod_manifest

RACK = "example.com/rack"


def grouped(rig: Rig) -> Rig:
    gates = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}
    rig.configuration = config.default(features(NEWEST, gates))
    return rig


def members(group: str, count: int, cpu: str = "2", start: int = 0, **spec: Any) -> list[dict[str, Any]]:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    of_group = {"schedulingGroup": {"podGroupName": group}, **spec}
    names = [f"default/{group}-{number}" for number in range(start, start + count)]
    return [pod_manifest(name, uid=name.replace("/", "-"), containers=containers, **of_group) for name in names]


def test_a_gang_is_decided_again_as_one(rig: Rig, tape: MakeTape) -> None:
    grouped(rig).apply(*(node_manifest(f"{rack}{n}", labels={RACK: rack}) for rack in "ab" for n in range(2)))
    led = rig.lead()
    taped = tape(rig)
    taped.seen_by(led)
    topology = {"schedulingConstraints": {"topology": [{"key": RACK}]}}
    rig.apply(group_manifest("default/train", 4, **topology), *members("train", 4))
    rig.apply(group_manifest("default/large", 9), *members("large", 9, "1"))
    led.run()
    lines = taped.lines()
    groups = [group for line in lines if isinstance(line, told.Decided) for group in line.groups]
    assert {(group.key, group.pods, group.end) for group in groups} >= {
        ("default/train", 4, "scheduled"),
        ("default/large", 9, "unschedulable"),
    }
    found = replayed(lines, rig.plugins)
    assert (found.equal, found.first, found.not_tried, found.extra) == (True, "", 0, 0)


def test_a_gang_that_is_refused_is_decided_again_in_the_replay_too(rig: Rig, tape: MakeTape) -> None:
    grouped(rig).apply(node_manifest("n1"), node_manifest("n2"), group_manifest("default/train", 4))
    led = rig.lead()
    taped = tape(rig)
    taped.seen_by(led)
    rig.store.redis.hincrby(rig.store.key("node:n1"), "version", 1)
    rig.store.redis.hincrby(rig.store.key("node:n1"), "object", 1)
    rig.apply(*members("train", 4))
    led.run(agree=False)
    lines = taped.lines()
    assert [line.again for line in lines if isinstance(line, told.Decided)][:2] == [False, True]
    found = replayed(lines, rig.plugins)
    assert (found.equal, found.first) == (True, "")


class Played:
    """Groups that come, grow, lose pods and nodes, and evict others."""

    def __init__(self, rig: Rig, chance: random.Random) -> None:
        self.rig, self.chance, self.number = grouped(rig), chance, 0
        rig.apply(*(node_manifest(f"n{n}", labels={RACK: "ab"[n % 2]}) for n in range(6)))
        self.led = rig.lead()

    def act(self) -> None:
        """Something happens, and then the leader works."""
        chance, self.number = self.chance, self.number + 1
        match chance.randrange(4):
            case 0 | 1:
                name, priority = f"g{self.number}", chance.choice([0, 0, 5])
                topology = {"schedulingConstraints": {"topology": [{"key": RACK}]}} if chance.random() < 0.5 else {}
                least = chance.choice([None, 2, 3, 6])
                self.rig.apply(group_manifest(f"default/{name}", least, priority=priority, **topology))
                self.rig.apply(*members(name, chance.randint(1, 6), chance.choice("12"), priority=priority))
            case 2:
                there = [pod for pod in self.rig.cluster.list().pods if pod.node_name]
                if there:
                    gone = chance.choice(there)
                    self.rig.cluster.delete_pods([(gone.key, gone.uid)], "Test", "gone")
            case _:
                pod = members("alone", 1, start=self.number, priority=chance.choice([0, 9]))[0]
                del pod["spec"]["schedulingGroup"]
                self.rig.apply(pod)
        self.led.run(agree=False)
        self.rig.clock.advance(chance.choice([0, 3, MOST_AHEAD_MS / 1000]))
        self.led.run(agree=False)


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32))
def test_every_decision_is_the_same(make_rig: MakeRig, tape: MakeTape, seed: int) -> None:
    chance = random.Random(seed)
    played = Played(make_rig(), chance)
    for _ in range(chance.randint(0, 6)):
        played.act()
    taped = tape(played.rig)
    taped.seen_by(played.led)
    for _ in range(12):
        played.act()
    found = replayed(taped.lines(), played.rig.plugins)
    assert (found.first, found.equal) == ("", True)
