"""I7: batches, shards and other processes give the decisions that one pod at a time gives."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from dsched.clock import ManualClock
from dsched.engine import replica_delta
from dsched.engine.diagnosis import NO_NODES
from dsched.engine.evaluation import Evaluation
from dsched.engine.evaluation_cache import EvaluationCache, JudgeAll
from dsched.engine.failed_attempt import FailedAttempt
from dsched.engine.replica_delta import Delta, PodOff, PodOn
from dsched.engine.select import Selector
from dsched.framework.interface import (
    Code,
    Normalization,
    PermitResult,
    PostFilterResult,
    PreFilterResult,
    Status,
    unschedulable,
)
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName, PodUid
from dsched.model.pod import Pod
from dsched.scheduler.cycle import Cycle
from dsched.scheduler.decision import Candidate, Decision
from dsched.scheduler.observer import Observer
from dsched.scheduler.plugin_breaker import PluginBreaker
from dsched.scheduler.waiting_pods import WaitingPods
from tests.builders import make_node, make_pod, make_snapshot
from tests.unit.framework.frameworks import Handle, framework_of, frameworks
from tests.unit.framework.random_clusters import (
    CONFIGURATION,
    SCHEDULERS,
    RandomCluster,
    random_class,
    random_cluster,
    random_node,
    random_pod,
)
from tests.unit.framework.shards import replicas_of, shares, through_the_wire
from tests.unit.leader import naive


class AssumingSnapshot:
    """A cache that is a snapshot and nothing else; remembers its changes for replicas."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.changes: list[Delta] = []

    def assume(self, pod: PodInfo, node: NodeName) -> None:
        self.snapshot.table.add_pod(pod, node)
        self.changes.append(PodOn(node, pod.pod))

    def forget(self, uid: PodUid, *, released: bool) -> None:
        node = self.snapshot.table.node_of(uid)
        assert node is not None
        self.snapshot.table.remove_pod(uid)
        self.changes.append(PodOff(uid, node))


def judge_here(evaluations: Sequence[Evaluation]) -> None:
    for evaluation in evaluations:
        evaluation.judge_here()


class JudgeInShards:
    """Has open evaluations judged by shards on replicas that follow the leader's changes."""

    def __init__(self, cache: AssumingSnapshot, shards: int, frameworks: Collection[Framework]) -> None:
        self._cache = cache
        self._replicas = replicas_of(cache.snapshot, shards, frameworks)
        self._suffice = all(framework.shards_suffice for framework in frameworks)
        self.asked = 0

    def __call__(self, evaluations: Sequence[Evaluation]) -> None:
        changes = replica_delta.encode(self._cache.changes)
        for parts, replica in zip(shares(len(self._replicas)), self._replicas, strict=True):
            for change in replica_delta.decode(changes, parts if self._suffice else None):
                replica_delta.apply(replica, change)
        self._cache.changes.clear()
        for evaluation in evaluations:
            if isinstance(evaluation.rows, slice):
                self.asked += 1
                through_the_wire(evaluation, self._cache.snapshot, self._replicas)
            else:
                evaluation.judge_here()


def cycle_of(
    cache: AssumingSnapshot,
    by_name: Mapping[str, Framework],
    selector: Selector,
    percentage: int = 100,
    judge_all: JudgeAll = judge_here,
    waiting: WaitingPods | None = None,
) -> Cycle:
    percentages = dict.fromkeys(by_name, percentage)
    return Cycle(
        by_name,
        percentages,
        cache,
        EvaluationCache(cache.snapshot, judge_all),
        selector,
        WaitingPods(ManualClock()) if waiting is None else waiting,
        PluginBreaker(ManualClock()),
        Observer(),
    )


def queue_order(by_name: Mapping[str, Framework], pods: Sequence[Pod]) -> list[Candidate]:
    """Pods as they come out of the active queue; gated ones stay behind."""
    keyed = []
    for arrival, pod in enumerate(pods, start=1):
        framework = by_name[pod.spec.scheduler_name]
        if framework.run_pre_enqueue(pod) is None:
            keyed.append((framework.sort_key(pod, arrival), Candidate(PodInfo(pod), 1 + arrival % 3)))
    return [candidate for _, candidate in sorted(keyed, key=lambda entry: entry[0])]


