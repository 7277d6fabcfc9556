"""The running system's cluster, as its leader has it: pods on their nodes (reserved ones too), promises, the queue.

Reads only. Changes that are made while it reads may show or not.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from dsched.cluster.interface import Cluster, Listing
from dsched.errors import NotFound
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
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


def read(store: Store, cluster: Cluster, key: PodKey, schedulers: Collection[str]) -> LiveCluster:
    """The pod and the cluster around it.

    Args:
        schedulers: whose pods are the leader's.

    Raises:
        NotFound: there is no such pod.
        RedisUnavailable: Redis does not answer.
    """
    with client.reachable(store):
        reserved = {each.uid: each.node for each in reservations.read_reservations(store)}
        records = {record.uid: record for record in read_records(store)}
    # In this order: a pod that is bound meanwhile shows in the listing, so that no pod is missed in both.
    listing = cluster.list()
    found = next((pod for pod in listing.pods if pod.key == key), None)
    if found is None:
        raise NotFound(f"there is no pod {key}")
    memory = Memory()
    fill(memory.snapshot, listing, reserved, without=found.uid)
    unbound = [pod for pod in listing.pods if _ours(pod, schedulers) and pod.uid != found.uid]
    _promise(memory.snapshot, [pod for pod in unbound if pod.uid not in reserved])
    pending = tuple((pod, records.get(pod.uid)) for pod in unbound)
    if found.node_name:
        return LiveCluster(memory, _without_node(found), node=found.node_name, pending=pending)
    _promise(memory.snapshot, [found])
    own = records.get(found.uid)
    return LiveCluster(memory, found, NO_NODE, reserved.get(found.uid, NO_NODE), own.attempts if own else 0, pending)


def fill(snapshot: Snapshot, listing: Listing, reserved: Mapping[PodUid, NodeName], without: PodUid) -> None:
    """Put everything into an empty snapshot but one pod: nodes by name, as a leader reads them when it begins."""
    for node in sorted(listing.nodes, key=lambda node: node.name):
        snapshot.table.set_node(node)
    for kind, values in listing.others.items():
        for value in values:
            metadata = value["metadata"]
            place = metadata.get("namespace")
            snapshot.put(kind, f"{place}/{metadata['name']}" if place else metadata["name"], value)
    for pod in listing.pods:
        home = pod.node_name or reserved.get(pod.uid, NO_NODE)
        if home and pod.uid != without and not pod.finished:
            snapshot.table.add_pod(PodInfo(pod), home)


def _promise(snapshot: Snapshot, pods: Iterable[Pod]) -> None:
    for pod in pods:
        if pod.status.nominated_node_name:
            snapshot.nominations.set(PodInfo(pod), NodeName(pod.status.nominated_node_name))


def _ours(pod: Pod, schedulers: Collection[str]) -> bool:
    """Whether the leader has to find a node for the pod."""
    return not pod.node_name and not pod.finished and not pod.deleting and pod.spec.scheduler_name in schedulers


def _without_node(pod: Pod) -> Pod:
    spec = msgspec.structs.replace(pod.spec, node_name=NO_NODE)
    status = msgspec.structs.replace(pod.status, nominated_node_name="")
    return msgspec.structs.replace(pod, spec=spec, status=status)
