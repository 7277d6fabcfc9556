"""Decisions as lines."""

import json

from dsched.simulation.outcome import DecisionLines
from tests.builders import make_node, make_pod
from tests.unit.simulation.worlds import Told


def test_lines_tell_what_was_decided() -> None:
    told = Told([make_node("n1"), make_node("n2")], [make_pod("shop/a"), make_pod("shop/big", cpu=99)])
    lines = DecisionLines(seed=7)
    for version, decision in enumerate(told.decisions):
        lines.hear(decision, version)
    placed, not_placed = (json.loads(line) for line in lines.encoded().splitlines())
    assert placed == {
        "sequence": 1,
        "epoch": 0,
        "pod": "shop/a",
        "uid": "uid-a",
        "attempt": 1,
        "tableVersion": 0,
        "seed": 7,
        "node": placed["node"],
        "best": ["n1", "n2"],
    }
    assert (not_placed["sequence"], not_placed["tableVersion"]) == (2, 1)
    assert not_placed["diagnosis"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
