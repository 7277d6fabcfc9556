"""``docs/reliability.md`` tells of the scenarios what they tell of themselves."""

import re
from pathlib import Path

from tests.attacks import attack
from tests.faults import report
from tests.faults.scenario import all_scenarios

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
ATTACKS = re.compile(r"<!-- attacks: begin -->\n(.*?)<!-- attacks: end -->", re.DOTALL)
TABLE = re.compile(r"<!-- scenarios: begin -->\n(.*?)<!-- scenarios: end -->", re.DOTALL)


def test_the_table_is_that_of_the_scenarios() -> None:
    """``python -m tests.faults --table`` prints it."""
    (found,) = TABLE.findall(PAGE.read_text())
    assert found.splitlines() == report.lines(all_scenarios().values())


def test_the_other_table_is_that_of_the_attacks() -> None:
    """``python -m tests.attacks --table`` prints it."""
    (found,) = ATTACKS.findall(PAGE.read_text())
    assert found.splitlines() == attack.lines()


def test_all_scenarios_are_there() -> None:
    assert list(all_scenarios()) == list(range(1, 28))
