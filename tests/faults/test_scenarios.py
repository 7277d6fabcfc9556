"""One seed of each scenario; more of them: ``python -m tests.faults --seeds 20``."""

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.campaign import Campaign, order
from tests.faults.scenario import Scenario, all_scenarios


def _seed() -> int:
    """As asked for; in CI the commit's, so that whoever runs it again does the same; else another one each time."""
    asked = int(os.environ.get("DSCHED_FAULTS_SEED", "0"))
    if asked or not os.environ.get("CI"):
        return asked or random.SystemRandom().randrange(1, 1 << 32)
    found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return int(found.stdout[:8], 16) if found.returncode == 0 else 1


ROOT = Path(__file__).parents[2]
SEED = _seed()
RUNS = [pytest.param(scenario, id=f"{scenario.number:02}") for scenario, _ in order(all_scenarios().values(), [SEED])]


@pytest.fixture(scope="module")
def campaign(redis_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campaign]:
    made = Campaign(tmp_path_factory.mktemp("faults"))
    yield made
    made.close()


@pytest.mark.parametrize("scenario", RUNS)
def test_everything_holds(campaign: Campaign, scenario: Scenario):
    outcome = campaign.run(scenario, SEED)
    print(f"DSCHED_FAULTS_SEED={SEED}", outcome)
    assert outcome.breaches == []
