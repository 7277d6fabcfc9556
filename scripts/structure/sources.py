"""What stands in the files: imports, constructors, functions, and what tests touch. Reads sources, imports nothing.

A module is a file below ``dsched`` or ``workers``. Every import statement counts as an import: those inside functions,
and those that only a type checker follows. Modules that are loaded by name (the commands, the plugins of users) are
imported by nobody here.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOMS = ("dsched", "workers")
"""Whose modules are looked at."""
IMPORTERS = ("benchmarks", "docs", "examples", "scripts")
"""Whose imports count as well, where the question is who imports a module. Tests' do not."""
COLLABORATORS = 7
LINES = 60
BIGGEST = 10

PLAIN = {"bool", "bytes", "float", "int", "object", "str", "Path", "Any"}
CONTAINERS = {"Collection", "Iterable", "Mapping", "Sequence", "Set", "dict", "frozenset", "list", "set", "tuple"}
SETTINGS = ("Settings", "Configuration")
VALUES = {"Enum", "Flag", "IntEnum", "StrEnum"}

AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Module:
    """One file.

    Attributes:
        name: with dots, a package's without ``__init__``.
        path: from the root.
    """

    name: str
    path: str
    tree: ast.Module
    lines: int

    @property
    def room(self) -> str:
        """The package it is in, as ``dsched.leader``; ``dsched`` for what lies directly in it."""
        parts = Path(self.path).parts[:-1]
        return ".".join(parts[:2])

    @property
    def is_entry(self) -> bool:
        """Whether it is a package's ``__init__`` or ``__main__``."""
        return Path(self.path).stem in {"__init__", "__main__"}


@dataclass(frozen=True, slots=True)
class Found:
    """What was found at a place.

    Attributes:
        what: the name, or names.
        size: how much of it there is.
    """

    where: str
    what: str
    size: int


def read(root: Path, rooms: Iterable[str] = ROOMS) -> list[Module]:
    """The modules of these packages, where they are there."""
    found: list[Module] = []
    for room in rooms:
        for file in sorted((root / room).rglob("*.py")):
            path = file.relative_to(root)
            parts = path.with_suffix("").parts
            text = file.read_text()
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found.append(Module(name, str(path), ast.parse(text, str(path)), len(text.splitlines())))
    return found


# -- imports -----------------------------------------------------------------------------------------------------------


def imports(module: Module, known: Iterable[str]) -> set[str]:
    """Which of the known modules it imports: of ``from a import b`` that is ``a.b`` if there is such a module."""
    known = set(known)
    found: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = _base(module, node)
            whole = {alias.name: f"{base}.{alias.name}" for alias in node.names}
            found |= {name if name in known else base for name in whole.values()}
    return found & known - {module.name}


def _base(module: Module, node: ast.ImportFrom) -> str:
    """The package that names are imported from; a dot is the package that the file is in."""
    if not node.level:
        return node.module or ""
    package = list(Path(module.path).parts[:-1])
    package = package[: len(package) - node.level + 1]
    return ".".join([*package, *([node.module] if node.module else [])])


def circles(modules: Iterable[Module]) -> list[tuple[str, ...]]:
    """Groups of modules each of which imports each other, by way of others or at once."""
    by_name = {module.name: module for module in modules}
    graph = {name: imports(module, by_name) for name, module in by_name.items()}
    reached = {name: _reached(graph, name) for name in graph}
    found = {
        tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in graph
        if name in reached[name]
    }
    return sorted(found)


def _reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    left = [start]
    while left:
        new = graph[left.pop()] - found
        found |= new
        left += new
    return found


def single_importers(modules: Iterable[Module], others: Iterable[Module] = ()) -> list[tuple[Module, str]]:
    """Modules that exactly one other file imports, and that one; packages' own files are left out.

    Args:
        others: files that import them, too, and are not looked at themselves.
    """
    modules = list(modules)
    known = {module.name for module in modules}
    importers: dict[str, list[str]] = {name: [] for name in known}
    for module in [*modules, *others]:
        for name in imports(module, known):
            importers[name].append(module.name)
    return [
        (module, importers[module.name][0])
        for module in modules
        if not module.is_entry and len(importers[module.name]) == 1
    ]


