"""Finds the type of each part of an expression, and which function each call means.

cel-go: ``checker/checker.go``, ``checker/env.go``, ``cel/validator.go``.
"""

from dsched.cel import types
from dsched.cel.environment import Environment
from dsched.cel.errors import CompileError
from dsched.cel.library import formatting
from dsched.cel.library.declarations import Overload
from dsched.cel.syntax import (
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Message,
    Node,
    Select,
    children,
)
from dsched.cel.types import Bindings, Type, instantiate
from dsched.cel.values import runtime_type

_LOGIC = {"_&&_": "logical_and", "_||_": "logical_or"}


def check(tree: Node, environment: Environment) -> Type:
    """The type of an expression; writes types and overloads into its tree.

    Raises:
        CompileError: a name, field or function that does not exist, or that does not take such arguments.
    """
    checker = _Checker(environment)
    found = checker.type_of(tree)
    _validate(tree, checker.bindings)
    return checker.bindings.resolved(found, final=True)


class _Checker:
    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._scopes: list[dict[str, Type]] = [dict(environment.variables)]
        self.bindings = Bindings()
        self._by_kind = {
            Literal: self._literal,
            Ident: self._ident,
            Select: self._select,
            Call: self._call,
            ListLiteral: self._list,
            MapLiteral: self._map,
            Message: self._message,
            Comprehension: self._comprehension,
        }

    def type_of(self, node: Node) -> Type:
        """The type of a part, which is written into it."""
        found: Type = self._by_kind[type(node)](node)  # type: ignore[operator]
        node.type = found
        return found

    def _literal(self, node: Literal) -> Type:
        node.type = runtime_type(node.value)
        return node.type

    def _ident(self, node: Ident) -> Type:
        found = self._resolved(node)
        if found is None:
            raise CompileError(f"character {node.at}: undeclared reference to '{node.name}'")
        return found

    def _resolved(self, node: Ident) -> Type | None:
        """The type of a variable or of a type's name; None if nothing is called that."""
        name = node.name.removeprefix(".")
        scopes = self._scopes[:1] if node.name.startswith(".") else reversed(self._scopes)
        for scope in scopes:
            if name in scope:
                node.type = scope[name]
                return node.type
        named = self._environment.types.get(name)
        if named is not None:
            node.value = named
            node.type = types.type_of(named)
            return node.type
        return None

    def _select(self, node: Select) -> Type:
        qualified = None if node.test else _qualified_name(node)
        if qualified is not None:
            ident = Ident(node.at, qualified)
            if qualified.split(".", 1)[0] not in self._locals() and self._resolved(ident) is not None:
                node.ident = ident
                node.type = ident.type
                assert node.type is not None
                return node.type
        found = self._field(node, node.operand, node.name)
        node.type = types.BOOL if node.test else found
        return node.type

    def _locals(self) -> set[str]:
        return {name for scope in self._scopes[1:] for name in scope}

    def _field(self, node: Node, operand: Node, name: str, optional: bool = False) -> Type:
        operand_type = self.bindings.resolved(self.type_of(operand))
        target = types.unwrapped(operand_type)
        if target.kind == "map":
            found = target.parameters[1]
        elif target.kind == "struct":
            fields = dict(target.fields)
            if name not in fields:
                raise CompileError(f"character {node.at}: undefined field '{name}'")
            found = fields[name]
        elif target.kind == "param":
            self.bindings.assignable([types.DYN], [target])
            found = types.DYN
        elif target.kind == "dyn":
            found = types.DYN
        else:
            raise CompileError(f"character {node.at}: type '{target}' does not support field selection")
        found = self.bindings.resolved(found)
        return types.optional_of(found) if optional or types.is_optional(operand_type) else found

    def _call(self, node: Call) -> Type:
        if node.function == "_?._":
            name = node.args[1]
            assert isinstance(name, Literal)  # the parser writes nothing else
            node.type = self._field(node, node.args[0], name.value, optional=True)
            return node.type
        for each in node.args:
            self.type_of(each)
        prefix = None if node.target is None else _qualified_name(node.target)
        if prefix is not None and f"{prefix}.{node.function}".removeprefix(".") in self._environment.functions:
            node.function, node.target = f"{prefix}.{node.function}", None
        given = list(node.args)
        if node.target is not None:
            self.type_of(node.target)
            given.insert(0, node.target)
        node.function = node.function.removeprefix(".")
        overloads = self._environment.functions.get(node.function)
        if overloads is None:
            raise CompileError(f"character {node.at}: undeclared reference to '{node.function}'")
        node.type = self._overload(node, overloads, given)
        return node.type

    def _overload(self, node: Call, overloads: list[Overload], given: list[Node]) -> Type:
        found = [_known(each) for each in given]
        if node.function in _LOGIC:
            for each in found:
                if not self.bindings.assignable([each], [types.BOOL]):
                    raise CompileError(f"character {node.at}: expected type 'bool' but found '{each}'")
            node.overload = _LOGIC[node.function]
            return types.BOOL
        result: Type | None = None
        chosen: list[str] = []
        for overload in overloads:
            if overload.member != (node.target is not None):
                continue
            kind, *wanted = instantiate([overload.result, *overload.args], self.bindings)
            if self.bindings.assignable(found, wanted):
                chosen.append(overload.id)
                kind = self.bindings.resolved(kind)
                if result is None:
                    result = kind
                elif result.kind != "dyn" and result != kind:
                    result = types.DYN
        if result is None:
            shown = ", ".join(str(self.bindings.resolved(each, final=True)) for each in found)
            raise CompileError(
                f"character {node.at}: found no matching overload for '{node.function}' applied to '({shown})'"
            )
        node.overload = chosen[0] if len(chosen) == 1 else ""
        return result

    def _list(self, node: ListLiteral) -> Type:
        joined: Type | None = None
        for at, element in enumerate(node.elements):
            joined = self._joined(joined, self._held(element, at in node.optional))
        node.type = types.list_of(joined or self.bindings.fresh())
        return node.type

    def _map(self, node: MapLiteral) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for key, value, optional in node.entries:
            keys = self._joined(keys, self.type_of(key))
            values = self._joined(values, self._held(value, optional))
        node.type = types.map_of(keys or self.bindings.fresh(), values or self.bindings.fresh())
        return node.type

    def _held(self, node: Node, optional: bool) -> Type:
        """What an element brings into its literal: the value of an optional one."""
        found = self.type_of(node)
        if not optional:
            return found
        if not types.is_optional(found) and found.kind != "dyn":
            raise CompileError(f"character {node.at}: expected type 'optional_type({found})' but found '{found}'")
        return types.unwrapped(found)

    def _joined(self, before: Type | None, found: Type) -> Type:
        if before is None:
            return found
        return types.most_general(before, found) if self.bindings.assignable([before], [found]) else types.DYN

    def _message(self, node: Message) -> Type:
        raise CompileError(f"character {node.at}: undeclared reference to '{node.name}'")

    def _comprehension(self, node: Comprehension) -> Type:
        source = self.bindings.resolved(self.type_of(node.source))
        accu = self.type_of(node.init)
        first, second = self._elements(node, source)
        self._scopes.append({node.accu: accu})
        self._scopes.append({node.variable: first} | ({node.second: second} if node.second else {}))
        self._expect(node.condition, types.BOOL)
        self._expect(node.step, accu)
        self._scopes.pop()
        found = self.bindings.resolved(self.type_of(node.result))
        self._scopes.pop()
        node.type = found
        return found

    def _elements(self, node: Comprehension, source: Type) -> tuple[Type, Type]:
        """What the variables of a loop are."""
        if source.kind == "list":
            element = source.parameters[0]
            return (types.INT, element) if node.second else (element, types.DYN)
        if source.kind == "map":
            return source.parameters[0], source.parameters[1]
        if source.kind not in ("dyn", "param") or source == types.ANY:
            raise CompileError(
                f"character {node.at}: expression of type '{source}' cannot be range of a comprehension"
                " (must be list, map, or dynamic)"
            )
        self.bindings.assignable([types.DYN], [source])
        return types.DYN, types.DYN

    def _expect(self, node: Node, wanted: Type) -> None:
        found = self.type_of(node)
        if not self.bindings.assignable([wanted], [found]):
            raise CompileError(f"character {node.at}: expected type '{wanted}' but found '{found}'")


