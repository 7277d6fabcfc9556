"""Evaluators: judge shards of the node table for the leader.

``celery -A workers.evaluator worker``. Holds a replica of the node table; evaluates nothing for another configuration
or for a table version that it cannot have.
"""

import time

from dsched import log, tracing
from dsched.config import SchedulerConfiguration
from dsched.errors import EvaluationError
from dsched.framework.contract import PluginFailure, failed
from dsched.framework.evaluate import Evaluation
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.framework.wire import pack, pack_failure
from dsched.metrics import CATCH_UP_DURATION, REFUSALS, REPLICA_LAG, REPLICA_REBUILDS
from dsched.model import messages
from dsched.model.messages import EVALUATE, EVALUATORS, ClassResult, EvaluateShard, ShardResult
from dsched.state import replies
from dsched.state.nodelog import Replica
from dsched.state.versions import LONGEST_LAG
from workers.app import WorkerApp, WorkerHandle


class Evaluator:
    """Judges shards; made on the first task of a process."""

    def __init__(self, worker: WorkerApp) -> None:
        self._worker = worker
        self._replica = Replica(worker.system.store)
        self._handle = WorkerHandle(self._replica.snapshot, worker.system.cluster)
        self._frameworks: dict[str, Framework] = {}
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
                self._catch_up(message.table)
                classes = [self._judge(number, message) for number in range(len(message.pods))]
            except EvaluationError as error:
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

    def _catch_up(self, version: int) -> None:
        started = time.perf_counter()
        behind = version - self._replica.version
        anew = not 0 <= behind < LONGEST_LAG
        REPLICA_LAG.set(0 if anew else behind)
        REPLICA_REBUILDS.inc(anew)
        with self._worker.lags.asked(version, lambda: self._replica.version):
            self._replica.catch_up(version)
        self._worker.table = self._replica.version
        CATCH_UP_DURATION.observe(time.perf_counter() - started)

    def _judge(self, number: int, message: EvaluateShard) -> ClassResult:
        if number in message.skip:
            return ClassResult([], [])
        profile, pod = message.pods[number]
        self._worker.slots.at(number, message.request, message.shard)
        evaluation = Evaluation(self._frameworks[profile], PodInfo(pod), self._replica.snapshot)
        try:
            if evaluation.failure is not None:
                raise failed(evaluation.failure)
            return pack(evaluation.judge_shard(slice(message.start, message.stop)))
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
    began = {"dsched.shard": message.shard, "dsched.rows": message.stop - message.start, "dsched.epoch": message.epoch}
    with worker.traces.shard(message.traces, {**began, "dsched.classes": len(message.pods)}, time.time_ns()) as span:
        result = _evaluators[0].shard(message)
        if span is not None and result.refusal:
            tracing.failed(span, result.refusal)
    replies.push(worker.system.store, message.request, messages.encode(result))


worker.task(EVALUATE, evaluate)
