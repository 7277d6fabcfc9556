"""What Python files declare: classes with their attributes and methods, and what docstrings say of them."""

import ast
import inspect
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n        .*)*)", re.MULTILINE)


@dataclass(frozen=True)
class Attribute:
    """A field or property of a class, a member of an enum, or a value of a module; ``type`` and ``value`` as in the
    code."""

    name: str
    type: str
    value: str
    meaning: str


@dataclass(frozen=True)
class Method:
    """A method or function; ``signature`` without ``self``."""

    name: str
    signature: str
    meaning: str


@dataclass(frozen=True)
class Class:
    """A class as declared; ``meaning`` is its docstring without the part about attributes."""

    name: str
    bases: tuple[str, ...]
    meaning: str
    attributes: tuple[Attribute, ...]
    methods: tuple[Method, ...]


def module(path: str) -> tuple[dict[str, Class], tuple[Attribute, ...], tuple[Method, ...]]:
    """Public classes, values and functions of a file, in its order; the path is from the root of the project."""
    body = ast.parse((ROOT / path).read_text()).body
    classes = [_class(node) for node in body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    return {found.name: found for found in classes}, _attributes(body, ""), _methods(body)


def markdown(text: str) -> str:
    """A docstring as one line of Markdown a paragraph; what it says of its source in Kubernetes is left out."""
    kept = re.split(r"\n\n?Source: |^Source: ", inspect.cleandoc(text))[0]
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in kept.replace("``", "`").split("\n\n"))


def cell(text: str) -> str:
    """Markdown as a table's cell."""
    return " ".join(text.split()).replace("|", "\\|")


def _class(node: ast.ClassDef) -> Class:
    text = ast.get_docstring(node, clean=True) or ""
    head, _, listed = text.partition("Attributes:\n")
    return Class(
        node.name,
        tuple(ast.unparse(base) for base in node.bases),
        markdown(head),
        _attributes([*node.body, *_built(node)], listed),
        _methods(node.body),
    )


def _built(node: ast.ClassDef) -> list[ast.stmt]:
    """What the constructor puts on ``self``, as if the class had declared it."""
    declared: list[ast.stmt] = []
    for method in node.body:
        if not isinstance(method, ast.FunctionDef) or method.name != "__init__":
            continue
        given = {argument.arg: argument.annotation for argument in method.args.args}
        for statement in method.body:
            match statement:
                case ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=name), annotation=kind):
                    declared.append(ast.AnnAssign(ast.Name(name), kind, None, 1))
                case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value):
                    declared.append(ast.AnnAssign(ast.Name(name), _kind(value, given), None, 1))
    return declared


def _kind(value: ast.expr, given: dict[str, ast.expr | None]) -> ast.expr:
    """The type of what an attribute is made from, as far as it is plain to see."""
    match value:
        case ast.Name(id=name) if given.get(name):
            return given[name] or value
        case ast.Call(func=kind) | ast.BoolOp(values=[_, ast.Call(func=kind)]):
            return kind
        case ast.Constant(value=constant):
            return ast.Name(type(constant).__name__)
        case _:
            return ast.Name("")


def _attributes(body: list[ast.stmt], listed: str) -> tuple[Attribute, ...]:
    """With the string that follows one, or what the docstring of the class lists."""
    described = dict(_ATTRIBUTE.findall(listed))
    found = []
    for statement, following in zip(body, [*body[1:], ast.Pass()], strict=True):
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=value):
                shown = ast.unparse(kind)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                shown = ""
            case ast.FunctionDef(name=name) if _is_property(statement):
                found.append(_property(statement))
                continue
            case _:
                continue
        match following:
            case ast.Expr(value=ast.Constant(value=str(text))):
                meaning = text
            case _:
                meaning = described.pop(name, "")
        found.append(Attribute(name, shown, ast.unparse(value) if value else "", markdown(meaning)))
    found = [attribute for attribute in found if not attribute.name.startswith("_")]
    return (*found, *(Attribute(name, "", "", markdown(text)) for name, text in described.items()))


def _is_property(node: ast.FunctionDef) -> bool:
    return bool({"property", "cached_property"} & {ast.unparse(decorator) for decorator in node.decorator_list})


def _property(node: ast.FunctionDef) -> Attribute:
    return Attribute(node.name, _returns(node), "", markdown(ast.get_docstring(node) or ""))


def _methods(body: list[ast.stmt]) -> tuple[Method, ...]:
    return tuple(
        Method(node.name, _signature(node), markdown(ast.get_docstring(node) or ""))
        for node in body
        if isinstance(node, ast.FunctionDef)
        and (not node.name.startswith("_") or node.name == "__call__")
        and not _is_property(node)
    )


def _signature(node: ast.FunctionDef) -> str:
    node.args.args = [argument for argument in node.args.args if argument.arg != "self"]
    return f"{node.name}({ast.unparse(node.args)}) -> {_returns(node)}"


def _returns(node: ast.FunctionDef) -> str:
    return "" if node.returns is None else ast.unparse(node.returns).replace("'", "")
