"""Thousands of decisions about clusters that nobody has seen before, held against kube-scheduler's own framework."""

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from dsched.config import Features, feature_gates
from dsched.judging import program
from dsched.judging.judging import EQUALS, Judging, Mismatch
from dsched.plugins import profiles
from tests import seeds
from tests.judge_program import judge_program
from tests.parity import fresh
from tests.versions import FRESH, name

pytestmark = pytest.mark.built

SEED = "DSCHED_FRESH_SEED"
"""Environment variable: the seed of a run that is to be run again."""
DECISIONS = 5000


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    profiles.emulate(feature_gates.UNSAID)


@pytest.mark.parametrize("features", FRESH, ids=name)
def test_kube_scheduler_would_have_decided_the_same(features: Features, capsys: pytest.CaptureFixture[str]) -> None:
    path = judge_program(str(features.version))
    seed = seeds.seed(SEED)
    with capsys.disabled():
        print(f"\n{SEED}={seed} for {features.version}")
    mismatches: list[Mismatch] = []
    unjudged: Counter[str] = Counter()
    decisions = placed = refused = preempted = 0
    for lines in fresh.decisions(random.Random(seed), features, DECISIONS):
        with program.running(path) as asked:
            judging = Judging(asked)
            judging.run(lines)
        found = judging.found
        mismatches += found.mismatches
        unjudged += found.unjudged
        decisions += found.decisions
        placed, refused, preempted = placed + found.placed, refused + found.refused, preempted + found.preempted
    assert mismatches == [], f"{SEED}={seed}"
    assert set(unjudged) <= {EQUALS}, f"{SEED}={seed}: {unjudged}"
    assert unjudged.total() <= preempted / 10, "of more than a dozen pods that have not started"
    assert decisions >= DECISIONS
    assert min(placed, refused) > DECISIONS / 20
    assert preempted > DECISIONS / 200
