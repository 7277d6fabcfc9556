"""Turns a checked tree into closures that evaluate it and count what that costs.

cel-go: ``interpreter/planner.go``, ``interpreter/interpretable.go``, ``interpreter/decorators.go``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dsched.cel import cost, regex
from dsched.cel.environment import CEL_GO_0_29, Environment
from dsched.cel.errors import CompileError, NoProgram
from dsched.cel.interpreter import (
    Attribute,
    Chain,
    Choice,
    Frame,
    Run,
    Step,
    call,
    growing,
    logical_and,
    logical_or,
    optional_or,
)
from dsched.cel.library.conversions import FOLDED
from dsched.cel.library.regexes import CONSTANT_PATTERNS
from dsched.cel.regex import PatternError
from dsched.cel.syntax import Call, Comprehension, Ident, ListLiteral, Literal, MapLiteral, Message, Node, Select
from dsched.cel.values import INT_MAX, INT_MIN, UINT_MAX, Failure, MapValue, Optional, UInt, is_key, key_of

MAX_DEPTH = 300
"""How deep an expression may be nested. cel-go's grammar allows a little more in contrived expressions; here each level
is a Python call."""

_UNSET = object()
_IN_SETS = frozenset((str, int, UInt, float, bool))


@dataclass(frozen=True, slots=True)
class Constant:
    value: Any


Plan = Constant | Chain | Choice | Run
"""A part of an expression: a constant, a chain that may go on, or what evaluates it."""


@dataclass(frozen=True, slots=True)
class Planned:
    """Attributes:
    run: evaluates the expression.
    slots: how many variables it has, those of the environment first.
    """

    run: Run
    slots: int


def plan(tree: Node, environment: Environment) -> Planned:
    """What evaluates a checked expression.

    Raises:
        NoProgram: a constant that cannot be converted, or a pattern that is none.
        CompileError: a time, a duration or a pattern that is none, or nested too deeply.
    """
    planner = _Planner(environment)
    run = planner.run_of(tree)
    return Planned(run, planner.slots)


class _Planner:
    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._names = {name: slot for slot, name in enumerate(environment.variables)}
        self._lazy: dict[int, Run] = {}
        self._depth = 0
        self.slots = len(self._names)
        self._by_kind: dict[type, Callable[[Any], Plan]] = {
            Literal: lambda node: Constant(node.value),
            Ident: self._ident,
            Select: self._select,
            Call: self._call,
            ListLiteral: self._list,
            MapLiteral: self._map,
            Message: self._message,
            Comprehension: self._comprehension,
        }

    def run_of(self, node: Node) -> Run:
        """What evaluates a part, with all that it costs."""
        return _runnable(self._plan(node))

    def _plan(self, node: Node) -> Plan:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise CompileError(f"expression is nested too deeply: limit {MAX_DEPTH}")
        found = self._by_kind[type(node)](node)
        self._depth -= 1
        return found

    def _ident(self, node: Ident) -> Plan:
        if node.value is not None:
            return Constant(node.value)
        return Chain(self._variable(node.name.removeprefix(".")))

    def _variable(self, name: str) -> Run:
        slot = self._names[name]
        initial = self._lazy.get(slot)
        if initial is None:
            return lambda frame: frame.values[slot]

        def run(frame: Frame) -> Any:
            value = frame.values[slot]
            if value is _UNSET:
                frame.values[slot] = value = initial(frame)
            return value

        return run

    def _select(self, node: Select) -> Plan:
        if node.ident is not None:
            return self._ident(node.ident)
        chain = self._chain(node.operand)
        chain.append(Step(node.name, test=node.test))
        return _tested(chain) if node.test else chain

    def _chain(self, node: Node) -> Chain | Choice:
        found = self._plan(node)
        return found if isinstance(found, Chain | Choice) else Chain(_runnable(found))

    def _call(self, node: Call) -> Plan:
        function = node.function
        if function in ("_[_]", "_[?_]", "_?._"):
            return self._index(node)
        if function == "_?_:_":
            return Choice(self.run_of(node.args[0]), self._branch(node.args[1]), self._branch(node.args[2]))
        given = [*([node.target] if node.target is not None else []), *node.args]
        if function in ("_&&_", "_||_"):
            terms = [self.run_of(each) for each in given]
            return logical_and(terms) if function == "_&&_" else logical_or(terms)
        plans = [self._plan(each) for each in given]
        if function in ("or", "orValue"):
            left, right = map(_runnable, plans)
            lenient = self._environment.minor < CEL_GO_0_29
            return optional_or(left, right, value=function == "orValue", lenient=lenient)
        return self._function(node, plans)

    def _branch(self, node: Node) -> Attribute:
        found = self._plan(node)
        return found if isinstance(found, Chain | Choice) else Chain(_runnable(found))

    def _index(self, node: Call) -> Plan:
        chain = self._chain(node.args[0])
        index = self._plan(node.args[1])
        optional = node.function != "_[_]"
        if isinstance(index, Constant):
            chain.append(Step(index.value, optional=optional))
        elif isinstance(index, Chain | Choice):
            chain.append(Step(computed=index.resolver(), optional=optional))
        else:
            chain.append(Step(computed=index, optional=optional))
        return chain

    def _function(self, node: Call, plans: list[Plan]) -> Plan:
        function = node.function
        units = cost.of(function, node.overload, self._environment.minor)
        overloads = self._environment.functions[function]
        constants = [each.value for each in plans if isinstance(each, Constant)]
        if function == "@in" and node.overload == "in_list" and isinstance(plans[1], Constant):
            members = plans[1].value
            if not members:
                return Constant(False)
            if all(type(each) in _IN_SETS for each in members):
                return _membership(_runnable(plans[0]), members)
        if function == "matches":
            self._validate_pattern(node)
        lazy = None
        if function in CONSTANT_PATTERNS and isinstance(plans[1], Constant):
            lazy = True
            try:
                regex.compile(plans[1].value)
            except PatternError as error:
                raise NoProgram(f"program instantiation failed: {error}") from error
        if function == "_+_" and isinstance(node.args[0], Ident) and self._names.get(node.args[0].name) in self._lazy:
            return growing(_runnable(plans[0]), _runnable(plans[1]), units)
        run = call(function, node.overload, overloads, [_runnable(each) for each in plans], units, lazy)
        if function in FOLDED and len(plans) == len(constants) == 1:
            found = run(Frame([], 10**9))
            if type(found) is Failure:
                if function in ("timestamp", "duration") and isinstance(node.args[0], Literal):
                    raise CompileError(f"invalid {function} argument")
                raise NoProgram(f"program instantiation failed: {found.text}")
            return Constant(found)
        return run

    def _validate_pattern(self, node: Call) -> None:
        """The first argument: that of ``matches(text, pattern)`` is the text, which upstream takes for a pattern.

        cel-go: ``cel/validator.go`` ``ValidateRegexLiterals``.
        """
        first = node.args[0]
        if isinstance(first, Literal) and isinstance(first.value, str):
            try:
                regex.compile(first.value)
            except PatternError as error:
                raise CompileError("invalid matches argument") from error

    def _list(self, node: ListLiteral) -> Plan:
        plans = [self._plan(each) for each in node.elements]
        optional = node.optional
        runs = [_runnable(each) for each in plans]

        def run(frame: Frame) -> Any:
            found = []
            for at, element in enumerate(runs):
                value = element(frame)
                if type(value) is Failure:
                    return _charged(frame, cost.LIST, value)
                if at in optional:
                    if type(value) is not Optional:
                        return _charged(
                            frame, cost.LIST, Failure("cannot initialize optional list element from non-optional value")
                        )
                    if not value.present:
                        continue
                    value = value.value
                found.append(value)
            return _charged(frame, cost.LIST, found)

        constant = all(isinstance(each, Constant) for each in plans)
        return Constant(run(Frame([], cost.LIST))) if constant and not optional else run

    def _map(self, node: MapLiteral) -> Plan:
        plans = [(self._plan(key), self._plan(value), optional) for key, value, optional in node.entries]
        runs = [(_runnable(key), _runnable(value), optional) for key, value, optional in plans]

        def run(frame: Frame) -> Any:
            return _charged(frame, cost.MAP, _entries(frame, runs))

        constant = all(isinstance(key, Constant) and isinstance(value, Constant) for key, value, _ in plans)
        if constant and not any(optional for _, _, optional in plans):
            found = run(Frame([], cost.MAP))
            if type(found) is Failure:
                raise NoProgram(f"program instantiation failed: {found.text}")
            return Constant(found)
        return run

    def _message(self, node: Message) -> Plan:
        raise CompileError(f"unknown type: {node.name}")  # the checker has refused it before

    def _comprehension(self, node: Comprehension) -> Plan:
        initial = self.run_of(node.init)
        source = self.run_of(node.source)
        before = dict(self._names)
        accu = self._slot(node.accu)
        self._lazy[accu] = _fresh(initial)
        with_accu = dict(self._names)
        first, second = self._slot(node.variable), self._slot(node.second) if node.second else -1
        condition, step = self.run_of(node.condition), self.run_of(node.step)
        self._names = with_accu
        result = self.run_of(node.result)
        self._names = before
        return _loop(_Loop(source, accu, first, second, condition, step, result))

    def _slot(self, name: str) -> int:
        slot = self.slots
        self.slots += 1
        self._names[name] = slot
        return slot


def _runnable(found: Plan) -> Run:
    if isinstance(found, Constant):
        value = found.value
        return lambda frame: value
    if isinstance(found, Chain | Choice):
        return _charging(found)
    return found


def _charging(chain: Attribute) -> Run:
    resolve = chain.resolver()
    if chain.conditional:
        return resolve

    def run(frame: Frame) -> Any:
        value = resolve(frame)
        frame.charge(1)
        return value

    return run


def _tested(chain: Attribute) -> Run:
    """``has()``: the unit of the chain is not charged; behind a condition, which has none, one is even given back."""
    resolve = chain.resolver()

    def run(frame: Frame) -> Any:
        value = resolve(frame)
        if chain.conditional:
            frame.cost -= 1
        return value.present if type(value) is Optional else value

    return run


def _charged(frame: Frame, units: int, value: Any) -> Any:
    frame.charge(units)
    return value


def _membership(value: Run, members: list[Any]) -> Run:
    """``value in members`` of constants, which are looked up and not charged for."""
    found = {key_of(each) for each in members}
    for each in members:
        found |= {key_of(same) for same in _converted(each)}

    def run(frame: Frame) -> Any:
        looked_for = value(frame)
        return looked_for if type(looked_for) is Failure else key_of(looked_for) in found

    return run


def _converted(number: Any) -> list[Any]:
    """A number as the other types of numbers, as far as they hold it; doubles may lose digits."""
    kind = type(number)
    if kind not in (int, UInt, float) or (kind is float and not number.is_integer()):
        return []
    whole = int(number)
    found: list[Any] = [] if kind is float else [float(whole)]
    if kind is not int and INT_MIN <= whole <= INT_MAX:
        found.append(whole)
    if kind is not UInt and 0 <= whole <= UINT_MAX:
        found.append(UInt(whole))
    return found


def _entries(frame: Frame, runs: list[tuple[Run, Run, bool]]) -> Any:
    found: dict[Any, Any] = {}
    for key_run, value_run, optional in runs:
        key = key_run(frame)
        if type(key) is Failure:
            return key
        value = value_run(frame)
        if type(value) is Failure:
            return value
        if not is_key(key):
            return Failure("unsupported key type")
        if optional:
            if type(value) is not Optional:
                return Failure(f"cannot initialize optional entry '{key}' from non-optional value")
            if not value.present:
                found.pop(key_of(key), None)
                continue
            value = value.value
        found[key_of(key)] = value
    return MapValue(found)


def _fresh(initial: Run) -> Run:
    """A loop's result to begin with: a list or map that is empty is made anew, for the steps add to it in place."""

    def run(frame: Frame) -> Any:
        value = initial(frame)
        if type(value) is list and not value:
            grown: list[Any] = []
            frame.growing[id(grown)] = grown
            return grown
        if type(value) is MapValue and not len(value):
            return MapValue({}, value.default)
        return value

    return run


@dataclass(frozen=True, slots=True)
class _Loop:
    source: Run
    accu: int
    first: int
    second: int
    condition: Run
    step: Run
    result: Run


def _done(frame: Frame, value: Any) -> Any:
    """The result of a loop, which does not grow any more."""
    if frame.growing:
        frame.growing.pop(id(value), None)
    return value


def _loop(parts: _Loop) -> Run:
    source, condition, step, result = parts.source, parts.condition, parts.step, parts.result
    accu, first, second = parts.accu, parts.first, parts.second

    def run(frame: Frame) -> Any:
        values = frame.values
        values[accu] = _UNSET
        found = source(frame)
        kind = type(found)
        if kind is Failure:
            return found
        if kind is not list and kind is not MapValue:
            return Failure("expected iterable type")
        if second < 0:
            for element in found:
                values[first] = element
                going = condition(frame)
                if going is False:
                    break
                values[accu] = step(frame)
            return _done(frame, result(frame))
        pairs = enumerate(found) if kind is list else ((key, found.get(key)[0]) for key in found)
        for values[first], values[second] in pairs:
            if condition(frame) is False:
                break
            values[accu] = step(frame)
        return _done(frame, result(frame))

    return run
