"""What evaluates: chains of attributes, calls, and what one evaluation keeps. The planner puts it together.

cel-go: ``interpreter/attributes.go``, ``interpreter/interpretable.go``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dsched.cel.cost import Cost
from dsched.cel.errors import CostExceeded
from dsched.cel.library.declarations import Implementation, Overload
from dsched.cel.library.operators import SINGLETONS, add
from dsched.cel.values import NO_OVERLOAD, NONE, Failure, MapValue, Optional, UInt, fits, runtime_type

MAX_STEPS = 1_000_000
"""Steps that all searches for patterns of one evaluation may take together: seconds. A pattern is charged for by its
length, as in cel-go, so that ``.{1000}`` is cheap in units."""
ABSENT = object()
"""What a step that only looks whether there is something finds where there is nothing."""


class Frame:
    """What one evaluation keeps: its variables and what it has spent.

    Attributes:
        values: of variables, each in the slot that the planner gave it.
        cost: units spent so far.
        growing: lists that began empty in a loop or a ``cel.bind``, by their identity: what is added goes into them, as
            in cel-go, so that a loop does not copy its result at each step.
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


Run = Callable[[Frame], Any]


class Attribute(Protocol):
    """A chain such as ``device.attributes['x'].?y[i]``, to which steps may be added: a root, and what is picked out
    of it step by step.

    It is evaluated, and charged for, as a whole: a unit for the chain and one for each step that is taken.
    """

    conditional: bool

    def append(self, step: "Step") -> None:
        """One more step at the end."""

    def resolver(self) -> Run:
        """What evaluates the chain, without the unit for the whole."""


@dataclass(slots=True)
class Chain:
    """Attributes:
    root: evaluates what the chain begins with.
    """

    root: Run
    steps: "list[Step]" = field(default_factory=list)
    conditional: bool = False

    def append(self, step: "Step") -> None:
        self.steps.append(step)

    def resolver(self) -> Run:
        root = self.root
        if not self.steps:
            return root
        if any(each.optional for each in self.steps):
            return _optional_chain(root, self.steps)
        taken = [each.take for each in self.steps]
        steps = self.steps

        def run(frame: Frame) -> Any:
            value = root(frame)
            if type(value) is Optional:
                return _walk(frame, value, steps)
            if type(value) is Failure:
                return value
            for take in taken:
                value = take(frame, value)
                if type(value) is Failure:
                    return value
            return value

        return run


@dataclass(slots=True)
class Choice:
    """``condition ? chain : chain``, whose branches go on with what is put to it."""

    condition: Run
    then: Attribute
    otherwise: Attribute
    conditional: bool = True

    def append(self, step: "Step") -> None:
        self.then.append(step)
        self.otherwise.append(step)

    def resolver(self) -> Run:
        condition, then, otherwise = self.condition, self.then.resolver(), self.otherwise.resolver()

        def run(frame: Frame) -> Any:
            found = condition(frame)
            if found is True:
                return then(frame)
            if found is False:
                return otherwise(frame)
            return found if type(found) is Failure else NO_OVERLOAD

        return run


@dataclass(slots=True)
class Step:
    """One step of a chain.

    Attributes:
        key: the key or index, if it is a constant.
        computed: evaluates it else.
        optional: written with ``?``.
        test: only whether there is something (``has``).
    """

    key: Any = None
    computed: Run | None = None
    optional: bool = False
    test: bool = False

    def take(self, frame: Frame, value: Any) -> Any:
        """What is there; a `Failure` if there is nothing."""
        key = self.key if self.computed is None else self.computed(frame)
        frame.charge(1)
        if type(key) is Failure:
            return key
        if self.test:
            found = select(value, key, presence=True)
            return found if type(found) is Failure else found is not ABSENT
        return select(value, key)

    def take_if_there(self, frame: Frame, value: Any) -> Any:
        """What is there; `ABSENT` if there is nothing, which costs nothing."""
        key = self.key if self.computed is None else self.computed(frame)
        if type(key) is Failure:
            return key
        found = select(value, key, presence=True)
        if found is not ABSENT and type(found) is not Failure:
            frame.charge(1)
        return found


def _optional_chain(root: Run, steps: list[Step]) -> Run:
    def run(frame: Frame) -> Any:
        value = root(frame)
        return value if type(value) is Failure else _walk(frame, value, steps)

    return run


def _walk(frame: Frame, value: Any, steps: list[Step]) -> Any:
    optional = type(value) is Optional
    if optional:
        if not value.present:
            return value
        value = value.value
    for step in steps:
        optional = optional or step.optional
        value = step.take_if_there(frame, value) if optional else step.take(frame, value)
        if type(value) is Failure:
            return value
        if value is ABSENT:
            return NONE
    return Optional(value) if optional else value


def select(value: Any, key: Any, presence: bool = False) -> Any:
    """What a map or a list has at a key.

    Returns:
        a `Failure` if there is nothing, or `ABSENT` with ``presence``.
    """
    if type(key) not in _KEYS:
        return Failure(f"invalid qualifier type: {runtime_type(key).name}")
    if type(value) is MapValue:
        found, there = value.get(key)
        if there:
            return found
    elif type(value) is list:
        index = _index(key)
        if type(index) is Failure:
            return index
        if 0 <= index < len(value):
            return value[index]
        return ABSENT if presence else Failure(f"index out of bounds: {key}")
    return ABSENT if presence else Failure(f"no such key: {key}")


_KEYS = frozenset((str, int, UInt, bool, float))


def _index(key: Any) -> Any:
    if type(key) is int or type(key) is UInt:
        return int(key)
    if type(key) is float:
        return int(key) if key.is_integer() else Failure(f"unsupported index value {key} in list")
    return Failure(f"unsupported index type '{runtime_type(key).name}' in list")


def call(
    function: str, chosen: str, overloads: list[Overload], args: list[Run], units: Cost | int, lazy: bool | None = None
) -> Run:
    """What evaluates a call: arguments, then the overload that they fit, then what it costs.
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


def optional_or(left: Run, right: Run, *, value: bool, lenient: bool) -> Run:
    """``a.or(b)`` and ``a.orValue(b)``: b is only evaluated if a holds nothing. Costs nothing itself.

    Args:
        lenient: what is no optional at all is taken as it is, as until cel-go 0.26.
    """

    def run(frame: Frame) -> Any:
        found = left(frame)
        if type(found) is Failure:
            return found
        if type(found) is not Optional:
            return found if lenient else NO_OVERLOAD
        if not found.present:
            return right(frame)
        return found.value if value else found

    return run
