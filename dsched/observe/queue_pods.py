"""The pods of a team's queue that come next, and what each waits for."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from dsched.model import raw
from dsched.model.meta import PodKey
from dsched.model.pod import Pod
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


def next_pods(
    store: Store, names: set[str], pods: Iterable[Pod], namespaces: Iterable[Object], count: int = SHOWN
) -> list[WaitingPod]:
    """The first pods of these queues that wait: by priority, then by when they were created.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    labels = {each["metadata"]["name"]: each["metadata"].get("labels") or {} for each in namespaces}
    waiting = [
        pod
        for pod in pods
        if not pod.node_name
        and not pod.finished
        and named_by(pod.metadata.labels, labels.get(pod.metadata.namespace or "default", {})) in names
    ]
    waiting.sort(key=lambda pod: (-pod.spec.priority, pod.metadata.creation_timestamp, pod.key))
    return [_waiting(pod, record) for pod, record in _records(store, waiting[:count])]


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
