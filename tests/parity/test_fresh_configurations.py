"""Configuration files that chance has made: what they come to, held against kube-scheduler's own reading of them."""

import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from dsched.config import Features
from dsched.conformance import configuration
from dsched.errors import JudgeError
from dsched.judging import program
from dsched.judging.program import Program
from tests import seeds
from tests.judge_program import judge_program
from tests.parity import fresh_configurations
from tests.versions import FRESH, name

pytestmark = pytest.mark.built

SEED = "DSCHED_FRESH_CONFIGURATIONS_SEED"
"""Environment variable: the seed of a run that is to be run again."""
FILES = int(os.environ.get("DSCHED_FRESH_CONFIGURATIONS", "1500"))
BREAKS_DOWN = "noderesources.init"
"""Where kube-scheduler panics until 1.35: it reads the shape of a RequestedToCapacityRatio that has none."""


def understood(path: Path, texts: Sequence[str]) -> Iterator[dict[str, Any] | None]:
    """What kube-scheduler makes of each; None where it breaks down."""
    asked: Program | None = None
    with ExitStack() as running:
        for text in texts:
            asked = asked or running.enter_context(program.running(path))
            asked.tell({"configuration": text})
            try:
                (answer,) = asked.answers(1)
            except JudgeError as error:
                if BREAKS_DOWN not in str(error):
                    raise
                asked = None
                yield None
            else:
                yield {"errors": [], "plugins": {}, **answer}


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
    for text, answer in zip(texts, understood(path, texts), strict=True):
        if answer is None:
            continue
        found = configuration.check({"configuration": text, "name": "fresh"}, answer, features)
        differs += [(text, found)] if found else []
        met["taken" if answer["plugins"] else "profile" if answer["accepted"] else "decoded" * answer["decoded"]] += 1
    assert differs == [], f"{SEED}={seed}"
    assert min(met[each] for each in ("taken", "profile", "decoded", "")) > FILES / 50, met
