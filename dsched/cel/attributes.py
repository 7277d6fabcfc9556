"""Chains such as ``device.attributes['x'].?y[i]``: a root, and what is picked out of it step by step.

They are evaluated, and charged for, as a whole: a unit for the chain and one for each step that is taken.
cel-go: ``interpreter/attributes.go``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from dsched.cel.frame import Frame
from dsched.cel.values import NO_OVERLOAD, NONE, Failure, MapValue, Optional, UInt, runtime_type

Run = Callable[[Frame], Any]
ABSENT = object()
"""What a step that only looks whether there is something finds where there is nothing."""


class Attribute(Protocol):
    """A chain that further steps may be put to."""

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
