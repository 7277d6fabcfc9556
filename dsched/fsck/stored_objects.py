"""The objects of a standalone cluster, as Redis has them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dsched.clock import Clock
from dsched.cluster.standalone import keys, stored
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.cluster.standalone.objects import Objects, RawPod, read_node, read_object, read_pod
from dsched.framework.pod_info import PodInfo
from dsched.fsck.findings import Kind
from dsched.fsck.objects import (
    amounts,
    default_queues,
    queue_labels,
    readable,
    seen_claim,
    seen_group,
    seen_queue,
)
from dsched.fsck.view import Seen, SeenClaim, SeenGroup, SeenNode, SeenPod, SeenQueue, Told, met_by_devices
from dsched.manifests import kinds
from dsched.model import coscheduling
from dsched.model.meta import NodeName, PodKey
from dsched.state import client, pieces
from dsched.state.client import Store

LISTS_AT_ONCE = 1000
_SCHEDULED = b"Normal Scheduled "


class StoredObjects:
    """Reads them; the version after the objects, so that it covers what is missing, too.

    Every method raises RedisUnavailable while Redis does not answer.
    """

    sees_to_claims = True

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._objects = Objects(store)
        self._cluster = StandaloneCluster(store, clock)

    def everything(self) -> Seen:
        """All there is, in pieces."""
        pods = ((key.decode(errors="replace"), raw) for key, raw in self._objects.scan_pods() if raw[1])
        nodes = ((key.decode(errors="replace"), json) for key, json in self._objects.scan(kinds.NODE))
        return self._seen(pods, nodes)

    def some(self, pods: Sequence[PodKey], nodes: Sequence[NodeName]) -> Seen:
        """These, as they are now."""
        found = zip(pods, self._objects.get_pods(pods), strict=True)
        return self._seen(((key, raw) for key, raw in found if raw is not None), self._node_json(nodes))

    def claims(self) -> Mapping[str, SeenClaim]:
        """All claims for devices that can be read, by key."""
        listed = ((key.decode(errors="replace"), json) for key, json in self._objects.scan(kinds.RESOURCE_CLAIM))
        found = readable({}, Kind.DEVICE, listed, lambda json: read_object(kinds.RESOURCE_CLAIM, json))
        return {key: seen_claim(key, value) for key, value in found.items()}

    def queues(self) -> tuple[Mapping[str, SeenQueue], Mapping[str, str]]:
        """All queues that can be read, by name, and namespace to the queue of its pods that name none."""
        listed = ((key.decode(errors="replace"), json) for key, json in self._objects.scan(kinds.QUEUE))
        found = readable({}, Kind.QUEUE, listed, lambda json: seen_queue(read_object(kinds.QUEUE, json)))
        named = ((key.decode(errors="replace"), json) for key, json in self._objects.scan(kinds.NAMESPACE))
        namespaces = readable({}, Kind.QUEUE, named, lambda json: read_object(kinds.NAMESPACE, json))
        return found, default_queues(namespaces.values())

    def _seen(self, raw_pods: Iterable[tuple[str, RawPod]], raw_nodes: Iterable[tuple[str, bytes]]) -> Seen:
        broken: dict[tuple[Kind, str], str] = {}
        pods = readable(broken, Kind.POD, raw_pods, seen_pod)
        nodes = readable(broken, Kind.NODE, raw_nodes, seen_node)
        groups = self._groups(broken)
        version = self._cluster.newest_version()
        return Seen(
            version=version,
            pods={PodKey(key): pod for key, pod in pods.items()},
            nodes={node.name: node for node in nodes.values()},
            groups=groups,
            told=self._told(pods.values()),
            broken=broken,
        )

    def _groups(self, broken: dict[tuple[Kind, str], str]) -> dict[str, SeenGroup]:
        """All pod groups that can be read, by key."""
        listed = ((key.decode(errors="replace"), json) for key, json in self._objects.scan(kinds.POD_GROUP))
        return readable(broken, Kind.GROUP, listed, lambda json: seen_group(read_object(kinds.POD_GROUP, json)))

    def _node_json(self, names: Sequence[NodeName]) -> Iterator[tuple[str, bytes]]:
        for batch in pieces.cut(names):
            for name, json in zip(batch, self._objects.get_json(kinds.NODE, batch), strict=True):
                if json is not None:
                    yield name, json

    def _told(self, pods: Iterable[SeenPod]) -> dict[PodKey, Told]:
        """What the events of scheduled pods say, of those that have events."""
        wanted = [pod.key for pod in pods if pod.scheduled]
        found: dict[PodKey, Told] = {}
        for start in range(0, len(wanted), LISTS_AT_ONCE):
            batch = wanted[start : start + LISTS_AT_ONCE]
            with client.reachable(self._store):
                pipe: Any = self._store.redis.pipeline(transaction=False)
                for key in batch:
                    pipe.lrange(self._store.key(keys.EVENTS.name + key), 0, -1)
                replies = pipe.execute()
            found.update({key: _counted(lines) for key, lines in zip(batch, replies, strict=True) if lines})
        return found


def seen_pod(raw: RawPod) -> SeenPod:
    """A pod from what is stored of it.

    Raises:
        Exception: it cannot be read.
    """
    read_pod(*raw)
    value, state = stored.applied(raw[0]), stored.pod_state(raw[1])
    queue, by_kueue = queue_labels(value)
    return SeenPod(
        key=value.key,
        uid=state.uid,
        version=int(state.version),
        applied=int(value.metadata.resource_version),
        node=NodeName(state.bound_to),
        by_manifest=value.spec.node_name != "",
        bound_ms=int(state.bound_ms),
        finished=value.finished,
        deleting=value.deleting,
        scheduler=value.spec.scheduler_name,
        demand=PodInfo(value).demand,
        by_devices=met_by_devices(value),
        group=coscheduling.group_key(value),
        deferred=value.resize_deferred,
        queue=queue,
        by_kueue=by_kueue,
        claims=value.named_claims,
    )


def seen_node(json: bytes) -> SeenNode:
    """A node from what is stored of it.

    Raises:
        Exception: it cannot be read.
    """
    value = read_node(json)
    return SeenNode(value.name, int(value.metadata.resource_version), amounts(value))


def _counted(lines: Sequence[bytes]) -> Told:
    """Lines are ``TYPE REASON COUNT FIRST-MS LAST-MS MESSAGE``."""
    counts = [int(line.split(b" ", 3)[2]) for line in lines if line.startswith(_SCHEDULED)]
    return Told(len(lines), sum(counts))
