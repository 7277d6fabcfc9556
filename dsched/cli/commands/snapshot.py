"""``dsched snapshot``: a cluster as it stands, as a manifest for ``dsched simulate``."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
import yaml

from dsched.cli import console, options
from dsched.cluster import opening
from dsched.cluster.opening import Kind
from dsched.cluster.standalone.objects import Objects
from dsched.errors import ClusterError, DschedError
from dsched.manifests import exporting, kinds
from dsched.manifests.exporting import Json

_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_JSON = ".json"
_DISPENSABLE = {
    kinds.PRIORITY_CLASS: "pods keep the priorities that they have",
    kinds.POD_GROUP: "pods of groups wait for them",
    kinds.QUEUE: "with the plugin FairShare, pods of queues wait for them",
}
"""What becomes of pods where objects of a kind may not be listed; without the others there is no snapshot."""


class Format(StrEnum):
    """How the snapshot is written."""

    YAML = "yaml"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(
        epilog="Example: dsched snapshot --from-kubernetes -o now.json && dsched simulate -f now.json -f more.yaml"
    )(snapshot)


def snapshot(
    file: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; standard output without it.", show_default=False),
    ] = None,
    from_kubernetes: Annotated[
        bool,
        typer.Option("--from-kubernetes", help="Of the cluster that a kubeconfig file names; no system is needed."),
    ] = False,
    kubeconfig: options.Kubeconfig = None,
    context: Annotated[
        str | None,
        typer.Option("--context", "--kube-context", help="Context of the kubeconfig file.", show_default=False),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Objects with all their fields, not only with what scheduling reads.")
    ] = False,
    form: Annotated[
        Format | None,
        typer.Option(
            "--format", help="How to write it (default: as the file's name says, else yaml).", show_default=False
        ),
    ] = None,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
) -> None:
    """Write the nodes, pods, volumes and whatever else scheduling reads into a file that simulate and apply take.

    Of a running system, or with --from-kubernetes of a live cluster. Secrets and ConfigMaps are not read; values of
    environment variables and pod templates are left out, with --full, too. Nothing is changed.
    """
    if from_kubernetes:
        objects = list(live(kubeconfig, context, full=full))
    else:
        if kubeconfig is not None or context is not None:
            raise typer.BadParameter("it goes with --from-kubernetes", param_hint="--kubeconfig, --context")
        instead = "dsched snapshot --from-kubernetes"
        objects = list(_kept(Objects(options.open_objects(redis_url, data_dir, name, instead)), full))
    text = _written(exporting.listed(objects), form or _by_name(file))
    if file is None:
        console.write(text)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DschedError(f"{file} cannot be written: {error.strerror}") from error
    console.out.print(f"{file}: {_counted(objects)}", markup=False)


def _kept(store: Objects, full: bool) -> Iterator[Json]:
    for kind in kinds.ALL:
        yield from _in_order(kind, store.all_of(kind, left_out=_refuse), full)


def _refuse(kind: str, key: bytes, error: Exception) -> None:
    """A cluster is not written without an object that it has."""
    singular = kinds.BY_NAME[kind].singular
    raise ClusterError(f"{singular} {key.decode(errors='replace')} cannot be read: {error}") from error


def live(kubeconfig: Path | None, context: str | None, *, full: bool = False) -> Iterator[Json]:
    """The objects of a live cluster, as they are written.

    Raises:
        ClusterError: they cannot be read.
    """
    from dsched.cluster.kubernetes.objects import ALL, Everything, Withheld

    chosen = options.chosen_cluster(Kind.KUBERNETES, kubeconfig, context)
    everything = Everything(opening.open_access(chosen, None))
    by_kind = {resource.kind: resource for resource in ALL}
    try:
        for kind in kinds.ALL:
            try:
                found = everything.of(by_kind[kind.name])
            except Withheld as error:
                if kind not in _DISPENSABLE:
                    raise
                console.err.print(f"note: {error}; {_DISPENSABLE[kind]}", markup=False)
                continue
            yield from _in_order(kind, found, full)
    finally:
        everything.close()


def _in_order(kind: kinds.Kind, objects: Sequence[Json], full: bool) -> list[Json]:
    """Objects as they are written, the oldest first, as a leader that begins takes pods in."""
    return sorted((_exported(kind, value, full) for value in objects), key=_age)


def _exported(kind: kinds.Kind, value: Json, full: bool) -> Json:
    try:
        return exporting.exported(kind, value, full=full)
    except msgspec.ValidationError as error:
        metadata = value.get("metadata") or {}
        key = kind.key(metadata.get("namespace", ""), metadata.get("name", ""))
        raise ClusterError(f"{kind.singular} {key} cannot be read: {error}") from error


def _age(value: Json) -> tuple[str, int, str, str]:
    metadata = value.get("metadata", {})
    version = str(metadata.get("resourceVersion", ""))
    return (
        metadata.get("creationTimestamp", ""),
        int(version) if version.isdigit() else 0,
        metadata.get("namespace", ""),
        metadata.get("name", ""),
    )


def _by_name(file: Path | None) -> Format:
    return Format.JSON if file is not None and file.suffix == _JSON else Format.YAML


def _written(value: Json, form: Format) -> str:
    if form is Format.JSON:
        return msgspec.json.format(msgspec.json.encode(value), indent=1).decode() + "\n"
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text


def _counted(objects: list[Json]) -> str:
    counts = {kind: sum(value["kind"] == kind.name for value in objects) for kind in kinds.ALL}
    told = [f"{count} {kind.plural}" for kind, count in counts.items() if count]
    return ", ".join(told) or "the cluster is empty"
