"""How many there are of what stands in Redis, read without an epoch; for gauges."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dsched.model.messages import BINDERS, EVALUATORS
from dsched.state import keys, workers
from dsched.state.broker import own_queue
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
        tasks: messages that no worker has taken, by kind of worker: those in the evaluators' own queues, and in the
            binders' common one.
    """

    queues: Mapping[str, int]
    inflight: int
    waiting: int
    results: int
    node_log: int
    tasks: Mapping[str, int]


def read(store: Store) -> Counts:
    """Two round trips; raises what `dsched.state.client.UNAVAILABLE` lists."""
    broker = prefix(store.name) + "celery:"
    asked = [own_queue(worker.name) for worker in workers.read(store) if worker.kind == "evaluator"]
    pipe: Any = store.redis.pipeline(transaction=False)
    for key in _QUEUES.values():
        pipe.zcard(store.key(key.name))
    pipe.hlen(store.key(keys.INFLIGHT.name))
    pipe.zcard(store.key(keys.WAITING.name))
    pipe.xlen(store.key(keys.RESULTS.name))
    pipe.xlen(store.key(keys.NODES_LOG.name))
    for queue in (BINDERS, *asked):
        pipe.llen(broker + queue)
    found = pipe.execute()
    *queues, inflight, waiting, results, node_log, binders = found[: len(found) - len(asked)]
    return Counts(
        dict(zip(_QUEUES, queues, strict=True)),
        inflight,
        waiting,
        results,
        node_log,
        {EVALUATORS: sum(found[len(found) - len(asked) :]), BINDERS: binders},
    )
