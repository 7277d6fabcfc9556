"""A fan-out over a random cluster, with evaluators that behave as a test wants, or with real ones."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import msgspec

from dsched.clock import SystemClock
from dsched.config.feature_gates import DEFAULT
from dsched.engine.evaluation import Evaluation, evaluate
from dsched.engine.judge import judge_apart
from dsched.engine.partitions import Partitions
from dsched.engine.wire import pack, pack_failure, unpack_closed
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.framework.validation import PluginFailure
from dsched.leader.evaluators.router import Mode, Router
from dsched.model import messages
from dsched.model.messages import EvaluateShard, ShardResult
from dsched.model.meta import NodeName
from dsched.scheduler.cache import Cache
from dsched.state import keys, replies, workers
from dsched.state.client import Store
from dsched.state.node_log import NodeLog, Replica
from dsched.state.usage import Usage
from dsched.state.workers import Worker
from tests.unit.framework.answers import said
from tests.unit.framework.frameworks import Handle, frameworks
from tests.unit.framework.random_clusters import CONFIGURATION, random_cluster

EPOCH = 7
HASH = "0123456789ab"

Habit = Callable[[EvaluateShard, "Evaluators"], None]


class Evaluators:
    """Stand for the evaluators and for what carries messages to them; answers at once, as its habits say.

    Attributes:
        habits: for one message after the other; the last one stays.
        asked: messages by the try they came in.
        replicas: by evaluator.
    """

    def __init__(self, store: Store, by_name: dict[str, Framework], *habits: Habit) -> None:
        self._store = store
        self.replicas: dict[str, Replica] = defaultdict(lambda: Replica(store))
        self._frameworks = by_name
        self.habits = list(habits) or [answer]
        self.asked: list[list[EvaluateShard]] = []

    def evaluate(self, shards: Sequence[tuple[str, EvaluateShard]]) -> None:
        self.asked.append([shard for _, shard in shards])
        for name, shard in shards:
            habit = self.habits.pop(0) if len(self.habits) > 1 else self.habits[0]
            self._name = name
            habit(messages.decode(messages.encode(shard), EvaluateShard), self)

    def result(self, message: EvaluateShard, **changes: Any) -> ShardResult:
        """What an evaluator says of a shard."""
        fields: dict[str, Any] = {"request": message.request, "epoch": message.epoch, "shard": message.shard}
        if "refusal" not in changes:
            suffice = all(framework.shards_suffice for framework in self._frameworks.values())
            self.replicas[self._name].catch_up(message.table, frozenset(message.parts) if suffice else None)
            fields["classes"] = [
                self._judged(profile, pod, closed, message)
                for (profile, pod), closed in zip(message.pods, message.closed, strict=True)
            ]
        return ShardResult(**{**fields, "evaluator": "e", "seconds": 0.001, **changes})

    def _judged(self, profile: str, pod: Any, raw: bytes, shard: EvaluateShard) -> Any:
        snapshot, closed = self.replicas[self._name].snapshot, unpack_closed(raw, shard.rows)
        rows = Partitions().rows(snapshot.table, shard.parts)[: shard.rows]
        try:
            return pack(judge_apart(self._frameworks[profile], PodInfo(pod), snapshot, rows, closed))
        except PluginFailure as failure:
            return pack_failure(failure)

    def push(self, shard: EvaluateShard, answer: bytes) -> None:
        replies.push(self._store, shard.request, answer)


def answer(shard: EvaluateShard, evaluators: Evaluators) -> None:
    """As an evaluator does; one drops what nobody waits for any more."""
    if SystemClock().now_ms() <= shard.deadline_ms:
        evaluators.push(shard, messages.encode(evaluators.result(shard)))


def be_silent(shard: EvaluateShard, evaluators: Evaluators) -> None:
    pass


def refuse(shard: EvaluateShard, evaluators: Evaluators) -> None:
    evaluators.push(shard, messages.encode(evaluators.result(shard, refusal="another configuration")))


def answer_twice(shard: EvaluateShard, evaluators: Evaluators) -> None:
    answer(shard, evaluators)
    answer(shard, evaluators)


def mumble(shard: EvaluateShard, evaluators: Evaluators) -> None:
    evaluators.push(shard, b"\xc1 no message")


def of_another(field: str, value: Any) -> Habit:
    def habit(shard: EvaluateShard, evaluators: Evaluators) -> None:
        evaluators.push(shard, messages.encode(evaluators.result(shard, **{field: value})))

    return habit


def cut_short(shard: EvaluateShard, evaluators: Evaluators) -> None:
    """Judged fewer rows than asked for."""
    rows = shard.rows - 1
    shorter = msgspec.structs.replace(shard, rows=rows, closed=[raw[: 2 * rows] for raw in shard.closed])
    evaluators.push(shard, messages.encode(evaluators.result(shorter)))


class Room:
    """A fan-out over a random cluster."""

    def __init__(
        self,
        store: Store,
        mode: Mode = Mode.DISTRIBUTED,
        count: int = 3,
        nodes: int = 25,
        epoch: int = EPOCH,
        config: str = HASH,
        dispatcher: Any = None,
    ) -> None:
        """Without a ``dispatcher``, stand-ins are asked, and so many of them are known."""
        store.redis.set(store.key(keys.EPOCH.name), epoch)
        self.store = store
        self.cache = Cache(Usage(store, epoch), NodeLog(store, epoch))
        self.cluster = random_cluster(Random(5), nodes, waiting=12, classes=8)
        for node in self.cluster.nodes:
            self.cache.set_node(node)
        for name, pod in self.cluster.placed:
            self.cache.add_pod(PodInfo(pod), NodeName(name))
        self.frameworks = frameworks(CONFIGURATION, Handle(self.cache.snapshot), DEFAULT)
        self.evaluators = Evaluators(store, frameworks(CONFIGURATION, features=DEFAULT))
        clock = SystemClock()
        asked: Any = dispatcher or self.evaluators
        self.router = Router(mode, store, epoch, config, self.cache, asked, clock)
        for number in range(0 if dispatcher else count):
            workers.note(store, Worker(f"evaluator-{number}", "evaluator", clock.now_ms(), config))

    def open(self) -> list[Evaluation]:
        """Evaluations that wait to be judged over all rows."""
        made = [
            Evaluation(self.frameworks[pod.spec.scheduler_name], PodInfo(pod), self.cache.snapshot)
            for pod in self.cluster.waiting
        ]
        return [evaluation for evaluation in made if evaluation.open and isinstance(evaluation.rows, slice)]

    def judged_right(self) -> None:
        """Fan out once; the answers are those of this process."""
        evaluations = self.open()
        assert len(evaluations) > 3
        self.router(evaluations)
        table = self.cache.snapshot.table
        for evaluation in evaluations:
            here = evaluate(evaluation.framework, evaluation.pod, self.cache.snapshot)
            assert said(evaluation, table) == said(here, table)
