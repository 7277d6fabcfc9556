"""What a leader decided in a cluster that is divided between queues is decided again when its recording is replayed."""

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsched.model import tape as told
from dsched.model.queues import LABEL
from tests.integration.leader.rig import Rig
from tests.integration.recording.conftest import MakeRig, MakeTape, replayed
from tests.manifests import Json, node_manifest, other_manifest, pod_manifest, queue_manifest
from tests.unit.plugins.fair_share.divided import CONFIGURATION


def pod(queue: str, number: int, cpu: str = "1", priority: int = 0) -> Json:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    name = f"{queue}-{number}"
    return pod_manifest(
        f"shop/{name}", labels={LABEL: queue}, uid=f"uid-{name}", containers=containers, priority=priority
    )


def unnamed(number: int) -> Json:
    """A pod that its namespace gives a queue."""
    made = pod("unnamed", number)
    del made["metadata"]["labels"]
    return made


def namespace(queue: str) -> Json:
    made = other_manifest("Namespace", "v1", "shop")
    made["metadata"]["labels"] = {LABEL: queue}
    return made


def limited(name: str, cores: int) -> Json:
    return queue_manifest(name, resources={"cpu": {"limit": cores}})


def test_queues_and_reclaim_are_recorded_and_decided_again(rig: Rig, tape: MakeTape) -> None:
    rig.configure(CONFIGURATION)
    rig.apply(queue_manifest("a"), node_manifest("n1", cpu="4"), *(pod("a", number) for number in range(6)))
    led = rig.lead()
    taped = tape(rig)
    taped.seen_by(led)
    led.run()
    rig.apply(queue_manifest("b", weight=3), *(pod("b", number) for number in range(4)))
    led.run()
    lines = taped.lines()
    queues = [line.key for line in lines if isinstance(line, told.ObjectIs) and line.kind == "Queue"]
    assert set(queues) == {"a", "b"}
    assert any(choice.victims for line in lines if isinstance(line, told.Decided) for choice in line.choices)
    found = replayed(lines, rig.plugins)
    assert (found.equal, found.first, found.not_tried, found.extra) == (True, "", 0, 0)


def test_a_namespace_that_changes_its_queue_is_recorded(rig: Rig, tape: MakeTape) -> None:
    rig.configure(CONFIGURATION)
    rig.apply(limited("a", 1), limited("b", 2), namespace("a"), node_manifest("n1", cpu="8"))
    led = rig.lead()
    taped = tape(rig)
    taped.seen_by(led)
    rig.apply(*(unnamed(number) for number in range(6)))
    led.run(agree=False)
    rig.apply(namespace("b"))
    led.run(agree=False)
    lines = taped.lines()
    labels = [
        line.object["metadata"]["labels"][LABEL]
        for line in lines
        if isinstance(line, told.ObjectIs) and line.kind == "Namespace" and line.key == "shop"
    ]
    assert labels == ["a", "b"]
    found = replayed(lines, rig.plugins)
    assert (found.equal, found.first, found.not_tried, found.extra) == (True, "", 0, 0)


class Divided:
    """Pods that come to queues and end, and queues that change."""

    def __init__(self, rig: Rig, chance: random.Random) -> None:
        self.rig, self.chance, self.number = rig, chance, 0
        rig.configure(CONFIGURATION)
        rig.apply(*(node_manifest(f"n{number}", cpu="4") for number in range(3)))
        rig.apply(queue_manifest("a"), queue_manifest("b"))
        self.led = rig.lead()

    def act(self) -> None:
        """Something happens, and then the leader works."""
        chance = self.chance
        match chance.randrange(4):
            case 0 | 1:
                for _ in range(chance.randint(1, 6)):
                    self.number += 1
                    self.rig.apply(pod(chance.choice("ab"), self.number, chance.choice("12"), chance.choice([0, 0, 5])))
            case 2:
                there = [each.key for each in self.rig.cluster.list().pods if each.node_name]
                if there:
                    self.rig.delete_pod(chance.choice(sorted(there)))
            case _:
                limit = {"cpu": {"guaranteed": chance.randint(0, 4), "limit": chance.randint(4, 12)}}
                self.rig.apply(queue_manifest(chance.choice("ab"), weight=chance.randint(1, 3), resources=limit))
        self.led.run(agree=False)
        self.rig.clock.advance(chance.choice([0, 3, 400]))
        self.led.run(agree=False)


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32))
def test_every_decision_is_the_same(make_rig: MakeRig, tape: MakeTape, seed: int) -> None:
    chance = random.Random(seed)
    played = Divided(make_rig(), chance)
    for _ in range(chance.randint(0, 6)):
        played.act()
    taped = tape(played.rig)
    taped.seen_by(played.led)
    for _ in range(12):
        played.act()
    found = replayed(taped.lines(), played.rig.plugins)
    assert (found.first, found.equal) == ("", True)
