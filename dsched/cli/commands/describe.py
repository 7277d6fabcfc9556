"""``dsched describe``: everything about one pod, node, pod group or queue, the scheduler's record of it included."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import typer

from dsched.arithmetic import requests
from dsched.cli import choosing, console, forms, options
from dsched.cli.render import columns, queues
from dsched.clock import SystemClock
from dsched.cluster.standalone.device_objects import StoredDevices
from dsched.cluster.standalone.objects import Objects, StoredEvent, read_pod
from dsched.errors import ConfigError, NotFound, PluginError
from dsched.manifests import kinds
from dsched.model import coscheduling
from dsched.model.meta import PodKey, from_builtins
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.model.pod_groups import GroupKey
from dsched.model.queue_forest import Forest
from dsched.observe import devices, promises
from dsched.observe.devices import NodeDevices, ShownClaim, ShownDevice, Taken
from dsched.observe.queue_pods import described, first_pods
from dsched.observe.words import amount, duration
from dsched.plugins.dynamic_resources.allocation import features as allocator_features
from dsched.plugins.dynamic_resources.allocation.device_index import DeviceIndex
from dsched.scheduler.ports import entity_key
from dsched.state import client, emulated, keys
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
        claims: for devices.
        events: newest first; times in ms since the epoch.
    """

    pod: Object
    status: str
    requests: Mapping[str, int]
    record: Mapping[str, str]
    events: Sequence[StoredEvent]
    claims: Sequence[ShownClaim] = ()


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
        devices: that its pods can use.
    """

    node: Object
    status: str
    used: Mapping[str, int]
    allocatable: Mapping[str, int]
    pods: Sequence[PodThere]
    devices: NodeDevices = NodeDevices()


class PodInGroup(msgspec.Struct, frozen=True):
    """A pod of a group, ``node`` empty while it has none."""

    pod: str
    node: str
    status: str
    priority: int


class DescribedGroup(msgspec.Struct, frozen=True):
    """
    Attributes:
        group: the object.
        status: as ``dsched get`` shows it.
        record: what the scheduler knows of it while pods of it wait; empty where that is nothing.
        pods: that have not ended, by name.
    """

    group: Object
    status: str
    record: Mapping[str, str]
    pods: Sequence[PodInGroup]


def register(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.add_typer(group, name="describe")


group = typer.Typer(no_args_is_help=True, help="Everything about one pod, node, pod group or queue.")


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
    claims = devices.claims_of(parsed, lambda keys: objects.get(kinds.RESOURCE_CLAIM, keys))
    if output is not Output.TEXT:
        told = DescribedPod(value, columns.pod_status(value), requests.usage(parsed), record, events, claims)
        console.write(forms.as_json(told) if output is Output.JSON else forms.as_yaml(told))
        return
    now_ms = SystemClock().now_ms()
    _print_facts(pod_facts(value, parsed, now_ms))
    _print_section("Conditions", _conditions(value))
    if claims:
        _print_table("Claims", ["NAME", "CLAIM", "STATE", "ASKS FOR", "HAS"], claim_rows(claims))
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
    offered = _devices(store, from_builtins(value, Node), pods)
    if output is not Output.TEXT:
        there = [PodThere(each.key, each.spec.priority, requests.usage(each)) for each in _by_priority(pods)]
        told = DescribedNode(value, columns.node_status(value), used, columns.allocatable(value), there, offered)
        console.write(forms.as_json(told) if output is Output.JSON else forms.as_yaml(told))
        return
    _print_facts(node_facts(value, SystemClock().now_ms()))
    _print_table("Resources", ["RESOURCE", "USED", "ALLOCATABLE"], resource_rows(value, used))
    if offered.devices or offered.problems:
        _print_table("Devices", ["DEVICE", "STATE", "CLAIM", "PODS", "WHAT IT IS"], device_rows(offered))
        for problem in offered.problems:
            console.out.out(f"  {problem}")
    if offered.counters:
        _print_table("Shared counters", ["POOL", "COUNTER", "LEFT", "OF"], counter_rows(offered))
    _print_table("Pods", ["POD", "PRIORITY", "REQUESTS"], pod_rows(pods))


@group.command("podgroup", epilog="Example: dsched describe podgroup shop/train")
def podgroup(
    wanted: Annotated[str, typer.Argument(metavar="[NS/]NAME", show_default=False)],
    namespace: choosing.Namespace = None,
    output: Printed = Output.TEXT,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
) -> None:
    """Show a pod group: what it asks for, what the scheduler knows and said about it, and its pods."""
    store = options.open_objects(redis_url, data_dir, name, "kubectl describe")
    (key,) = choosing.keys(kinds.POD_GROUP, [wanted], namespace)
    objects = Objects(store)
    (value,) = objects.get(kinds.POD_GROUP, [key])
    if value is None:
        raise NotFound(f"there is no podgroup {key}")
    record, pods = _record(store, entity_key(GroupKey(key))), pods_of_group(key, objects.pods(console.left_out))
    if output is not Output.TEXT:
        told = DescribedGroup(value, columns.group_status(value), record, pods)
        console.write(forms.as_json(told) if output is Output.JSON else forms.as_yaml(told))
        return
    _print_facts(group_facts(value, SystemClock().now_ms()))
    _print_section("Conditions", _conditions(value))
    _print_section("Scheduling record", (f"{field}: {text}" for field, text in sorted(record.items())))
    rows = [[each.pod, each.status, each.node or _NONE, str(each.priority)] for each in pods]
    _print_table("Pods", ["POD", "STATUS", "NODE", "PRIORITY"], rows)


@group.command("queue", epilog="Example: dsched describe queue train")
def queue(
    wanted: Annotated[str, typer.Argument(metavar="NAME", show_default=False)],
    output: Printed = Output.TEXT,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
) -> None:
    """Show a queue: its place in the tree, its rules, of each resource what it is to have and what it has, and the pods
    that come next."""
    store = options.open_objects(redis_url, data_dir, name, "kubectl describe")
    objects = Objects(store)
    forest = Forest(objects.all_of(kinds.QUEUE, left_out=console.left_out))
    namespaces = objects.all_of(kinds.NAMESPACE, left_out=console.left_out)
    first = first_pods(objects.pods(console.left_out), namespaces, kueue=_takes_kueue_label(store))
    told = described(store, forest, wanted, first)
    if output is not Output.TEXT:
        console.write(forms.as_json(told) if output is Output.JSON else forms.as_yaml(told))
        return
    _print_facts(queues.facts(told.queue, told.path, told.children, SystemClock().now_ms()))
    _print_table("Resources", list(queues.OF_RESOURCE), queues.resource_rows(told.queue))
    rows = [[each.pod, each.place or _NONE, str(each.priority), each.waits_for or _NONE] for each in told.next_pods]
    _print_table("Next pods", ["POD", "PLACE", "PRIORITY", "WAITS FOR"], rows)


def _takes_kueue_label(store: Store) -> bool:
    """Whether the leader reads Kueue's label; said to be unknown where its configuration cannot be read here."""
    from dsched.plugins import registry  # which takes as long to import as all the rest
    from dsched.plugins.fair_share.plugin import takes_kueue_label
    from dsched.simulation.configured import LeadersConfiguration

    try:
        return takes_kueue_label(LeadersConfiguration(store, registry.load()).read().config)
    except (ConfigError, PluginError) as error:
        console.err.print(
            f"note: pods that Kueue's label alone puts into a queue are not told of, be they or not: {error}",
            markup=False,
        )
        return False


