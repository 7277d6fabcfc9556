"""Objects as rows of a table, as kubectl shows them. No I/O."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dsched.arithmetic import requests
from dsched.cluster.standalone.stored import POD_SCHEDULED
from dsched.manifests import kinds
from dsched.model import coscheduling, quantity
from dsched.model.meta import decoded
from dsched.model.pod import Pod
from dsched.model.pod_groups import DISRUPTION_TARGET, INITIALLY_SCHEDULED
from dsched.model.resource_claims import ResourceClaim
from dsched.observe.device_words import asked
from dsched.observe.words import amount, duration

Object = Mapping[str, Any]
Used = Mapping[str, Mapping[str, int]]
"""Node to resource to what its pods use: milli-units of CPU, units of the rest, ``pods`` among them."""

_NONE = "<none>"


@dataclass(frozen=True, slots=True)
class View:
    """What rows are made from besides the object.

    Attributes:
        now_ms: the time, since the epoch.
        used: what nodes have in use.
        held: devices that claims have, ``driver/pool/device``.
        grouped: group to how many of its pods have a node, and how many there are.
    """

    now_ms: int
    used: Used
    held: Collection[str] = frozenset()
    grouped: Mapping[str, tuple[int, int]] = field(default_factory=dict)


Cell = Callable[[Object, View], str]


@dataclass(frozen=True, slots=True)
class Column:
    """A column; wide ones show with ``-o wide`` only."""

    title: str
    cell: Cell
    wide: bool = False


def of(kind: kinds.Kind, *, wide: bool, namespaced: bool) -> list[Column]:
    """The columns of a kind; ``namespaced`` puts the namespace first."""
    first = [Column("NAMESPACE", _field("metadata", "namespace"))] if namespaced and kind.namespaced else []
    columns = _COLUMNS.get(kind, (_NAME, _AGE))
    return first + [column for column in columns if wide or not column.wide]


def rows(objects: Iterable[Object], columns: Sequence[Column], view: View) -> list[list[str]]:
    """A row of cells for each object."""
    return [[column.cell(value, view) for column in columns] for value in objects]


def widths(table: Iterable[Sequence[str]]) -> list[int]:
    """How wide each column has to be."""
    return [max(map(len, column)) for column in zip(*table, strict=True)]


def line(cells: Sequence[str], wide: Sequence[int]) -> str:
    """A row as text, three blanks between columns."""
    return "   ".join(cell.ljust(width) for cell, width in zip(cells, wide, strict=True)).rstrip()


def used_by_node(pods: Iterable[Pod]) -> dict[str, dict[str, int]]:
    """What the pods on each node use; pods that have ended use nothing."""
    used: dict[str, dict[str, int]] = {}
    for pod in pods:
        if not pod.spec.node_name or pod.finished:
            continue
        total = used.setdefault(pod.spec.node_name, {"pods": 0})
        total["pods"] += 1
        for resource, used_here in requests.usage(pod).items():
            total[resource] = quantity.saturated(total.get(resource, 0) + used_here)
    return used


def pods_by_group(pods: Iterable[Pod]) -> dict[str, tuple[int, int]]:
    """How many pods of each group have a node, and how many there are; pods that have ended are not of it any more."""
    found: dict[str, tuple[int, int]] = {}
    for pod in pods:
        key = coscheduling.group_key(pod)
        if key and not pod.finished:
            placed, there = found.get(key, (0, 0))
            found[key] = placed + bool(pod.spec.node_name), there + 1
    return found


def pod_status(pod: Object) -> str:
    """One word: Terminating, SchedulingGated, Scheduled (has a node and has not been seen running), else the phase."""
    phase = pod.get("status", {}).get("phase", "Pending")
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating"
    if phase != "Pending":
        return str(phase)
    if pod["spec"].get("nodeName"):
        return "Scheduled"
    return "SchedulingGated" if pod["spec"].get("schedulingGates") else "Pending"


def group_status(group: Object) -> str:
    """One word, as kubectl shows it: Pending, Unschedulable, Scheduled, or why it is being disrupted.

    Source: pkg/printers/internalversion/printers.go ``printPodGroup``.
    """
    conditions = {each.get("type"): each for each in group.get("status", {}).get("conditions", ())}
    if DISRUPTION_TARGET in conditions:
        return str(conditions[DISRUPTION_TARGET].get("reason", ""))
    if INITIALLY_SCHEDULED not in conditions:
        return "Pending"
    return "Scheduled" if conditions[INITIALLY_SCHEDULED].get("status") == "True" else "Unschedulable"


def group_policy(group: Object) -> str:
    """Gang or Basic."""
    return "Gang" if "gang" in group.get("spec", {}).get("schedulingPolicy", {}) else "Basic"


def group_refusal(group: Object) -> str:
    """Why a group was not placed, as the scheduler said last; empty when it said nothing, or placed it."""
    for condition in group.get("status", {}).get("conditions", ()):
        if condition.get("type") == INITIALLY_SCHEDULED and condition.get("status") != "True":
            return ": ".join(filter(None, (condition.get("reason"), condition.get("message"))))
    return ""


def node_status(node: Object) -> str:
    """Ready unless a condition denies it, and whether it is cordoned."""
    ready = next((each for each in node.get("status", {}).get("conditions", ()) if each.get("type") == "Ready"), None)
    words = ["Ready" if ready is None or ready.get("status") == "True" else "NotReady"]
    if node.get("spec", {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def refusal(pod: Object) -> str:
    """Why a pending pod has no node, as the scheduler said last; empty when it said nothing."""
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition.get("type") == POD_SCHEDULED and condition.get("status") == "False":
            return ": ".join(filter(None, (condition.get("reason"), condition.get("message"))))
    return ""


def age(timestamp: str, now_ms: int) -> str:
    """How long ago a time was, as kubectl writes it."""
    try:
        then = datetime.fromisoformat(timestamp)
    except ValueError:
        return "<unknown>"
    return duration(now_ms / 1000 - then.timestamp())


def held_devices(claims: Iterable[Object]) -> frozenset[str]:
    """Devices that claims have, as ``driver/pool/device``; those for an admin are not held."""
    return frozenset(
        f"{each.get('driver')}/{each.get('pool')}/{each.get('device')}"
        for claim in claims
        for each in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
        if not each.get("adminAccess")
    )


def allocatable(node: Object) -> dict[str, int]:
    """What a node has: milli-units of CPU, units of the rest."""
    given = node.get("status", {}).get("allocatable", {})
    amounts = {resource: quantity.amount(resource, quantity.nano(value)) for resource, value in given.items()}
    return {resource: quantity.saturated(amount) for resource, amount in amounts.items()}


def _field(*path: str) -> Cell:
    def cell(value: Object, view: View) -> str:
        found: Any = value
        for name in path:
            found = found.get(name, {}) if isinstance(found, Mapping) else {}
        return _NONE if found in ({}, "") else str(found)

    return cell


def _share(resource: str) -> Cell:
    def cell(node: Object, view: View) -> str:
        used = view.used.get(node["metadata"]["name"], {}).get(resource, 0)
        return f"{amount(resource, used)}/{amount(resource, allocatable(node).get(resource, 0))}"

    return cell


def _other_resources(node: Object, view: View) -> str:
    used = view.used.get(node["metadata"]["name"], {})
    rest = {name: count for name, count in allocatable(node).items() if name not in ("cpu", "memory", "pods")}
    return ",".join(f"{name}={amount(name, used.get(name, 0))}/{amount(name, count)}" for name, count in rest.items())


def _taints(node: Object, view: View) -> str:
    taints = node.get("spec", {}).get("taints", ())
    return ",".join(f"{each.get('key')}={each.get('value', '')}:{each.get('effect')}" for each in taints) or _NONE


def _claim(volume: Object, view: View) -> str:
    claim = volume.get("spec", {}).get("claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else _NONE


def _claim_state(claim: Object, view: View) -> str:
    """As kubectl shows it. Source: pkg/printers/internalversion/printers.go ``resourceClaimState``."""
    status = claim.get("status", {})
    deleting = ["deleted"] if claim["metadata"].get("deletionTimestamp") else []
    if "allocation" not in status:
        return ",".join([*deleting, "pending"])
    return ",".join([*deleting, "allocated", *(["reserved"] if status.get("reservedFor") else [])])


def _claimed_devices(claim: Object, view: View) -> str:
    results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    return ",".join(f"{each.get('driver')}/{each.get('pool')}/{each.get('device')}" for each in results) or _NONE


def _consumers(claim: Object, view: View) -> str:
    return ",".join(each.get("name", "") for each in claim.get("status", {}).get("reservedFor", ())) or _NONE


def _offered_devices(offered: Object, view: View) -> str:
    return str(len(offered.get("spec", {}).get("devices", ())))


def _held_devices(offered: Object, view: View) -> str:
    spec = offered.get("spec", {})
    of_pool = f"{spec.get('driver')}/{spec.get('pool', {}).get('name')}"
    return str(sum(f"{of_pool}/{each.get('name')}" in view.held for each in spec.get("devices", ())))


def _claim_requests(claim: Object, view: View) -> str:
    record = decoded(claim, ResourceClaim)
    return "; ".join(map(asked, record.spec.devices.requests)) or _NONE


def _selectors(cls: Object, view: View) -> str:
    found = (each.get("cel", {}).get("expression", "") for each in cls.get("spec", {}).get("selectors", ()))
    return " && ".join(" ".join(each.split()) for each in found) or _NONE


def _group_pods(group: Object, view: View) -> str:
    metadata = group["metadata"]
    placed, there = view.grouped.get(f"{metadata.get('namespace', '')}/{metadata['name']}", (0, 0))
    return f"{placed}/{there}"


def topology(group: Object) -> str:
    """The label of which the group's nodes have one value; empty where that is open."""
    constraints = group.get("spec", {}).get("schedulingConstraints", {}).get("topology", ())
    return ",".join(each.get("key", "") for each in constraints)


