"""Reads an expression into its tree.

The grammar is CEL's (cel-go: ``parser/gen/CEL.g4``, ``parser/parser.go``). Each rule is a generator that yields the
rules it needs and gets back what they found, so that deep nesting costs heap and not Python's stack.
"""

from collections.abc import Generator
from typing import Any

from dsched.cel import macros
from dsched.cel.errors import CompileError
from dsched.cel.lexer import KEYWORDS, RESERVED, Token, double, signed, tokens
from dsched.cel.syntax import Call, Ident, ListLiteral, Literal, MapLiteral, Message, Node, Select

MAX_NESTING = 250
"""How often a rule may stand within itself, as in cel-go: parentheses, members in a chain, sums of sums."""

Rule = Generator["Rule", Any, Any]

_RELATIONS = {each: f"_{each}_" for each in ("==", "!=", "<", "<=", ">", ">=")} | {"in": "@in"}
_SUMS = {each: f"_{each}_" for each in "+-"}
_PRODUCTS = {each: f"_{each}_" for each in "*/%"}


def parse(source: str) -> Node:
    """The tree of an expression, with macros expanded.

    Raises:
        CompileError: no expression of CEL, or nested too deeply.
    """
    parser = _Parser(tokens(source))
    tree: Node = _run(parser.expression())
    parser.expect("end")
    return tree


def _run(rule: Rule) -> Any:
    stack, value = [rule], None
    while stack:
        try:
            inner = stack[-1].send(value)
        except StopIteration as done:
            stack.pop()
            value = done.value
        else:
            stack.append(inner)
            value = None
    return value


