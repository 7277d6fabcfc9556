"""What if: manifests put beside what a running system has, and placed. Nothing of it is written anywhere.

The pods of the manifests are placed by the leader's own cycle over a copy of the cluster (`dsched.simulation.placing`);
one of them is explained (`dsched.simulation.explanation`), with the others where they would go.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from dsched.cluster.interface import Cluster, Listing
from dsched.config import SchedulerConfiguration
from dsched.errors import ManifestError, NotFound
from dsched.framework import pod_groups
from dsched.framework.extender import ReadObjects
from dsched.framework.interface import Registry
from dsched.framework.pod_info import PodInfo
from dsched.manifests import kinds
from dsched.manifests.load import Manifest
from dsched.model import meta
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.model.pod import Pod
from dsched.model.pod_groups import GroupKey, PodGroup
from dsched.scheduler.memory import Memory
from dsched.simulation.explanation import Explanation, explain
from dsched.simulation.from_manifests import ManifestCluster, given, oldest_first, resizes
from dsched.simulation.group_explanation import GroupExplanation, explain_group
from dsched.simulation.live_cluster import LiveCluster
from dsched.simulation.live_group import LiveGroup
from dsched.simulation.outcome import NEVER_TRIED, WITH_NODE, Ending, Outcome, PodOutcome
from dsched.simulation.placing import Simulation
from dsched.state import client, reservations
from dsched.state.client import Store

MOST_PODS = 200
"""Pods of the manifests that are placed at once."""
MOST_PENDING = 2000
"""Pods of the system that are tried with them."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What would become of the manifests.

    Attributes:
        outcome: of all pods that were tried or would be evicted.
        pods: keys of the manifests' pods that have no node.
        explained: one of them; None where none was tried.
        standing: what it was explained by.
        group: the pod group with which it is scheduled, and what that was explained by; None where it is of none.
    """

    outcome: Outcome
    pods: tuple[PodKey, ...]
    explained: Explanation | None = None
    standing: LiveCluster | None = None
    group: tuple[GroupExplanation, LiveGroup] | None = None


def propose(
    configured: SchedulerConfiguration,
    plugins: Registry,
    store: Store,
    cluster: Cluster,
    manifests: Sequence[Manifest],
    now_ms: int,
    *,
    seed: int = 0,
    wanted: PodKey | None = None,
    with_pending: bool = False,
) -> Proposal:
    """Place the manifests' pods that have no node on the system's cluster, with the manifests' other objects in it.

    An object of the manifests takes the place of one that the cluster has under the same name.

    Args:
        seed: of the choice among equals.
        wanted: the pod to explain; the first that finds no node, else the first, without it.
        with_pending: try the system's own pending pods, too; else these are left out, but for those of pod groups
            that pods of the manifests are of.

    Raises:
        ManifestError: an object names a class that there is not, or there are too many pods.
        NotFound: the manifests have no such pod.
        RedisUnavailable, ClusterUnavailable: the system cannot be read.
    """
    with client.reachable(store):
        reserved = {each.uid: each.node for each in reservations.read_reservations(store)}
    # In this order: a pod that is bound meanwhile shows in the listing.
    listing = cluster.list()
    mine = given([_with_own_uid(each, listing) for each in manifests], now_ms, listing.others)
    if len(mine.pending) > MOST_PODS:
        raise ManifestError([f"{len(mine.pending)} pods without a node are too many; at most {MOST_PODS} are placed"])
    keys = tuple(pod.key for pod in mine.pending)
    if wanted is not None and wanted not in keys:
        raise NotFound(f"there is no pod {wanted} without a node among the manifests")
    names = frozenset(profile.scheduler_name for profile in configured.profiles)
    own = _pending(listing, reserved, names)
    if not with_pending:
        groups = {pod.group_key for pod in mine.pending if pod.group_key}
        own = tuple(pod for pod in own if pod.group_key in groups)
    if len(own) > MOST_PENDING:
        raise ManifestError(
            [f"{len(own)} pods are pending, more than {MOST_PENDING}; leave them out, or use dsched simulate"]
        )
    together = _together(listing, reserved, mine, own, with_resizes=with_pending)
    read = _Reader(cluster, manifests)
    simulation = Simulation(configured, plugins, together, now_ms, seed, read)
    outcome = simulation.run(lambda decision, version: None)
    explained = _to_explain(outcome, keys, wanted)
    if explained is None:
        return Proposal(outcome, keys)
    pod = next(pod for pod in mine.pending if pod.key == explained.key)
    simulation.memory.forget(pod.uid, released=True)
    others = [each for each in _left(together, outcome) if each.uid != pod.uid and each.spec.scheduler_name in names]
    standing = LiveCluster(simulation.memory, pod, pending=tuple((each, None) for each in others))
    explained_pod = explain(configured, plugins, standing, seed, read)
    group = _explain_group(configured, plugins, simulation, pod, together, seed, read)
    return Proposal(outcome, keys, explained_pod, standing, group)


def _explain_group(
    configured: SchedulerConfiguration,
    plugins: Registry,
    simulation: Simulation,
    pod: Pod,
    together: ManifestCluster,
    seed: int,
    read: ReadObjects,
) -> tuple[GroupExplanation, LiveGroup] | None:
    """The group with which a pod was placed, its pods that waited taken off their nodes again; the others where they
    would go."""
    memory = simulation.memory
    group = memory.snapshot.pod_groups.objects.get(GroupKey(pod.group_key))
    if group is None or not simulation.concerns_groups(pod):
        return None
    waited = [each for each in together.pending if each.group_key == pod.group_key]
    for each in waited:
        memory.forget(each.uid, released=True)
    placed = {info.key: NodeName(memory.snapshot.table.node_of(uid) or "") for uid, info in _placed(memory, group)}
    standing = LiveGroup(memory, group, tuple((each, None) for each in waited), placed)
    return explain_group(configured, plugins, standing, seed, read), standing


def _placed(memory: Memory, group: PodGroup) -> list[tuple[PodUid, PodInfo]]:
    return list(pod_groups.scheduled(memory.snapshot.table, group.key).items())


class _Reader:
    """Objects of the manifests, and of the cluster where the manifests have none of that name."""

    def __init__(self, cluster: Cluster, manifests: Sequence[Manifest]) -> None:
        self._cluster = cluster
        self._own = {(each.kind.name, each.key): each.value for each in manifests}

    def __call__(self, kind: str, keys: Sequence[str]) -> Sequence[Mapping[str, Any] | None]:
        elsewhere = [key for key in keys if (kind, key) not in self._own]
        found = dict(zip(elsewhere, self._cluster.get_objects(kind, elsewhere), strict=True)) if elsewhere else {}
        return [self._own.get((kind, key), found.get(key)) for key in keys]


def _left(together: ManifestCluster, outcome: Outcome) -> list[Pod]:
    """The pods that have no node at the end."""
    without = {each.key for each in outcome.pods if each.ending not in WITH_NODE}
    return [each for each in together.pending if each.key in without]


def _to_explain(outcome: Outcome, keys: Sequence[PodKey], wanted: PodKey | None) -> PodOutcome | None:
    """The pod asked for, else the first without a node, else the first; None where none is for a profile."""
    tried = {each.key: each for each in outcome.pods if each.key in keys and each.ending is not Ending.IGNORED}
    if wanted is not None:
        return tried.get(wanted)
    failed = (each for each in tried.values() if each.ending not in WITH_NODE and each.ending not in NEVER_TRIED)
    return next(failed, next((tried[key] for key in keys if key in tried), None))


def _with_own_uid(manifest: Manifest, listing: Listing) -> Manifest:
    """Without a UID that is another pod's: what was copied from a pod often has its UID still."""
    if manifest.kind is not kinds.POD or not manifest.value["metadata"].get("uid"):
        return manifest
    uid = manifest.value["metadata"]["uid"]
    if any(pod.uid == uid and pod.key != manifest.key for pod in listing.pods):
        metadata = {name: each for name, each in manifest.value["metadata"].items() if name != "uid"}
        return replace(manifest, value={**manifest.value, "metadata": metadata})
    return manifest