# -- constructors and functions ----------------------------------------------------------------------------------------


def crowded(modules: Iterable[Module], most: int = COLLABORATORS) -> list[Found]:
    """Constructors with more collaborators than this, with their names.

    A parameter of ``__init__``, or a field of a dataclass that has none, is a collaborator unless its annotation is
    made of plain values only: numbers, text, paths, enums, new types of these, containers of these, and what is called
    ``…Settings`` or ``…Configuration``. A callable is a collaborator, and so is what may be left out. Messages and
    values (``msgspec.Struct``) are not looked at.
    """
    modules = list(modules)
    plain = PLAIN | CONTAINERS | _plain_types(modules)
    found: list[Found] = []
    for module in modules:
        for definition in ast.walk(module.tree):
            if not isinstance(definition, ast.ClassDef):
                continue
            names = [name for name, annotation in _given(definition) if not _is_plain(annotation, plain)]
            if len(names) > most:
                found.append(Found(module.path, f"{definition.name}({', '.join(names)})", len(names)))
    return sorted(found, key=lambda each: -each.size)


def _given(definition: ast.ClassDef) -> list[tuple[str, ast.expr | None]]:
    """What a constructor takes, self apart: name and annotation."""
    for member in definition.body:
        if isinstance(member, ast.FunctionDef) and member.name == "__init__":
            arguments = [*member.args.posonlyargs, *member.args.args][1:] + member.args.kwonlyargs
            return [(argument.arg, argument.annotation) for argument in arguments]
    if not any("dataclass" in ast.unparse(decorator) for decorator in definition.decorator_list):
        return []
    return [
        (member.target.id, member.annotation)
        for member in definition.body
        if isinstance(member, ast.AnnAssign)
        and isinstance(member.target, ast.Name)
        and not ast.unparse(member.annotation).startswith("ClassVar")
    ]


def _plain_types(modules: Iterable[Module]) -> set[str]:
    """Names of enums and of new types of plain values."""
    found: set[str] = set()
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and {ast.unparse(base).split(".")[-1] for base in node.bases} & VALUES:
                found.add(node.name)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                call, targets = node.value, [each.id for each in node.targets if isinstance(each, ast.Name)]
                if ast.unparse(call.func).endswith("NewType") and ast.unparse(call.args[-1]) in PLAIN:
                    found |= set(targets)
    return found


def _is_plain(annotation: ast.expr | None, plain: set[str]) -> bool:
    if annotation is None:
        return False
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    names = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(annotation) if isinstance(node, ast.Attribute)}
    return all(name in plain or name.endswith(SETTINGS) for name in names)


def long_functions(modules: Iterable[Module], most: int = LINES) -> list[Found]:
    """Functions of more lines than this, from ``def`` to their end, the docstring included. The commands of the command
    line are left out: their options are declared one a line."""
    found: list[Found] = []
    for module in modules:
        commands = _commands(module.tree)
        for name, function in _functions(module.tree):
            size = (function.end_lineno or function.lineno) - function.lineno + 1
            if size > most and name not in commands:
                found.append(Found(module.path, name, size))
    return sorted(found, key=lambda each: -each.size)


def _functions(node: ast.AST, within: str = "") -> Iterator[tuple[str, AnyFunction]]:
    """Every function with its qualified name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, AnyFunction):
            yield within + child.name, child
        name = f"{within}{child.name}." if isinstance(child, ast.ClassDef | AnyFunction) else within
        yield from _functions(child, name)


def _commands(tree: ast.Module) -> set[str]:
    """Functions that typer calls: ``app.command(…)(function)``, or decorated with it."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_command(node.func):
            found |= {argument.id for argument in node.args if isinstance(argument, ast.Name)}
        elif isinstance(node, AnyFunction) and any(_is_command(each) for each in node.decorator_list):
            found.add(node.name)
    return found