class _Parser:
    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._at = 0
        self._nested = 0

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _is(self, *texts: str) -> bool:
        token = self._next
        return token.kind in ("operator", "name") and token.text in texts

    def _take(self) -> Token:
        token = self._next
        self._at += 1
        return token

    def _took(self, text: str) -> bool:
        if self._is(text):
            self._at += 1
            return True
        return False

    def expect(self, wanted: str) -> Token:
        """Takes the next token, which has to be this operator, or of this kind (``end``, ``name``).

        Raises:
            CompileError: it is another one.
        """
        token = self._next
        if wanted in ("end", "name"):
            fits = token.kind == wanted and token.text not in ("in", *KEYWORDS)
        else:
            fits = self._is(wanted)
        if not fits:
            raise self._unexpected(wanted)
        return self._take()

    def _unexpected(self, wanted: str) -> CompileError:
        token = self._next
        return CompileError(f"Syntax error at character {token.at}: found {token.text[:40]!r}, expected {wanted}")

    def _limit(self, depth: int) -> None:
        if depth > MAX_NESTING:
            raise CompileError(f"expression recursion limit exceeded: {MAX_NESTING}")

    def expression(self) -> Rule:
        """``a ? b : c``, or what binds tighter."""
        self._nested += 1
        self._limit(self._nested)
        found = yield self._logic("||", "_||_")
        if self._is("?"):
            at = self._take().at
            then = yield self._logic("||", "_||_")
            self.expect(":")
            otherwise = yield self.expression()
            found = Call(at, "_?_:_", None, [found, then, otherwise])
        self._nested -= 1
        return found

    def _logic(self, operator: str, function: str) -> Rule:
        """Terms joined by ``||`` or ``&&``: one call, however many there are."""
        terms = [(yield self._logic("&&", "_&&_") if operator == "||" else self._relation())]
        at = self._next.at
        while self._took(operator):
            terms.append((yield self._logic("&&", "_&&_") if operator == "||" else self._relation()))
        return terms[0] if len(terms) == 1 else Call(at, function, None, terms)

    def _relation(self) -> Rule:
        return (yield self._joined(_RELATIONS, self._sum))

    def _sum(self) -> Rule:
        return (yield self._joined(_SUMS, self._product))

    def _product(self) -> Rule:
        return (yield self._joined(_PRODUCTS, self._unary))

    def _joined(self, operators: dict[str, str], operand: Any) -> Rule:
        """Operands joined by operators of one rank, from left to right."""
        found = yield operand()
        depth = 1
        while self._is(*operators):
            depth += 1
            self._limit(depth)
            token = self._take()
            found = Call(token.at, operators[token.text], None, [found, (yield operand())])
        return found

    def _unary(self) -> Rule:
        token = self._next
        if not self._is("!", "-"):
            return (yield self._member())
        if token.text == "-" and self._tokens[self._at + 1].kind in ("int", "double"):
            return (yield self._member())  # a sign of the number
        count = 0
        while self._took(token.text):
            count += 1
        operand = yield self._member()
        if count % 2 == 0:
            return operand
        return Call(token.at, "!_" if token.text == "!" else "-_", None, [operand])

    def _member(self) -> Rule:
        found = yield self._primary()
        depth = 1
        while self._is(".", "["):
            depth += 1
            self._limit(depth)
            token = self._take()
            optional = self._took("?")
            if token.text == "[":
                index = yield self.expression()
                self.expect("]")
                found = Call(token.at, "_[?_]" if optional else "_[_]", None, [found, index])
                continue
            quoted = self._next.kind == "quoted"
            name = self._field()
            if not optional and not quoted and self._is("("):
                at = self._take().at
                args = yield self._arguments()
                found = macros.expanded(at, name, found, args) or Call(at, name, found, args)
            elif optional:
                found = Call(token.at, "_?._", None, [found, Literal(token.at, name)])
            else:
                found = Select(token.at, found, name)
        return found

    def _field(self) -> str:
        if self._next.kind == "quoted":
            return self._take().text[1:-1]
        return self.expect("name").text

    def _arguments(self) -> Rule:
        args: list[Node] = []
        if not self._took(")"):
            args.append((yield self.expression()))
            while self._took(","):
                args.append((yield self.expression()))
            self.expect(")")
        return args

    def _primary(self) -> Rule:
        token = self._next
        if self._took("("):
            found = yield self.expression()
            self.expect(")")
            return found
        if self._took("["):
            return (yield self._list(token.at))
        if self._took("{"):
            return (yield self._map(token.at))
        if self._is(".") or (token.kind == "name" and token.text not in KEYWORDS and token.text != "in"):
            return (yield self._name())
        return self._literal()

    def _literal(self) -> Literal:
        token = self._take()
        if token.kind == "name" and token.text in KEYWORDS:
            return Literal(token.at, KEYWORDS[token.text])
        if token.kind in ("text", "uint"):
            return Literal(token.at, token.value)
        sign = ""
        if token.text == "-" and self._next.kind in ("int", "double"):
            sign, token = "-", self._take()
        if token.kind == "int":
            return Literal(token.at, signed(sign + token.text, token.at))
        if token.kind == "double":
            return Literal(token.at, double(sign + token.text, token.at))
        self._at -= 1
        raise self._unexpected("an operand")

    def _name(self) -> Rule:
        """A variable, a function's call, or a message."""
        start = self._next.at
        dot = "." if self._took(".") else ""
        name = self.expect("name").text
        message = self._message_ahead()
        if message:
            return (yield self._message(start, dot + name))
        if name in RESERVED:
            raise CompileError(f"reserved identifier: {name}")
        if self._is("("):
            at = self._take().at
            args = yield self._arguments()
            return macros.expanded(at, dot + name, None, args) or Call(at, dot + name, None, args)
        return Ident(start, dot + name)

    def _message_ahead(self) -> bool:
        """Whether ``.name.name{`` follows, so that all of it is a message's type."""
        at = self._at
        while self._tokens[at].text == "." and self._tokens[at + 1].kind == "name":
            at += 2
        return self._tokens[at].kind == "operator" and self._tokens[at].text == "{"

    def _message(self, at: int, name: str) -> Rule:
        while self._took("."):
            name += "." + self.expect("name").text
        self.expect("{")
        fields: list[tuple[str, Node, bool]] = []
        while not self._is("}"):
            optional = self._took("?")
            field = self._field()
            self.expect(":")
            fields.append((field, (yield self.expression()), optional))
            if not self._took(","):
                break
        self.expect("}")
        return Message(at, name, fields)

    def _list(self, at: int) -> Rule:
        elements: list[Node] = []
        optional: set[int] = set()
        while not self._is("]"):
            if not elements and self._took(","):
                break
            if self._took("?"):
                optional.add(len(elements))
            elements.append((yield self.expression()))
            if not self._took(","):
                break
        self.expect("]")
        return ListLiteral(at, elements, frozenset(optional))

    def _map(self, at: int) -> Rule:
        entries: list[tuple[Node, Node, bool]] = []
        while not self._is("}"):
            if not entries and self._took(","):
                break
            optional = self._took("?")
            key = yield self.expression()
            self.expect(":")
            entries.append((key, (yield self.expression()), optional))
            if not self._took(","):
                break
        self.expect("}")
        return MapLiteral(at, entries)
