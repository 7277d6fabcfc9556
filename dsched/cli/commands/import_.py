"""``dsched import``: data sets of others as manifests."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from dsched.cli import console, progress
from dsched.manifests import openb
from dsched.manifests.reader import STDIN

group = typer.Typer(no_args_is_help=True, help="Turn data sets into manifests.")

_Csv = Annotated[Path, typer.Argument(exists=True, dir_okay=False, show_default=False)]


def register(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.add_typer(group, name="import")


@group.callback()
def choose() -> None:
    """Turn data sets into manifests."""


@group.command("openb", epilog="Example: dsched import openb nodes.csv pods.csv -o trace && dsched apply -f trace")
def import_openb(
    nodes: _Csv,
    pods: _Csv,
    output: Annotated[
        str, typer.Option("--output", "-o", help="Folder to write to, or - for standard output.")
    ] = "openb",
) -> None:
    """Turn the openb trace of a GPU cluster, two CSV files, into nodes.json and pods.json, pods in creation order."""
    with progress.counted("reading", openb.count(nodes) + openb.count(pods)) as advance:
        node_objects, pod_objects = openb.read(nodes, pods, advance)
    if output == STDIN:
        everything = openb.as_list([*node_objects, *pod_objects])
        typer.get_binary_stream("stdout").write(msgspec.json.encode(everything) + b"\n")
        where = "standard output"
    else:
        folder = Path(output)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "nodes.json").write_bytes(msgspec.json.encode(openb.as_list(node_objects)))
        (folder / "pods.json").write_bytes(msgspec.json.encode(openb.as_list(pod_objects)))
        where = f"{folder}/nodes.json and {folder}/pods.json"
    console.err.print(f"{len(node_objects)} nodes and {len(pod_objects)} pods written to {where}", markup=False)