def _tainted(rule: Object, view: View) -> str:
    named = rule.get("spec", {}).get("deviceSelector", {})
    return "/".join(named.get(part) or "*" for part in ("driver", "pool", "device"))


_NAME = Column("NAME", _field("metadata", "name"))
_AGE = Column("AGE", lambda value, view: age(value["metadata"].get("creationTimestamp", ""), view.now_ms))
_CLASS = Column("STORAGECLASS", _field("spec", "storageClassName"))

_COLUMNS: Mapping[kinds.Kind, Sequence[Column]] = {
    kinds.POD: (
        _NAME,
        Column("STATUS", lambda pod, view: pod_status(pod)),
        Column("NODE", _field("spec", "nodeName")),
        _AGE,
        Column("PRIORITY", _field("spec", "priority"), wide=True),
        Column("NOMINATED NODE", _field("status", "nominatedNodeName"), wide=True),
        Column("REASON", lambda pod, view: refusal(pod) or _NONE, wide=True),
    ),
    kinds.NODE: (
        _NAME,
        Column("STATUS", lambda node, view: node_status(node)),
        Column("CPU", _share("cpu")),
        Column("MEMORY", _share("memory")),
        Column("PODS", _share("pods")),
        _AGE,
        Column("OTHER RESOURCES", lambda node, view: _other_resources(node, view) or _NONE, wide=True),
        Column("TAINTS", _taints, wide=True),
    ),
    kinds.PRIORITY_CLASS: (
        _NAME,
        Column("VALUE", lambda value, view: str(value.get("value", 0))),
        Column("GLOBAL-DEFAULT", lambda value, view: str(bool(value.get("globalDefault"))).lower()),
        _AGE,
    ),
    kinds.STORAGE_CLASS: (
        _NAME,
        Column("PROVISIONER", _field("provisioner")),
        Column("VOLUMEBINDINGMODE", _field("volumeBindingMode")),
        _AGE,
    ),
    kinds.PERSISTENT_VOLUME: (
        _NAME,
        Column("CAPACITY", _field("spec", "capacity", "storage")),
        Column("CLAIM", _claim),
        _CLASS,
        _AGE,
    ),
    kinds.PERSISTENT_VOLUME_CLAIM: (_NAME, Column("VOLUME", _field("spec", "volumeName")), _CLASS, _AGE),
    kinds.DEVICE_CLASS: (
        _NAME,
        Column("EXTENDED RESOURCE", _field("spec", "extendedResourceName")),
        _AGE,
        Column("SELECTORS", _selectors, wide=True),
    ),
    kinds.RESOURCE_SLICE: (
        _NAME,
        Column("NODE", _field("spec", "nodeName")),
        Column("DRIVER", _field("spec", "driver")),
        Column("POOL", _field("spec", "pool", "name")),
        Column("DEVICES", _offered_devices),
        _AGE,
        Column("GENERATION", _field("spec", "pool", "generation"), wide=True),
        Column("SLICES", _field("spec", "pool", "resourceSliceCount"), wide=True),
        Column("HELD", _held_devices, wide=True),
    ),
    kinds.DEVICE_TAINT_RULE: (
        _NAME,
        Column("DEVICES", _tainted),
        Column("KEY", _field("spec", "taint", "key")),
        Column("EFFECT", _field("spec", "taint", "effect")),
        _AGE,
    ),
    kinds.RESOURCE_CLAIM: (
        _NAME,
        Column("STATE", _claim_state),
        _AGE,
        Column("REQUESTS", _claim_requests, wide=True),
        Column("DEVICES", _claimed_devices, wide=True),
        Column("RESERVED FOR", _consumers, wide=True),
    ),
    kinds.POD_GROUP: (
        _NAME,
        Column("POLICY", lambda group, view: group_policy(group)),
        Column("WORKLOAD", _field("spec", "workloadRef", "workloadName")),
        Column("STATUS", lambda group, view: group_status(group)),
        _AGE,
        Column("MIN COUNT", _field("spec", "schedulingPolicy", "gang", "minCount"), wide=True),
        Column("PODS", _group_pods, wide=True),
        Column("PRIORITY", _field("spec", "priority"), wide=True),
        Column("TOPOLOGY", lambda group, view: topology(group) or _NONE, wide=True),
        Column("REASON", lambda group, view: group_refusal(group) or _NONE, wide=True),
    ),
    kinds.POD_DISRUPTION_BUDGET: (
        _NAME,
        Column("ALLOWED DISRUPTIONS", lambda value, view: str(value.get("status", {}).get("disruptionsAllowed", 0))),
        _AGE,
    ),
}
