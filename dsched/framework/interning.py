"""Pods of a class share what is equal in them.

Of a hundred thousand pods a few hundred specs are different, and most of what a pod takes in memory is its spec.
"""

from threading import Lock
from typing import TypeVar

from msgspec.structs import replace

from dsched.framework.per_class import PerClass
from dsched.framework.pod_info import PodInfo
from dsched.model.pod import Pod, PodStatus

Key = TypeVar("Key")
Value = TypeVar("Value")

MOST = 16_384
"""Classes of whose first pod it is known still what may be shared."""
MOST_READ = 4096
"""Sets of parts, read once and shared by whoever read the pods, of which it is known what they make."""

_Parts = tuple[int, int, str]
"""A pod's spec and owners, by identity, and its namespace."""
_first_of = PerClass(lambda first: first, most=MOST)
_of_parts: dict[_Parts, PodInfo] = {}
"""One of the pods that were read with these very parts, and which keeps them, so that nothing else gets their
identity; of none that is a class of its own."""
_read_alike: dict[tuple[_Parts, int], tuple[PodInfo, bool, Pod]] = {}
"""Which parts and labels, by identity, make which class: its first pod, whether that is as its spec says, and one that
keeps them."""
_plain: dict[int, PodStatus] = {}
"""Statuses by identity that say nothing of a resize. Of a million pods few have another one than the one before."""
_lock = Lock()


def shared(pod: Pod) -> PodInfo:
    """An equal pod, whose spec, labels and what is derived from them are those of the first of its class: for pods that
    are kept. From any thread."""
    meta = pod.metadata
    parts = (id(pod.spec), id(meta.owner_references), meta.namespace)
    plain = _is_plain(pod)
    deferred = not plain and pod.resize_deferred
    if not deferred and (known := _read_alike.get((parts, id(meta.labels)))) is not None:
        first, first_plain, _ = known
        info = PodInfo(pod if meta.labels is first.pod.metadata.labels else _lean(pod, first.pod))
        return _alike(info, first, plain and first_plain)
    info = PodInfo(pod)
    like = None if deferred else _of_parts.get(parts)
    if like is not None:
        _derived_as(info, like, plain and _is_plain(like.pod))
    with _lock:
        first = _first_of(info)
        first_plain = _is_plain(first.pod)
        if like is not None or not info.alone:
            if like is None:
                _add(_of_parts, parts, info)
            if pod.spec is first.pod.spec and pod is not first.pod:
                _add(_read_alike, (parts, id(meta.labels)), (first, first_plain, pod))
    if first is info:
        return info
    if pod.spec.containers is not first.pod.spec.containers:
        info = PodInfo(_lean(pod, first.pod))
    return _alike(info, first, plain and first_plain)


def _alike(info: PodInfo, first: PodInfo, plain: bool) -> PodInfo:
    info.class_key = first.class_key
    _derived_as(info, first, plain)
    return info


def _derived_as(info: PodInfo, other: PodInfo, plain: bool) -> None:
    """Of a pod that differs from another in labels at most.

    Args:
        plain: whether both take up what their specs say.
    """
    info.claim_names = other.claim_names
    info.unclaimed_key, info.unlabelled_key = other.unclaimed_key, other.unlabelled_key
    if plain:
        info.requests_key, info.demand = other.requests_key, other.demand


def _is_plain(pod: Pod) -> bool:
    """Whether a pod takes up what its spec says."""
    if id(pod.status) in _plain:
        return True
    if PodInfo(pod).resized:
        return False
    _add(_plain, id(pod.status), pod.status)
    return True


def _add(known: dict[Key, Value], key: Key, value: Value) -> None:
    if len(known) >= MOST_READ:
        known.clear()
    known[key] = value


def _lean(pod: Pod, first: Pod) -> Pod:
    own, spec = pod.spec, first.spec
    own_parts, parts = [(each.node_name, each.volumes, each.scheduling_group) for each in (own, spec)]
    if own_parts != parts:  # all that may differ within a class
        node_name, volumes, group = own_parts
        spec = replace(spec, node_name=node_name, volumes=volumes, scheduling_group=group)
    return replace(pod, metadata=replace(pod.metadata, labels=first.metadata.labels), spec=spec)
