"""One seed of each attack; more of them: ``python -m tests.attacks --seeds 20``."""

from pathlib import Path

import pytest

from tests.attacks.attack import Stand, all_attacks
from tests.seeds import seed

pytestmark = pytest.mark.campaign

SEED = seed("DSCHED_ATTACKS_SEED")


@pytest.mark.parametrize("name", list(all_attacks()))
def test_everything_holds(redis_program: Path, tmp_path: Path, name: str) -> None:
    print(f"DSCHED_ATTACKS_SEED={SEED}")
    with Stand(SEED, tmp_path) as stand:
        all_attacks()[name].run(stand)
