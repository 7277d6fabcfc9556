"""What is written as a call and means a loop, a test or a name for a value.

cel-go: ``parser/macro.go``, ``ext/comprehensions.go``, ``ext/bindings.go``, ``cel/library.go``, ``ext/lists.go``.
"""

from collections.abc import Callable

from dsched.cel.errors import CompileError
from dsched.cel.syntax import Call, Comprehension, Ident, ListLiteral, Literal, MapLiteral, Node, Select

ACCU = "@result"
"""Where a loop keeps its result; no name that an expression can write."""

_SORT_INPUT = "@__sortBy_input__"

Macro = Callable[[int, "Node | None", list[Node]], "Node | None"]


def expanded(at: int, name: str, target: Node | None, args: list[Node]) -> Node | None:
    """What a call stands for; None where it is no macro.

    Raises:
        CompileError: a macro that is written wrongly.
    """
    macro = _MACROS.get((name, target is not None, len(args)))
    return None if macro is None else macro(at, target, args)


def _variable(node: Node) -> str:
    if not isinstance(node, Ident):
        raise CompileError(f"character {node.at}: argument must be a simple name")
    if node.name in (ACCU, "__result__"):
        raise CompileError(f"character {node.at}: iteration variable overwrites accumulator variable")
    return node.name


def _variables(args: list[Node]) -> tuple[str, str]:
    first, second = _variable(args[0]), _variable(args[1])
    if first == second:
        raise CompileError(f"character {args[1].at}: duplicate variable name: {first}")
    return first, second


def _accu(at: int) -> Ident:
    return Ident(at, ACCU)


def _loop(
    at: int, source: Node | None, names: tuple[str, str], init: Node, condition: Node, step: Node, result: Node
) -> Node:
    assert source is not None  # macros of this kind are methods
    return Comprehension(at, source, names[0], names[1], ACCU, init, condition, step, result)


def _names(args: list[Node], two: bool) -> tuple[str, str]:
    return _variables(args) if two else (_variable(args[0]), "")


def _all(two: bool) -> Macro:
    def expand(at: int, target: Node | None, args: list[Node]) -> Node:
        condition = Call(at, "@not_strictly_false", None, [_accu(at)])
        step = Call(at, "_&&_", None, [_accu(at), args[-1]])
        return _loop(at, target, _names(args, two), Literal(at, True), condition, step, _accu(at))

    return expand


def _exists(two: bool) -> Macro:
    def expand(at: int, target: Node | None, args: list[Node]) -> Node:
        condition = Call(at, "@not_strictly_false", None, [Call(at, "!_", None, [_accu(at)])])
        step = Call(at, "_||_", None, [_accu(at), args[-1]])
        return _loop(at, target, _names(args, two), Literal(at, False), condition, step, _accu(at))

    return expand


def _exists_one(two: bool) -> Macro:
    def expand(at: int, target: Node | None, args: list[Node]) -> Node:
        more = Call(at, "_+_", None, [_accu(at), Literal(at, 1)])
        step = Call(at, "_?_:_", None, [args[-1], more, _accu(at)])
        result = Call(at, "_==_", None, [_accu(at), Literal(at, 1)])
        return _loop(at, target, _names(args, two), Literal(at, 0), Literal(at, True), step, result)

    return expand


def _if(at: int, condition: Node | None, step: Node) -> Node:
    return step if condition is None else Call(at, "_?_:_", None, [condition, step, _accu(at)])


def _transform_list(two: bool) -> Macro:
    """``map`` and ``transformList``, with and without a condition."""

    def expand(at: int, target: Node | None, args: list[Node]) -> Node:
        condition = args[-2] if len(args) == (4 if two else 3) else None
        step = Call(at, "_+_", None, [_accu(at), ListLiteral(at, [args[-1]])])
        names = _names(args, two)
        return _loop(at, target, names, ListLiteral(at, []), Literal(at, True), _if(at, condition, step), _accu(at))

    return expand


