"""Each decision of a simulation is the cycle's on what the decisions before have left."""

from dataclasses import replace
from random import Random
from typing import Any

import msgspec
import pytest

from dsched import config
from dsched.clock import ManualClock
from dsched.engine.evaluation_cache import EvaluationCache
from dsched.engine.select import Selector
from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NodeName
from dsched.model.pod import Pod
from dsched.plugins import profiles, registry
from dsched.scheduler.cycle import Cycle
from dsched.scheduler.decision import Candidate, Decision
from dsched.scheduler.handle import LeaderHandle
from dsched.scheduler.memory import Memory, judge_here
from dsched.scheduler.observer import Observer
from dsched.scheduler.plugin_breaker import PluginBreaker
from dsched.scheduler.queue import Backoff, PendingPods
from dsched.scheduler.waiting_pods import WaitingPods
from dsched.simulation.from_manifests import ManifestCluster
from dsched.simulation.outcome import Ending, Outcome
from dsched.simulation.placing import simulate
from tests.unit.framework.random_clusters import CONFIGURATION, RandomCluster, random_cluster
from tests.unit.simulation.worlds import NOW_MS

PREEMPTING = CONFIGURATION.replace('    postFilter: {disabled: [{name: "*"}]}\n', "")


def given_of(cluster: RandomCluster) -> ManifestCluster:
    nodes = tuple(sorted(cluster.nodes, key=lambda node: node.name))
    return ManifestCluster(nodes, tuple(pod.on(NodeName(name)) for name, pod in cluster.placed), tuple(cluster.waiting))


def crowded(rng: Random, nodes: int, waiting: int) -> ManifestCluster:
    """A cluster that pods of low priority have filled as far as they could, and more important ones that wait."""
    given = given_of(random_cluster(rng, nodes, waiting=4 * nodes + waiting, classes=4))
    low = [_with_priority(pod, 0) for pod in given.pending[: 4 * nodes]]
    filled, _ = run(CONFIGURATION, replace(given, pending=tuple(low)), rng.randrange(100))
    homes = {pod.key: pod.node for pod in filled.pods if pod.ending is Ending.PLACED}
    there = tuple(pod.on(homes[pod.key]) for pod in low if pod.key in homes)
    high = tuple(_with_priority(pod, rng.choice([0, 5, 10])) for pod in given.pending[4 * nodes :])
    return replace(given, bound=given.bound + there, pending=high)


def _with_priority(pod: Pod, priority: int) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, priority=priority))


class OneByOne:
    """Decides each pod with a cycle of its own, which has nothing kept, on what the decisions before have left."""

    def __init__(self, text: str, given: ManifestCluster, seed: int) -> None:
        self.memory = Memory()
        given.fill(self.memory.snapshot)
        self._configured = config.load(text, "test.yaml")
        self._selector = Selector(seed)

    def decide(self, info: PodInfo, attempt: int) -> Decision:
        clock = ManualClock()
        waiting = WaitingPods(clock)
        handle = LeaderHandle(self.memory, waiting, PendingPods(clock, Backoff()), clock)
        frameworks = profiles.frameworks(self._configured, registry.intree(), handle)
        percentages = dict.fromkeys(frameworks, 100)
        cycle = Cycle(
            frameworks,
            percentages,
            self.memory,
            EvaluationCache(self.memory.snapshot, judge_here),
            self._selector,
            waiting,
            PluginBreaker(clock),
            Observer(),
        )
        (decision,) = cycle.decide([Candidate(info, attempt)])
        for victim in decision.victims:
            self.memory.forget(victim.uid, released=False)
        return decision


def plain(decision: Decision) -> Any:
    """A decision in plain values."""
    message = "" if decision.diagnosis is None else decision.diagnosis.message
    victims = [victim.key for victim in decision.victims]
    return decision.candidate.info.key, decision.node, decision.best, message, decision.nominated, victims


def run(text: str, given: ManifestCluster, seed: int) -> tuple[Outcome, list[Decision]]:
    heard: list[Decision] = []
    outcome = simulate(
        config.load(text, "test.yaml"),
        registry.intree(),
        given,
        NOW_MS,
        seed,
        lambda each, _: heard.append(each),
    )
    return outcome, heard


def check(text: str, given: ManifestCluster, seed: int) -> Outcome:
    """Run it, and each decision again by the cycle; what became of the pods is what the decisions say."""
    outcome, heard = run(text, given, seed)
    reference = OneByOne(text, given, seed)
    for decision in heard:
        again = reference.decide(decision.candidate.info, decision.candidate.attempt)
        assert plain(decision) == plain(again)
    where = {pod.key: node for node, pod in reference.memory.snapshot.table.placed()}
    placed = {pod.key: pod.node for pod in outcome.pods if pod.ending is Ending.PLACED}
    there = {pod.key: pod.node_name for pod in given.bound}
    gone = {pod.key for pod in outcome.pods if pod.ending is Ending.EVICTED}
    assert where == {key: node for key, node in (there | placed).items() if key not in gone}
    assert len({pod.key for pod in outcome.pods}) == len(outcome.pods)
    assert {pod.key for pod in given.pending} == {pod.key for pod in outcome.pods} - there.keys()
    for decision in heard:  # on what is there in the end, still nothing fits
        info = decision.candidate.info
        if info.key not in where and info.key not in gone:
            assert reference.decide(info, 9).node is None, info.key
    return outcome


@pytest.mark.parametrize("seed", range(20))
def test_decisions_are_the_cycles_one_by_one(seed: int) -> None:
    rng = Random(seed)
    check(CONFIGURATION, given_of(random_cluster(rng, rng.choice([1, 3, 8, 20]), waiting=18)), seed)


@pytest.mark.parametrize("seed", range(30))
def test_decisions_are_the_cycles_one_by_one_where_pods_have_to_go(seed: int) -> None:
    rng = Random(100 + seed)
    check(PREEMPTING, crowded(rng, rng.choice([1, 3, 8]), waiting=15), seed)


def test_the_random_cases_are_worth_something() -> None:
    """Pods are placed at once and at a later attempt, evicted gated, and left
    without a node."""
    seen: set[Any] = set()
    for seed in range(20):
        outcome, _ = run(PREEMPTING, crowded(Random(100 + seed), 5, waiting=15), seed)
        seen |= {(pod.ending, pod.attempts > 1) for pod in outcome.pods}
    assert seen >= {
        (Ending.PLACED, False),
        (Ending.PLACED, True),
        (Ending.EVICTED, False),
        (Ending.GATED, False),
        (Ending.UNSCHEDULABLE, False),
    }


def test_two_simulations_are_alike() -> None:
    given = given_of(random_cluster(Random(7), 20, waiting=40))
    assert run(PREEMPTING, given, 3)[0] == run(PREEMPTING, given, 3)[0]