def _is_command(node: ast.expr) -> bool:
    """Whether this is ``….command(…)`` or ``….callback(…)``."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"command", "callback"}
    )


# -- what tests touch --------------------------------------------------------------------------------------------------


def touched(modules: Iterable[Module], tests: Iterable[Module]) -> list[Found]:
    """Private members that tests touch, by file: each time that ``thing._name`` stands there, and each private name
    that is imported.

    Counted are names that a class or a module of the product gives to a member of its own and no class of the tests
    does: whose member is meant, where both do, cannot be told without running. For the same reason a library's member
    counts where it is called as one of the product's. A class's own, ``self._name``, is not touching.
    """
    tests = list(tests)
    private = _members(module.tree for module in modules) - _members_of_classes(module.tree for module in tests)
    found: list[Found] = []
    for module in tests:
        names = [
            node.attr
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Attribute) and node.attr in private and not _is_own(node)
        ]
        names += [
            alias.name
            for node in ast.walk(module.tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ROOMS
            for alias in node.names
            if _is_private(alias.name)
        ]
        if names:
            counts = {
                name: names.count(name) for name in sorted(set(names), key=lambda each: (-names.count(each), each))
            }
            text = ", ".join(name if count == 1 else f"{name} {count}" for name, count in counts.items())
            found.append(Found(module.path, text, len(names)))
    return sorted(found, key=lambda each: (-each.size, each.where))


def replaced(modules: Iterable[Module], tests: Iterable[Module]) -> list[Found]:
    """Private members that tests replace by name, with ``setattr(thing, "_name", …)``, by file."""
    private = _members(module.tree for module in modules)
    found: list[Found] = []
    for module in tests:
        names = [
            node.args[1].value
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Call)
            and ast.unparse(node.func).split(".")[-1] == "setattr"
            and len(node.args) > 1
            and isinstance(node.args[1], ast.Constant)
            and isinstance(node.args[1].value, str)
            and node.args[1].value in private
        ]
        if names:
            found.append(Found(module.path, ", ".join(names), len(names)))
    return sorted(found, key=lambda each: (-each.size, each.where))


def _is_own(node: ast.Attribute) -> bool:
    """Whether this is a member of the class that it stands in: ``self.name``."""
    return isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def _members(trees: Iterable[ast.Module]) -> set[str]:
    """Private names that classes or modules give to members of their own."""
    trees = list(trees)
    return _members_of_classes(trees) | {
        name for tree in trees for member in tree.body for name in _named(member) if _is_private(name)
    }


def _members_of_classes(trees: Iterable[ast.Module]) -> set[str]:
    found: set[str] = set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found |= {name for member in node.body for name in _named(member)}
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_own(node):
                found.add(node.attr)
    return {name for name in found if _is_private(name)}


def _named(member: ast.stmt) -> list[str]:
    """The names that a statement gives."""
    if isinstance(member, ast.ClassDef | AnyFunction):
        return [member.name]
    if isinstance(member, ast.AnnAssign):
        return [member.target.id] if isinstance(member.target, ast.Name) else []
    if isinstance(member, ast.Assign):
        return [target.id for target in member.targets if isinstance(target, ast.Name)]
    return []


# -- sizes -------------------------------------------------------------------------------------------------------------


def biggest(modules: Iterable[Module], number: int = BIGGEST) -> list[Found]:
    """The longest files."""
    found = sorted(modules, key=lambda module: (-module.lines, module.path))[:number]
    return [Found(module.path, "", module.lines) for module in found]


def rooms(modules: Iterable[Module]) -> dict[str, tuple[int, int]]:
    """Modules, packages' own files included, and lines by room."""
    found: dict[str, tuple[int, int]] = {}
    for module in modules:
        number, lines = found.get(module.room, (0, 0))
        found[module.room] = number + 1, lines + module.lines
    return dict(sorted(found.items()))