@dataclass(frozen=True)
class Outcome:
    """A decision in plain values."""

    pod: str
    node: str | None
    best: frozenset[str]
    message: str

    @staticmethod
    def of(decision: Decision) -> "Outcome":
        assert decision.error is None, decision.error
        message = "" if decision.diagnosis is None else decision.diagnosis.message
        return Outcome(decision.candidate.info.key, decision.node, frozenset(decision.best), message)


def outcomes(decisions: Sequence[Decision]) -> list[Outcome]:
    return [Outcome.of(decision) for decision in decisions]


def in_one_batch(cluster: RandomCluster, seed: int, percentage: int) -> list[Outcome]:
    cache = AssumingSnapshot(cluster.snapshot())
    by_name = frameworks(CONFIGURATION, Handle(cache.snapshot))
    cycle = cycle_of(cache, by_name, Selector(seed), percentage)
    return outcomes(cycle.decide(queue_order(by_name, cluster.waiting)))


def one_by_one(cluster: RandomCluster, seed: int, percentage: int) -> list[Outcome]:
    """Each pod by a cycle of its own, which has nothing kept."""
    cache, selector = AssumingSnapshot(cluster.snapshot()), Selector(seed)
    by_name = frameworks(CONFIGURATION, Handle(cache.snapshot))
    found = []
    for candidate in queue_order(by_name, cluster.waiting):
        found += outcomes(cycle_of(cache, by_name, selector, percentage).decide([candidate]))
    return found


def against_naive(cluster: RandomCluster, found: Sequence[Outcome], percentage: int) -> None:
    """Each decision is what the naive scheduler says on what the decisions before it have left."""
    by_name = frameworks(CONFIGURATION)
    pods, placed, start = {pod.key: pod for pod in cluster.waiting}, list(cluster.placed), 0
    for outcome in found:
        pod = pods[outcome.pod]
        framework = by_name[pod.spec.scheduler_name]
        expected = naive.decide(framework, pod, cluster.nodes, placed, percentage, start)
        assert (outcome.best, outcome.message) == (expected.best, expected.message), pod.key
        start = expected.start
        if outcome.node is not None:
            assert outcome.node in expected.best
            placed.append((outcome.node, pod))
        else:
            assert not expected.best


@pytest.mark.parametrize("seed", range(40))
def test_a_batch_is_its_pods_one_by_one(seed: int) -> None:
    rng = Random(seed)
    for _ in range(5):
        cluster = random_cluster(rng, rng.choice([1, 3, 8, 20]), waiting=18)
        batch = in_one_batch(cluster, seed, 100)
        assert batch == one_by_one(cluster, seed, 100)
        against_naive(cluster, batch, 100)


@pytest.mark.parametrize("percentage", [0, 30, 100])
@pytest.mark.parametrize("seed", range(8))
def test_a_batch_is_its_pods_one_by_one_where_nodes_are_sampled(seed: int, percentage: int) -> None:
    rng = Random(1000 + seed)
    cluster = random_cluster(rng, rng.choice([100, 137, 260]), waiting=15)
    batch = in_one_batch(cluster, seed, percentage)
    assert batch == one_by_one(cluster, seed, percentage)
    against_naive(cluster, batch, percentage)


def changed(rng: Random, cluster: RandomCluster, cache: AssumingSnapshot, number: int) -> None:
    """Something happens between two batches, to the table and to the lists that it is built from."""
    table, draw = cache.snapshot.table, rng.random()
    if draw < 0.5 and cluster.placed:
        _, pod = cluster.placed.pop(rng.randrange(len(cluster.placed)))
        table.remove_pod(pod.uid)
    elif draw < 0.8:
        place = rng.randrange(len(cluster.nodes))
        node = random_node(rng, int(cluster.nodes[place].name[4:]))
        cluster.nodes[place] = node
        table.set_node(node)
    elif draw < 0.9:
        node = random_node(rng, 500 + number)
        cluster.nodes.append(node)
        table.set_node(node)
    elif len(cluster.nodes) > 1:
        node = cluster.nodes.pop(rng.randrange(len(cluster.nodes)))
        table.remove_node(node.name)


