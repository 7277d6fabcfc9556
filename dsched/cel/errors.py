"""What can be wrong with an expression, and with evaluating one."""

from typing import Literal

from dsched.errors import DschedError


class CompileError(DschedError):
    """An expression that cannot be used.

    Attributes:
        kind: ``compile`` (no CEL, or unknown names and types), or ``type`` (well formed, but its result is no bool).
    """

    def __init__(self, text: str, kind: Literal["compile", "type"] = "compile") -> None:
        super().__init__(text)
        self.kind = kind


class NoProgram(CompileError):
    """An expression of which no program can be made, though its types are right."""


class EvaluationError(DschedError):
    """An expression that failed on what it was given.

    Attributes:
        kind: ``runtime``, or ``cost`` (it took more than its share of units).
    """

    def __init__(self, text: str, kind: Literal["runtime", "cost"] = "runtime") -> None:
        super().__init__(text)
        self.kind = kind


class CostExceeded(Exception):
    """More units than the limit allows: ends an evaluation, whatever operators stand above."""
