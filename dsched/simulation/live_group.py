"""A pod group of the running system and the cluster around it, as `live_cluster` has them for a pod. Reads only."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from dsched.cluster.interface import Cluster
from dsched.errors import NotFound
from dsched.model import meta
from dsched.model.meta import NO_NODE, NodeName, PodKey, PodUid, from_builtins
from dsched.model.pod import Pod
from dsched.model.pod_groups import POD_GROUP, PodGroup
from dsched.scheduler.memory import Memory
from dsched.scheduler.ports import Record
from dsched.simulation import live_cluster
from dsched.state.client import Store


@dataclass(frozen=True, slots=True)
class LiveGroup:
    """A pod group and the cluster without those of its pods that are to be decided.

    Attributes:
        memory: everything but these pods.
        pods: the pods that are to be decided, with the queue's records of them.
        placed: pods of the group that are on nodes, bound or reserved.
        moved: whether ``pods`` are those that are placed, as if they were not, because none waits.
        pending: other pods that are not bound yet.
    """

    memory: Memory
    group: PodGroup
    pods: tuple[tuple[Pod, Record | None], ...] = ()
    placed: Mapping[PodKey, NodeName] = field(default_factory=dict)
    moved: bool = False
    pending: tuple[tuple[Pod, Record | None], ...] = ()


def read(store: Store, cluster: Cluster, key: str, schedulers: Collection[str]) -> LiveGroup:
    """The group and the cluster around it.

    Args:
        schedulers: whose pods are the leader's.

    Raises:
        NotFound: there is no such group.
        RedisUnavailable: Redis does not answer.
    """
    reserved, records, listing = live_cluster.standing(store, cluster)
    found = next((each for each in listing.others.get(POD_GROUP, ()) if meta.key_of(each) == key), None)
    if found is None:
        raise NotFound(f"there is no pod group {key}")
    members = [pod for pod in listing.pods if pod.group_key == key and not pod.finished]
    homes = {pod.uid: pod.node_name or reserved.get(pod.uid, NO_NODE) for pod in members}
    placed = {pod.key: homes[pod.uid] for pod in members if homes[pod.uid]}
    waiting = [pod for pod in members if not homes[pod.uid] and live_cluster.to_be_placed(pod, schedulers)]
    moved = not waiting
    asked = [live_cluster.without_node(pod) for pod in members if homes[pod.uid]] if moved else waiting
    memory = Memory()
    without = frozenset(pod.uid for pod in asked) if moved else frozenset[PodUid]()
    live_cluster.fill(memory.snapshot, listing, reserved, without)
    others = [pod for pod in listing.pods if pod.group_key != key and live_cluster.to_be_placed(pod, schedulers)]
    live_cluster.promise(memory.snapshot, [pod for pod in (*others, *waiting) if pod.uid not in reserved])
    return LiveGroup(
        memory,
        from_builtins(found, PodGroup).with_priority_of(members[0].spec.priority if members else 0),
        tuple((pod, None if moved else records.get(pod.uid)) for pod in asked),
        placed,
        moved,
        tuple((pod, records.get(pod.uid)) for pod in others),
    )