@pytest.mark.parametrize("seed", range(30))
def test_what_is_kept_between_batches_does_not_show(seed: int) -> None:
    rng = Random(2000 + seed)
    cluster = random_cluster(rng, rng.choice([4, 12]), waiting=0)
    cache = AssumingSnapshot(cluster.snapshot())
    by_name = frameworks(CONFIGURATION, Handle(cache.snapshot))
    cycle = cycle_of(cache, by_name, Selector(seed))
    classes = [random_class(rng, len(cluster.nodes)) for _ in range(5)]
    for batch in range(8):
        pods = [random_pod(rng, f"b{batch}-{number}", rng.choice(classes)) for number in range(6)]
        found = outcomes(cycle.decide(queue_order(by_name, pods)))
        cluster.waiting = pods
        against_naive(cluster, found, 100)
        by_key = {pod.key: pod for pod in pods}
        cluster.placed += [(outcome.node, by_key[outcome.pod]) for outcome in found if outcome.node is not None]
        for number in range(rng.choice([0, 1, 3])):
            changed(rng, cluster, cache, 10 * batch + number)


@pytest.mark.parametrize("seed", range(30))
def test_shards_give_the_same_decisions(seed: int) -> None:
    rng = Random(3000 + seed)
    cluster = random_cluster(rng, rng.choice([2, 9, 110]), waiting=20)
    percentage = rng.choice([100, 100, 30])
    here = in_one_batch(cluster, seed, percentage)
    cache = AssumingSnapshot(cluster.snapshot())
    by_name = frameworks(CONFIGURATION, Handle(cache.snapshot))
    shards = JudgeInShards(cache, rng.choice([1, 2, 5]), by_name.values())
    cycle = cycle_of(cache, by_name, Selector(seed), percentage, shards)
    candidates = queue_order(by_name, cluster.waiting)
    found = []
    for start in range(0, len(candidates), 7):  # the replica follows the pods that were placed in between
        found += outcomes(cycle.decide(candidates[start : start + 7]))
    assert found == here


@pytest.mark.parametrize("seed", range(30))
def test_the_order_of_rows_does_not_matter(seed: int) -> None:
    rng = Random(4000 + seed)
    cluster = random_cluster(rng, rng.choice([3, 15, 120]), waiting=15)
    shuffled = RandomCluster(rng.sample(cluster.nodes, len(cluster.nodes)), cluster.placed, cluster.waiting)
    assert in_one_batch(shuffled, seed, 100) == in_one_batch(cluster, seed, 100)


def test_the_random_cases_are_worth_something() -> None:
    """All profiles place pods and fail to; ties, narrowed searches and rejections by PreFilter come up."""
    seen: set[str] = set()
    for seed in range(40):
        cluster = random_cluster(Random(seed), 12, waiting=18)
        by_key = {pod.key: pod for pod in cluster.waiting}
        for outcome in in_one_batch(cluster, seed, 100):
            seen.add(f"{by_key[outcome.pod].spec.scheduler_name} {'placed' if outcome.node else 'not placed'}")
            seen |= {"tie"} if len(outcome.best) > 1 else set()
            seen |= {"narrowed"} if "satisfy plugin(s)" in outcome.message else set()
            seen |= {"rejected"} if "terms conflict" in outcome.message else set()
            for reason in ("Insufficient", "Too many pods", "ports", "taint", "affinity", "unschedulable", "spread"):
                seen |= {reason} if reason in outcome.message else set()
    placed = {f"{name} {how}" for name in SCHEDULERS for how in ("placed", "not placed")}
    reasons = {"Insufficient", "Too many pods", "ports", "taint", "affinity", "unschedulable", "spread"}
    assert seen >= placed | reasons | {"tie", "narrowed", "rejected"}


# -- what turns a placed pod away ----------------------------------------------------------------------------------


def decided(*plugins: type[Any], nodes: int = 2, pods: int = 1, percentage: int = 100) -> tuple[list[Decision], Any]:
    cache = AssumingSnapshot(make_snapshot(make_node(f"n{number:03}", pods=1) for number in range(nodes)))
    framework = framework_of(*plugins, handle=Handle(cache.snapshot))
    cycle = cycle_of(cache, {framework.profile_name: framework}, Selector(0), percentage)
    candidates = [Candidate(PodInfo(make_pod(f"shop/p{number}")), 1) for number in range(pods)]
    return cycle.decide(candidates), cache.snapshot.table


def plugin(**methods: Any) -> type[Any]:
    return type("Test", (), {"name": "Test", "__init__": lambda self, args, handle: None, **methods})


REJECTIONS: list[tuple[Callable[..., Any], str]] = [
    (lambda self, state, pod, node: unschedulable("busy"), "0/1 nodes are available: 1 busy."),
    (lambda self, state, pod, node: Status(Code.ERROR, ("on fire",)), ""),
]