def _known(node: Node) -> Type:
    assert node.type is not None  # checked before
    return node.type


def _qualified_name(node: Node) -> str | None:
    """``a.b.c`` of names alone; None for anything else."""
    parts: list[str] = []
    while isinstance(node, Select) and not node.test:
        parts.append(node.name)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    return ".".join([node.name, *reversed(parts)])


def _validate(tree: Node, bindings: Bindings) -> None:
    """Looks through a checked tree for what is refused although its types fit: literals that mix types, and constant
    formats and patterns that are wrong.

    Raises:
        CompileError: something is refused.
    """
    stack = [(tree, False)]
    while stack:
        node, exempt = stack.pop()
        if isinstance(node, Call) and node.function == "format":
            exempt = True
            _format(node, bindings)
        elif isinstance(node, ListLiteral) and not exempt:
            _homogeneous([(each, at in node.optional) for at, each in enumerate(node.elements)], bindings)
        elif isinstance(node, MapLiteral) and not exempt:
            _homogeneous([(key, False) for key, _, _ in node.entries], bindings)
            _homogeneous([(value, optional) for _, value, optional in node.entries], bindings)
        stack.extend((each, exempt) for each in children(node))


def _type(node: Node, bindings: Bindings) -> Type:
    assert node.type is not None  # the checker has been here
    return bindings.resolved(node.type, final=True)


def _homogeneous(column: list[tuple[Node, bool]], bindings: Bindings) -> None:
    """Elements are of one type exactly: constants and what is only known when it runs do not mix."""
    first: Type | None = None
    for node, optional in column:
        found = _type(node, bindings)
        found = types.unwrapped(found) if optional else found
        if first is None:
            first = found
        elif first != found:
            raise CompileError(f"character {node.at}: expected type '{first}' but found '{found}'")


def _format(node: Call, bindings: Bindings) -> None:
    target = node.target
    if not isinstance(target, Literal) or not isinstance(target.value, str) or node.overload != "string_format":
        return
    args = node.args[0]
    if isinstance(args, ListLiteral):
        formatting.check(target.value, args.elements, lambda each: _type(each, bindings))
