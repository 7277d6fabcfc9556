"""``dsched demo``: a private system for a moment, a cluster with all kinds of pods, and where they ended up."""

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from dsched import ending
from dsched.cli import console, demo_cluster
from dsched.cli.commands import status
from dsched.cli.render import demo as demo_report
from dsched.clock import Clock, SystemClock
from dsched.cluster.standalone import stored
from dsched.cluster.standalone.applying import Applier
from dsched.cluster.standalone.objects import Objects
from dsched.errors import DschedError
from dsched.manifests import kinds, load
from dsched.manifests.load import Manifest
from dsched.state import client
from dsched.supervisor import background, commands

POLL_S = 0.05
PATIENCE_S = 60.0
STOP_S = 60.0


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(epilog="Example: dsched demo")(demo)


def demo(
    nodes: Annotated[int, typer.Option(min=1, help="How many nodes.")] = demo_cluster.NODES,
    pods: Annotated[int, typer.Option(min=1, help="How many pods.")] = demo_cluster.PODS,
    folder: Annotated[
        Path | None,
        typer.Option("--filename", "-f", exists=True, show_default=False, help="Manifests to use instead."),
    ] = None,
) -> None:
    """Run a whole system for a moment, let it place a cluster's pods, show where they are, and stop it again."""
    with _private_folder() as data_dir:
        manifests = load.load([str(folder or _generated(data_dir, nodes, pods))])
        with _system(data_dir) as store:
            took_ms = _place(store, manifests, data_dir)
            _show(store, took_ms)
    console.out.print("the system of this demo is stopped and its data removed", markup=False)
    console.out.print(NEXT, markup=False)


NEXT = """
next:  dsched up --detach                           a system that stays
       dsched apply -f examples/01-first-cluster    the same cluster, as files to change
       dsched get pods -o wide                      where the pods are, or why they are nowhere
       dsched describe pod too-big                  everything about one of them
       dsched status                                what runs, who leads, how full the queues are
       dsched down                                  stop it; the data stays"""


@contextmanager
def _private_folder() -> Iterator[Path]:
    """A folder that is removed in the end, unless something went wrong that its logs may explain."""
    data_dir = Path(tempfile.mkdtemp(prefix="dsched-demo-"))
    ending.in_order()
    keep = False
    try:
        yield data_dir
    except DschedError:
        keep = (data_dir / "logs").exists()
        if keep:
            console.err.print(f"the logs of the demo are kept in {data_dir / 'logs'}", markup=False)
        raise
    finally:
        if not keep:
            shutil.rmtree(data_dir)


def _generated(data_dir: Path, nodes: int, pods: int) -> Path:
    path = data_dir / "cluster.json"
    items = [*demo_cluster.nodes(nodes), *demo_cluster.pods(pods)]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


@contextmanager
def _system(data_dir: Path) -> Iterator[client.Store]:
    """A system that runs as long as the block; it stops as well when this process is killed."""
    system = commands.System(data_dir)
    console.err.print(
        f"starting Redis, {system.leaders} leader, {system.evaluators} evaluators and {system.binders} binders …",
        markup=False,
    )
    clock = SystemClock()
    found = background.start(system, clock, survives=False)
    try:
        store = client.connect(found.redis_url, found.name)
        yield store
        store.close()
    finally:
        _stop(data_dir, clock)


def _stop(data_dir: Path, clock: Clock) -> None:
    """Stop the system; interrupted while it stops, make it hurry, and still see it gone before its folder goes."""
    try:
        background.stop(data_dir, STOP_S, clock)
    except (KeyboardInterrupt, SystemExit):
        background.stop(data_dir, STOP_S, clock)
        raise


def _place(store: client.Store, manifests: Sequence[Manifest], data_dir: Path) -> int:
    """Apply everything, wait until each pod is bound or found not to fit; ms from the first apply to the last bind."""
    clock = SystemClock()
    pods = sum(manifest.kind is kinds.POD for manifest in manifests)
    console.err.print(f"applying {len(manifests)} objects, {pods} of them pods …", markup=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console.err, transient=True, disable=not console.err.is_terminal) as progress:
        task = progress.add_task("scheduling", total=pods)
        began_ms = clock.now_ms()
        Applier(store, clock).apply(manifests)
        decided, deadline = 0, clock.monotonic() + PATIENCE_S
        while True:
            before, (decided, settled) = decided, _decided(store)
            progress.update(task, completed=decided)
            if settled:
                break
            background.check(data_dir)
            if decided != before:
                deadline = clock.monotonic() + PATIENCE_S
            elif clock.monotonic() >= deadline:
                raise DschedError(f"only {decided} of {pods} pods were decided on, and no more in {PATIENCE_S:g} s")
            clock.sleep(POLL_S)
    return max((int(each.bound_ms) for each in _bound(store)), default=began_ms) - began_ms


def _decided(store: client.Store) -> tuple[int, bool]:
    """How many pods are bound, do not fit or are held back, and whether those are all and nothing is under way."""
    state = status.read(store)
    decided = len(_bound(store)) + state.queues["unschedulable"] + state.queues["gated"]
    busy = sum(state.queues[queue] for queue in ("active", "backoff", "inflight", "waiting")) + state.reservations
    return decided, decided == state.pods and busy == 0


def _bound(store: client.Store) -> list[stored.PodState]:
    return [state for piece in Objects(store).scan_states() for _, state in piece if state.bound_to]


def _show(store: client.Store, took_ms: int) -> None:
    objects = Objects(store)
    nodes, pods = objects.all_of(kinds.NODE), objects.all_of(kinds.POD)
    console.out.print("\nwhere the pods are\n", markup=False)
    for line in demo_report.placements(nodes, pods):
        console.out.print(line, markup=False)
    bound = sum(1 for pod in pods if pod["spec"].get("nodeName"))
    if bound < len(pods):
        console.out.print("\npods without a node, and why\n", markup=False)
        for line in demo_report.without_node(pods):
            console.out.print(line, markup=False)
    console.out.print(f"\n{demo_report.pace(bound, len(pods), took_ms)}\n", markup=False)
