"""The objects of a Kubernetes cluster, as its API server has them.

An API server says less of what happened than a standalone cluster:

* A pod's version moves with everything that its kubelet writes, a node's with each heartbeat. So when a pod was bound,
  and whether its node has changed since, is not known: pods of ours that overfill a node by themselves are a breach,
  also where the node has shrunk since or a pod was resized. What others have placed counts as if they had come last.
* Events are sent when there is time for them; that one is missing, or there twice, proves nothing.
* Nobody tells of deletions afterwards. What is missing is believed when it is missing still at the second look.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from dsched.cluster.interface import Object
from dsched.cluster.kubernetes import resources
from dsched.cluster.kubernetes.access import Access
from dsched.cluster.kubernetes.http import client, pages
from dsched.cluster.kubernetes.http.client import ManyCalls, Outcome
from dsched.cluster.kubernetes.http.connection import Connection
from dsched.cluster.kubernetes.http.exchange import Answer, Refused, Request
from dsched.errors import ClusterUnavailable
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
from dsched.fsck.view import Seen, SeenClaim, SeenGroup, SeenNode, SeenPod, SeenQueue, met_by_devices
from dsched.model import coscheduling, meta
from dsched.model.meta import NodeName, PodKey
from dsched.model.node import Node
from dsched.model.pod import Pod

TIMEOUT_S = 30.0
PAUSE_S = 3.0
"""Between the two looks: a watch tells of a deletion within milliseconds, but a busy leader may take a moment."""
_MIRROR = "kubernetes.io/config.mirror"
"""Annotation of a pod that its kubelet has from a file. Source: k8s.io/api core/v1 ``MirrorPodAnnotationKey``."""
_NOT_KNOWN = 0
_NEVER = -1


class ApiObjects:
    """Reads them.

    Every method raises ClusterUnavailable when the API server does not answer or refuses.

    Args:
        schedulers: whose pods are ours.
    """

    sees_to_claims = False

    def __init__(self, access: Access, schedulers: frozenset[str]) -> None:
        self._access = access
        self._schedulers = schedulers

    def everything(self) -> Seen:
        """All pods and nodes; pods that have ended are left out. Pod groups where a pod names one, so that nobody needs
        the right to read them who has none."""
        broken: dict[tuple[Kind, str], str] = {}
        pods, nodes = self._list(Kind.POD, resources.POD, broken), self._list(Kind.NODE, resources.NODE, broken)
        return self._seen(pods, nodes, broken)

    def some(self, pods: Sequence[PodKey], nodes: Sequence[NodeName]) -> Seen:
        """These pods, as they are now, one by one; and these nodes, from the list."""
        broken: dict[tuple[Kind, str], str] = {}
        found = readable(broken, Kind.POD, self._read(pods), _decode_pod)
        wanted = frozenset(nodes)
        listed = self._list(Kind.NODE, resources.NODE, broken) if wanted else []
        named = [node for node in listed if isinstance(node, Node) and node.name in wanted]
        return self._seen(found.values(), named, broken)

    def claims(self) -> Mapping[str, SeenClaim]:
        """All claims for devices that can be read, by key; none where the kind is not served (before 1.34)."""
        listed = self._list(Kind.DEVICE, resources.DEVICE_CLAIM, {}, may_be_missing=True)
        values = [each for each in listed if isinstance(each, Mapping)]
        return {key: seen_claim(key, value) for key, value in ((meta.key_of(each), each) for each in values)}

    def queues(self) -> tuple[Mapping[str, SeenQueue], Mapping[str, str]]:
        """All queues that can be read, by name, and namespace to the queue of its pods that name none."""
        listed = self._list(Kind.QUEUE, resources.QUEUE, {}, may_be_missing=True)
        values = [(meta.key_of(each), each) for each in listed if isinstance(each, Mapping)]
        spaces = self._list(Kind.QUEUE, resources.BY_KIND["Namespace"], {}) if values else []
        return readable({}, Kind.QUEUE, values, seen_queue), default_queues(
            each for each in spaces if isinstance(each, Mapping)
        )

    def _read(self, keys: Sequence[PodKey]) -> Iterator[tuple[str, bytes]]:
        """The pods that are there, as JSON."""
        many = ManyCalls(self._access)
        try:
            outcomes = many.make([Request("GET", resources.POD.path(key)) for key in keys], TIMEOUT_S)
        finally:
            many.close()
        for key, outcome in zip(keys, outcomes, strict=True):
            if not _missing(outcome):
                yield key, _body(outcome, f"pod {key}")

    def _list(
        self,
        kind: Kind,
        resource: resources.Resource,
        broken: dict[tuple[Kind, str], str],
        *,
        may_be_missing: bool = False,
    ) -> list[Object]:
        wire = Connection(self._access, TIMEOUT_S)
        try:
            raw, _ = pages.list_all(wire, resource)
        except Refused as refused:
            if may_be_missing and refused.answer.status == client.NOT_FOUND:
                return []
            raise ClusterUnavailable(f"{resource.plural} cannot be read: {client.told(refused.answer)}") from refused
        finally:
            wire.close()
        named = ((_name(each), each) for each in raw)
        found = readable(broken, kind, named, lambda each: resources.decode(resource, each))
        return [each.object for each in found.values()]

    def _seen(
        self,
        pods: Iterable[Object],
        nodes: Iterable[Object],
        broken: dict[tuple[Kind, str], str],
    ) -> Seen:
        listed = [pod for pod in pods if isinstance(pod, Pod)]
        labelled = any(coscheduling.LABEL in pod.metadata.labels for pod in listed)
        seen_pods = [self._pod(pod) for pod in listed]
        found = [node for node in nodes if isinstance(node, Node)]
        versions = [resources.number(node.metadata.resource_version) for node in found]
        return Seen(
            version=max([1, *versions, *(pod.version for pod in seen_pods)]),
            pods={pod.key: pod for pod in seen_pods},
            nodes={node.name: SeenNode(node.name, _NEVER, amounts(node)) for node in found},
            groups=self._groups(broken, labelled=labelled) if any(pod.group for pod in seen_pods) else None,
            broken=broken,
        )

    def _groups(self, broken: dict[tuple[Kind, str], str], *, labelled: bool) -> dict[str, SeenGroup]:
        """All pod groups that can be read, by key; none where the kind is not served.

        Args:
            labelled: whether pods have the label of scheduler-plugins, whose groups are read then, too.
        """
        foreign = self._list(Kind.GROUP, resources.COSCHEDULING_GROUP, broken, may_be_missing=True) if labelled else []
        listed = [*foreign, *self._list(Kind.GROUP, resources.POD_GROUP, broken, may_be_missing=True)]
        values = [each for each in listed if isinstance(each, Mapping)]
        return readable(broken, Kind.GROUP, ((meta.key_of(each), each) for each in values), seen_group)

    def _pod(self, pod: Pod) -> SeenPod:
        queue, by_kueue = queue_labels(pod)
        ours = pod.spec.scheduler_name in self._schedulers and _MIRROR not in pod.metadata.annotations
        return SeenPod(
            key=pod.key,
            uid=pod.uid,
            version=resources.number(pod.metadata.resource_version),
            applied=_NOT_KNOWN,
            node=pod.node_name,
            by_manifest=bool(pod.node_name) and not ours,
            bound_ms=_NOT_KNOWN,
            finished=pod.finished,
            deleting=pod.deleting,
            scheduler=pod.spec.scheduler_name,
            demand=PodInfo(pod).demand,
            by_devices=met_by_devices(pod),
            group=coscheduling.group_key(pod),
            deferred=pod.resize_deferred,
            queue=queue,
            by_kueue=by_kueue,
            claims=pod.named_claims,
        )


class _Meta(msgspec.Struct):
    name: str
    namespace: str = ""


class _Named(msgspec.Struct):
    metadata: _Meta


def _name(raw: msgspec.Raw) -> str:
    """The key of an object that may not be readable otherwise."""
    metadata = msgspec.json.decode(raw, type=_Named).metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


def _missing(outcome: Outcome) -> bool:
    return isinstance(outcome, Answer) and outcome.status == client.NOT_FOUND


def _body(outcome: Outcome, what: str) -> bytes:
    if isinstance(outcome, Answer) and client.succeeded(outcome):
        return outcome.body
    raise ClusterUnavailable(f"{what} cannot be read: {client.told(outcome)}")


def _decode_pod(raw: bytes) -> Object:
    return resources.decode(resources.POD, raw).object