def _pending(listing: Listing, reserved: Mapping[PodUid, NodeName], schedulers: frozenset[str]) -> tuple[Pod, ...]:
    return tuple(
        pod
        for pod in listing.pods
        if not (pod.node_name or pod.finished or pod.deleting or pod.uid in reserved)
        and pod.spec.scheduler_name in schedulers
    )


def _together(
    listing: Listing,
    reserved: Mapping[PodUid, NodeName],
    mine: ManifestCluster,
    pending: Sequence[Pod],
    *,
    with_resizes: bool,
) -> ManifestCluster:
    """The cluster with the manifests in it."""
    nodes = {node.name: node for node in (*listing.nodes, *mine.nodes)}
    taken = {pod.key for pod in (*mine.bound, *mine.pending)}
    there = [
        _on(pod, home)
        for pod in listing.pods
        if (home := pod.node_name or reserved.get(pod.uid)) and not pod.finished and pod.key not in taken
    ]
    others = {(kind, meta.key_of(value)): value for kind, values in listing.others.items() for value in values}
    others |= {(kind, key): value for kind, key, value in mine.others}
    waiting = [*mine.pending, *(pod for pod in pending if pod.key not in taken)]
    return ManifestCluster(
        tuple(nodes[name] for name in sorted(nodes)),
        (*there, *mine.bound),
        tuple(oldest_first(waiting)),
        tuple((kind, key, value) for (kind, key), value in others.items()),
        (*mine.resizing, *(pod for pod in there if with_resizes and resizes(pod))),
    )


def _on(pod: Pod, node: NodeName) -> Pod:
    return (
        pod if pod.node_name else msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
    )
