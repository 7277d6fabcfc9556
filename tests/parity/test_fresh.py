"""Thousands of decisions about clusters that nobody has seen before, held against kube-scheduler's own framework."""

import os
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from dsched.config import Features, feature_gates
from dsched.judging import program
from dsched.judging.judging import EQUALS, Judging, Mismatch
from dsched.plugins import profiles
from tests.judge_program import judge_program
from tests.parity import fresh
from tests.versions import V34, V35, V36, V37

pytestmark = pytest.mark.built

SEED = "DSCHED_FRESH_SEED"
"""Environment variable: the seed of a run that is to be run again."""
DECISIONS = 5000
VERSIONS = {str(each.version): each for each in (V34, V35, V36, V37)}
ASKED = os.environ.get("DSCHED_FRESH_RELEASES", "1.34,1.37").split(",")
"""Releases of Kubernetes: the ends of what is emulated, or those that are named."""


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    profiles.emulate(feature_gates.UNSAID)


@pytest.mark.parametrize("features", [VERSIONS[each] for each in ASKED], ids=ASKED)
def test_kube_scheduler_would_have_decided_the_same(features: Features, capsys: pytest.CaptureFixture[str]) -> None:
    path = judge_program(str(features.version))
    seed = int(os.environ.get(SEED) or random.SystemRandom().randrange(1 << 32))
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
