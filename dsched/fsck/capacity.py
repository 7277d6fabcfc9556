"""I3: bound and reserved pods stay within what their node has, by the objects alone.

Not every node that is overfull is the scheduler's fault: manifests may name a node themselves, shrink a node, or raise
what a bound pod requests (a resize). What Redis keeps tells these apart:

* a stored pod whose manifest names its node was put there by the manifest; the scheduler writes the node elsewhere;
* a pod's version is that of its binding until a manifest changes it, so a pod bound after the node's last change was
  placed on the node as it is now.

Of an extended resource that a node has nothing of, a pod gets devices instead (I12): its status says so, or devices are
held for the pod itself while it is reserved.

The scheduler is to blame for a pod when the pods that it had placed there until then, and those that manifests had put
there `SLACK_MS` before, together request more of something that this pod requests, too, than the node has, and the
node has not changed since. Bound pods that a manifest changed later count as the manifest's, without a time. What is
overfull without such a pod is told as a note. A node that shrinks between reserving and binding looks like a breach.

The other half of I3 is that what reservations are checked against, ``node:NAME``, says what the objects say. That is
judged for nodes that do not change while they are looked at: a finding names the node's version, which every charge
moves. A node with a reservation whose pod is gone is passed over: what it charges is not known any more.

Nodes whose pods together request more of something than a number of 64 bits holds are told as notes. The scheduler
counts such a sum as 2^63-1, so nothing that requests the resource is placed there, and keeps the exact one to be right
again when pods go. kube-scheduler's int64 wraps around, so there such a node can look free.
"""

from collections.abc import Iterator, Mapping, Sequence

from dsched.framework.pod_info import HostPort
from dsched.fsck.findings import Finding, Invariant, Kind
from dsched.fsck.profiles import PORTS, Profiles
from dsched.fsck.view import Amounts, Resident, SeenNode, SeenPod, View, charged, shown
from dsched.model.meta import NodeName
from dsched.model.quantity import LARGEST

_I3 = Invariant.NO_OVERCOMMIT
_ANY_ADDRESS = "0.0.0.0"
_NOT_OURS = "by what manifests say or the profile leaves out, not by the scheduler"

SLACK_MS = 10_000
"""So long before a pod is placed the leader must have heard of another one: binding takes time, and clocks differ."""
_USED, _ALLOCATABLE = "used.", "allocatable."
PODS_NAMED = 5
"""So many pods are named, those that request most."""


def check(view: View, profiles: Profiles) -> Iterator[Finding]:
    """What breaks it, and notes."""
    for name, residents in view.residents.items():
        node = view.objects.nodes.get(name)
        if node is None:
            bound = sum(not resident.reserved for resident in residents)
            if bound:
                told = f"pods are bound to it ({bound}), and there is no such node"
                yield Finding(_I3, Kind.NODE, name, "no such node", told, breach=False)
            continue
        total: dict[str, int] = {}
        for resident in residents:
            for resource, amount in charged(resident.pod):
                total[resource] = total.get(resource, 0) + amount
        for resource, amount in total.items():
            size = node.allocatable.get(resource, 0)
            if amount > size:
                having = [each for each in residents if _amount(each, resource)]
                having = [each for each in having if size or not _has_devices(view, each.pod, resource)]
                if having:
                    yield _overfull(node, having, resource, profiles)
        if any(resident.pod.demand.ports for resident in residents):
            yield from _ports(name, residents, profiles)


def _has_devices(view: View, pod: SeenPod, resource: str) -> bool:
    return resource in pod.by_devices or pod.uid in view.devices.ledger.held.get(pod.uid, ())


def _overfull(node: SeenNode, having: Sequence[Resident], resource: str, profiles: Profiles) -> Finding:
    total = sum(_amount(resident, resource) for resident in having)
    reserved = sum(resident.reserved for resident in having)
    size = node.allocatable.get(resource, 0)
    told = (
        f"its pods ({len(having) - reserved} bound, {reserved} reserved) request {shown(resource, total)} of {resource}"
    )
    told += f", {shown(resource, size)} are allocatable"
    culprit = _culprit(node, having, resource, size, profiles)
    if culprit is None:
        return Finding(_I3, Kind.NODE, node.name, resource, f"{told}; {_NOT_OURS}", breach=False)
    return Finding(_I3, Kind.NODE, node.name, resource, f"{told}; {culprit.pod.key} was placed without room for it")


def _culprit(
    node: SeenNode, having: Sequence[Resident], resource: str, size: int, profiles: Profiles
) -> Resident | None:
    """The first pod that was placed although its node, as it is now, had no room for it."""
    theirs = [each for each in having if each.pod.by_manifest]
    used = 0
    for resident in sorted(filter(_placed, having), key=_since):
        used += _amount(resident, resource)
        found = sum(_amount(each, resource) for each in theirs if _was_there(each, resident))
        fresh = _placed_at(resident) > node.version
        if used + found > size and fresh and profiles.checks(resident.pod.scheduler, resource):
            return resident
    return None


def _since(resident: Resident) -> tuple[int, str]:
    return resident.since_ms, resident.pod.key


def _placed(resident: Resident) -> bool:
    """Whether the scheduler chose the node, for what the pod requests now."""
    return not resident.pod.by_manifest and not resident.pod.changed_since_bound


def _placed_at(resident: Resident) -> int:
    """The version of its binding; of a reserved pod that of its manifest, which came before."""
    return resident.pod.applied if resident.reserved else resident.pod.version