def group_facts(value: Object, now_ms: int) -> Iterator[tuple[str, Iterable[str]]]:
    """Labels and lines of what a pod group is and asks for."""
    metadata, spec = value["metadata"], value["spec"]
    yield "Name", [metadata["name"]]
    yield "Namespace", [metadata["namespace"]]
    yield "UID", [metadata["uid"]]
    yield "Created", [f"{metadata.get('creationTimestamp', '')} ({_age(metadata, now_ms)} ago)"]
    yield "Labels", _pairs(metadata.get("labels", {}))
    yield "Status", [columns.group_status(value)]
    gang = spec.get("schedulingPolicy", {}).get("gang")
    yield "Policy", [columns.group_policy(value) if gang is None else f"Gang of at least {gang.get('minCount')}"]
    yield "Topology", [columns.topology(value) or _NONE]
    together = "all" in spec.get("disruptionMode", {})
    yield "Disruption", ["all pods together" if together else "each pod by itself"]
    yield "Priority", [_priority(spec)]
    if "workloadRef" in spec:
        yield "Workload", [f"{spec['workloadRef'].get('workloadName')}/{spec['workloadRef'].get('templateName')}"]


def pods_of_group(key: str, pods: Iterable[Pod]) -> list[PodInGroup]:
    """The pods of a group that have not ended, by name."""
    mine = {each.key: each for each in pods if coscheduling.group_key(each) == key and not each.finished}
    return [
        PodInGroup(name, each.node_name, columns.pod_status(msgspec.to_builtins(each)), each.spec.priority)
        for name, each in sorted(mine.items())
    ]


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
    if "schedulingGroup" in spec:
        yield "Pod Group", [spec["schedulingGroup"].get("podGroupName", _NONE)]
    yield "Priority", [_priority(spec)]
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


