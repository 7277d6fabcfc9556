"""How many there are of what stands in Redis, read in one go and without an epoch; for gauges."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dsched.model.messages import BINDERS, EVALUATORS
from dsched.state import keys
from dsched.state.client import Store, prefix

_QUEUES = {"active": keys.ACTIVE, "backoff": keys.BACKOFF, "unschedulable": keys.UNSCHEDULABLE, "gated": keys.GATED}


@dataclass(frozen=True, slots=True)
class Counts:
    """
    Attributes:
        queues: pods in active, backoff, unschedulable and gated.
        inflight: pods popped and not yet decided.
        waiting: reserved pods that Permit holds back.
        results: bind results that the leader has not acted on.
        node_log: entries of the node table's log.
        tasks: messages that no worker has taken, by queue.
    """

    queues: Mapping[str, int]
    inflight: int
    waiting: int
    results: int
    node_log: int
    tasks: Mapping[str, int]


def read(store: Store) -> Counts:
    """One round trip; raises what `dsched.state.client.UNAVAILABLE` lists."""
    broker = prefix(store.name) + "celery:"
    pipe: Any = store.redis.pipeline(transaction=False)
    for key in _QUEUES.values():
        pipe.zcard(store.key(key.name))
    pipe.hlen(store.key(keys.INFLIGHT.name))
    pipe.zcard(store.key(keys.WAITING.name))
    pipe.xlen(store.key(keys.RESULTS.name))
    pipe.xlen(store.key(keys.NODES_LOG.name))
    for queue in (EVALUATORS, BINDERS):
        pipe.llen(broker + queue)
    *queues, inflight, waiting, results, node_log, evaluators, binders = pipe.execute()
    return Counts(
        dict(zip(_QUEUES, queues, strict=True)),
        inflight,
        waiting,
        results,
        node_log,
        {EVALUATORS: evaluators, BINDERS: binders},
    )
