"""Pods of a class share what is equal in them.

Of a hundred thousand pods a few hundred specs are different, and most of what a pod takes in memory is its spec.
"""

from msgspec.structs import replace

from dsched.framework.per_class import PerClass
from dsched.framework.pod_info import PodInfo
from dsched.model.pod import Pod

MOST = 16_384
"""Classes whose last pods' successors still find something to share."""

_first_of = PerClass(lambda first: first, most=MOST)


def shared(pod: Pod) -> PodInfo:
    """An equal pod, whose spec, labels and what is derived from them are those of the first of its class; for pods that
    are kept. To be called from one thread."""
    info = PodInfo(pod)
    first = _first_of(info)
    if first is info:
        return info
    spec = first.pod.spec
    if spec.node_name != pod.spec.node_name or spec.volumes != pod.spec.volumes:  # all that may differ
        spec = replace(spec, node_name=pod.spec.node_name, volumes=pod.spec.volumes)
    metadata = replace(pod.metadata, labels=first.pod.metadata.labels)
    lean = PodInfo(replace(pod, metadata=metadata, spec=spec))
    lean.class_key = first.class_key
    if not info.resized and not first.resized:
        lean.requests_key, lean.demand = first.requests_key, first.demand
    return lean
