"""``dsched apply`` and ``delete``: the objects of a standalone cluster."""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from dsched import garbage
from dsched.cli import choosing, console, forms, options, progress
from dsched.cluster.standalone.applying import Applier
from dsched.cluster.standalone.objects import Objects
from dsched.errors import NotFound
from dsched.manifests import kinds, selector
from dsched.manifests.defaulting import DEFAULT_NAMESPACE
from dsched.manifests.load import Manifest, load, load_names
from dsched.state.client import Store

LISTED = 20
"""So many objects are named one by one; of more, only how many."""
DELETED, NOT_FOUND = "deleted", "not found"
"""What may become of an object that is to be deleted."""


class Output(StrEnum):
    """How it is told what became of the objects."""

    JSON = "json"
    NAME = "name"


Printed = Annotated[Output | None, typer.Option("--output", "-o", help="Name every object.", show_default=False)]
Done = tuple[kinds.Kind, str, str]
"""An object by kind and key, and what became of it."""


def register(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.command(epilog="Example: dsched apply -f nodes.yaml -f pods/")(apply)
    app.command(epilog="Example: dsched delete pods -l app=web")(delete)


def apply(
    files: choosing.Files = None,
    namespace: choosing.Namespace = None,
    output: Printed = None,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
) -> None:
    """Create the objects of manifests, or change them to what these say; on bad input nothing of a call is applied.

    Takes YAML of many documents, JSON, Lists, and what kubectl get -o yaml prints. Problems are told by file, document
    and field; documents are counted from 0, so web.yaml[2] is the third one of web.yaml.
    """
    if not files:
        raise typer.BadParameter("name a file, a folder, or - for standard input", param_hint="-f")
    garbage.leave_at_exit()
    with garbage.not_looked_for():
        done = _apply(load(files, namespace), options.open_objects(redis_url, data_dir, name, "kubectl apply"))
    _print(done, output)


def delete(
    words: Annotated[list[str] | None, typer.Argument(metavar="KIND [NAME]", show_default=False)] = None,
    files: choosing.Files = None,
    namespace: choosing.Namespace = None,
    labels: choosing.Labels = "",
    everything: Annotated[bool, typer.Option("--all", help="All objects of the kind in the namespace.")] = False,
    ignore_not_found: Annotated[
        bool, typer.Option("--ignore-not-found", help="What is not there is no error.")
    ] = False,
    output: Printed = None,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
) -> None:
    """Delete objects, at once: those that manifests name, or those of a kind by name, by labels, or all."""
    if bool(files) == bool(words):
        raise typer.BadParameter("name either files (-f) or a kind")
    store = options.open_objects(redis_url, data_dir, name, "kubectl delete")
    if files:
        wanted = [(each.kind, each.key) for each in load_names(files, namespace)]
    else:
        wanted = _wanted(store, words or [], namespace, labels, everything)
    done = _delete(store, wanted)
    gone = [each for each in done if each[2] == DELETED]
    # As JSON it tells of those that were not there, too; the other forms of those that are gone.
    _print(done if output is Output.JSON else gone, output)
    missing = [f"{kind.singular} {key}" for kind, key, outcome in done if outcome == NOT_FOUND]
    if missing and not ignore_not_found:
        shown = missing[:LISTED] + ([f"and {len(missing) - LISTED} more"] if len(missing) > LISTED else [])
        raise NotFound(f"not there: {', '.join(shown)}")


def _apply(manifests: Sequence[Manifest], store: Store) -> list[Done]:
    with progress.counted("applying", len(manifests)) as advance:
        applied = Applier(store).apply(manifests, advance)
    return [(each.kind, each.key, each.outcome.value) for each in applied]


def _wanted(
    store: Store, words: Sequence[str], namespace: str | None, labels: str, everything: bool
) -> list[tuple[kinds.Kind, str]]:
    chosen, names = choosing.kind_and_names(words)
    if sum((bool(names), bool(labels), everything)) != 1:
        raise typer.BadParameter("say which: names, -l SELECTOR, or --all")
    if names:
        return [(chosen[0], key) for key in choosing.keys(chosen[0], names, namespace)]
    matching = selector.parse(labels)
    found = []
    for kind in chosen:
        for value in Objects(store).all_of(kind, namespace or DEFAULT_NAMESPACE, console.left_out):
            metadata = value["metadata"]
            if matching.matches(metadata.get("labels", {})):
                found.append((kind, kind.key(metadata.get("namespace", ""), metadata["name"])))
    return found


def _delete(store: Store, wanted: Sequence[tuple[kinds.Kind, str]]) -> list[Done]:
    applier = Applier(store)
    done: list[Done] = []
    for kind in reversed(kinds.ALL):
        of_kind = [key for each, key in wanted if each is kind]
        for key, was_there in zip(of_kind, applier.delete(kind, of_kind), strict=True):
            done.append((kind, key, DELETED if was_there else NOT_FOUND))
    return done


def _print(done: Sequence[Done], output: Output | None) -> None:
    if output is Output.JSON:
        console.write(forms.as_json([{"kind": kind.name, "key": key, "outcome": what} for kind, key, what in done]))
    elif output is Output.NAME:
        for kind, key, _ in done:
            console.out.out(_named(kind, key))
    else:
        _print_lines(done)


def _print_lines(done: Sequence[Done]) -> None:
    """What became of each object, or of how many when they are many."""
    if len(done) <= LISTED:
        for kind, key, outcome in done:
            console.out.out(f"{_named(kind, key)} {outcome}")
        return
    counts = Counter((kind, outcome) for kind, _, outcome in done)
    for kind in kinds.ALL:
        told = [f"{count} {outcome}" for (of, outcome), count in counts.items() if of is kind]
        if told:
            console.out.out(f"{kind.plural}: {', '.join(told)}")


def _named(kind: kinds.Kind, key: str) -> str:
    """As kubectl names it, ``pod/web-1``; the namespace shows unless it is the default one."""
    namespace, _, name = key.rpartition("/")
    return f"{kind.singular}/{name if namespace in ('', DEFAULT_NAMESPACE) else key}"
