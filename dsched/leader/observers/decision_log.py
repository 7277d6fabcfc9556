"""The decisions file: one JSON line a decision, in commit order, for comparing runs.

A decision is written after Redis has it; a leader that is killed in between leaves a gap in the file, never a line that
did not happen.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from dsched.scheduler.decision import Decision, decision_line
from dsched.scheduler.observer import Observer
from dsched.state import counters, keys
from dsched.state.client import Store


class DecisionLog(Observer):
    """Appends to a file that several leaders may share; lines are written whole."""

    def __init__(self, path: Path, store: Store, epoch: int, seed: int) -> None:
        self._path = path
        self._store = store
        self._epoch = epoch
        self._seed = seed

    def committed(self, decisions: Sequence[Decision], version: int) -> None:
        """Append them."""
        if not decisions:
            return
        last = counters.add(self._store, keys.DECISIONS, len(decisions))
        first = last - len(decisions) + 1
        written = [
            json.dumps(decision_line(decision, first + number, self._epoch, version, self._seed)) + "\n"
            for number, decision in enumerate(decisions)
        ]
        with self._path.open("a", encoding="utf-8") as file:
            file.write("".join(written))
