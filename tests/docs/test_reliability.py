"""``docs/reliability.md`` tells of the scenarios what they tell of themselves."""

import re
from pathlib import Path

from tests.faults import report
from tests.faults.scenario import all_scenarios

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
TABLE = re.compile(r"<!-- scenarios: begin -->\n(.*?)<!-- scenarios: end -->", re.DOTALL)


def test_the_table_is_that_of_the_scenarios() -> None:
    """``python -m tests.faults --table`` prints it."""
    (found,) = TABLE.findall(PAGE.read_text())
    assert found.splitlines() == report.lines(all_scenarios().values())


def test_all_scenarios_are_there() -> None:
    assert list(all_scenarios()) == list(range(1, 26))
