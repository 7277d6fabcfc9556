"""``dsched describe``: everything about one pod or node, the scheduler's record of it included."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import typer

from dsched.arithmetic import requests
from dsched.cli import choosing, console, forms, options
from dsched.cli.render import columns
from dsched.clock import SystemClock
from dsched.cluster.standalone.objects import Objects, StoredEvent, read_pod
from dsched.errors import NotFound
from dsched.manifests import kinds
from dsched.model.meta import PodKey
from dsched.model.pod import Pod
from dsched.observe.words import amount, duration
from dsched.state import client, keys
from dsched.state.client import Store

_NONE = "<none>"
_LABEL_WIDTH = 20

Object = Mapping[str, Any]


class Output(StrEnum):
    """How the description is printed."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


Printed = Annotated[Output, typer.Option("--output", "-o", help="How to print it.")]


class DescribedPod(msgspec.Struct, frozen=True):
    """
    Attributes:
        pod: the object.
        status: as ``dsched get`` shows it.
        requests: what the pod asks for, CPU in milli-units.
        record: what the scheduler knows of it while it is pending; empty where that is nothing.
        events: newest first; times in ms since the epoch.
    """

    pod: Object
    status: str
    requests: Mapping[str, int]
    record: Mapping[str, str]
    events: Sequence[StoredEvent]


class PodThere(msgspec.Struct, frozen=True):
    """A pod of a node, and what it asks for, CPU in milli-units."""

    pod: str
    priority: int
    requests: Mapping[str, int]


class DescribedNode(msgspec.Struct, frozen=True):
    """
    Attributes:
        node: the object.
        status: as ``dsched get`` shows it.
        used, allocatable: what of the node is in use, and what it has, CPU in milli-units.
        pods: highest priority first.
    """

    node: Object
    status: str
    used: Mapping[str, int]
    allocatable: Mapping[str, int]
    pods: Sequence[PodThere]


