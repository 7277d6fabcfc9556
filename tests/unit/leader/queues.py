"""Stands for the queue in Redis where only the leader's memory is looked at."""

from collections.abc import Callable, Sequence
from typing import Any

from dsched.scheduler.ports import Move


class AgreeingQueue:
    """Makes every move it is asked for, and remembers them.

    Attributes:
        refuses: keys of pods whose moves it does not make.
    """

    def __init__(self) -> None:
        self.moves: list[Move] = []
        self.refuses: set[str] = set()

    def move(self, moves: Sequence[Move]) -> list[int]:
        refused = [number for number, move in enumerate(moves) if move.key in self.refuses]
        self.moves += [move for number, move in enumerate(moves) if number not in refused]
        return refused

    def move_ahead(self, moves: Sequence[Move], then: Callable[[list[int]], None]) -> int:
        then(self.move(moves))
        return 0

    def taken(self) -> list[tuple[str, str]]:
        """Pod and target of the moves since the last call."""
        moves, self.moves = self.moves, []
        return [(move.key, str(move.target)) for move in moves]


def as_queue(double: AgreeingQueue) -> Any:
    """For parameters that want the real one."""
    return double
