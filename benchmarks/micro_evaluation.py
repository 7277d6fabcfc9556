"""The engine: judging a class of pods over the whole table, and deciding a batch of equal pods."""

from collections.abc import Sequence
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from dsched.clock import SystemClock
from dsched.engine.evaluation import Evaluation
from dsched.engine.evaluation_cache import EvaluationCache
from dsched.engine.select import Selector
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.scheduler.cycle import Cycle
from dsched.scheduler.decision import Candidate, Decision
from dsched.scheduler.memory import Memory, judge_here
from dsched.scheduler.observer import Observer
from dsched.scheduler.plugin_breaker import PluginBreaker
from dsched.scheduler.waiting_pods import WaitingPods
from tests.builders import Json, make_pod
from tests.unit.framework.frameworks import NAME

BATCH = 64
LABELS = {"app": "web"}
SELECTOR = {"matchLabels": LABELS}

KINDS: dict[str, Json] = {
    "plain": {},
    "spread": {
        "topologySpreadConstraints": [
            {
                "maxSkew": 5,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": SELECTOR,
            }
        ]
    },
    "affinity": {
        "affinity": {
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"labelSelector": SELECTOR, "topologyKey": "topology.kubernetes.io/zone"}
                ]
            }
        }
    },
    "anti-affinity": {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"labelSelector": SELECTOR, "topologyKey": "kubernetes.io/hostname"}
                ]
            }
        }
    },
}


def pods(kind: str, count: int) -> list[PodInfo]:
    return [
        PodInfo(make_pod(f"shop/web-{number}", "100m", "500Mi", labels=LABELS, spec=KINDS[kind]))
        for number in range(count)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_judge_a_class(kind: str, memory: Memory, framework: Framework, benchmark: BenchmarkFixture) -> None:
    (pod,) = pods(kind, 1)

    def judge() -> Evaluation:
        evaluation = Evaluation(framework, pod, memory.snapshot)
        judge_here([evaluation])
        return evaluation

    assert benchmark(judge).failure is None


@pytest.mark.parametrize("kind", KINDS)
def test_decide_a_batch(kind: str, memory: Memory, framework: Framework, benchmark: BenchmarkFixture) -> None:
    """Each round decides the same pods on the empty cluster again."""
    clock, classes = SystemClock(), EvaluationCache(memory.snapshot, judge_here)
    waiting, breaker = WaitingPods(clock), PluginBreaker(clock)
    cycle = Cycle({NAME: framework}, {NAME: 100}, memory, classes, Selector(0), waiting, breaker, Observer())
    batch = [Candidate(pod, 1) for pod in pods(kind, BATCH)]

    def begin() -> tuple[tuple[Sequence[Candidate]], dict[str, Any]]:
        for candidate in batch:
            memory.forget(candidate.info.uid, released=True)
        return (batch,), {}

    decisions: list[Decision] = benchmark.pedantic(cycle.decide, setup=begin, rounds=20, warmup_rounds=1)

    assert all(decision.node is not None for decision in decisions)


@pytest.mark.parametrize("pods_a_node", [1, 20])
def test_a_node_goes_and_comes(pods_a_node: int, memory: Memory, benchmark: BenchmarkFixture) -> None:
    """The one in the first row, so that all others move up; its pods stay known meanwhile."""
    table = memory.snapshot.table
    for number, pod in enumerate(pods("plain", pods_a_node * len(table))):
        table.add_pod(pod, table.names[number % len(table)])

    def go_and_come() -> None:
        node = table.nodes[0]
        table.remove_node(node.name)
        table.set_node(node)

    benchmark(go_and_come)

    assert int(table.pod_count.sum()) == pods_a_node * len(table)
