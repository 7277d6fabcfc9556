"""The running system's cluster, as its leader has it: pods on their nodes (reserved ones too), promises, the queue.

Reads only. Changes that are made while it reads may show or not.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from dsched.cluster.interface import Cluster, Listing
from dsched.config import Features
from dsched.config.feature_gates import UNSAID
from dsched.errors import NotFound
from dsched.framework import deferred_resizes
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model import meta
from dsched.model.meta import NO_NODE, NodeName, PodKey, PodUid
from dsched.model.pod import Pod
from dsched.scheduler.memory import Memory
from dsched.scheduler.ports import Record
from dsched.state import client, reservations
from dsched.state.client import Store
from dsched.state.queue import read_records


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """A pod and the cluster without it.

    Attributes:
        memory: everything but the pod.
        pod: as it would be if it had no node.
        node: where it is bound.
        resizes: whether it waits there for the room that a resize needs; it is as it is then, and on its node in
            ``memory``.
        reserved: where it is reserved and not yet bound.
        attempts: how often the leader has tried it.
        pending: the other pods that are not bound yet, with the queue's records of them.
    """

    memory: Memory
    pod: Pod
    node: NodeName = NO_NODE
    reserved: NodeName = NO_NODE
    attempts: int = 0
    pending: tuple[tuple[Pod, Record | None], ...] = ()
    resizes: bool = False


def read(
    store: Store, cluster: Cluster, key: PodKey, schedulers: Collection[str], features: Features = UNSAID
) -> LiveCluster:
    """The pod and the cluster around it.

    Args:
        schedulers: whose pods are the leader's.

    Raises:
        NotFound: there is no such pod.
        RedisUnavailable: Redis does not answer.
    """
    reserved, records, listing = standing(store, cluster)
    found = next((pod for pod in listing.pods if pod.key == key), None)
    if found is None:
        raise NotFound(f"there is no pod {key}")
    memory = Memory()
    resizes = features.enabled(deferred_resizes.GATE) and found.resize_deferred and bool(found.node_name)
    fill(memory.snapshot, listing, reserved, without=() if resizes else (found.uid,))
    unbound = [pod for pod in listing.pods if to_be_placed(pod, schedulers) and pod.uid != found.uid]
    promise(memory.snapshot, [pod for pod in unbound if pod.uid not in reserved])
    pending = tuple((pod, records.get(pod.uid)) for pod in unbound)
    own = records.get(found.uid)
    attempts = own.attempts if own else 0
    if resizes:
        return LiveCluster(memory, found, found.node_name, attempts=attempts, pending=pending, resizes=True)
    if found.node_name:
        return LiveCluster(memory, without_node(found), node=found.node_name, pending=pending)
    promise(memory.snapshot, [found])
    return LiveCluster(memory, found, NO_NODE, reserved.get(found.uid, NO_NODE), attempts, pending)


def standing(store: Store, cluster: Cluster) -> tuple[dict[PodUid, NodeName], dict[PodUid, Record], Listing]:
    """The nodes that are reserved, the records of pending pods, and the cluster.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    with client.reachable(store):
        reserved = {each.uid: each.node for each in reservations.read_reservations(store)}
        records = {record.uid: record for record in read_records(store)}
    # In this order: a pod that is bound meanwhile shows in the listing, so that no pod is missed in both.
    return reserved, records, cluster.list()


def fill(
    snapshot: Snapshot, listing: Listing, reserved: Mapping[PodUid, NodeName], without: Collection[PodUid]
) -> None:
    """Put everything into an empty snapshot but some pods: nodes by name, as a leader reads them when it begins."""
    for node in sorted(listing.nodes, key=lambda node: node.name):
        snapshot.table.set_node(node)
    for kind, values in listing.others.items():
        for value in values:
            snapshot.put(kind, meta.key_of(value), value)
    for pod in listing.pods:
        home = pod.node_name or reserved.get(pod.uid, NO_NODE)
        if home and pod.uid not in without and not pod.finished:
            snapshot.table.add_pod(PodInfo(pod), home)


def promise(snapshot: Snapshot, pods: Iterable[Pod]) -> None:
    """Keep what these pods say that they are promised."""
    for pod in pods:
        if pod.status.nominated_node_name:
            snapshot.nominations.set(PodInfo(pod), NodeName(pod.status.nominated_node_name))


def to_be_placed(pod: Pod, schedulers: Collection[str]) -> bool:
    """Whether the leader has to find a node for the pod."""
    return not pod.node_name and not pod.finished and not pod.deleting and pod.spec.scheduler_name in schedulers


def without_node(pod: Pod) -> Pod:
    """As it would be if it had no node."""
    spec = msgspec.structs.replace(pod.spec, node_name=NO_NODE)
    status = msgspec.structs.replace(pod.status, nominated_node_name="")
    return msgspec.structs.replace(pod, spec=spec, status=status)
