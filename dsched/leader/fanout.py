"""Judging a batch's classes: in this process, or scattered over the evaluators by shard and gathered.

Both ways give the same columns. A shard that does not come back in time is asked for once more, then judged here.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from dsched.clock import Clock
from dsched.errors import RedisUnavailable
from dsched.framework.contract import PluginFailure
from dsched.framework.evaluate import Evaluation
from dsched.framework.judge import Columns, join
from dsched.framework.pod_info import PodInfo
from dsched.framework.wire import unpack
from dsched.leader.cost import Costs
from dsched.leader.dispatch import Dispatcher, new_request
from dsched.log import logger
from dsched.metrics import EVALUATIONS, SCATTER_DURATION, SHARD_DURATION, SHARD_FALLBACKS, STALE_REPLIES
from dsched.model import messages
from dsched.model.messages import EvaluateShard, ShardResult
from dsched.state import replies, workers
from dsched.state.cache import Cache
from dsched.state.client import Store

_log = logger(__name__)

LOOK_AGAIN_S = 1.0
"""How long the list of live evaluators is taken as it was."""
SHORTEST_WAIT_S = 1.0
TRIES = 2


class Mode(StrEnum):
    """Where classes are judged."""

    AUTO = "auto"
    LOCAL = "local"
    DISTRIBUTED = "distributed"


class Fanout:
    """Judges evaluations for the leader of one epoch; call it with those that are open."""

    def __init__(
        self, mode: Mode, store: Store, epoch: int, config: str, cache: Cache, dispatcher: Dispatcher, clock: Clock
    ) -> None:
        self.mode = mode
        self.costs = Costs()
        self._store = store
        self._epoch = epoch
        self._config = config
        self._cache = cache
        self._dispatcher = dispatcher
        self._clock = clock
        self._live = 0
        self._looked_at = float("-inf")

    def __call__(self, evaluations: Sequence[Evaluation]) -> None:
        """Fill every one of them."""
        broad = [evaluation for evaluation in evaluations if _can_travel(evaluation)]
        self._here([evaluation for evaluation in evaluations if not _can_travel(evaluation)])
        if broad and self._scattering([(each.framework.profile_name, each.searched) for each in broad]):
            EVALUATIONS.labels("distributed").inc(len(broad))
            self._scatter(broad)
        else:
            EVALUATIONS.labels("local").inc(len(broad))
            self._here(broad)

    def gather_first(self, classes: Sequence[tuple[str, PodInfo]]) -> bool:
        """Whether to ask the evaluators about classes, each given by profile and pod, in one request."""
        nodes = len(self._cache.snapshot.table)
        work = [(profile, nodes) for profile, pod in classes if not _has_claims(pod)]
        return bool(work) and self._scattering(work)

    def _scattering(self, work: Sequence[tuple[str, int]]) -> bool:
        """Whether evaluators are asked to judge so many rows by these profiles."""
        if self.mode is Mode.LOCAL or not self._evaluators():
            return False
        if self.mode is Mode.DISTRIBUTED:
            return True
        estimates = [self.costs.local_s(profile, rows) for profile, rows in work]
        local_s = sum(estimate for estimate in estimates if estimate is not None)
        return self.costs.fan_out_pays(local_s, self._live)

    def _evaluators(self) -> int:
        """How many evaluators take tasks and have this configuration."""
        if self._clock.monotonic() - self._looked_at > LOOK_AGAIN_S:
            now_ms = self._clock.now_ms()
            self._live = sum(
                worker.kind == "evaluator" and worker.config == self._config and not worker.silent(now_ms)
                for worker in workers.read(self._store)
            )
            self._looked_at = self._clock.monotonic()
        return self._live

    def _here(self, evaluations: Sequence[Evaluation]) -> None:
        for evaluation in evaluations:
            started = time.perf_counter()
            evaluation.judge_here()
            took = time.perf_counter() - started
            self.costs.judged(evaluation.framework.profile_name, evaluation.searched, took)

    def _scatter(self, evaluations: Sequence[Evaluation]) -> None:
        started = time.perf_counter()
        request = Scatter(self._shards(evaluations), evaluations)
        try:
            slowest_s = self._ask(request)
        except RedisUnavailable as error:
            _log.warning("evaluators not reached", extra={"action": "scatter", "error": str(error)})
            slowest_s = 0.0
        missing = request.missing()
        if missing:
            SHARD_FALLBACKS.inc(len(missing))
            _log.warning(
                "shards did not come back, judged here",
                extra={"action": "fallback", "shards": len(missing), "request": request.name},
            )
            self._looked_at = float("-inf")
            for shard in missing:
                request.judge_here(shard)
        else:
            self.costs.travelled(time.perf_counter() - started - slowest_s)
        SCATTER_DURATION.observe(time.perf_counter() - started)
        request.deliver()

    def _shards(self, evaluations: Sequence[Evaluation]) -> list[EvaluateShard]:
        table = self._cache.snapshot.table
        version = self._cache.log.publish(self._cache.snapshot)
        count = min(self._live, max(len(table), 1))
        bounds = [len(table) * number // count for number in range(count + 1)]
        name = new_request()
        pods = [(evaluation.framework.profile_name, evaluation.pod.pod) for evaluation in evaluations]
        return [
            EvaluateShard(
                request=name,
                epoch=self._epoch,
                table=version,
                config=self._config,
                shard=number,
                start=bounds[number],
                stop=bounds[number + 1],
                deadline_ms=0,
                pods=pods,
            )
            for number in range(count)
        ]

    def _patience_s(self, evaluations: Sequence[Evaluation]) -> float:
        """Ten times what it should take, and at least a second."""
        estimates = [self.costs.local_s(e.framework.profile_name, e.searched) or 0.0 for e in evaluations]
        return max(SHORTEST_WAIT_S, 10 * (sum(estimates) / max(self._live, 1) + self.costs.round_trip_s))

    def _ask(self, request: "Scatter") -> float:
        """Send and gather, twice for shards that do not answer; returns what the slowest shard took."""
        slowest_s = 0.0
        for _ in range(TRIES):
            missing = request.missing()
            if not missing:
                break
            patience_s = self._patience_s(request.evaluations)
            deadline_ms = self._clock.now_ms() + round(patience_s * 1000)
            self._dispatcher.evaluate(request.due(deadline_ms), patience_s)
            until = time.monotonic() + patience_s
            while request.awaited() and (left_s := until - time.monotonic()) > 0:
                reply = replies.take(self._store, request.name, max(left_s, 0.01))
                if reply is None:
                    break
                slowest_s = max(slowest_s, self._take(request, reply))
        return slowest_s

    def _take(self, request: "Scatter", raw: bytes) -> float:
        try:
            result = messages.decode(raw, ShardResult)
        except msgspec.DecodeError as error:
            STALE_REPLIES.labels("malformed").inc()
            _log.warning("reply refused", extra={"action": "reply", "error": str(error)})
            return 0.0
        if result.refusal:
            STALE_REPLIES.labels("refused").inc()
            request.refuse(result)
            _log.warning(
                "evaluator refused a shard",
                extra={"action": "reply", "evaluator": result.evaluator, "reason": result.refusal},
            )
            return 0.0
        if result.request != request.name or result.epoch != self._epoch or not request.accept(result):
            STALE_REPLIES.labels("stale").inc()
            return 0.0
        for profile, rows in request.rows_by_profile(result.shard).items():
            self.costs.judged(profile, rows, result.seconds / len(request.rows_by_profile(result.shard)))
        SHARD_DURATION.observe(result.seconds)
        return result.seconds


def _can_travel(evaluation: Evaluation) -> bool:
    """Few nodes are not worth a message, and only the leader knows which volumes are assumed."""
    return isinstance(evaluation.rows, slice) and not _has_claims(evaluation.pod)


def _has_claims(pod: PodInfo) -> bool:
    return any(volume.persistent_volume_claim or volume.ephemeral for volume in pod.pod.spec.volumes)


class Scatter:
    """One request on its way: shards out, answers in.

    Attributes:
        shards: by number; each time they are sent they get a deadline.
    """

    def __init__(self, shards: Sequence[EvaluateShard], evaluations: Sequence[Evaluation]) -> None:
        self.shards = shards
        self.evaluations = evaluations
        self.name = shards[0].request
        self._answers: dict[int, list[Columns | PluginFailure]] = {}
        self._refused: set[int] = set()

    def due(self, deadline_ms: int) -> list[EvaluateShard]:
        """Messages for the shards without an answer, to be answered by a wall-clock time."""
        self._refused.clear()
        return [msgspec.structs.replace(self.shards[number], deadline_ms=deadline_ms) for number in self.missing()]

    def refuse(self, result: ShardResult) -> None:
        """Take that nobody will answer for a shard this time."""
        self._refused.add(result.shard)

    def awaited(self) -> bool:
        """Whether an answer can still come in."""
        return any(number not in self._refused for number in self.missing())

    def missing(self) -> list[int]:
        """Shards without an answer."""
        return [shard.shard for shard in self.shards if shard.shard not in self._answers]

    def rows_by_profile(self, shard: int) -> Mapping[str, int]:
        """Rows judged in a shard, over all classes of a profile."""
        rows: dict[str, int] = {}
        for evaluation in self.evaluations:
            profile = evaluation.framework.profile_name
            rows[profile] = rows.get(profile, 0) + self.shards[shard].stop - self.shards[shard].start
        return rows

    def accept(self, result: ShardResult) -> bool:
        """Take a shard's answer; False when it is not one to this request, or the second one."""
        if result.shard not in self.missing() or len(result.classes) != len(self.evaluations):
            return False
        rows = self.shards[result.shard].stop - self.shards[result.shard].start
        try:
            self._answers[result.shard] = [_caught(unpack, found, rows) for found in result.classes]
        except ValueError as error:
            _log.warning("reply refused", extra={"action": "reply", "error": str(error)})
            return False
        return True

    def judge_here(self, number: int) -> None:
        """Answer for a shard in this process."""
        rows = slice(self.shards[number].start, self.shards[number].stop)
        self._answers[number] = [_caught(evaluation.judge_shard, rows) for evaluation in self.evaluations]

    def deliver(self) -> None:
        """Put the shards together and fill the evaluations."""
        for number, evaluation in enumerate(self.evaluations):
            parts = [self._answers[shard.shard][number] for shard in self.shards]
            failed = next((part for part in parts if isinstance(part, PluginFailure)), None)
            if failed is not None:
                evaluation.failure = failed.status
            else:
                evaluation.fill(join([part for part in parts if isinstance(part, Columns)]))


def _caught(answer: Callable[..., Columns], *args: Any) -> Columns | PluginFailure:
    try:
        return answer(*args)
    except PluginFailure as failure:
        return failure
