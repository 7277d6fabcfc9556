"""Judging a batch's classes: in this process, or scattered over the evaluators by shard and gathered.

Both ways give the same columns. Each evaluator is asked about the nodes whose parts of the table it holds. A shard that
does not come back in time is asked for once more, then judged here.
"""

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext

import msgspec

from dsched.clock import Clock
from dsched.engine.evaluation import Evaluation
from dsched.engine.partitions import Partitions
from dsched.engine.wire import pack_closed
from dsched.errors import RedisUnavailable
from dsched.framework.interface import Code, Status
from dsched.framework.pod_info import PodInfo
from dsched.framework.validation import PluginFailure, failed
from dsched.leader.dispatch import Dispatcher, new_request
from dsched.leader.evaluators.assignment import Assignment
from dsched.leader.evaluators.cost import Costs
from dsched.leader.evaluators.mode import Mode
from dsched.leader.evaluators.request import Question, Shard, ShardedRequest
from dsched.leader.observers.traces import Traces
from dsched.log import cut, logger
from dsched.metrics import EVALUATIONS, SCATTER_DURATION, SHARD_DURATION, SHARD_FALLBACKS, STALE_REPLIES
from dsched.model import messages
from dsched.model.messages import EvaluateShard, ShardResult
from dsched.scheduler.cache import Cache
from dsched.scheduler.plugin_breaker import PluginBreaker
from dsched.state import replies, workers
from dsched.state import time as redis_time
from dsched.state.client import Store, WrongType
from dsched.state.workers_clock import WorkersClock

_log = logger(__name__)

LOOK_AGAIN_S = 1.0
"""How long the list of live evaluators is taken as it was."""
SHORTEST_WAIT_S = 1.0
IN_VAIN = 2.0
"""What is waited for in vain costs about so many times what judging it here would have cost."""
TRIES = 2
LONGEST_S = 3600.0
"""What an evaluation may say that it took; what says more is no evaluator."""


