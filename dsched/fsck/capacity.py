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
"""

from collections.abc import Iterator, Sequence

from dsched.framework.pod_info import HostPort
from dsched.fsck.findings import Finding, Invariant, Kind
from dsched.fsck.profiles import PORTS, Profiles
from dsched.fsck.view import Resident, SeenNode, SeenPod, View, charged, shown

_I3 = Invariant.NO_OVERCOMMIT
_ANY_ADDRESS = "0.0.0.0"
_NOT_OURS = "by what manifests say or the profile leaves out, not by the scheduler"

SLACK_MS = 10_000
"""So long before a pod is placed the leader must have heard of another one: binding takes time, and clocks differ."""


def check(view: View, profiles: Profiles) -> Iterator[Finding]:
    """What breaks it, and notes."""
    for name, residents in view.residents.items():
        node = view.nodes.get(name)
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
