"""A pod with what scheduling derives from it, computed once per class of pods with equal scheduling-relevant fields."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import msgspec

from dsched.arithmetic import requests
from dsched.arithmetic.requests import PODS
from dsched.model.meta import NodeName, OwnerReference, PodKey, PodUid
from dsched.model.pod import ClaimSource, Pod, PodSchedulingGroup, PodSpec, Volume

_encoder = msgspec.msgpack.Encoder()
_SOME_GROUP = PodSchedulingGroup()
"""Stands for any: that a pod is of a group is told apart, of which is not."""
_SOME_CLAIM = ClaimSource()


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the node that a pod takes; ip ``0.0.0.0`` stands for every address."""

    ip: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class Demand:
    """What a pod takes up on its node.

    Attributes:
        requests: resource to amount, CPU in milli-units, all others in units; zero requests are left out.
        nonzero_cpu, nonzero_memory: requests with 100m and 200Mi for each container that names none; used by scores.
        ports: host ports.
        charged: the requests, and the pod itself, which nodes and queues count.
    """

    requests: Mapping[str, int]
    nonzero_cpu: int
    nonzero_memory: int
    ports: tuple[HostPort, ...]
    charged: Mapping[str, int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "charged", {**self.requests, PODS: 1})


class PodInfo:
    """A pod and what scheduling derives from it, each when it is first asked for. Treat as immutable.

    Attributes:
        class_key: equal for pods between which no plugin can tell the difference: everything but name, UID, times,
            status, volumes that scheduling does not read (`Volume.matters`), and of which pod group it is. A pod that
            is decided on for itself alone (`alone`) is a class of its own.
        claim_names: names of the claims that are its volumes, in their order; of a pod that is a class of its own none.
        unlabelled_key: equal for pods that differ in labels besides; no pod's `class_key`.
        unclaimed_key: equal for pods that differ in labels and in `claim_names` besides; no `class_key` of a pod, nor
            the `unlabelled_key` of one with claims.
        requests_key: equal for pods that request the same and have the same ports and images: other pods of a
            controller mostly, also where each is a class of its own.
        demand: what the pod takes up on its node, in-place resizes included.
    """

    __slots__ = (
        "claim_names",
        "class_key",
        "demand",
        "key",
        "pod",
        "requests_key",
        "uid",
        "unclaimed_key",
        "unlabelled_key",
    )

    class_key: bytes
    claim_names: tuple[str, ...]
    unlabelled_key: bytes
    unclaimed_key: bytes
    requests_key: bytes
    demand: Demand

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.key: PodKey = pod.key
        self.uid: PodUid = pod.uid

    def __getattr__(self, name: str) -> Any:
        derive = _DERIVED.get(name)
        if derive is None:
            raise AttributeError(f"a PodInfo has no {name}")
        derived = derive(self)
        self.__setattr__(name, derived)
        return derived

    @property
    def priority(self) -> int:
        return self.pod.spec.priority

    @property
    def node_name(self) -> NodeName:
        return NodeName(self.pod.spec.node_name)

    @property
    def resized(self) -> bool:
        """Whether its status may say that it takes up something else than its spec requests."""
        status = self.pod.status
        return bool(
            status.container_statuses
            or status.init_container_statuses
            or status.resources
            or status.allocated_resources
            or self.pod.pending_resize
        )

    @property
    def alone(self) -> bool:
        """Whether it is a class of its own, whatever others are like: the claim of an ephemeral volume is named after
        its pod, and a deferred resize needs room on the node where the pod is."""
        return any(volume.ephemeral is not None for volume in self.pod.spec.volumes) or self.pod.resize_deferred

    def keyed_by(self, labels: Collection[str], claims: bool = True) -> bytes:
        """Equal for pods that differ, besides, in other labels than those with these keys, where the same keys are
        asked about; no pod's `class_key`.

        Args:
            claims: whether the names of claims are told apart.
        """
        key = self.unlabelled_key if claims else self.unclaimed_key
        if not labels:
            return key
        own, keys = self.pod.metadata.labels, sorted(labels)
        return key + _encoder.encode((keys, [own.get(key) for key in keys]))

    def counts_as(self, other: "PodInfo") -> bool:
        """Whether scheduling sees the same in two versions of a pod that is on a node. Of its status it sees what
        changes its demand, which claims were made for it, and since when it runs, by which victims are chosen."""
        mine, theirs = self.pod, other.pod
        return (
            self.class_key == other.class_key
            and self.demand == other.demand
            and mine.metadata.deletion_timestamp == theirs.metadata.deletion_timestamp
            and mine.status.start_time == theirs.status.start_time
            and mine.named_claims == theirs.named_claims
        )


