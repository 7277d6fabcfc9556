"""What is refused although its types fit: literals that mix types, and constant formats and patterns that are wrong.

cel-go: ``cel/validator.go``, ``ext/formatting.go``.
"""

from dsched.cel import types
from dsched.cel.errors import CompileError
from dsched.cel.library import formatting
from dsched.cel.syntax import Call, ListLiteral, Literal, MapLiteral, Node, children
from dsched.cel.types import Bindings, Type


def validate(tree: Node, bindings: Bindings) -> None:
    """Looks through a checked tree.

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
