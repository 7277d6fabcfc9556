"""The tree of errors in `dsched.errors` names every one of them."""

import importlib
import pkgutil
import re

import dsched
from dsched import errors

_LINE = re.compile(r"^ {4}((?:│   |    )*)[├└]── (\w+)", re.MULTILINE)


def told() -> list[tuple[str, str]]:
    """Each error of the tree and what it is one of."""
    above, found = ["DschedError"], []
    for indented, name in _LINE.findall(errors.__doc__ or ""):
        depth = len(indented) // 4 + 1
        above[depth:] = [name]
        found.append((name, above[depth - 1]))
    return sorted(found)


def subclasses(base: type) -> list[tuple[str, str]]:
    return [
        pair
        for each in base.__subclasses__()
        if not each.__name__.startswith("_") and each.__module__.startswith("dsched.")
        for pair in ((each.__name__, base.__name__), *subclasses(each))
    ]


def test_the_tree_is_whole() -> None:
    for module in pkgutil.walk_packages(dsched.__path__, "dsched."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)

    assert told() == sorted(subclasses(errors.DschedError))
