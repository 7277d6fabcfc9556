"""Evaluators: judge shards of the node table for the leader.

``celery -A workers.evaluator worker``. Holds a replica of its shard of the node table; of the whole table where a
plugin that is asked here may look beyond a node. Evaluates nothing for another configuration or for a table version
that it cannot have.
"""

import time

import numpy as np
from numpy.typing import NDArray

from dsched import log, tracing
from dsched.config import SchedulerConfiguration
from dsched.engine.judge import judge_apart
from dsched.engine.partitions import PARTS, Partitions
from dsched.engine.wire import pack, pack_failure, unpack_closed
from dsched.errors import CannotEvaluate
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.framework.validation import PluginFailure
from dsched.log import cut
from dsched.metrics import CATCH_UP_DURATION, REFUSALS, REPLICA_LAG, REPLICA_REBUILDS
from dsched.model import messages
from dsched.model.messages import EVALUATE, EVALUATORS, ClassResult, EvaluateShard, ShardResult
from dsched.state import replies
from dsched.state.node_log import Replica
from dsched.state.versions import LONGEST_LAG
from workers.app import WorkerApp, WorkerHandle


class Evaluator:
    """Judges shards; made on the first task of a process."""

    def __init__(self, worker: WorkerApp) -> None:
        self._worker = worker
        self._replica = Replica(worker.system.store)
        self._handle = WorkerHandle(self._replica.snapshot, worker.system.cluster)
        self._frameworks: dict[str, Framework] = {}
        self._partitions = Partitions()
        self._build(worker.system.config)
        worker.system.following.build = self._build

    def _build(self, config: SchedulerConfiguration) -> None:
        self._frameworks = self._worker.system.frameworks(config, self._handle)

    def shard(self, message: EvaluateShard) -> ShardResult:
        """The answer to a message; a refusal where there can be none."""
        started = time.perf_counter()
        classes: list[ClassResult] = []
        refusal = self._worker.system.following.refusal(message.config, message.cluster)
        if not refusal:
            try:
                self._check(message)
                self._catch_up(message)
                rows = self._rows(message)
                closed = [unpack_closed(raw, len(rows)) for raw in message.closed]
                classes = [self._judge(number, message, rows, closed[number]) for number in range(len(message.pods))]
            except CannotEvaluate as error:
                refusal = str(error)
        if refusal:
            REFUSALS.inc()
        return ShardResult(
            request=message.request,
            epoch=message.epoch,
            shard=message.shard,
            evaluator=self._worker.name,
            seconds=time.perf_counter() - started,
            classes=classes,
            refusal=refusal,
        )

    def _check(self, message: EvaluateShard) -> None:
        """
        Raises:
            CannotEvaluate: it is of the right shape and makes no sense; no leader of ours has sent it.
        """
        unknown = {profile for profile, _ in message.pods} - self._frameworks.keys()
        if unknown:
            raise CannotEvaluate(f"no profile {cut(min(unknown))} here")
        if len(message.closed) != len(message.pods):
            raise CannotEvaluate(f"{len(message.closed)} columns of closed nodes for {len(message.pods)} classes")
        if not all(0 <= part < PARTS for part in message.parts):
            raise CannotEvaluate(f"parts are 0 to {PARTS - 1}")

    def _catch_up(self, message: EvaluateShard) -> None:
        version, started = message.table, time.perf_counter()
        suffices = all(framework.shards_suffice for framework in self._frameworks.values())
        parts = frozenset(message.parts) if suffices else None
        behind = version - self._replica.version
        anew = not (0 <= behind < LONGEST_LAG and self._replica.holds(parts))
        REPLICA_LAG.set(0 if anew else behind)
        REPLICA_REBUILDS.inc(anew)
        with self._worker.replica_lag.asked(version, lambda: self._replica.version):
            self._replica.catch_up(version, parts)
        self._worker.table = self._replica.version
        CATCH_UP_DURATION.observe(time.perf_counter() - started)

    def _rows(self, message: EvaluateShard) -> NDArray[np.intp]:
        """Of the replica.

        Raises:
            CannotEvaluate: they are not those that the leader means.
        """
        rows = self._partitions.rows(self._replica.snapshot.table, message.parts)
        if len(rows) != message.rows:
            raise CannotEvaluate(f"{message.rows} nodes are asked about that are {len(rows)} in the replica here")
        return rows

    def _judge(
        self, number: int, message: EvaluateShard, rows: NDArray[np.intp], closed: NDArray[np.int16]
    ) -> ClassResult:
        if number in message.skip:
            return ClassResult([], [])
        profile, pod = message.pods[number]
        self._worker.slots.at(number, message.request, message.shard)
        framework, snapshot = self._frameworks[profile], self._replica.snapshot
        try:
            return pack(judge_apart(framework, PodInfo(pod), snapshot, rows, closed))
        except PluginFailure as failure:
            return pack_failure(failure)


worker = WorkerApp("evaluator", EVALUATORS)
app = worker.celery
_evaluators: list[Evaluator] = []


def evaluate(payload: bytes) -> None:
    """Task: judge a shard and push the answer, unless nobody waits for it any more."""
    message = messages.decode(payload, EvaluateShard)
    log.about(epoch=message.epoch, request=message.request)
    worker.still_wanted(message.deadline_ms)
    if not _evaluators:
        _evaluators.append(Evaluator(worker))
    began = {"dsched.shard": message.shard, "dsched.rows": message.rows, "dsched.epoch": message.epoch}
    with worker.traces.shard(message.traces, {**began, "dsched.classes": len(message.pods)}, time.time_ns()) as span:
        result = _evaluators[0].shard(message)
        if span is not None and result.refusal:
            tracing.failed(span, result.refusal)
    replies.push(worker.system.store, message.request, messages.encode(result))


worker.task(EVALUATE, evaluate)
