"""Clusters with pod groups, step by step: a whole leader says and does what kube-scheduler itself does."""

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from dsched import config
from dsched.config import feature_gates
from dsched.judging import program
from dsched.judging.program import Program
from dsched.leader import promises
from dsched.leader.binders import node_quarantine
from dsched.plugins import profiles
from dsched.state.client import Store
from tests import seeds
from tests.integration.leader.rig import Rig
from tests.judge_program import judge_program
from tests.parity.sequences import Sequence
from tests.parity.step_by_step import Moment, differences, moments
from tests.unit.scheduler.grouped import CLAIMS, GROUPS, TOPOLOGY, features

pytestmark = pytest.mark.built

SEED = "DSCHED_SEQUENCES_SEED"
"""Environment variable: the seed of a run that is to be run again."""
SEQUENCES = 12
RUNS, MANY_RUNS = 6, 30
"""Of one sequence by kube-scheduler, which decides by chance between what is equally good."""


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    profiles.emulate(feature_gates.UNSAID)


GENERATED = "generated"
"""Pods ask for devices as extended resources, and by templates."""
VOLUMES = "volumes"
"""Pods have claims for volumes."""
SINGLES = "singles"
"""There are no groups: the gates that are on by default."""
NEVER = NEVER_S = 10_000
"""Promises whose victims never go are ended by dsched alone; nodes that refuse so many binds are set aside by it."""


def certain(asked: Program, sequence: Sequence, runs: int) -> list[Moment] | None:
    """What kube-scheduler says and does; None where that is up to chance, or never ends."""
    for number in range(runs):
        asked.tell({"sequence": sequence.shuffled(number) if number else sequence.plain})
    answers = asked.answers(runs)
    if any("unjudged" in answer for answer in answers):
        return None
    first, *others = [answer["moments"] for answer in answers]
    return None if any(differences(first, each) for each in others) else list(first)


def gone_through(sequence: Sequence, rig: Rig, also: str) -> list[Moment]:
    """By a leader."""
    grouped = features(topology=also == TOPOLOGY, claims=also == CLAIMS)
    rig.configuration = config.default(feature_gates.DEFAULT if also == SINGLES else grouped)
    found = moments(rig, sequence.plain)
    rig.over()
    return found


def gates(also: str) -> list[str]:
    if also == SINGLES:
        return []
    return [f"{GROUPS}=true", *(f"{gate}={str(gate == also).lower()}" for gate in (TOPOLOGY, CLAIMS))]


@pytest.mark.parametrize(
    "also",
    [TOPOLOGY, "", CLAIMS, GENERATED, VOLUMES, SINGLES],
    ids=["topology", "groups", "claims", GENERATED, VOLUMES, SINGLES],
)
def test_a_leader_does_what_kube_scheduler_does(
    connect: Callable[[str], Store],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    also: str,
) -> None:
    # In CI always the same: a difference that nobody has met yet is none that a change has made.
    path, seed = judge_program("1.37"), 1 if os.environ.get("CI") and SEED not in os.environ else seeds.seed(SEED)
    with capsys.disabled():
        print(f"\n{SEED}={seed}")
    monkeypatch.setenv("DSCHED_REDIS_URL", connect("binders").url)
    monkeypatch.setattr(promises, "PROMISE_S", NEVER_S)
    monkeypatch.setattr(node_quarantine, "REFUSALS", NEVER)
    chance, compared = Random(f"{seed}{also}"), 0
    with program.running(path, gates=gates(also)) as asked:
        for _ in range(SEQUENCES):
            sequence = Sequence(
                chance.randrange(1 << 32),
                group_claims=also == CLAIMS,
                generated=also == GENERATED,
                volumes=also == VOLUMES,
                singles=also == SINGLES,
            )
            theirs = certain(asked, sequence, RUNS)
            if theirs is None:
                continue
            rig = Rig(connect(f"sequence-{uuid.uuid4().hex}"), tmp_path, monkeypatch)
            found = differences(theirs, gone_through(sequence, rig, also))
            certainly = not found or certain(asked, sequence, MANY_RUNS) is not None
            assert not (found and certainly), "\n".join([f"{SEED}={seed}, sequence {sequence.name}", *found])
            compared += certainly
    assert compared > SEQUENCES / 2
