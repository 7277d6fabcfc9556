"""Reads the Python of dsched: where scripts are called, with which expressions, and where keys are read as a whole."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import dsched
import workers

ROOTS = [Path(package.__file__ or "").parent for package in (dsched, workers)]
MAKING = "Script("
"""How a script is made; it is called by what holds it, in the same module."""


@dataclass(frozen=True)
class Site:
    """One call of a script.

    Attributes:
        arguments: the expressions of ARGV, names of the function's own replaced by what they stand for.
    """

    where: str
    script: str
    arguments: list[ast.expr]


def modules(saying: str = "") -> Iterator[tuple[Path, ast.Module]]:
    """Those with a text in them: the others need not be parsed."""
    for root in ROOTS:
        for path in sorted(root.rglob("*.py")):
            if saying in (text := path.read_text()):
                yield path.relative_to(root.parent), ast.parse(text)


def sites() -> list[Site]:
    """Every call of every script."""
    return [
        site
        for path, tree in modules(MAKING)
        if path.as_posix() != "dsched/state/scripts.py"
        for site in _of(path, tree)
    ]


def made() -> list[str]:
    """The names of the scripts that are made anywhere, one for each time."""
    return [name for path, tree in modules(MAKING) for node in ast.walk(tree) if (name := _made(node))]


def _made(node: ast.AST) -> str:
    """The name of the script that an expression makes, else empty."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Script":
        assert isinstance(node.args[1], ast.Constant), ast.dump(node)
        return str(node.args[1].value)
    return ""


def _of(path: Path, tree: ast.Module) -> Iterator[Site]:
    for scope in [each for each in tree.body if isinstance(each, ast.ClassDef)] + [tree]:
        attributes = {
            target.attr: name
            for node in ast.walk(scope)
            if isinstance(node, ast.Assign) and (name := _made(node.value))
            for target in node.targets
            if isinstance(target, ast.Attribute)
        }
        for function in [each for each in ast.walk(scope) if isinstance(each, ast.FunctionDef)]:
            for call in [each for each in ast.walk(function) if isinstance(each, ast.Call)]:
                callee = call.func
                if isinstance(callee, ast.Attribute) and callee.attr == "ahead":
                    callee = callee.value
                if scope is tree:
                    script = _made(callee)
                else:
                    script = attributes.get(callee.attr, "") if isinstance(callee, ast.Attribute) else ""
                if script:
                    yield Site(f"{path}:{call.lineno}", script, _arguments(call, function, scope))


def _arguments(call: ast.Call, function: ast.FunctionDef, scope: ast.AST) -> list[ast.expr]:
    found = _meant(_meant(call.args[1], function, scope), function, scope)
    assert isinstance(found, ast.List), f"ARGV is no list: {ast.unparse(call)}"
    return [_meant(each, function, scope) for each in found.elts]


def _meant(expression: ast.expr, function: ast.FunctionDef, scope: ast.AST) -> ast.expr:
    """What a name was given in the function, what a parameter is annotated with, or what a method of ours returns."""
    if isinstance(expression, ast.Name):
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and any(ast.unparse(each) == expression.id for each in node.targets):
                return node.value
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == expression.id and node.value:
                return node.value
        for parameter in function.args.args:
            if parameter.arg == expression.id and parameter.annotation is not None:
                return parameter.annotation
    if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):
        for method in [each for each in ast.walk(scope) if isinstance(each, ast.FunctionDef)]:
            if ast.unparse(expression.func) == f"self.{method.name}":
                return next(each.value for each in ast.walk(method) if isinstance(each, ast.Return) and each.value)
    return expression


def whole_reads() -> Iterator[tuple[str, str]]:
    """Where a key is read as a whole, and how: ``HGETALL`` and its kin, ranges up to the end."""
    for path, tree in modules():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            name, owner = node.func.attr, ast.unparse(node.func.value)
            if not any(owner.endswith(each) for each in ("redis", "pipe", "pipeline", "client", "connection")):
                continue
            to_the_end = any(ast.unparse(each) == "-1" for each in node.args)
            unlimited = name in ("xread", "xrange") and "count" not in [each.arg for each in node.keywords]
            if name in ("hgetall", "hvals", "hkeys", "smembers", "keys", "sort") or to_the_end or unlimited:
                yield path.as_posix(), ast.unparse(node)
