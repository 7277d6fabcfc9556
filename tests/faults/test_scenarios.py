"""One seed of each scenario; more of them: ``python -m tests.faults --seeds 20``."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.campaign import Campaign, order
from tests.faults.scenario import Scenario, all_scenarios

OPEN = {
    5: "the pod that kills may find the cluster full, and nobody evaluates it",
    10: "pods were pending at the end though a node had room for them; seen once, not explained",
    11: "a pod was bound to a node that was being cordoned as Redis lost its last second; seen once, not explained",
    13: "a node exchanged under its name while a bind to it is on its way",
    19: "a pod that should have been made room for had not been placed; seen twice, not explained",
    22: "a node exchanged under its name while a bind to it is on its way",
}
"""Scenarios of which some seeds have ended in a breach, with what is known of it; docs/reliability.md lists them."""

SEED = int(os.environ.get("DSCHED_FAULTS_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
RUNS = [
    pytest.param(
        scenario,
        id=f"{scenario.number:02}",
        marks=[pytest.mark.xfail(reason=OPEN[scenario.number], strict=False)] if scenario.number in OPEN else [],
    )
    for scenario, _ in order(all_scenarios().values(), [SEED])
]


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