class Router:
    """Judges evaluations for the leader of one epoch; call it with those that are open."""

    def __init__(
        self,
        mode: Mode,
        store: Store,
        epoch: int,
        config: str,
        cache: Cache,
        dispatcher: Dispatcher,
        clock: Clock,
        cluster: str = "",
        breaker: PluginBreaker | None = None,
        limit_s: float = 0.0,
        traces: Traces | None = None,
    ) -> None:
        """
        Args:
            limit_s: how long a plugin may take in an evaluator; 0 for no limit.
        """
        self.mode = mode
        self.costs = Costs()
        self._store = store
        self._epoch = epoch
        self._config = config
        self._cache = cache
        self._dispatcher = dispatcher
        self._clock = clock
        self._workers_clock = WorkersClock(store, clock)
        self._cluster = cluster
        self._traces = traces
        self._breaker = breaker or PluginBreaker(clock)
        self._limit_s = limit_s
        self._partitions = Partitions()
        self._shares = Assignment()
        self._live: list[str] = []
        self._away: frozenset[str] = frozenset()
        self._looked_at = float("-inf")
        self._unanswered_ms = 0
        """When shards were asked for last that did not come back: who has shown no sign of life since is not asked."""

    def __call__(self, evaluations: Sequence[Evaluation]) -> None:
        """Fill every one of them."""
        with nullcontext() if self._traces is None else self._traces.judging(evaluations):
            broad = [evaluation for evaluation in evaluations if _can_travel(evaluation)]
            here = [evaluation for evaluation in evaluations if not _can_travel(evaluation)]
            self._here(self._fit_for_here(here))
            if broad and self._scattering([(each.framework.profile_name, each.searched) for each in broad]):
                EVALUATIONS.labels("distributed").inc(len(broad))
                self._scatter(broad)
                self.costs.forgone_s = 0.0
            else:
                # A class that took an evaluator along is asked there or not at all: here it would take the leader.
                away = [evaluation for evaluation in broad if self._seen_elsewhere(evaluation) is not None]
                if away and self.mode is not Mode.LOCAL and self._evaluators():
                    EVALUATIONS.labels("distributed").inc(len(away))
                    self._scatter(away)
                    broad = [evaluation for evaluation in broad if evaluation not in away]
                EVALUATIONS.labels("local").inc(len(broad))
                took_s = self._here(self._fit_for_here(broad))
                if self.mode is Mode.AUTO and self._live and not self._cache.log.following:
                    self.costs.forgo(took_s, len(self._live), sum(evaluation.searched for evaluation in broad))

    def gather_first(self, classes: Sequence[tuple[str, PodInfo]]) -> bool:
        """Whether to ask the evaluators about classes, each given by profile and pod, in one request."""
        nodes = len(self._cache.snapshot.table)
        work = Counter(profile for profile, pod in classes if not _has_claims(pod))
        return bool(work) and self._scattering([(profile, nodes * number) for profile, number in work.items()])

    def _scattering(self, work: Sequence[tuple[str, int]]) -> bool:
        """Whether evaluators are asked to judge so many rows by these profiles."""
        if self.mode is Mode.LOCAL or not self._evaluators():
            return False
        if self.mode is Mode.DISTRIBUTED:
            return True
        estimates = [self.costs.local_s(profile, rows) for profile, rows in work]
        local_s = sum(estimate for estimate in estimates if estimate is not None)
        rows = sum(rows for _, rows in work)
        saved_s = self.costs.saved_s(local_s, len(self._live), rows)
        if not saved_s or not self._replicas(saved_s):
            return False
        shares = self._shared_out()
        if not self._away:
            return True
        return self.costs.saved_s(local_s, len(shares) // len(self._away), rows) > 0

    def _replicas(self, saved_s: float) -> bool:
        """Whether evaluators follow the table, or are to begin with it to save so much now."""
        table = self._cache.snapshot.table
        return self._cache.log.following or self.costs.replicas_pay(saved_s, len(table) + int(table.pod_count.sum()))

    def _shared_out(self) -> Mapping[str, Collection[int]]:
        """Parts of the table by the evaluator that holds them, those that cannot be asked now included."""
        nodes = self._partitions.counts(self._cache.snapshot.table)
        shares = self._shares.among(self._live, nodes, self._clock.monotonic())
        away = frozenset(shares) - frozenset(self._live)
        if away - self._away:
            _log.warning(
                "evaluators cannot be asked, the leader judges their shards meanwhile",
                extra={"action": "fallback", "evaluators": sorted(away)},
            )
        self._away = away
        return shares

    def _evaluators(self) -> Sequence[str]:
        """The evaluators that take tasks and have this configuration."""
        if self._clock.monotonic() - self._looked_at > LOOK_AGAIN_S:
            now_ms = redis_time.now_ms(self._store)  # which may have been set since the term began
            self._unanswered_ms = min(self._unanswered_ms, now_ms)
            self._live = [
                worker.name
                for worker in workers.read(self._store)
                if worker.kind == "evaluator"
                and worker.config == self._config
                and not worker.trouble
                and not worker.silent(now_ms)
                and worker.last_seen_ms > self._unanswered_ms
            ]
            self._looked_at = self._clock.monotonic()
        return self._live

    def _seen_elsewhere(self, evaluation: Evaluation) -> Status | None:
        return self._breaker.only_elsewhere(evaluation.framework.profile_name, evaluation.pod.class_key)

    def _fit_for_here(self, evaluations: Sequence[Evaluation]) -> list[Evaluation]:
        """Those that may be judged in this process; the others fail."""
        found: list[Evaluation] = []
        for evaluation in evaluations:
            met = self._seen_elsewhere(evaluation)
            if met is None:
                found.append(evaluation)
            else:
                evaluation.failure = Status(Code.ERROR, (f"{met.message}; waits for an evaluator",), met.plugin)
        return found

    def _here(self, evaluations: Sequence[Evaluation]) -> float:
        """Judge them in this process; returns how many seconds it took."""
        total_s = 0.0
        for evaluation in evaluations:
            whole = not evaluation.resembling
            started = time.perf_counter()
            evaluation.judge_here()
            took = time.perf_counter() - started
            total_s += took
            if whole:
                self.costs.judged(evaluation.framework.profile_name, evaluation.searched, took)
        return total_s

    def _scatter(self, evaluations: Sequence[Evaluation]) -> None:
        started, asked_ms = time.perf_counter(), self._workers_clock.now_ms()
        questions = self._questions(evaluations)
        if not questions:
            return
        request = ShardedRequest(self._shards(questions), questions, self._limit_s)
        for at, question in enumerate(questions):
            if (met := self._seen_elsewhere(question.evaluation)) is not None:
                request.keep_away(at, failed(met))
        try:
            slowest_s, tries = self._ask(request)
        except (RedisUnavailable, WrongType) as error:
            _log.warning("evaluators not reached", extra={"action": "scatter", "error": str(error)})
            slowest_s, tries = 0.0, 0
        missing = request.give_up()
        if missing:
            SHARD_FALLBACKS.inc(len(missing))
            _log.warning(
                "shards did not come back, judged here",
                extra={"action": "fallback", "shards": len(missing), "request": request.name},
            )
            self._looked_at, self._unanswered_ms = float("-inf"), asked_ms
            for shard in missing:
                request.judge_here(shard)
        elif not self._away and tries == 1:  # what was waited for in vain is no part of the way
            took_s = time.perf_counter() - started - slowest_s
            self.costs.travelled(took_s, sum(question.evaluation.searched for question in questions))
        SCATTER_DURATION.observe(time.perf_counter() - started)
        request.deliver()

    def _questions(self, evaluations: Sequence[Evaluation]) -> list[Question]:
        """What evaluators are asked, once this process has asked the plugins that they are not; classes for which one
        of these fails are done."""
        found: list[Question] = []
        for evaluation in evaluations:
            try:
                found.append(Question(evaluation))
            except PluginFailure as failure:
                evaluation.failure = failure.status
        return found

    def _shards(self, questions: Sequence[Question]) -> list[Shard]:
        """The table's rows by who holds them; who holds none is left out."""
        table = self._cache.snapshot.table
        version = self._cache.log.publish(self._cache.snapshot)
        name = new_request()
        shares = self._shared_out().items()
        held = [(who, parts, self._partitions.rows(table, parts)) for who, parts in shares]
        held = [each for each in held if len(each[2])]
        traces = [] if self._traces is None else self._traces.scattered(len(held))
        pods = [(question.evaluation.framework.profile_name, question.evaluation.pod.pod) for question in questions]
        return [
            Shard(
                "" if who in self._away else who,
                EvaluateShard(
                    request=name,
                    epoch=self._epoch,
                    table=version,
                    config=self._config,
                    shard=number,
                    parts=list(parts),
                    rows=len(rows),
                    deadline_ms=0,
                    pods=pods,
                    closed=[pack_closed(question.closed[rows]) for question in questions],
                    cluster=self._cluster,
                    traces=traces,
                ),
                rows,
            )
            for number, (who, parts, rows) in enumerate(held)
        ]

    def _patience_s(self, questions: Sequence[Question]) -> float:
        """How long is waited while nobody answers. Estimates may be far too long: where a process was held up, or had
        to start first, that is part of what its first rows took."""
        evaluations = [question.evaluation for question in questions]
        here_s = sum(self.costs.local_s(e.framework.profile_name, e.searched) or 0.0 for e in evaluations)
        return max(SHORTEST_WAIT_S, IN_VAIN * (here_s + self.costs.round_trip_s))

    def _ask(self, request: ShardedRequest) -> tuple[float, int]:
        """Send and gather, twice for shards that do not answer, unless nobody has said anything at all; returns what
        the slowest shard took, and how often was asked.

        All have about as much to do: once one has answered, the others are given about as long again, and half of that
        when they are asked once more.
        """
        slowest_s, tries, patience_s = 0.0, 0, self._patience_s(request.questions)
        while tries < TRIES and request.missing() and (not tries or request.heard):
            deadline_ms = self._workers_clock.now_ms() + round(patience_s * 1000)
            self._dispatcher.evaluate(request.due(deadline_ms))
            # After the messages have left: the evaluators judge theirs meanwhile.
            if not tries:
                SHARD_FALLBACKS.inc(len(request.judge_own()))
            tries += 1
            asked = time.monotonic()
            until, held_up_until = asked + patience_s, asked
            latest = until + request.longest_s()
            while request.awaited() and (left_s := max(until, held_up_until) - time.monotonic()) > 0:
                reply = replies.take(self._store, request.name, max(left_s, 0.01))
                if reply is None:
                    break
                missing = len(request.missing())
                took_s, longer_s = self._take(request, reply)
                slowest_s = max(slowest_s, took_s)
                now = time.monotonic()
                held_up_until = max(held_up_until, min(latest, now + longer_s))
                if len(request.missing()) < missing:
                    patience_s = min(patience_s, max(SHORTEST_WAIT_S, IN_VAIN * (now - asked)))
                    until = min(until, now + patience_s)
            request.end_try()
            patience_s /= 2
        return slowest_s, tries

    def _take(self, request: ShardedRequest, raw: bytes) -> tuple[float, float]:
        """Take in a reply; returns how long the evaluation took, and how much longer to wait for the others."""
        request.heard = True
        try:
            result = messages.decode(raw, ShardResult)
            _check_times(result)
        except msgspec.DecodeError as error:
            STALE_REPLIES.labels("malformed").inc()
            _log.warning("reply refused", extra={"action": "reply", "error": cut(str(error))})
            return 0.0, 0.0
        if result.refusal:
            STALE_REPLIES.labels("refused").inc()
            request.refuse(result.shard)
            _log.warning(
                "evaluator refused a shard",
                extra={"action": "reply", "evaluator": cut(result.evaluator), "reason": cut(result.refusal)},
            )
            return 0.0, 0.0
        if result.trouble is not None and result.request == request.name:
            return 0.0, request.hear(result.shard, result.trouble)
        if result.request != request.name or result.epoch != self._epoch or not request.accept(result):
            STALE_REPLIES.labels("stale").inc()
            return 0.0, 0.0
        for profile, rows in request.rows_by_profile(result.shard).items():
            self.costs.judged(profile, rows, result.seconds / len(request.rows_by_profile(result.shard)))
        SHARD_DURATION.observe(result.seconds)
        return result.seconds, 0.0


def _check_times(result: ShardResult) -> None:
    """
    Raises:
        msgspec.ValidationError: nothing takes so long, or less than no time.
    """
    for seconds in (result.seconds, 0.0 if result.trouble is None else result.trouble.seconds):
        if not 0.0 <= seconds <= LONGEST_S:
            raise msgspec.ValidationError(f"{seconds:g} s are no time that anything takes")


def _can_travel(evaluation: Evaluation) -> bool:
    """Few nodes are not worth a message, and only the leader knows which volumes are assumed."""
    return isinstance(evaluation.rows, slice) and not _has_claims(evaluation.pod)


def _has_claims(pod: PodInfo) -> bool:
    return any(volume.persistent_volume_claim or volume.ephemeral for volume in pod.pod.spec.volumes)