def _filter(at: int, target: Node | None, args: list[Node]) -> Node:
    step = Call(at, "_+_", None, [_accu(at), ListLiteral(at, [args[0]])])
    names = _names(args, False)
    return _loop(at, target, names, ListLiteral(at, []), Literal(at, True), _if(at, args[1], step), _accu(at))


def _transform_map(by_entry: bool) -> Macro:
    def expand(at: int, target: Node | None, args: list[Node]) -> Node:
        names = _variables(args)
        condition = args[2] if len(args) == 4 else None
        inserted: list[Node] = [_accu(at), args[-1]] if by_entry else [_accu(at), Ident(at, names[0]), args[-1]]
        step = Call(at, "cel.@mapInsert", None, inserted)
        return _loop(at, target, names, MapLiteral(at, []), Literal(at, True), _if(at, condition, step), _accu(at))

    return expand


def _has(at: int, target: Node | None, args: list[Node]) -> Node:
    found = args[0]
    if not isinstance(found, Select) or found.test:
        raise CompileError(f"character {found.at}: invalid argument to has() macro")
    return Select(at, found.operand, found.name, test=True)


def _let(at: int, name: str, value: Node, body: Node) -> Node:
    """``body`` with a name for a value, which is computed when it is first asked for."""
    return Comprehension(at, ListLiteral(at, []), "#unused", "", name, value, Literal(at, False), Ident(at, name), body)


def _bind(at: int, target: Node | None, args: list[Node]) -> Node | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    if not isinstance(args[0], Ident):
        raise CompileError(f"character {args[0].at}: cel.bind() variable names must be simple identifiers")
    return _let(at, args[0].name, args[1], args[2])


def _opt_map(flat: bool) -> Macro:
    def expand(at: int, target: Node | None, args: list[Node]) -> Node:
        if not isinstance(args[0], Ident):
            raise CompileError(f"character {args[0].at}: variable name must be a simple identifier")
        found = _let(at, args[0].name, Call(at, "value", target, []), args[1])
        then = found if flat else Call(at, "optional.of", None, [found])
        return Call(at, "_?_:_", None, [Call(at, "hasValue", target, []), then, Call(at, "optional.none", None, [])])

    return expand


def _sort_by(at: int, target: Node | None, args: list[Node]) -> Node:
    if isinstance(target, Literal | MapLiteral) or target is None:
        raise CompileError(
            f"character {at}: sortBy can only be applied to a list, identifier, call or select expression"
        )
    keys = _transform_list(False)(at, Ident(at, _SORT_INPUT), args)
    assert keys is not None  # that macro always expands
    return _let(at, _SORT_INPUT, target, Call(at, "@sortByAssociatedKeys", Ident(at, _SORT_INPUT), [keys]))


_MACROS: dict[tuple[str, bool, int], Macro] = {
    ("has", False, 1): _has,
    ("all", True, 2): _all(False),
    ("all", True, 3): _all(True),
    ("exists", True, 2): _exists(False),
    ("exists", True, 3): _exists(True),
    ("exists_one", True, 2): _exists_one(False),
    ("exists_one", True, 3): _exists_one(True),
    ("existsOne", True, 3): _exists_one(True),
    ("map", True, 2): _transform_list(False),
    ("map", True, 3): _transform_list(False),
    ("filter", True, 2): _filter,
    ("transformList", True, 3): _transform_list(True),
    ("transformList", True, 4): _transform_list(True),
    ("transformMap", True, 3): _transform_map(False),
    ("transformMap", True, 4): _transform_map(False),
    ("transformMapEntry", True, 3): _transform_map(True),
    ("transformMapEntry", True, 4): _transform_map(True),
    ("bind", True, 3): _bind,
    ("optMap", True, 2): _opt_map(False),
    ("optFlatMap", True, 2): _opt_map(True),
    ("sortBy", True, 2): _sort_by,
}
