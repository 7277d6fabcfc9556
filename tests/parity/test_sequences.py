"""Clusters step by step, in 1.37 with pod groups: a whole leader says and does what kube-scheduler itself does."""

import os
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from dsched import config
from dsched.config import Features, feature_gates
from dsched.judging import program
from dsched.judging.program import Program
from dsched.leader import promises
from dsched.leader.binders import node_quarantine
from dsched.plugins import profiles
from dsched.scheduler import nominations
from dsched.state.client import Store
from tests import seeds
from tests.extender import TestExtender
from tests.integration.leader.rig import Rig
from tests.judge_program import judge_program
from tests.parity import older_hints, sequence_counts, sequence_extenders
from tests.parity.sequences import Sequence
from tests.parity.step_by_step import Moment, differences, moments
from tests.unit.scheduler.grouped import CLAIMS, GROUPS, TOPOLOGY
from tests.unit.scheduler.grouped import features as grouped_features

pytestmark = pytest.mark.built

SEED = "DSCHED_SEQUENCES_SEED"
"""Environment variable: the seed of a run that is to be run again."""
SEQUENCES, OF_OLDER = 12, 3
RUNS, FEW_RUNS, MANY_RUNS = 6, 2, 30
"""Of one sequence by kube-scheduler, which decides by chance between what is equally good; few where the releases are
older, and many where there is a difference."""


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
DEVICES = "devices"
"""Pods have claims for devices, of many kinds."""
EXTENDERS = "extenders"
"""They have a say in where pods go, who have no groups."""
OLDER = tuple(filter(None, os.environ.get("DSCHED_SEQUENCES_RELEASES", "1.34").split(",")))
"""Releases of Kubernetes before 1.37 that are gone through as well; they are without pod groups."""
AS_LATER = ["SchedulerAsyncAPICalls=false"]
"""1.34.1 had it on, what came after that has it off: it is about when something is written."""
TOO_LATE = "the object has been modified"
"""Says a bind that wrote a claim after another: which one does is up to their threads."""
ELSEWHERE = "got allocated elsewhere in the meantime"
"""Says a bind whose pod was decided with a claim as it had been before: kube-scheduler goes back to that where another
pod of a group is turned away."""
VICTIM = re.compile(r'pods "[^"]*" not found')
"""Says a bind of a pod that was deleted meanwhile, for another one: dsched ends such binds at once."""
UNBOUND = "running PreBind plugin", "running Bind plugin"
"""Says a bind that failed, perhaps after the pod had been told its node, which 1.35 then leaves on the pod."""
NEVER = NEVER_S = 10_000
"""Promises whose victims never go are ended by dsched alone; nodes that refuse so many binds are set aside by it, and
pods that evict so often are stopped."""


def certain(asked: Program, sequence: Sequence, runs: int) -> list[Moment] | None:
    """What kube-scheduler says and does; None where that is up to chance, or never ends."""
    found: list[list[Moment]] = []
    for begin in range(0, runs, RUNS):
        some = range(begin, min(begin + RUNS, runs))
        for number in some:
            asked.tell({"sequence": sequence.shuffled(number) if number else sequence.plain})
        answers = asked.answers(len(some))
        if any("unjudged" in answer or _unlike(str(answer["moments"])) for answer in answers):
            return None
        found += [answer["moments"] for answer in answers]
        if any(differences(found[0], each) for each in found[1:]):
            return None
    for number, moment in enumerate(found[0]):
        moment["uncertain"] = sequence_counts.uncertain([each[number]["counted"] for each in found])
    return found[0]


def _unlike(moments: str) -> bool:
    return any(each in moments for each in (TOO_LATE, ELSEWHERE)) or VICTIM.search(moments) is not None


def leaves_a_node(moments: list[Moment]) -> bool:
    """Whether a pod could not be bound, which 1.35 leaves with the node that it was to get, be it for a while."""
    return any(each.get("message", "").startswith(UNBOUND) for moment in moments for each in moment["told"])


def _differently_asked(theirs: Counter[str], ours: Counter[str]) -> list[str]:
    return [f"asked by kube-scheduler alone: {each}" for each in sorted(theirs - ours)] + [
        f"asked by dsched alone: {each}" for each in sorted(ours - theirs)
    ]


def gone_through(sequence: Sequence, rig: Rig, features: Features) -> list[Moment]:
    """By a leader."""
    rig.configuration = config.default(features)
    found = moments(rig, sequence.plain, sequence.extenders)
    rig.over()
    if sequence.extenders is not None:
        sequence.extenders.bind = None
    return found


