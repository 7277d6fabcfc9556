"""What one evaluation keeps: its variables and what it has spent."""

from typing import Any

from dsched.cel.errors import CostExceeded

MAX_STEPS = 1_000_000
"""Steps that all searches for patterns of one evaluation may take together: seconds. A pattern is charged for by its
length, as in cel-go, so that ``.{1000}`` is cheap in units."""


class Frame:
    """Attributes:
    values: of variables, each in the slot that the planner gave it.
    cost: units spent so far.
    growing: lists that began empty in a loop or a ``cel.bind``, by their identity: what is added goes into them, as in
        cel-go, so that a loop does not copy its result at each step.
    steps: that looking for patterns took so far.
    """

    __slots__ = ("cost", "growing", "limit", "steps", "values")

    def __init__(self, values: list[Any], limit: int) -> None:
        self.values = values
        self.cost = 0
        self.limit = limit
        self.steps = 0
        self.growing: dict[int, list[Any]] = {}

    def charge(self, units: int) -> None:
        """Spends units.

        Raises:
            CostExceeded: more than the limit.
        """
        self.cost += units
        if self.cost > self.limit:
            raise CostExceeded

    def step(self, steps: int) -> None:
        """Takes steps of a search.

        Raises:
            CostExceeded: more than `MAX_STEPS`.
        """
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise CostExceeded
