"""Reads what the page tells of devices: for a node no more than what is about it, for all classes everything, now and
then."""

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import msgspec

from dsched.clock import Clock
from dsched.cluster import opening
from dsched.cluster.interface import Cluster
from dsched.cluster.opening import Kind
from dsched.cluster.standalone.device_objects import StoredDevices
from dsched.config import Features, SchedulerConfiguration
from dsched.errors import ClusterError, ClusterUnavailable
from dsched.model import meta
from dsched.model.devices import DeviceTaintRule, ResourceSlice
from dsched.model.meta import NodeName
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.model.resource_claims import DeviceClass, ResourceClaim
from dsched.observe import devices, promises
from dsched.observe.devices import NodeDevices, ShownClass, Taken
from dsched.plugins.dynamic_resources.allocation import cel_selectors
from dsched.plugins.dynamic_resources.allocation import features as allocator_features
from dsched.plugins.dynamic_resources.allocation.device_index import DeviceIndex
from dsched.state.client import Store

SHOWN_DEVICES = 500
"""Devices of a node that are told of."""
KEPT_S = 10.0
"""So long what is told of all classes is given again at least."""
LOAD = 0.1
"""Working it out takes no more of a core than that, however long it takes once."""


class DeviceObjects(Protocol):
    """Where slices, claims, classes and rules are read."""

    def slices(self, node: NodeName | None = None) -> list[ResourceSlice]: ...
    def claims(self, pools: Collection[str] | None = None, keys: Sequence[str] = ()) -> list[ResourceClaim]: ...
    def classes(self) -> list[DeviceClass]: ...
    def rules(self) -> list[DeviceTaintRule]: ...
    def close(self) -> None: ...


class Classes(msgspec.Struct, frozen=True):
    """All classes, by name.

    Attributes:
        note: why nothing can be told; empty otherwise.
    """

    at_ms: int
    classes: Sequence[ShownClass] = ()
    note: str = ""


class ClassTable:
    """What is told of all classes, kept for a moment: every slice and every claim is read for it."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: tuple[float, str, Classes] | None = None

    def read(self, configured: SchedulerConfiguration, cluster: Cluster) -> Classes:
        """
        Raises:
            RedisUnavailable, ClusterUnavailable: it cannot be read.
        """
        with self._lock:
            kept = self._kept
            began = self._clock.monotonic()
            if kept is None or kept[1] != configured.hash or began > kept[0]:
                found = self._read(configured, cluster)
                now = self._clock.monotonic()
                self._kept = kept = now + max(KEPT_S, (now - began) / LOAD), configured.hash, found
            return kept[2]

    def _read(self, configured: SchedulerConfiguration, cluster: Cluster) -> Classes:
        now_ms, features = self._clock.now_ms(), configured.features
        try:
            with _objects(self._store, configured, cluster) as objects:
                index = _index(objects, features, None)
                classes, taken = objects.classes(), Taken(objects.claims(), promises.read(self._store))
        except ClusterUnavailable:
            raise
        except ClusterError as error:
            return Classes(now_ms, note=str(error))
        return Classes(now_ms, devices.by_class(index, classes, taken, cel_selectors.selector_cache(features)))


def on_node(
    store: Store,
    configured: SchedulerConfiguration,
    cluster: Cluster,
    node: Mapping[str, Any],
    pods: Sequence[Pod],
) -> NodeDevices:
    """The devices of a node.

    Args:
        node: as the cluster has it.
        pods: that are on it, those that are being bound among them.

    Raises:
        RedisUnavailable, ClusterUnavailable: it cannot be read.
    """
    record = meta.from_builtins(node, Node)
    try:
        with _objects(store, configured, cluster) as objects:
            index = _index(objects, configured.features, record.name)
            pools = {pool.pool for pool in index.pool_ids}
            if not pools:
                return NodeDevices()
            keys = [key for pod in pods for key in devices.keys_of(pod)]
            claims = objects.claims(pools, list(dict.fromkeys(keys)))
    except ClusterUnavailable:
        raise
    except ClusterError as error:
        return NodeDevices(problems=[str(error)])
    taken = Taken(claims, promises.read(store, {pod.uid: pod.key for pod in pods}))
    return devices.on_node(record, index, taken, SHOWN_DEVICES)


@contextmanager
def _objects(store: Store, configured: SchedulerConfiguration, cluster: Cluster) -> Iterator[DeviceObjects]:
    """In Kubernetes with the credentials of `dsched.cli.options.cluster_of`."""
    objects: DeviceObjects
    if cluster.kind == Kind.KUBERNETES.value:
        from dsched.cluster.kubernetes.objects import ListedDevices

        objects = ListedDevices(opening.open_access(opening.from_environment(), configured), cluster)
    else:
        objects = StoredDevices(store)
    try:
        yield objects
    finally:
        objects.close()


def _index(objects: DeviceObjects, features: Features, node: NodeName | None) -> DeviceIndex:
    found = DeviceIndex(allocator_features.of(features))
    slices = objects.slices(node)
    found.update(slices, objects.rules() if slices else ())
    return found
