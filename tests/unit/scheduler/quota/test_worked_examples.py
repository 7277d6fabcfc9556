"""The tables of docs/queues.md say what comes out."""

from pathlib import Path

import pytest

from dsched.model.queues import DEVICES
from tests.devices import alternative, asking, make_claim, one_of
from tests.manifests import Json, queue_manifest
from tests.unit.scheduler.quota.divided import Divided, make_pod

PAGE = Path(__file__).parents[4] / "docs" / "queues.md"


def rows(table: str) -> list[list[str]]:
    """The cells of a table of the page."""
    text = PAGE.read_text().partition(f"<!-- {table}: begin -->")[2].partition(f"<!-- {table}: end -->")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.strip().splitlines()[2:]]


ROWS = rows("shares")
CLAIMS = rows("devices")


def queue(name: str, cell: str) -> tuple[Json, int]:
    """The queue that a cell describes, and its demand in cores."""
    guaranteed, weight, limit, demand = cell.split(", ")
    cpu = {"guaranteed": guaranteed} | ({} if limit == "-" else {"limit": limit})
    return queue_manifest(name, weight=int(weight), resources={"cpu": cpu}), int(demand)


def test_there_are_examples() -> None:
    assert (len(ROWS), len(CLAIMS)) == (7, 5)


@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0]}; {row[1]}" for row in ROWS])
def test_shares(row: list[str]) -> None:
    (a, wants_a), (b, wants_b) = queue("a", row[0]), queue("b", row[1])
    there = Divided(a, b, cores=100)
    for name, count in (("a", wants_a), ("b", wants_b)):
        for number in range(count):
            there.wait(make_pod(f"{name}{number}", name))
    assert [round(there.fair(name), 2) for name in ("a", "b")] == [float(row[2]), float(row[3])]


def request(number: int, words: str) -> Json:
    """What a part of a claim asks for, in the words of the page."""
    name = f"r{number}"
    if "first that is there" in words:
        several = words.partition(": ")[2].split(", or ")
        return one_of(name, *(_alternative(f"a{at}", each) for at, each in enumerate(several)))
    count, of = _wanted(words.removeprefix("for an admin, "))
    access: Json = {"adminAccess": True} if words.startswith("for an admin") else {}
    return asking(name, count, of=of, **access)


def _alternative(name: str, words: str) -> Json:
    count, of = _wanted(words)
    return alternative(name, count, of=of)


def _wanted(words: str) -> tuple[int | None, str]:
    count, _, of = words.partition(" of ")
    return None if count == "all" else int(count), of


@pytest.mark.parametrize("row", CLAIMS, ids=[row[0] for row in CLAIMS])
def test_claims(row: list[str]) -> None:
    parts = row[0].replace("and, for an admin", "and for an admin").split(" and ")
    there = Divided(queue_manifest("a"))
    there.put(make_claim("shop/c", *(request(number, part) for number, part in enumerate(parts))))
    there.run(make_pod("p", "a", claims=["c"]))
    usage = there.ledger.tree.shares["a"].usage
    assert [usage.get(name + DEVICES, 0) for name in ("gpu", "nic")] == [int(row[1]), int(row[2])]