@pytest.mark.parametrize(("answer", "message"), REJECTIONS)
def test_a_failed_reserve_leaves_nothing_behind(answer: Callable[..., Any], message: str) -> None:
    calls: list[str] = []
    made = plugin(reserve=answer, unreserve=lambda self, state, pod, node: calls.append(node))
    (decision,), table = decided(made)
    assert decision.node is None
    assert table.pod_count.tolist() == [0, 0]
    assert len(calls) == 1
    if message:
        assert decision.diagnosis is not None
        assert decision.diagnosis.message == message
        assert decision.diagnosis.unschedulable_plugins == {"Test"}
    else:
        assert decision.error is not None
        assert decision.error.message == "on fire"


@pytest.mark.parametrize(("answer", "message"), REJECTIONS)
def test_a_permit_that_says_no_undoes_reserve(answer: Callable[..., Any], message: str) -> None:
    calls: list[str] = []
    made = plugin(
        reserve=lambda self, state, pod, node: calls.append("reserve"),
        unreserve=lambda self, state, pod, node: calls.append("unreserve"),
        permit=lambda self, state, pod, node: PermitResult(answer(self, state, pod, node)),
    )
    (decision,), table = decided(made)
    assert calls == ["reserve", "unreserve"]
    assert table.pod_count.tolist() == [0, 0]
    assert (decision.diagnosis.message if decision.diagnosis else "") == message


def test_what_a_pod_writes_is_its_own() -> None:
    """Pods of a class share what PreFilter wrote; what one of them sends to the binder is not another's."""

    def reserve(self: Any, state: Any, pod: Any, node: str) -> None:
        assert state.shared == {}
        state.shared["Test"] = node

    decisions, _ = decided(plugin(reserve=reserve, unreserve=lambda *given: None), pods=3, nodes=3)
    assert [decision.error for decision in decisions] == [None, None, None]
    assert all(decision.state.shared == {"Test": decision.node} for decision in decisions)


def full(self: Any, state: Any, pod: Any, node: Any) -> Any:
    return unschedulable("full")


def test_post_filter_nominates() -> None:
    made = plugin(
        filter=full,
        post_filter=lambda self, *given: PostFilterResult(NodeName("n001"), Status(Code.SUCCESS)),
    )
    (decision,), _ = decided(made)
    assert decision.nominated == "n001"
    assert decision.diagnosis is not None
    assert decision.diagnosis.message == "0/2 nodes are available: 2 full."


def decided_promised(node: str, *plugins: type[Any]) -> Decision:
    """The decision on a pod that was promised a node of two."""
    cache = AssumingSnapshot(make_snapshot(make_node(f"n{number:03}", pods=1) for number in range(2)))
    framework = framework_of(*plugins, handle=Handle(cache.snapshot))
    pod = PodInfo(make_pod("shop/promised"))
    cache.snapshot.nominations.set(pod, NodeName(node))
    (decision,) = cycle_of(cache, {framework.profile_name: framework}, Selector(0)).decide([Candidate(pod, 1)])
    return decision


def to_n000(self: Any, *given: Any) -> PreFilterResult:
    return PreFilterResult(frozenset({NodeName("n000")}))


def test_a_promised_node_is_taken_even_beyond_a_narrowed_search() -> None:
    """Source: schedule_one.go ``evaluateNominatedNode``, which does not look at PreFilter's nodes."""
    assert decided_promised("n001", plugin(pre_filter=to_n000)).node == "n001"


def test_what_rejected_the_promised_node_may_be_cured_by_preemption_wherever_the_node_is() -> None:
    tried: list[int] = []

    def post_filter(self: Any, attempt: FailedAttempt) -> PostFilterResult:
        tried.extend(attempt.rejected_with(Code.UNSCHEDULABLE).tolist())
        return PostFilterResult(None, unschedulable())

    decision = decided_promised("n001", plugin(pre_filter=to_n000, filter=full, post_filter=post_filter))
    assert tried == [0, 1]
    assert decision.message == "0/2 nodes are available: 2 full."


