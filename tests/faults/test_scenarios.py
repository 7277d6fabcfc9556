"""One seed of each scenario, of some with queues as well; more of them: ``python -m tests.faults --seeds 20``."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import queued
from tests.faults.campaign import Campaign, order
from tests.faults.scenario import Scenario, all_scenarios
from tests.seeds import seed

pytestmark = pytest.mark.campaign

SEED = seed("DSCHED_FAULTS_SEED")
DIVIDED = [queued.divided(all_scenarios()[number]) for number in (1, 16)]
RUNS = [
    pytest.param(scenario, id=f"{scenario.number:02}{'-queues' if scenario.divided else ''}")
    for scenario, _ in order([*all_scenarios().values(), *DIVIDED], [SEED])
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
