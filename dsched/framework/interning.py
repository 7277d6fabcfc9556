"""Pods of a class share what is equal in them.

Of a hundred thousand pods a few hundred specs are different, and most of what a pod takes in memory is its spec.
"""

from threading import Lock

from msgspec.structs import replace

from dsched.framework.per_class import PerClass
from dsched.framework.pod_info import PodInfo
from dsched.model.pod import Pod

MOST = 16_384
"""Classes of whose first pod it is known still what may be shared."""
MOST_READ = 4096
"""Sets of parts, read once and shared by whoever read the pods, of which it is known which class they make."""

_first_of = PerClass(lambda first: first, most=MOST)
_read_alike: dict[tuple[int, int, int, str], tuple[PodInfo, Pod]] = {}
"""Which spec, labels and owners, by identity, in which namespace make which class: its first pod, and one that keeps
these very parts, so that nothing else gets their identity."""
_lock = Lock()


def shared(pod: Pod) -> PodInfo:
    """An equal pod, whose spec, labels and what is derived from them are those of the first of its class: for pods that
    are kept. From any thread."""
    meta = pod.metadata
    parts = (id(pod.spec), id(meta.labels), id(meta.owner_references), meta.namespace)
    known = _read_alike.get(parts)
    if known is not None and not pod.resize_deferred:
        first = known[0]
        return _alike(PodInfo(pod if meta.labels is first.pod.metadata.labels else _lean(pod, first.pod)), first)
    info = PodInfo(pod)
    with _lock:
        first = _first_of(info)
        if pod.spec is first.pod.spec and pod is not first.pod and not info.alone:
            if len(_read_alike) >= MOST_READ:
                _read_alike.clear()
            _read_alike[parts] = (first, pod)
    if first is info:
        return info
    if pod.spec.containers is not first.pod.spec.containers:
        info = PodInfo(_lean(pod, first.pod))
    return _alike(info, first)


def _alike(info: PodInfo, first: PodInfo) -> PodInfo:
    info.class_key = first.class_key
    if not info.resized and not first.resized:
        info.requests_key, info.demand = first.requests_key, first.demand
    return info


def _lean(pod: Pod, first: Pod) -> Pod:
    own, spec = pod.spec, first.spec
    own_parts, parts = [(each.node_name, each.volumes, each.scheduling_group) for each in (own, spec)]
    if own_parts != parts:  # all that may differ within a class
        node_name, volumes, group = own_parts
        spec = replace(spec, node_name=node_name, volumes=volumes, scheduling_group=group)
    return replace(pod, metadata=replace(pod.metadata, labels=first.metadata.labels), spec=spec)
