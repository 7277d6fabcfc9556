"""Options of the commands about objects, and how the words of a command line name kinds and objects."""

from collections.abc import Sequence
from typing import Annotated

import typer

from dsched.manifests import kinds
from dsched.manifests.defaulting import DEFAULT_NAMESPACE

Files = Annotated[
    list[str] | None,
    typer.Option(
        "--filename", "-f", help="A file, a folder, or - for standard input. Can be given again.", show_default=False
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help=f"Namespace (default: {DEFAULT_NAMESPACE}).", show_default=False),
]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="Objects of every namespace.")]
Labels = Annotated[
    str,
    typer.Option(
        "--selector", "-l", help="Only objects with these labels: a=b,c!=d,e in (x,y),!f.", show_default=False
    ),
]


def kinds_of(words: str) -> list[kinds.Kind]:
    """The kinds that ``po,nodes`` names.

    Raises:
        BadParameter: a word names none.
    """
    found = []
    for word in words.split(","):
        kind = kinds.spoken(word)
        if kind is None:
            known = ", ".join(each.plural for each in kinds.ALL)
            raise typer.BadParameter(f"there is no kind {word!r}; kinds are {known}")
        found.append(kind)
    return found


def kind_and_names(words: Sequence[str]) -> tuple[list[kinds.Kind], list[str]]:
    """Kinds and names from ``KIND[,KIND] [NAME…]`` or ``KIND/NAME``.

    Raises:
        BadParameter: there is no kind, or names of several kinds.
    """
    if not words:
        raise typer.BadParameter("name a kind, e.g. pods")
    first, slash, name = words[0].partition("/")
    chosen = kinds_of(first)
    names = [*([name] if slash and name else []), *words[1:]]
    if names and len(chosen) > 1:
        raise typer.BadParameter("names go with one kind only")
    return chosen, names


def keys(kind: kinds.Kind, names: Sequence[str], namespace: str | None) -> list[str]:
    """The keys of the objects with these names; ``NS/NAME`` names the namespace itself."""
    place = namespace or DEFAULT_NAMESPACE
    return [name if "/" in name else kind.key(place, name) for name in names]
