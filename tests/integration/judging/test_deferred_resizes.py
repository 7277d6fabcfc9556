"""Deferred resizes among other pods, held against kube-scheduler's own framework with the gate on; and replayed."""

import random
from typing import Any

import pytest

from dsched import config
from dsched.config.feature_gates import NEWEST, features
from dsched.framework import deferred_resizes
from dsched.judging import program
from dsched.judging.judging import EQUALS, Judging
from tests.integration.leader.rig import Rig
from tests.integration.recording.conftest import MakeRig, MakeTape, replayed
from tests.judge_program import judge_program
from tests.manifests import Json, node_manifest, pod_manifest, resizing_manifest

pytestmark = pytest.mark.built

ON = features(NEWEST, {deferred_resizes.GATE: True})
CPUS = ["500m", "1", "1500m", "2", "3"]


class Resized:
    """Pods on three nodes that are resized, and others that come and go."""

    def __init__(self, rig: Rig, chance: random.Random) -> None:
        self.rig = rig
        self.chance = chance
        self.resized: dict[str, Json] = {}
        self.others: list[str] = []
        rig.apply(*(self.node(f"n{number}") for number in range(3)))
        for number in range(4):
            self.resize(f"shop/web-{number}", f"n{number % 3}", chance.choice([5, 10]))

    def node(self, name: str, *forbids: str) -> Json:
        made = node_manifest(name, cpu="4", pods=str(self.chance.choice([4, 6, 10])))
        made["spec"] = {"podPreemptionPolicy": {"disableResizePreemption": list(forbids)}} if forbids else {}
        return made

    def resize(self, key: str, node: str, priority: int) -> None:
        """A pod asks for something else, or is asked to wait no longer."""
        pod = resizing_manifest(key, node, asked=(self.chance.choice(CPUS),), has=("500m",))
        pod["metadata"]["uid"] = f"uid-of-{key.replace('/', '-')}"
        pod["spec"]["priority"] = priority
        reason = self.chance.choice(["Deferred", "Deferred", "Deferred", "Infeasible", ""])
        if reason:
            pod["status"]["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
        self.resized[key] = pod
        self.rig.apply(pod)

    def act(self, led: Any) -> None:
        """Something happens, and the leader goes on."""
        what = self.chance.random()
        if what < 0.45:
            key = f"shop/p{len(self.others)}"
            self.others.append(key)
            containers = [{"name": "m", "image": "i", "resources": {"requests": {"cpu": self.chance.choice(CPUS)}}}]
            priority = self.chance.choice([0, 0, 5])
            self.rig.apply(pod_manifest(key, uid=key.replace("/", "-"), containers=containers, priority=priority))
        elif what < 0.75:
            key = self.chance.choice(sorted(self.resized))
            spec = self.resized[key]["spec"]
            self.resize(key, spec["nodeName"], spec["priority"])
        elif what < 0.85:
            self.rig.apply(self.node(f"n{self.chance.randint(0, 2)}", *self.chance.choice([(), (), ("somebody",)])))
        else:
            there = [key for key in self.others if self.rig.node_of(key) is not None]
            if there:
                self.rig.delete_pod(self.chance.choice(there))
        self.rig.clock.advance(self.chance.choice([0.5, 3, 12]))
        led.run()


@pytest.mark.parametrize("seed", range(6))
def test_kube_scheduler_would_have_decided_the_same(make_rig: MakeRig, tape: MakeTape, seed: int) -> None:
    path, rig, chance = judge_program("1.37"), make_rig(), random.Random(seed)
    rig.configuration = config.default(ON)
    story = Resized(rig, chance)
    led = rig.lead()
    taped = tape(rig)
    taped.seen_by(led)
    for _ in range(40):
        story.act(led)
    led = rig.lead()
    taped.seen_by(led)
    for _ in range(20):
        story.act(led)
    lines = taped.lines()
    with program.running(path, ON) as asked:
        judging = Judging(asked)
        judging.run(lines)
    found = judging.found
    assert found.mismatches == []
    assert found.unjudged.keys() <= {EQUALS}
    assert found.preempted > 2
    assert found.agreed > 50
    again = replayed(lines, rig.plugins)
    assert (again.first, again.equal) == ("", True)
