"""Evaluates calls: arguments, then the overload that they fit, then what it costs."""

from collections.abc import Sequence
from typing import Any

from dsched.cel.attributes import Run
from dsched.cel.cost import Cost
from dsched.cel.frame import Frame
from dsched.cel.library.declarations import Implementation, Overload
from dsched.cel.library.operators import SINGLETONS, add
from dsched.cel.values import NO_OVERLOAD, Failure, Optional, fits


def call(
    function: str, chosen: str, overloads: list[Overload], args: list[Run], units: Cost | int, lazy: bool | None = None
) -> Run:
    """What evaluates a call.

    Args:
        chosen: name of the overload that was found when the expression was compiled; empty: that is decided by values.
        lazy: whether arguments after one that failed are left out; None: as the function has it.
    """
    own = next((each for each in overloads if each.id == chosen), None)
    if function == "@not_strictly_false":
        return _not_strict(_implementation(overloads[0]), args[0], units)
    if function in SINGLETONS:
        implementation = _implementation(overloads[0])
        if len(args) == 2:
            return _binary(implementation, args[0], args[1], units)
    elif own is not None:
        implementation = _guarded(own)
    else:
        implementation = _dispatch(overloads)
    is_lazy = lazy if lazy is not None else len(args) > 1 and (own is None or own.lazy) and function not in SINGLETONS
    return _general(implementation, args, units, is_lazy, overloads[0].metered)


def _implementation(overload: Overload) -> Implementation:
    assert overload.run is not None  # only operators that the planner knows have none
    return overload.run


def _guarded(overload: Overload) -> Implementation:
    run, wanted, skipped = _implementation(overload), overload.args, int(overload.metered)

    def guarded(*values: Any) -> Any:
        for value, each in zip(values[skipped:], wanted, strict=True):
            if not fits(value, each):
                return NO_OVERLOAD
        return run(*values)

    return guarded


def _dispatch(overloads: list[Overload]) -> Implementation:
    def dispatch(*values: Any) -> Any:
        for overload in overloads:
            given = values[1:] if overload.metered else values
            if len(overload.args) == len(given) and all(map(fits, given, overload.args)):
                return _implementation(overload)(*values)
        return NO_OVERLOAD

    return dispatch


def _not_strict(implementation: Implementation, arg: Run, units: Cost | int) -> Run:
    assert isinstance(units, int)  # of loops' conditions, which always cost the same

    def run(frame: Frame) -> Any:
        found = implementation(arg(frame))
        frame.charge(units)
        return found

    return run


def _binary(implementation: Implementation, left: Run, right: Run, units: Cost | int) -> Run:
    """An operator: both sides are evaluated, also when the left one failed."""
    fixed = units if isinstance(units, int) else -1

    def run(frame: Frame) -> Any:
        one, other = left(frame), right(frame)
        if type(one) is Failure:
            found = one
        elif type(other) is Failure:
            found = other
        else:
            found = implementation(one, other)
        frame.charge(fixed if fixed >= 0 else units((one, other), found))  # type: ignore[operator]
        return found

    return run


def growing(left: Run, right: Run, units: Cost | int) -> Run:
    """``list + more`` where the list may be one of `Frame.growing`."""

    def run(frame: Frame) -> Any:
        one, other = left(frame), right(frame)
        if type(one) is Failure:
            found: Any = one
        elif type(other) is Failure:
            found = other
        elif type(other) is list and id(one) in frame.growing:
            one.extend(other)
            found = one
        else:
            found = add(one, other)
        frame.charge(units if isinstance(units, int) else units((one, other), found))
        return found

    return run


def _general(implementation: Implementation, args: Sequence[Run], units: Cost | int, lazy: bool, metered: bool) -> Run:
    fixed = units if isinstance(units, int) else -1

    def run(frame: Frame) -> Any:
        values = []
        failed: Failure | None = None
        for arg in args:
            value = arg(frame)
            values.append(value)
            if type(value) is Failure and failed is None:
                failed = value
                if lazy:
                    break
        if failed is not None and len(values) < len(args):
            return failed  # what was not evaluated to the end is not charged
        if failed is not None:
            found: Any = failed
        else:
            found = implementation(frame, *values) if metered else implementation(*values)
        frame.charge(fixed if fixed >= 0 else units(values, found))  # type: ignore[operator]
        return found

    return run


def logical_and(terms: list[Run]) -> Run:
    """False as soon as a term is, whatever failed before; a failure only if no term is false."""

    def run(frame: Frame) -> Any:
        failed: Failure | None = None
        for term in terms:
            found = term(frame)
            if found is False:
                return False
            if found is not True and failed is None:
                failed = found if type(found) is Failure else NO_OVERLOAD
        return True if failed is None else failed

    return run


def logical_or(terms: list[Run]) -> Run:
    """True as soon as a term is, whatever failed before; a failure only if no term is true."""

    def run(frame: Frame) -> Any:
        failed: Failure | None = None
        for term in terms:
            found = term(frame)
            if found is True:
                return True
            if found is not False and failed is None:
                failed = found if type(found) is Failure else NO_OVERLOAD
        return False if failed is None else failed

    return run


def optional_or(left: Run, right: Run, value: bool) -> Run:
    """``a.or(b)`` and ``a.orValue(b)``: b is only evaluated if a holds nothing. Costs nothing itself."""

    def run(frame: Frame) -> Any:
        found = left(frame)
        if type(found) is Failure:
            return found
        if type(found) is not Optional:
            return NO_OVERLOAD
        if not found.present:
            return right(frame)
        return found.value if value else found

    return run
