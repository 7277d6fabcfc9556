"""Decisions about clusters that are made of conformance vectors, held against kube-scheduler's own framework."""

import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from dsched.clock import SystemClock
from dsched.config import Features, feature_gates
from dsched.errors import ConfigError
from dsched.judging.judging import EQUALS, FAILED, Judgement, Judging, Mismatch
from dsched.judging.program import Program
from dsched.model import tape
from dsched.plugins import profiles, registry
from dsched.recording import simulated
from tests import seeds
from tests.judge_program import Restarting, judge_program
from tests.parity.crossed import Crossing, cases
from tests.versions import FRESH, name

pytestmark = pytest.mark.built

SEED = "DSCHED_CROSSED_SEED"
"""Environment variable: the seed of a run that is to be run again."""
CLUSTERS = int(os.environ.get("DSCHED_CROSSED_CLUSTERS", "400"))
REFUSED = "needs the plugin DynamicResources, which this profile does not enable"
"""dsched refuses pods with claims where nobody would look at these, on purpose."""
PLAIN = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
BREAKS_DOWN = "resourceAllocationScorer"
"""Where kube-scheduler panics."""
SLOW = "timed out trying to allocate devices"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    profiles.emulate(feature_gates.UNSAID)


@dataclass
class Found:
    """What came of all clusters."""

    mismatches: list[tuple[int, Mismatch]] = field(default_factory=list)
    unjudged: Counter[str] = field(default_factory=Counter)
    placed: int = 0
    refused: int = 0
    preempted: int = 0
    passed_over: int = 0

    def add(self, number: int, judged: Judgement) -> None:
        meant = [each for each in judged.mismatches if SLOW not in each.upstream and REFUSED not in each.message]
        self.mismatches += [(number, each) for each in meant]
        self.unjudged += judged.unjudged
        self.placed += judged.placed
        self.refused += judged.refused
        self.preempted += judged.preempted


def decided(number: int, crossing: Crossing, features: Features) -> list[tape.Line] | None:
    """What is decided in one cluster; None where the configuration is of another version."""
    plugins, text = registry.intree(), json.dumps(crossing.config or PLAIN)
    try:
        configured = profiles.parsed(text, f"cluster {number}", plugins, features)
    except ConfigError:
        return None
    profiles.emulate(features)
    given = crossing.cluster(configured.profiles[0].scheduler_name)
    now_ms = SystemClock().now_ms()  # by which kube-scheduler judges what was long ago
    return simulated.lines(configured, plugins, given, now_ms, number)


def judged(asked: Program, lines: list[tape.Line]) -> Judgement:
    """What kube-scheduler says to it."""
    judging = Judging(asked)
    judging.run(lines)
    return judging.found


@pytest.mark.parametrize("features", FRESH, ids=name)
def test_kube_scheduler_would_have_decided_the_same(
    features: Features, shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, known = judge_program(str(features.version)), cases(shared / "conformance")
    seed = seeds.settled(SEED)
    with capsys.disabled():
        print(f"\n{SEED}={seed} for {features.version}")
    found = Found()
    with Restarting(path, BREAKS_DOWN) as asked:
        for number in range(CLUSTERS):
            lines = decided(number, Crossing(random.Random(f"{seed} {number}"), known), features)
            said = None if lines is None else asked.ask(partial(judged, lines=lines))
            if said is None:
                found.passed_over += 1
            else:
                found.add(number, said)
    assert found.mismatches == [], f"{SEED}={seed}"
    assert set(found.unjudged) <= {EQUALS, FAILED}, f"{SEED}={seed}: {found.unjudged}"
    assert found.passed_over < CLUSTERS / 10
    assert min(found.placed, found.refused) > CLUSTERS / 2
    assert found.preempted > CLUSTERS / 20
