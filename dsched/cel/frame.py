"""What one evaluation keeps: its variables and what it has spent."""

from typing import Any

from dsched.cel.errors import CostExceeded


class Frame:
    """Attributes:
    values: of variables, each in the slot that the planner gave it.
    cost: units spent so far.
    """

    __slots__ = ("cost", "limit", "values")

    def __init__(self, values: list[Any], limit: int) -> None:
        self.values = values
        self.cost = 0
        self.limit = limit

    def charge(self, units: int) -> None:
        """Spends units.

        Raises:
            CostExceeded: more than the limit.
        """
        self.cost += units
        if self.cost > self.limit:
            raise CostExceeded
