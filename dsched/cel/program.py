"""A compiled expression."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dsched.cel import checker, parser, planner
from dsched.cel.environment import Environment, environment
from dsched.cel.errors import CompileError, CostExceeded, EvaluationError, NoProgram
from dsched.cel.interpreter import Frame
from dsched.cel.planner import Planned
from dsched.cel.types import Type
from dsched.cel.values import Failure

NEWEST = 37
MAX_COST = 1_000_000
"""Units that evaluating a device's selector may take (``resource.k8s.io``, ``CELSelectorExpressionMaxCost``)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Attributes:
    cost: units spent.
    """

    value: Any
    cost: int


class Program:
    """An expression that compiled.

    Attributes:
        type: of its result.
    """

    def __init__(self, expression: str, type: Type, planned: Planned, variables: tuple[str, ...]) -> None:
        self.expression = expression
        self.type = type
        self._planned = planned
        self._variables = variables

    def evaluate(self, variables: Mapping[str, Any], limit: int = MAX_COST) -> Outcome:
        """The result for values of the variables.

        Raises:
            EvaluationError: it failed, or took more than ``limit`` units.
        """
        values = [variables[name] for name in self._variables]
        values += [None] * (self._planned.slots - len(values))
        frame = Frame(values, limit)
        try:
            found = self._planned.run(frame)
        except CostExceeded as error:
            raise EvaluationError("operation cancelled: actual cost limit exceeded", "cost") from error
        if type(found) is Failure:
            raise EvaluationError(found.text)
        return Outcome(found, frame.cost)


def compile(expression: str, variables: Mapping[str, Type] | None = None, minor: int = NEWEST) -> Program:
    """Compiles an expression.

    Args:
        variables: names and types of what `Program.evaluate` will be given.
        minor: of the Kubernetes whose functions and costs count: 34 is 1.34.

    Raises:
        CompileError: it does not compile.
    """
    return compile_in(environment(minor, variables or {}), expression)


def compile_in(where: Environment, expression: str, *results: Type) -> Program:
    """`compile` in an environment that is there already.

    Args:
        results: what the expression may evaluate to; anything where there is none.
    """
    tree = parser.parse(expression)
    found = checker.check(tree, where)
    wrong = results and found not in results
    try:
        planned = planner.plan(tree, where)
    except NoProgram:
        if not wrong:  # which is told first
            raise
    if wrong:
        raise CompileError(f"must evaluate to {results[0]} or the unknown type, not {found}", "type")
    return Program(expression, found, planned, tuple(where.variables))
