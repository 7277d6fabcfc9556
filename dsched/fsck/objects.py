"""What the objects of a cluster look like to the checks, wherever they are kept."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from dsched.cluster import sound
from dsched.fsck.findings import Kind
from dsched.fsck.view import PODS, Seen, SeenClaim, SeenGroup, SeenQueue
from dsched.model import quantity, queues
from dsched.model.meta import NodeName, PodKey, PodUid, from_builtins
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.model.pod_groups import INITIALLY_SCHEDULED, PodGroup
from dsched.model.resource_claims import ResourceClaim, charged

_MAX_AMOUNT = 2**63 - 1

Raw = TypeVar("Raw")
Read = TypeVar("Read")


class Objects(Protocol):
    """Where objects are read.

    Attributes:
        sees_to_claims: whether the leader gives devices back when pods are gone; else the cluster has others for it.
    """

    @property
    def sees_to_claims(self) -> bool: ...

    def everything(self) -> Seen:
        """All pods and nodes, and pod groups."""
        ...

    def some(self, pods: Sequence[PodKey], nodes: Sequence[NodeName]) -> Seen:
        """These, as far as they are there, and all pod groups."""
        ...

    def claims(self) -> Mapping[str, SeenClaim]:
        """All claims for devices that can be read, by key."""
        ...

    def queues(self) -> tuple[Mapping[str, SeenQueue], Mapping[str, str]]:
        """All queues that can be read, by name, and namespace to the queue of its pods that name none."""
        ...


def amounts(node: Node) -> dict[str, int]:
    """What can be allocated on a node, pods always among it."""
    given = node.status.allocatable.items()
    return {PODS: 0, **{name: min(quantity.amount(name, quantity.nano(text)), _MAX_AMOUNT) for name, text in given}}


def seen_claim(key: str, value: Mapping[str, Any]) -> SeenClaim:
    """A claim from the plain object.

    Raises:
        msgspec.ValidationError: it is none.
    """
    claim = from_builtins(value, ResourceClaim)
    owner = next((each.uid for each in claim.metadata.owner_references if each.controller and each.kind == "Pod"), "")
    given = list(charged(claim.status.allocation))
    alone = tuple(str(each.id) for each in given if each.share_id is None and each.consumed_capacity is None)
    parts = tuple(str(each.id) for each in given if str(each.id) not in alone)
    users = (each for each in claim.status.reserved_for if each.resource == "pods")
    pods = tuple((PodKey(f"{key.partition('/')[0]}/{each.name}"), PodUid(each.uid)) for each in users)
    return SeenClaim(key, claim.metadata.uid, owner, alone, parts, pods, queues.claimed_devices(claim))


def queue_labels(pod: Pod) -> tuple[str, bool]:
    """What the pod's own labels say of its queue, as `SeenPod` has it."""
    own = pod.metadata.labels.get(queues.LABEL, "")
    return own, not own and queues.KUEUE_LABEL in pod.metadata.labels


def seen_queue(value: Mapping[str, Any]) -> SeenQueue:
    """A queue from the plain object.

    Raises:
        msgspec.ValidationError, ValueError: it is none.
    """
    queue = from_builtins(value, queues.Queue)
    given = {name: each.limit for name, each in queue.spec.resources.items()}
    limits = {name: quantity.amount(name, quantity.nano(limit)) for name, limit in given.items() if limit is not None}
    return SeenQueue(queue.name, queue.spec.parent, limits)


def default_queues(namespaces: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Namespace to the queue of its pods that name none."""
    labels = {each["metadata"]["name"]: each["metadata"].get("labels") or {} for each in namespaces}
    return {name: found[queues.LABEL] for name, found in labels.items() if queues.LABEL in found}


def seen_group(value: Mapping[str, Any]) -> SeenGroup:
    """A pod group from the plain object.

    Raises:
        msgspec.ValidationError, ValueError: it is none.
    """
    group = from_builtins(value, PodGroup)
    found = group.status.conditions
    scheduled = any(each.type == INITIALLY_SCHEDULED and each.status == "True" for each in found)
    version = int(group.metadata.resource_version or "0")
    return SeenGroup(group.key, PodUid(group.metadata.uid), version, group.min_count, scheduled)


def readable(
    broken: dict[tuple[Kind, str], str],
    kind: Kind,
    found: Iterable[tuple[str, Raw]],
    read: Callable[[Raw], Read],
) -> dict[str, Read]:
    """By key, what can be read; what cannot is noted as ``broken``, with the reason."""
    objects: dict[str, Read] = {}
    for name, raw in found:
        value = sound.attempt(read, (raw,), lambda error, name=name: broken.update({(kind, name): _why(error)}))
        if value is not None:
            objects[name] = value
    return objects


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__
