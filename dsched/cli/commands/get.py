"""``dsched get``: objects as a table, JSON, YAML or names, once or as they change."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from dsched.cli import choosing, console, forms, options
from dsched.cli.render import columns, queues
from dsched.clock import SystemClock
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.cluster.standalone.objects import Objects
from dsched.errors import NotFound
from dsched.manifests import kinds, selector
from dsched.manifests.defaulting import DEFAULT_NAMESPACE
from dsched.state.client import Store

WATCH_S = 3600.0

Object = dict[str, Any]


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(epilog="Example: dsched get pods -A -o wide")(get)


class Output(StrEnum):
    """How objects are printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Wish:
    """Which objects; ``namespace`` None for every one, ``names`` empty for all that match."""

    names: Sequence[str]
    namespace: str | None
    matching: selector.Selector

    def takes(self, kind: kinds.Kind, key: str, value: Object) -> bool:
        """Whether an object is among them."""
        namespace, _, name = key.rpartition("/")
        place = self.namespace is None or not kind.namespaced or namespace == self.namespace
        named = not self.names or name in self.names or key in self.names
        return place and named and self.matching.matches(value["metadata"].get("labels", {}))


def get(
    words: Annotated[list[str], typer.Argument(metavar="KIND[,KIND] [NAME]", show_default=False)],
    namespace: choosing.Namespace = None,
    all_namespaces: choosing.AllNamespaces = False,
    labels: choosing.Labels = "",
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print them.")] = Output.TABLE,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on printing objects as they change.")] = False,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
) -> None:
    """Show objects.

    The status of a pod is its phase; a pod that has a node and has not been seen running is Scheduled, one with
    scheduling gates SchedulingGated. Of nodes, CPU, memory and pods are shown as used/allocatable. Queues are shown as
    the tree that they are, a line for each resource.
    """
    chosen, names = choosing.kind_and_names(words)
    if watch and len(chosen) > 1:
        raise typer.BadParameter("--watch takes one kind only")
    store = options.open_objects(redis_url, data_dir, name, "kubectl get")
    place = None if all_namespaces else namespace or DEFAULT_NAMESPACE
    wish = Wish(names, place, selector.parse(labels))
    cluster = StandaloneCluster(store)
    version = cluster.newest_version()
    found = [(kind, _found(store, kind, wish)) for kind in chosen]
    printer = _Printer(store, output, wish)
    printer.print_all(found)
    if watch:
        for event_kind, key in _changes(cluster, chosen[0], version):
            printer.print_change(event_kind, key)


def _found(store: Store, kind: kinds.Kind, wish: Wish) -> list[Object]:
    objects = Objects(store)
    if not wish.names:
        there = objects.all_of(kind, wish.namespace, console.left_out)
        return [value for value in there if wish.takes(kind, _key(kind, value), value)]
    if wish.namespace is None and kind.namespaced:
        raise typer.BadParameter("names do not go with --all-namespaces")
    keys = choosing.keys(kind, wish.names, wish.namespace)
    found = objects.get(kind, keys)
    missing = [key for key, value in zip(keys, found, strict=True) if value is None]
    if missing:
        raise NotFound(f"there is no {kind.singular} {', '.join(missing)}")
    return [
        value for value in found if value is not None and wish.matching.matches(value["metadata"].get("labels", {}))
    ]


def _key(kind: kinds.Kind, value: Object) -> str:
    return kind.key(value["metadata"].get("namespace", ""), value["metadata"]["name"])


def _changes(cluster: StandaloneCluster, kind: kinds.Kind, version: int) -> Iterator[tuple[kinds.Kind, str]]:
    while True:
        events, version = cluster.watch(version, WATCH_S)
        for event in events:
            if event.kind == kind.name:
                yield kind, event.key


class _Printer:
    """Prints objects the way that was asked for; rows of changes line up with the table before them."""

    def __init__(self, store: Store, output: Output, wish: Wish) -> None:
        self._store = store
        self._output = output
        self._wish = wish
        self._widths: list[int] = []

    def print_all(self, found: Sequence[tuple[kinds.Kind, list[Object]]]) -> None:
        if self._output in (Output.JSON, Output.YAML):
            values = [value for _, values in found for value in values]
            single = len(values) == 1 and len(self._wish.names) == 1
            self._print_object(values[0] if single else {"apiVersion": "v1", "kind": "List", "items": values})
        elif not any(values for _, values in found):
            inside = self._wish.namespace is not None and any(kind.namespaced for kind, _ in found)
            place = f" in namespace {self._wish.namespace}" if inside else ""
            console.err.print(f"No resources found{place}.", markup=False)
        elif self._output is Output.NAME:
            for kind, values in found:
                for value in values:
                    console.out.out(f"{kind.singular}/{value['metadata']['name']}")
        else:
            self._print_tables([(kind, values) for kind, values in found if values])

    def print_change(self, kind: kinds.Kind, key: str) -> None:
        (value,) = Objects(self._store).get(kind, [key])
        if value is None:
            if self._wish.takes(kind, key, {"metadata": {}}):
                console.out.out(f"{kind.singular}/{key} deleted")
        elif self._wish.takes(kind, key, value):
            if self._output in (Output.TABLE, Output.WIDE):
                for row in self._rows(kind, [value]):
                    self._widths = self._widths or [len(cell) for cell in row]
                    console.out.out(columns.line(row, self._widths))
            elif self._output is Output.NAME:
                console.out.out(f"{kind.singular}/{value['metadata']['name']}")
            else:
                if self._output is Output.YAML:
                    console.write("---")
                self._print_object(value)

    def _print_tables(self, found: Sequence[tuple[kinds.Kind, list[Object]]]) -> None:
        for number, (kind, values) in enumerate(found):
            if number:
                console.out.out("")
            table = [self._titles(kind), *self._rows(kind, values)]
            self._widths = columns.widths(table)
            console.out.out("\n".join(columns.line(row, self._widths) for row in table))

    def _columns(self, kind: kinds.Kind) -> list[columns.Column]:
        return columns.of(kind, wide=self._output is Output.WIDE, namespaced=self._wish.namespace is None)

    def _titles(self, kind: kinds.Kind) -> list[str]:
        if kind is kinds.QUEUE:
            return queues.titles(wide=self._output is Output.WIDE)
        return [column.title for column in self._columns(kind)]

    def _rows(self, kind: kinds.Kind, values: Sequence[Object]) -> list[list[str]]:
        if kind is kinds.QUEUE:
            return queues.rows(values, SystemClock().now_ms(), wide=self._output is Output.WIDE)
        used: columns.Used = {}
        if kind is kinds.NODE:
            options.count_as_leader(self._store)
            used = columns.used_by_node(Objects(self._store).pods(console.left_out))
        held: frozenset[str] = frozenset()
        if kind is kinds.RESOURCE_SLICE and self._output is Output.WIDE:
            held = columns.held_devices(Objects(self._store).all_of(kinds.RESOURCE_CLAIM, None, console.left_out))
        grouped: dict[str, tuple[int, int]] = {}
        if kind is kinds.POD_GROUP and self._output is Output.WIDE:
            grouped = columns.pods_by_group(Objects(self._store).pods(console.left_out))
        return columns.rows(values, self._columns(kind), columns.View(SystemClock().now_ms(), used, held, grouped))

    def _print_object(self, value: Object) -> None:
        console.write(forms.as_json(value) if self._output is Output.JSON else forms.as_yaml(value))
