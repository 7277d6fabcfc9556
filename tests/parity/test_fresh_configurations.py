"""Configuration files that chance has made: what they come to, held against kube-scheduler's own reading of them."""

import os
import random
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dsched.config import Features
from dsched.conformance import configuration
from dsched.judging.program import Program
from tests import seeds
from tests.judge_program import Restarting, judge_program
from tests.parity import fresh_configurations
from tests.versions import FRESH, name

pytestmark = pytest.mark.built

SEED = "DSCHED_FRESH_CONFIGURATIONS_SEED"
"""Environment variable: the seed of a run that is to be run again."""
FILES = int(os.environ.get("DSCHED_FRESH_CONFIGURATIONS", "1500"))
BREAKS_DOWN = "noderesources.init"
"""Where kube-scheduler panics until 1.35: it reads the shape of a RequestedToCapacityRatio that has none."""


def understood(asked: Program, text: str) -> dict[str, Any]:
    """What kube-scheduler makes of it."""
    asked.tell({"configuration": text})
    (answer,) = asked.answers(1)
    return {"errors": [], "plugins": {}, **answer}


@pytest.mark.parametrize("features", FRESH, ids=name)
def test_kube_scheduler_reads_the_same(features: Features, shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = judge_program(str(features.version))
    seed = seeds.settled(SEED)
    with capsys.disabled():
        print(f"\n{SEED}={seed} for {features.version}")
    chance, documents = random.Random(seed), fresh_configurations.known(shared / "conformance")
    texts = [fresh_configurations.text(chance, documents) for _ in range(FILES)]
    differs: list[tuple[str, list[str]]] = []
    met: Counter[str] = Counter()
    with Restarting(path, BREAKS_DOWN) as asked:
        answers = [asked.ask(partial(understood, text=text)) for text in texts]
    for text, answer in zip(texts, answers, strict=True):
        if answer is None:
            continue
        found = configuration.check({"configuration": text, "name": "fresh"}, answer, features)
        differs += [(text, found)] if found else []
        met["taken" if answer["plugins"] else "profile" if answer["accepted"] else "decoded" * answer["decoded"]] += 1
    assert differs == [], f"{SEED}={seed}"
    assert min(met[each] for each in ("taken", "profile", "decoded", "")) > FILES / 50, met