@dataclass
class Comparing:
    """Has sequences gone through by both, each leader with a system of its own.

    Attributes:
        seed: what the sequences are made of.
        extender: answers both for the extenders of a sequence.
    """

    connect: Callable[[str], Store]
    folder: Path
    monkeypatch: pytest.MonkeyPatch
    seed: int
    extender: TestExtender

    def compare(self, path: Path, gates: list[str], features: Features, also: str, **kind: bool) -> None:
        """
        Args:
            path: the program of the release.
            features: of the leader.
            also: what is tried besides, by which chance differs.
            kind: of sequences.
        """
        older_hints.of_unlabelled_namespaces(self.monkeypatch)
        chance, compared = Random(f"{self.seed}{also}"), 0
        count, runs = (OF_OLDER, FEW_RUNS) if kind.get("older") else (SEQUENCES, RUNS)
        with program.running(path, gates=gates) as asked:
            for tried in range(2 * count):
                if tried >= count and compared > count // 2:
                    break
                sequence = Sequence(chance.randrange(1 << 32), **kind)
                sequence.extended_by(self.extender)
                theirs = certain(asked, sequence, runs)
                if theirs is None or (features.version.minor == 35 and leaves_a_node(theirs)):
                    continue
                questions = self._questions(asked, sequence)
                rig = Rig(self.connect(f"test-{uuid.uuid4().hex}"), self.folder, self.monkeypatch)
                ours = gone_through(sequence, rig, features)
                found = differences(theirs, ours)
                minor, grouped = features.version.minor, sequence.grouped
                found = found or sequence_counts.differences(theirs, ours, minor, grouped=grouped)
                found += _differently_asked(questions, sequence_extenders.asked(self.extender))
                certainly = not found or certain(asked, sequence, MANY_RUNS) is not None
                assert not (found and certainly), "\n".join([f"{SEED}={self.seed}, sequence {sequence.name}", *found])
                compared += certainly
        assert compared > count // 2

    def _questions(self, asked: Program, sequence: Sequence) -> Counter[str]:
        """What kube-scheduler asks the extenders."""
        sequence_extenders.asked(self.extender)
        if sequence.extenders is not None:
            asked.tell({"sequence": sequence.plain})
            asked.answers(1)
        return sequence_extenders.asked(self.extender)


@pytest.fixture
def comparing(
    connect: Callable[[str], Store],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Comparing]:
    seed = seeds.settled(SEED)
    with capsys.disabled():
        print(f"\n{SEED}={seed}")
    monkeypatch.setenv("DSCHED_REDIS_URL", connect("binders").url)
    monkeypatch.setattr(promises, "PROMISE_S", NEVER_S)
    monkeypatch.setattr(node_quarantine, "REFUSALS", NEVER)
    monkeypatch.setattr(nominations, "EVICTIONS_ALLOWED", NEVER)
    extender = TestExtender()
    yield Comparing(connect, tmp_path, monkeypatch, seed, extender)
    extender.stop()


@pytest.mark.parametrize(
    "also",
    [TOPOLOGY, "", CLAIMS, GENERATED, VOLUMES, SINGLES, EXTENDERS],
    ids=["topology", "groups", "claims", GENERATED, VOLUMES, SINGLES, EXTENDERS],
)
def test_a_leader_does_what_kube_scheduler_does(comparing: Comparing, also: str) -> None:
    gates = [f"{GROUPS}=true", *(f"{gate}={str(gate == also).lower()}" for gate in (TOPOLOGY, CLAIMS))]
    grouped = grouped_features(topology=also == TOPOLOGY, claims=also == CLAIMS)
    comparing.compare(
        judge_program("1.37"),
        [] if also in (SINGLES, EXTENDERS) else gates,
        feature_gates.DEFAULT if also in (SINGLES, EXTENDERS) else grouped,
        also,
        group_claims=also == CLAIMS,
        generated=also == GENERATED,
        volumes=also == VOLUMES,
        singles=also in (SINGLES, EXTENDERS),
        extenders=also == EXTENDERS,
    )


@pytest.mark.parametrize("also", [SINGLES, EXTENDERS, VOLUMES, DEVICES, GENERATED])
@pytest.mark.parametrize("release", OLDER)
def test_a_leader_that_emulates_an_older_one_does_what_that_does(comparing: Comparing, release: str, also: str) -> None:
    features = feature_gates.features(feature_gates.parse_version(release))
    if not features.since(36):
        older_hints.until_1_35(comparing.monkeypatch)
    comparing.compare(
        judge_program(release),
        AS_LATER,
        features,
        f"{also} of {release}",
        **{also: True},
        **({SINGLES: True} if also == EXTENDERS else {}),
        older=True,
        refusing=features.version.minor != 35 and not (features.since(36) and also in (DEVICES, GENERATED)),
    )
