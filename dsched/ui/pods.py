"""A pod: what it is and asks for, where it stands, what was said at its last attempts.

Of its spec only what scheduling looks at is told: environment variables and the like may hold secrets.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dsched.arithmetic import requests
from dsched.cluster.interface import Cluster
from dsched.cluster.standalone.stored import POD_SCHEDULED
from dsched.errors import NotFound
from dsched.model.meta import PodKey
from dsched.model.pod import Pod
from dsched.model.resource_claims import RESOURCE_CLAIM
from dsched.observe.devices import ShownClaim, claims_of
from dsched.state import attempt_history, pauses, position
from dsched.state.attempt_history import Attempt
from dsched.state.client import Store
from dsched.state.position import Position


class PodFacts(msgspec.Struct, frozen=True):
    """What a pod is.

    Attributes:
        requests: by resource, CPU in milli-units.
        condition: what the scheduler said last, ``reason: message``.
    """

    uid: str
    created: str
    deleting: bool
    phase: str
    node: str
    nominated: str
    scheduler: str
    priority: int
    labels: Mapping[str, str]
    requests: Mapping[str, int]
    node_selector: Mapping[str, str]
    tolerations: Sequence[str]
    gates: Sequence[str]
    condition: str


class PodAnswer(msgspec.Struct, frozen=True):
    """
    Attributes:
        facts: None where the cluster does not have it any more.
        standing: its place in the queue, None where it is not pending.
        paused: whether its profile is paused.
        attempts: what is kept of its attempts, newest first.
        claims: for devices, as far as the cluster knows the pod.
    """

    pod: PodKey
    facts: PodFacts | None
    standing: Position | None
    paused: bool
    attempts: Sequence[Attempt]
    claims: Sequence[ShownClaim] = ()


def read(store: Store, cluster: Cluster, key: PodKey) -> PodAnswer:
    """Everything about a pod.

    Raises:
        NotFound: there is no such pod, and nothing is kept of it.
        RedisUnavailable, ClusterUnavailable: it cannot be read.
    """
    standing = position.find(store, key)
    (pod,) = cluster.get_pods([key])
    attempts = attempt_history.read(store, key)
    if pod is None and standing is None and not attempts:
        raise NotFound(f"there is no pod {key}")
    held = standing is not None and pauses.holds(pauses.read(store), standing.profile)
    claims = [] if pod is None else claims_of(pod, lambda keys: cluster.get_objects(RESOURCE_CLAIM, keys))
    return PodAnswer(key, None if pod is None else facts(pod), standing, held, attempts, claims)


def facts(pod: Pod) -> PodFacts:
    """What of a pod scheduling looks at."""
    said = next((each for each in pod.status.conditions if each.type == POD_SCHEDULED and each.status == "False"), None)
    return PodFacts(
        uid=pod.uid,
        created=pod.metadata.creation_timestamp,
        deleting=pod.deleting,
        phase=pod.status.phase or "Pending",
        node=pod.node_name,
        nominated=pod.status.nominated_node_name,
        scheduler=pod.spec.scheduler_name,
        priority=pod.spec.priority,
        labels=dict(sorted(pod.metadata.labels.items())),
        requests=dict(requests.usage(pod)),
        node_selector=dict(sorted(pod.spec.node_selector.items())),
        tolerations=[_toleration(each) for each in pod.spec.tolerations],
        gates=[each.name for each in pod.spec.scheduling_gates],
        condition="" if said is None else ": ".join(filter(None, (said.reason, said.message))),
    )


def _toleration(each: Any) -> str:
    value = f"={each.value}" if each.value else ""
    return f"{each.key}{value}:{each.effect or '*'} {each.operator}".strip()
