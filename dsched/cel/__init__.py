"""CEL, the expression language that devices are selected with, as Kubernetes sets it up.

An evaluator of our own, with kube-scheduler's decisions about what compiles, what fails and what costs too much:
``docs/decisions/0019-own-cel-evaluator.md`` says why. Pure: text and values in, values out. `devices` has the
selectors; `program.compile` takes any expression over given variables.

An expression goes through `lexer`, `parser` (which has `macros` expanded) and `checker`; `planner` makes of it what
`interpreter` has evaluated, at a `cost`. `environment` says what it may use, of a `library` of functions; `syntax`,
`types` and `values` are what all of them work on.
"""

from dsched.cel.devices import DeviceSelector
from dsched.cel.errors import CompileError, EvaluationError
from dsched.cel.program import Program, compile

__all__ = ["CompileError", "DeviceSelector", "EvaluationError", "Program", "compile"]
