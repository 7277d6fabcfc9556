"""What a leader decides while all kinds of things happen around it, held against kube-scheduler's own framework."""

import random

import pytest

from dsched.judging import program
from dsched.judging.judging import Judgement, Judging
from dsched.model import tape as lines_of
from tests.integration.recording.conftest import MakeRig, MakeTape
from tests.integration.recording.scene import Scene
from tests.judge_program import judge_program

PLAIN = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


class Peaceful(Scene):
    """A scene in which nobody is more important than anybody else."""

    def _pod(self, key: str) -> dict[str, object]:
        made = super()._pod(key)
        made["spec"]["priority"] = 0
        return made


def judged(lines: list[lines_of.Line]) -> Judgement:
    with program.running(judge_program("1.34")) as asked:
        judging = Judging(asked)
        judging.run(lines)
    return judging.found


@pytest.mark.parametrize("seed", range(4))
def test_kube_scheduler_would_have_decided_the_same(make_rig: MakeRig, tape: MakeTape, seed: int) -> None:
    judge_program("1.34")
    chance = random.Random(seed)
    rig = make_rig()
    rig.configure(PLAIN)
    played = Peaceful(rig, chance)
    for _ in range(chance.randint(0, 30)):
        played.act()
    taped = tape(rig)
    taped.seen_by(played.led)
    for _ in range(60):
        played.act()
    played.change_leader()
    taped.seen_by(played.led)
    for _ in range(40):
        played.act()
    found = judged(taped.lines())
    assert found.mismatches == []
    assert found.decisions > 50
    assert found.agreed == found.decisions
    assert found.placed > 10
    assert found.refused > 10