@pytest.mark.parametrize("pre_filter", [to_n000, lambda self, *given: unschedulable("never"), lambda self, *given: 1])
def test_without_nodes_no_plugin_is_asked(pre_filter: Callable[..., Any]) -> None:
    """So none has rejected the pod: it is tried again after a pause. Source: schedule_one.go ``schedulePod``,
    ``schedulingAlgorithm``, which takes its promise back."""

    def post_filter(self: Any, attempt: FailedAttempt) -> PostFilterResult:
        raise AssertionError("asked")

    (decision,), _ = decided(plugin(pre_filter=pre_filter, filter=full, post_filter=post_filter), nodes=0)
    assert (decision.message, decision.nominated) == (NO_NODES, "")
    assert decision.diagnosis is not None
    assert (decision.diagnosis.unschedulable_plugins, decision.diagnosis.rejection) == (frozenset(), None)


def test_what_post_filter_says_is_added() -> None:
    made = plugin(filter=full, post_filter=lambda self, *given: PostFilterResult(None, unschedulable("no victims")))
    (decision,), _ = decided(made)
    assert decision.diagnosis is not None
    assert decision.diagnosis.message == "0/2 nodes are available: 2 full. no victims"


def test_a_post_filter_that_fails_leaves_the_pod_unschedulable() -> None:
    """The pod fits nowhere, whatever PostFilter did. Source: schedule_one.go ``schedulingCycle``."""

    def post_filter(self: Any, *given: Any) -> Any:
        raise LookupError("no victims")

    (decision,), _ = decided(plugin(filter=full, post_filter=post_filter))
    assert decision.error is None
    assert decision.diagnosis is not None
    assert decision.diagnosis.message.startswith("0/2 nodes are available: 2 full. ")
    assert "LookupError: no victims" in decision.diagnosis.message
    assert decision.diagnosis.unschedulable_plugins == {"Test"}


def test_a_plugin_that_fails_fails_its_pod_alone() -> None:
    def answer(self: Any, state: Any, pod: Any, node: Any) -> Any:
        if pod.key == "shop/p1":
            raise LookupError("p1")

    decisions, _ = decided(plugin(filter=answer), nodes=3, pods=3)
    assert [decision.error is not None for decision in decisions] == [False, True, False]


def test_a_normalising_that_fails_on_a_sample_fails_the_pod() -> None:
    def normalize(self: Any, state: Any, pod: Any, scores: Any) -> Any:
        if len(scores) < 150:
            raise LookupError("too few")
        return scores

    made = plugin(score=lambda self, state, pod, node: 1, normalize=normalize, normalization=Normalization.CUSTOM)
    (decision,), _ = decided(made, nodes=150, percentage=30)
    assert decision.node is None
    assert decision.error is not None
    assert "too few" in decision.error.message


def test_permit_makes_pods_wait_and_the_next_one_sees_them() -> None:
    waiting = WaitingPods(ManualClock())

    def permit(self: Any, state: Any, pod: Any, node: Any) -> PermitResult:
        for other in waiting:
            other.allow("Test")
            return PermitResult()
        return PermitResult(Status(Code.WAIT), 10)

    cache = AssumingSnapshot(make_snapshot(make_node(f"n{number}") for number in range(2)))
    framework = framework_of(plugin(permit=permit))
    cycle = cycle_of(cache, {framework.profile_name: framework}, Selector(0), waiting=waiting)
    first, second = cycle.decide([Candidate(PodInfo(make_pod(f"shop/p{number}")), 1) for number in range(2)])
    assert first.waiting is not None
    assert first.waiting.allowed
    assert second.waiting is not None  # both are handed out in one step
    assert second.waiting.allowed
    assert [waiting_pod.pod.key for waiting_pod in waiting] == ["shop/p0", "shop/p1"]


def test_a_pod_that_nobody_holds_back_does_not_wait() -> None:
    waiting = WaitingPods(ManualClock())
    hesitant = "shop/p1"

    def permit(self: Any, state: Any, pod: Any, node: Any) -> PermitResult:
        return PermitResult(Status(Code.WAIT), 10) if pod.key == hesitant else PermitResult()

    cache = AssumingSnapshot(make_snapshot(make_node(f"n{number}") for number in range(2)))
    framework = framework_of(plugin(permit=permit))
    cycle = cycle_of(cache, {framework.profile_name: framework}, Selector(0), waiting=waiting)
    decisions = cycle.decide([Candidate(PodInfo(make_pod(f"shop/p{number}")), 1) for number in range(3)])
    assert [decision.waiting is not None for decision in decisions] == [False, True, False]
    assert [waiting_pod.pod.key for waiting_pod in waiting] == [hesitant]
