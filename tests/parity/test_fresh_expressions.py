"""Expressions that chance has made: what they say of a device, held against kube-scheduler's own evaluation."""

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from dsched.config import Features
from dsched.conformance import cel
from dsched.judging import program
from tests import seeds
from tests.judge_program import judge_program
from tests.parity import fresh_expressions
from tests.versions import FRESH, name

pytestmark = pytest.mark.built

SEED = "DSCHED_FRESH_EXPRESSIONS_SEED"
"""Environment variable: the seed of a run that is to be run again."""
EXPRESSIONS = int(os.environ.get("DSCHED_FRESH_EXPRESSIONS", "4000"))

PANIC = "panic"
"""What is told of an optional entry of a map that is none, `{?'x': 1}`: cel-go panics at some of these."""


@pytest.mark.parametrize("features", FRESH, ids=name)
def test_kube_scheduler_selects_the_same(features: Features, shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = judge_program(str(features.version))
    seed = seeds.settled(SEED)
    with capsys.disabled():
        print(f"\n{SEED}={seed} for {features.version}")
    chance, known = random.Random(seed), fresh_expressions.Known(shared / "conformance")
    cases = [fresh_expressions.case(chance, known) for _ in range(EXPRESSIONS)]
    with program.running(path) as asked:
        for case in cases:
            asked.tell({"selects": case})
        answers = asked.answers(len(cases))
    differs: list[tuple[str, list[str]]] = []
    met: Counter[str] = Counter()
    for case, answer in zip(cases, answers, strict=True):
        met[str(answer.get("error", answer.get("result")))] += 1
        if answer.get("error") != PANIC and (found := cel.check(case, answer, features)):
            differs.append((case["expression"], found))
    assert differs == [], f"{SEED}={seed}"
    assert min(met[each] for each in ("True", "False", "compile", "runtime")) > EXPRESSIONS / 50, met
    assert min(met[each] for each in ("type", "cost")) > 0, met