def register(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.add_typer(group, name="describe")


group = typer.Typer(no_args_is_help=True, help="Everything about one pod or node.")


@group.command("pod", epilog="Example: dsched describe pod shop/web-1")
def pod(
    wanted: Annotated[str, typer.Argument(metavar="[NS/]NAME", show_default=False)],
    namespace: choosing.Namespace = None,
    output: Printed = Output.TEXT,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
) -> None:
    """Show a pod: what it asks for, where it is, what the scheduler knows and said about it."""
    store = options.open_objects(redis_url, data_dir, name, "kubectl describe")
    (key,) = choosing.keys(kinds.POD, [wanted], namespace)
    options.count_as_leader(store)
    objects = Objects(store)
    (raw,) = objects.get_pods([key])
    (value,) = objects.get(kinds.POD, [key])
    if value is None or raw is None:
        raise NotFound(f"there is no pod {key}")
    record, parsed, events = _record(store, key), read_pod(*raw), objects.events(PodKey(key))
    if output is not Output.TEXT:
        told = DescribedPod(value, columns.pod_status(value), requests.usage(parsed), record, events)
        console.write(forms.as_json(told) if output is Output.JSON else forms.as_yaml(told))
        return
    now_ms = SystemClock().now_ms()
    _print_facts(pod_facts(value, parsed, now_ms))
    _print_section("Conditions", _conditions(value))
    _print_section("Scheduling record", (f"{field}: {text}" for field, text in sorted(record.items())))
    _print_section("Events", (event_line(event, now_ms) for event in events))


@group.command("node", epilog="Example: dsched describe node n1")
def node(
    wanted: Annotated[str, typer.Argument(metavar="NAME", show_default=False)],
    output: Printed = Output.TEXT,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
) -> None:
    """Show a node: labels, taints, what it has, what of it is in use, and its pods."""
    store = options.open_objects(redis_url, data_dir, name, "kubectl describe")
    options.count_as_leader(store)
    objects = Objects(store)
    (value,) = objects.get(kinds.NODE, [wanted])
    if value is None:
        raise NotFound(f"there is no node {wanted}")
    pods = [found for found in objects.pods(console.left_out) if found.node_name == wanted]
    used = columns.used_by_node(pods).get(wanted, {"pods": 0})
    if output is not Output.TEXT:
        there = [PodThere(each.key, each.spec.priority, requests.usage(each)) for each in _by_priority(pods)]
        told = DescribedNode(value, columns.node_status(value), used, columns.allocatable(value), there)
        console.write(forms.as_json(told) if output is Output.JSON else forms.as_yaml(told))
        return
    _print_facts(node_facts(value, SystemClock().now_ms()))
    _print_table("Resources", ["RESOURCE", "USED", "ALLOCATABLE"], resource_rows(value, used))
    _print_table("Pods", ["POD", "PRIORITY", "REQUESTS"], pod_rows(pods))


def pod_facts(value: Object, record: Pod, now_ms: int) -> Iterator[tuple[str, Iterable[str]]]:
    """Labels and lines of what a pod is and asks for."""
    metadata, spec = value["metadata"], value["spec"]
    yield "Name", [metadata["name"]]
    yield "Namespace", [metadata["namespace"]]
    yield "UID", [metadata["uid"]]
    yield "Created", [f"{metadata.get('creationTimestamp', '')} ({_age(metadata, now_ms)} ago)"]
    yield "Labels", _pairs(metadata.get("labels", {}))
    yield "Status", [columns.pod_status(value)]
    yield "Node", [spec.get("nodeName", _NONE)]
    if value["status"].get("nominatedNodeName"):
        yield "Nominated Node", [value["status"]["nominatedNodeName"]]
    yield "Scheduler", [spec.get("schedulerName", "")]
    priority_class = f" ({spec['priorityClassName']})" if "priorityClassName" in spec else ""
    yield "Priority", [f"{spec.get('priority', 0)}{priority_class}"]
    yield "Requests", [f"{each}={amount(each, count)}" for each, count in requests.usage(record).items()]
    yield "Node-Selectors", _pairs(spec.get("nodeSelector", {}))
    yield "Tolerations", [toleration_text(each) for each in spec.get("tolerations", ())]
    yield "Scheduling Gates", [each["name"] for each in spec.get("schedulingGates", ())]


def node_facts(value: Object, now_ms: int) -> Iterator[tuple[str, Iterable[str]]]:
    """Labels and lines of what a node is."""
    metadata = value["metadata"]
    yield "Name", [metadata["name"]]
    yield "Created", [f"{metadata.get('creationTimestamp', '')} ({_age(metadata, now_ms)} ago)"]
    yield "Status", [columns.node_status(value)]
    yield "Labels", _pairs(metadata.get("labels", {}))
    taints = value.get("spec", {}).get("taints", ())
    yield "Taints", [f"{each.get('key')}={each.get('value', '')}:{each.get('effect')}" for each in taints]


def resource_rows(value: Object, used: Mapping[str, int]) -> list[list[str]]:
    """A row for each resource that the node has or that is used on it."""
    has = columns.allocatable(value)
    return [
        [name, amount(name, used.get(name, 0)), amount(name, has.get(name, 0))]
        for name in sorted(has.keys() | used.keys())
    ]


def pod_rows(pods: Sequence[Pod]) -> list[list[str]]:
    """A row for each pod, highest priority first."""
    return [[each.key, str(each.spec.priority), _requests(each)] for each in _by_priority(pods)]


def event_line(event: StoredEvent, now_ms: int) -> str:
    """An event as one line: how long ago, how often, what."""
    ago = duration((now_ms - event.last_ms) / 1000)
    times = f" (x{event.count} over {duration((now_ms - event.first_ms) / 1000)})" if event.count > 1 else ""
    return f"{event.type}  {event.reason}  {ago}{times}  {event.message}"


def toleration_text(toleration: Object) -> str:
    """A toleration as kubectl writes it: ``key=value:effect op=Exists for 300s``."""
    value = f"={toleration['value']}" if toleration.get("value") else ""
    effect = f":{toleration['effect']}" if toleration.get("effect") else ""
    operator = " op=Exists" if toleration.get("operator") == "Exists" else ""
    seconds = toleration.get("tolerationSeconds")
    return f"{toleration.get('key', '')}{value}{effect}{operator}" + ("" if seconds is None else f" for {seconds}s")


def _by_priority(pods: Iterable[Pod]) -> list[Pod]:
    return sorted(pods, key=lambda each: (-each.spec.priority, each.key))


def _requests(each: Pod) -> str:
    amounts = requests.usage(each).items()
    return ",".join(f"{resource}={amount(resource, count)}" for resource, count in amounts)


def _record(store: Store, key: str) -> dict[str, str]:
    with client.reachable(store):
        found = store.redis.hgetall(store.key(keys.POD.name + key))
    return {field.decode(): text.decode(errors="replace") for field, text in found.items()}


def _conditions(value: Object) -> Iterator[str]:
    for each in value["status"].get("conditions", ()):
        why = ": ".join(filter(None, (each.get("reason"), each.get("message"))))
        yield f"{each.get('type')}={each.get('status')}" + (f"  {why}" if why else "")


def _age(metadata: Object, now_ms: int) -> str:
    return columns.age(metadata.get("creationTimestamp", ""), now_ms)


def _pairs(given: Mapping[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in sorted(given.items())]


def _print_facts(facts: Iterable[tuple[str, Iterable[str]]]) -> None:
    for title, texts in facts:
        first, *more = list(texts) or [_NONE]
        console.out.out(f"{title + ':':<{_LABEL_WIDTH}}{first}")
        for text in more:
            console.out.out(f"{'':<{_LABEL_WIDTH}}{text}")


def _print_section(title: str, lines: Iterable[str]) -> None:
    console.out.out(f"{title}:")
    for text in list(lines) or [_NONE]:
        console.out.out(f"  {text}")


def _print_table(title: str, header: list[str], rows: list[list[str]]) -> None:
    table = [header, *rows]
    widths = columns.widths(table)
    _print_section(title, (columns.line(row, widths) for row in table) if rows else ())