def _class_key(info: PodInfo) -> bytes:
    return _encoder.encode(info.pod.metadata.labels) + info.unlabelled_key


def _claim_names(info: PodInfo) -> tuple[str, ...]:
    claims = [volume.persistent_volume_claim for volume in info.pod.spec.volumes]
    return () if info.alone else tuple(claim.claim_name for claim in claims if claim is not None)


def _unlabelled_key(info: PodInfo) -> bytes:
    return info.unclaimed_key + _encoder.encode(info.claim_names) if info.claim_names else info.unclaimed_key


def _unclaimed_key(info: PodInfo) -> bytes:
    meta, spec, alone = info.pod.metadata, info.pod.spec, info.alone
    if spec.node_name or spec.volumes:
        volumes = [volume if alone else _unclaimed(volume) for volume in spec.volumes if volume.matters]
        spec = msgspec.structs.replace(spec, node_name="", volumes=volumes)
    if spec.scheduling_group is not None:
        spec = msgspec.structs.replace(spec, scheduling_group=_SOME_GROUP)
    who = (meta.name, meta.uid) if alone else None
    return _encoder.encode((meta.namespace, _controller(meta.owner_references), spec, who))


def _requests_key(info: PodInfo) -> bytes:
    spec, status = info.pod.spec, info.pod.status
    resized = None
    if info.resized:
        statuses = status.container_statuses, status.init_container_statuses
        resized = (*statuses, status.resources, status.allocated_resources, info.pod.pending_resize)
    return _encoder.encode((spec.containers, spec.init_containers, spec.overhead, spec.resources, resized))


def _demand_by_key(info: PodInfo) -> Demand:
    return _demand_of(_RequestsKey(info.requests_key, info.pod))


_DERIVED: Mapping[str, Callable[[PodInfo], object]] = {
    "class_key": _class_key,
    "claim_names": _claim_names,
    "unlabelled_key": _unlabelled_key,
    "unclaimed_key": _unclaimed_key,
    "requests_key": _requests_key,
    "demand": _demand_by_key,
}


def _unclaimed(volume: Volume) -> Volume:
    """The volume, whichever claim it is."""
    if volume.persistent_volume_claim is None:
        return volume
    return msgspec.structs.replace(volume, persistent_volume_claim=_SOME_CLAIM)


def _controller(owners: list[OwnerReference]) -> tuple[str, str, str] | None:
    return next(((owner.api_version, owner.kind, owner.name) for owner in owners if owner.controller), None)


class _RequestsKey:
    """Hashes by what is requested, so that it is added up once."""

    __slots__ = ("key", "pod")

    def __init__(self, key: bytes, pod: Pod) -> None:
        self.key = key
        self.pod = pod

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _RequestsKey) and self.key == other.key


@lru_cache(maxsize=16384)
def _demand_of(requested: _RequestsKey) -> Demand:
    return _demand(requested.pod)


def forget_demands() -> None:
    """Add up anew what pods request that come from now on."""
    _demand_of.cache_clear()


def _demand(pod: Pod) -> Demand:
    nonzero_cpu, nonzero_memory = requests.nonzero_usage(pod)
    return Demand(MappingProxyType(requests.usage(pod)), nonzero_cpu, nonzero_memory, host_ports(pod.spec))


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Host ports of a pod's containers and sidecars, defaults (any address, TCP) filled in.

    Source: pkg/scheduler/util/utils.go ``GetHostPorts``.
    """
    sidecars = [container for container in spec.init_containers if container.restart_policy == "Always"]
    return tuple(
        HostPort(port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in [*sidecars, *spec.containers]
        for port in container.ports
        if port.host_port > 0
    )