def _was_there(other: Resident, resident: Resident) -> bool:
    """Whether a manifest had put the other pod there, as it is now, well before this one was placed."""
    return other.since_ms + SLACK_MS <= resident.since_ms and other.pod.version < _placed_at(resident)


def _ports(node: str, residents: Sequence[Resident], profiles: Profiles) -> Iterator[Finding]:
    """Host ports that two pods take; ports never change, so whoever was placed later is to blame."""
    takers: dict[tuple[str, int], list[tuple[HostPort, Resident]]] = {}
    for resident in sorted(residents, key=_since):
        for port in resident.pod.demand.ports:
            takers.setdefault((port.protocol, port.port), []).append((port, resident))
    for (protocol, number), taken in takers.items():
        for index, (port, later) in enumerate(taken):
            for other, earlier in taken[:index]:
                if earlier is not later and _meet(port, other):
                    yield _clash(node, f"{number}/{protocol}", earlier, later, profiles)


def _meet(one: HostPort, other: HostPort) -> bool:
    return one.ip == other.ip or _ANY_ADDRESS in (one.ip, other.ip)


def _clash(node: str, port: str, earlier: Resident, later: Resident, profiles: Profiles) -> Finding:
    rule = f"port {port} {earlier.pod.uid} {later.pod.uid}"
    told = f"{earlier.pod.key} and {later.pod.key} both take host port {port}"
    slack_ms = SLACK_MS if earlier.pod.by_manifest else 0
    blamed = not later.pod.by_manifest and later.since_ms >= earlier.since_ms + slack_ms
    if blamed and profiles.checks(later.pod.scheduler, PORTS):
        return Finding(_I3, Kind.NODE, node, rule, told)
    return Finding(_I3, Kind.NODE, node, rule, f"{told}; {_NOT_OURS}", breach=False)


def _amount(resident: Resident, resource: str) -> int:
    return next((amount for name, amount in charged(resident.pod) if name == resource), 0)


def check_usage(view: View) -> Iterator[Finding]:
    """Where what Redis says of nodes is not what the objects say."""
    unclear = {each.node for each in view.reservations.values() if view.owner(each.uid, each.key) is None}
    for node in view.objects.nodes.values():
        usage = view.usage.get(node.name)
        if usage is None:
            what = f"there is no usage of it in Redis (node:{node.name})"
            yield Finding(_I3, Kind.NODE, node.name, "no usage", what, node.version)
            continue
        version = usage.get("version", "")
        found = _differences(_amounts(usage, _ALLOCATABLE), node.allocatable)
        if found:
            what = f"node:{node.name} has allocatable {found}"
            yield Finding(_I3, Kind.NODE, node.name, f"allocatable {version}", what, node.version)
        found = _differences(_amounts(usage, _USED), _requested(view, node.name))
        if found and node.name not in unclear:
            what = f"node:{node.name} counts {found}"
            yield Finding(_I3, Kind.NODE, node.name, f"used {version}", what, view.version)
    for name in view.usage.keys() - view.objects.nodes.keys():
        what = f"its usage is kept (node:{name}), and there is no such node"
        yield Finding(_I3, Kind.NODE, name, "no node", what, view.version)


def _requested(view: View, node: NodeName) -> dict[str, int]:
    total: dict[str, int] = {}
    for resident in view.residents.get(node, ()):
        for resource, amount in charged(resident.pod):
            total[resource] = total.get(resource, 0) + amount
    return total


def _amounts(fields: Mapping[str, str], prefix: str) -> dict[str, int | str]:
    given = {name.removeprefix(prefix): text for name, text in fields.items() if name.startswith(prefix)}
    return {name: _number(text) for name, text in given.items()}


def _number(text: str) -> int | str:
    """A number, or what somebody else has put in its place, in quotes."""
    try:
        return int(text)
    except ValueError:
        return repr(text)


def _differences(kept: Mapping[str, int | str], true: Amounts) -> str:
    """What differs, in words; a resource that is not named is 0."""
    return ", ".join(
        f"{name} {_text(name, kept.get(name, 0))} instead of {_text(name, true.get(name, 0))}"
        for name in sorted(kept.keys() | true.keys())
        if kept.get(name, 0) != true.get(name, 0)
    )


def _text(resource: str, amount: int | str) -> str:
    return amount if isinstance(amount, str) else shown(resource, amount)


def check_sums(view: View) -> Iterator[Finding]:
    """Notes of what no number of 64 bits holds: manifests ask for so much, not the scheduler."""
    for name in view.residents.keys() & view.objects.nodes.keys():
        asking: dict[str, list[tuple[int, str]]] = {}
        for resident in view.residents[name]:
            for resource, amount in charged(resident.pod):
                asking.setdefault(resource, []).append((amount, resident.pod.key))
        for resource, pods in asking.items():
            total = sum(amount for amount, _ in pods)
            if total > LARGEST:
                yield Finding(
                    Invariant.NO_OVERCOMMIT,
                    Kind.NODE,
                    name,
                    f"sum of {resource}",
                    _sum_told(resource, total, pods),
                    breach=False,
                )


def _sum_told(resource: str, total: int, pods: list[tuple[int, str]]) -> str:
    first = sorted(pods, key=lambda each: (-each[0], each[1]))
    named = ", ".join(f"{key} {shown(resource, amount)}" for amount, key in first[:PODS_NAMED])
    more = f" and {len(first) - PODS_NAMED} more" if len(first) > PODS_NAMED else ""
    return (
        f"its pods request {shown(resource, total)} of {resource} ({named}{more}), more than 64 bits hold; it "
        f"counts as {shown(resource, LARGEST)}, and nothing else that requests {resource} is placed there until some "
        "of them go"
    )
