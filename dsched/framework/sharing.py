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

_first_of = PerClass(lambda first: first, most=MOST)
_lock = Lock()


def shared(pod: Pod) -> PodInfo:
    """An equal pod, whose spec, labels and what is derived from them are those of the first of its class: for pods that
    are kept. From any thread."""
    info = PodInfo(pod)
    with _lock:
        first = _first_of(info)
    if first is info:
        return info
    if pod.spec.containers is not first.pod.spec.containers:
        info = PodInfo(_lean(pod, first.pod))
    info.class_key = first.class_key
    if not info.resized and not first.resized:
        info.requests_key, info.demand = first.requests_key, first.demand
    return info


def _lean(pod: Pod, first: Pod) -> Pod:
    own, spec = pod.spec, first.spec
    if own.node_name != spec.node_name or own.volumes != spec.volumes:  # all that may differ within a class
        spec = replace(spec, node_name=own.node_name, volumes=own.volumes)
    return replace(pod, metadata=replace(pod.metadata, labels=first.metadata.labels), spec=spec)