def claim_rows(claims: Sequence[ShownClaim]) -> list[list[str]]:
    """A row for each claim of a pod."""
    return [
        [
            each.name,
            each.claim or _NONE,
            "; ".join(filter(None, (each.state, each.problem))),
            "; ".join(each.requests) or _NONE,
            ",".join(device.device for device in each.devices) or _NONE,
        ]
        for each in claims
    ]


def device_rows(offered: NodeDevices) -> list[list[str]]:
    """A row for each device of a node, and what it is in short."""
    return [
        [
            f"{each.driver}/{each.pool}/{each.device}",
            each.state,
            ",".join(dict.fromkeys(holder.claim for holder in each.holders if holder.claim)) or _NONE,
            ",".join(
                f"{pod}{' (promised)' if holder.promised else ''}" for holder in each.holders for pod in holder.pods
            )
            or _NONE,
            ",".join(_about(each)) or _NONE,
        ]
        for each in offered.devices
    ]


def counter_rows(offered: NodeDevices) -> list[list[str]]:
    """A row for each counter that devices of a node share."""
    return [
        [f"{each.driver}/{each.pool}", f"{each.counter_set}/{each.counter}", each.left, each.value]
        for each in offered.counters
    ]


def _about(device: ShownDevice) -> Iterator[str]:
    yield from (f"{name}={value}" for name, value in device.attributes.items())
    for name, value in device.capacity.items():
        yield f"{name}={device.left[name]}/{value}" if name in device.left else f"{name}={value}"
    yield from device.taints


def _devices(store: Store, node: Node, pods: Sequence[Pod]) -> NodeDevices:
    stored = StoredDevices(store)
    slices = stored.slices(node.name)
    if not slices:
        return NodeDevices()
    index = DeviceIndex(allocator_features.of(emulated.read(store)))
    index.update(slices, stored.rules())
    taken = Taken(stored.claims({pool.pool for pool in index.pool_ids}), promises.read(store))
    return devices.on_node(node, index, taken, most=sys.maxsize)


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


def _priority(spec: Object) -> str:
    priority_class = f" ({spec['priorityClassName']})" if "priorityClassName" in spec else ""
    return f"{spec.get('priority', 0)}{priority_class}"


def _requests(each: Pod) -> str:
    amounts = requests.usage(each).items()
    return ",".join(f"{resource}={amount(resource, count)}" for resource, count in amounts)


def _record(store: Store, key: str) -> dict[str, str]:
    with client.reachable(store):
        found = store.redis.hgetall(store.key(keys.POD.name + key))
    return {field.decode(): text.decode(errors="replace") for field, text in found.items()}


def _conditions(value: Object) -> Iterator[str]:
    for each in value.get("status", {}).get("conditions", ()):
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
