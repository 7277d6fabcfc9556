"""The table of docs/queues.md says what comes out."""

from pathlib import Path

import pytest

from tests.manifests import Json, queue_manifest
from tests.unit.scheduler.quota.divided import Divided, make_pod

PAGE = Path(__file__).parents[4] / "docs" / "queues.md"
TABLE = PAGE.read_text().partition("<!-- shares: begin -->")[2].partition("<!-- shares: end -->")[0]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLE.strip().splitlines()[2:]]


def queue(name: str, cell: str) -> tuple[Json, int]:
    """The queue that a cell describes, and its demand in cores."""
    guaranteed, weight, limit, demand = cell.split(", ")
    cpu = {"guaranteed": guaranteed} | ({} if limit == "-" else {"limit": limit})
    return queue_manifest(name, weight=int(weight), resources={"cpu": cpu}), int(demand)


def test_there_are_examples() -> None:
    assert len(ROWS) == 7


@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0]}; {row[1]}" for row in ROWS])
def test_shares(row: list[str]) -> None:
    (a, wants_a), (b, wants_b) = queue("a", row[0]), queue("b", row[1])
    there = Divided(a, b, cores=100)
    for name, count in (("a", wants_a), ("b", wants_b)):
        for number in range(count):
            there.wait(make_pod(f"{name}{number}", name))
    assert [round(there.fair(name), 2) for name in ("a", "b")] == [float(row[2]), float(row[3])]
