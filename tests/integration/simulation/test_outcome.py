"""Lines of a simulation are a leader's."""

import json
from pathlib import Path

from dsched.leader.observers.decision_log import DecisionLog
from dsched.simulation.outcome import EPOCH, DecisionLines
from dsched.state.client import Store
from tests.builders import make_node, make_pod
from tests.unit.simulation.worlds import Told, plugin


def test_they_have_the_same_form(store: Store, tmp_path: Path) -> None:
    def fail(self: object, state: object, pod: object, node: object) -> None:
        raise RuntimeError("on fire")

    told = Told([make_node("n1"), make_node("n2")], [make_pod("shop/a"), make_pod("shop/big", cpu=99)])
    failed = Told([make_node()], [make_pod("shop/failed")], plugin(filter=fail))
    decisions = told.decisions + failed.decisions
    assert [decision.node is None for decision in decisions] == [False, True, True]
    path = tmp_path / "decisions.jsonl"
    DecisionLog(path, store, EPOCH, 5).committed(decisions, 17)
    lines = DecisionLines(5)
    for decision in decisions:
        lines.hear(decision, 17)
    assert [json.loads(line) for line in lines.encoded().splitlines()] == [
        json.loads(line) for line in path.read_text().splitlines()
    ]
