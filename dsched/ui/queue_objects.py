"""Reads what the page tells of queues between teams: the queues, the pods that wait, and the namespaces' labels."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

from dsched.cluster import opening
from dsched.cluster.interface import Cluster
from dsched.cluster.opening import Kind
from dsched.cluster.standalone.objects import Objects
from dsched.config import SchedulerConfiguration
from dsched.manifests import kinds
from dsched.model.meta import from_builtins
from dsched.model.pod import Pod
from dsched.model.queues import QUEUE
from dsched.state.client import Store

Object = Mapping[str, Any]
LeftOut = Callable[[str], None]
"""Is told of an object that cannot be read: which, and why."""


class QueueObjects(Protocol):
    """Where queues, pods and namespaces are read."""

    def queues(self, left_out: LeftOut) -> Sequence[Object]: ...
    def waiting_pods(self) -> Iterator[Pod]: ...
    def namespaces(self) -> Sequence[Object]: ...
    def close(self) -> None: ...


@contextmanager
def opened(store: Store, configured: SchedulerConfiguration, cluster: Cluster) -> Iterator[QueueObjects]:
    """The cluster's. Methods raise RedisUnavailable or ClusterUnavailable where it does not answer, and ClusterError
    where this user may not read it. In Kubernetes with the credentials of `dsched.cli.options.cluster_of`."""
    kubernetes = cluster.kind == Kind.KUBERNETES.value
    objects: QueueObjects = _Listed(configured) if kubernetes else _Stored(store)
    try:
        yield objects
    finally:
        objects.close()


class _Stored:
    def __init__(self, store: Store) -> None:
        self._objects = Objects(store)

    def queues(self, left_out: LeftOut) -> Sequence[Object]:
        return self._objects.all_of(
            kinds.QUEUE, left_out=lambda kind, key, error: left_out(f"queue {key.decode(errors='replace')}: {error}")
        )

    def waiting_pods(self) -> Iterator[Pod]:
        return self._objects.waiting_pods()

    def namespaces(self) -> Sequence[Object]:
        return self._objects.all_of(kinds.NAMESPACE)

    def close(self) -> None:
        """Nothing was opened."""


class _Listed:
    def __init__(self, configured: SchedulerConfiguration) -> None:
        from dsched.cluster.kubernetes.objects import Everything

        self._everything = Everything(opening.open_access(opening.from_environment(), configured))

    def queues(self, left_out: LeftOut) -> Sequence[Object]:
        from dsched.cluster.kubernetes.resources import BY_KIND

        return self._everything.of(BY_KIND[QUEUE])

    def waiting_pods(self) -> Iterator[Pod]:
        from dsched.cluster.kubernetes.resources import POD

        found = self._everything.of(replace(POD, selector=f"{POD.selector},spec.nodeName="))
        return (from_builtins(each, Pod) for each in found)

    def namespaces(self) -> Sequence[Object]:
        from dsched.cluster.kubernetes.resources import BY_KIND

        return self._everything.of(BY_KIND["Namespace"])

    def close(self) -> None:
        self._everything.close()
