"""The pods of a team's queue that come next, and what each waits for."""

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from dsched.errors import NotFound
from dsched.model import raw
from dsched.model.meta import PodKey
from dsched.model.pod import Pod
from dsched.model.queue_forest import Forest
from dsched.model.queues import named_by
from dsched.state import keys
from dsched.state.client import Store, reachable

Object = Mapping[str, Any]

SHOWN = 10


class WaitingPod(msgspec.Struct, frozen=True):
    """A pod that has no node.

    Attributes:
        place: where it stands in the scheduling queue; empty where no leader has taken it in.
        waits_for: what was said of it last: at its last attempt, by whoever gates it, or that a limit holds it back.
    """

    pod: PodKey
    place: str
    priority: int
    waits_for: str


class DescribedQueue(msgspec.Struct, frozen=True):
    """
    Attributes:
        queue: the object.
        path: names from the top to the queue.
        children: names of the queues that divide what it has.
        next_pods: the first pods of it and of those below it that wait.
    """

    queue: Object
    path: Sequence[str]
    children: Sequence[str]
    next_pods: Sequence[WaitingPod]


def described(store: Store, forest: Forest, name: str, first: Mapping[str, Sequence[Pod]]) -> DescribedQueue:
    """Everything about a queue.

    Args:
        first: as for `next_pods`.

    Raises:
        NotFound: there is none of this name.
        RedisUnavailable: Redis does not answer.
    """
    value = forest.queues.get(name)
    if value is None:
        raise NotFound(f"there is no queue {name}")
    waiting = next_pods(store, forest.below(name), first)
    return DescribedQueue(value, forest.path_of(name), forest.children_of(name), waiting)


def first_pods(
    pods: Iterable[Pod], namespaces: Iterable[Object], count: int = SHOWN, *, kueue: bool = False
) -> dict[str, list[Pod]]:
    """Of each queue that a pod names the first pods that wait, in the order of `next_pods`.

    Args:
        kueue: as for `dsched.model.queues.named_by`.
    """
    labels = {each["metadata"]["name"]: each["metadata"].get("labels") or {} for each in namespaces}
    waiting: dict[str, dict[PodKey, Pod]] = defaultdict(dict)
    for pod in pods:
        if not pod.node_name and not pod.finished:
            namespace = labels.get(pod.metadata.namespace or "default", {})
            waiting[named_by(pod.metadata.labels, namespace, kueue=kueue)][pod.key] = pod
    return {name: heapq.nsmallest(count, found.values(), key=_turn) for name, found in waiting.items()}


def next_pods(
    store: Store, names: Collection[str], first: Mapping[str, Sequence[Pod]], count: int = SHOWN
) -> list[WaitingPod]:
    """The first pods of these queues that wait: by priority, then by when they were created.

    Args:
        first: as `first_pods` has found them.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    waiting = heapq.nsmallest(count, (pod for name in names for pod in first.get(name, ())), key=_turn)
    return [_waiting(pod, record) for pod, record in _records(store, waiting)]


def _turn(pod: Pod) -> tuple[int, str, PodKey]:
    return -pod.spec.priority, pod.metadata.creation_timestamp, pod.key


def _records(store: Store, pods: Sequence[Pod]) -> list[tuple[Pod, list[str]]]:
    with reachable(store):
        pipe: Any = store.redis.pipeline(transaction=False)
        for pod in pods:
            pipe.hmget(store.key(keys.POD.name + pod.key), "queue", "message")
        found = pipe.execute()
    return [(pod, [raw.text(each or b"") for each in fields]) for pod, fields in zip(pods, found, strict=True)]


def _waiting(pod: Pod, record: Sequence[str]) -> WaitingPod:
    place, message = record
    said = next((each.message for each in pod.status.conditions if each.type == "PodScheduled"), "")
    return WaitingPod(pod.key, place, pod.spec.priority, message if place == "gated" else said or message)
