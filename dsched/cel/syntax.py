"""The tree that parser and macros make, the checker annotates and the planner reads."""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dsched.cel.types import Type


@dataclass(slots=True, eq=False)
class _Node:
    """Attributes:
    at: offset into the text, in characters.
    type: what the checker found; None before.
    """

    at: int
    type: Type | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class Literal(_Node):
    value: Any


@dataclass(slots=True, eq=False)
class Ident(_Node):
    """A variable or a type's name; ``value`` is the type where it names one."""

    name: str
    value: Any = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class Select(_Node):
    """``operand.name``, or with ``test`` ``has(operand.name)``.

    Attributes:
        ident: what the checker puts in its place where the whole is a qualified name.
    """

    operand: "Node"
    name: str
    test: bool = False
    ident: Ident | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class Call(_Node):
    """A function, a method (``target``) or an operator, named as in CEL's syntax trees (``_+_``).

    Attributes:
        overload: the only overload that fits; empty where several may, which is decided by the values then.
    """

    function: str
    target: "Node | None"
    args: list["Node"]
    overload: str = field(default="", init=False)


@dataclass(slots=True, eq=False)
class ListLiteral(_Node):
    """Attributes:
    optional: places of the elements that are written ``?element``.
    """

    elements: list["Node"]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class MapLiteral(_Node):
    """Attributes:
    entries: key, value, whether it is written ``?key``.
    """

    entries: list[tuple["Node", "Node", bool]]


@dataclass(slots=True, eq=False)
class Message(_Node):
    """``name{field: value}``; no environment of dsched has messages, so the checker refuses it."""

    name: str
    fields: list[tuple[str, "Node", bool]]


@dataclass(slots=True, eq=False)
class Comprehension(_Node):
    """The loop that macros become: ``accu`` starts as ``init``; for each element while ``condition``, it becomes
    ``step``; the value of the whole is ``result``. With ``second``, the variables are index and element, or key and
    value.
    """

    source: "Node"
    variable: str
    second: str
    accu: str
    init: "Node"
    condition: "Node"
    step: "Node"
    result: "Node"


Node: TypeAlias = Literal | Ident | Select | Call | ListLiteral | MapLiteral | Message | Comprehension


def children(node: Node) -> list[Node]:
    """The parts of a node."""
    if isinstance(node, Select):
        return [] if node.ident is not None else [node.operand]
    if isinstance(node, Call):
        return [*([] if node.target is None else [node.target]), *node.args]
    if isinstance(node, ListLiteral):
        return list(node.elements)
    if isinstance(node, MapLiteral):
        return [part for key, value, _ in node.entries for part in (key, value)]
    if isinstance(node, Message):
        return [value for _, value, _ in node.fields]
    if isinstance(node, Comprehension):
        return [node.source, node.init, node.condition, node.step, node.result]
    return []
