"""Decisions of a simulation as lines of a decisions file, epoch 0."""

from typing import Any

import msgspec

from dsched.scheduler.decision import Decision, GroupDecision, by_pod, decision_line

EPOCH = 0
"""Of simulations: no leader ever has it."""


class DecisionLines:
    """Gathers decisions.

    Attributes:
        seed: of the choice among equals.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._lines: list[dict[str, Any]] = []

    def hear(self, decided: Decision | GroupDecision, table_version: int) -> None:
        """Take a decision in; of a group a line a pod."""
        for decision in by_pod([decided]):
            self._lines.append(decision_line(decision, len(self._lines) + 1, EPOCH, table_version, self.seed))

    def encoded(self) -> bytes:
        """All lines."""
        return msgspec.json.Encoder().encode_lines(self._lines)
