"""Pods that differ in the names of claims which mean the same are evaluated together, and told what each would be told
alone: from scratch, by plugins that have seen nothing, on a snapshot that is built from the objects as they are."""

from collections import Counter
from random import Random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched import config
from dsched.clock import ManualClock
from dsched.engine.evaluation import Evaluation, evaluate
from dsched.engine.evaluation_cache import EvaluationCache
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName
from dsched.plugins import profiles, registry
from tests.parity.random_claims import random_claims
from tests.parity.test_volumes import CONFIGURATION, NAME, in_batches
from tests.storage import Handle
from tests.unit.framework.answers import said
from tests.versions import V35, V37, with_gates

CLOCK = ManualClock()
SEEDS = st.integers(0, 2**32)
FEATURES = (with_gates(V37, VolumeLimitScaling=True), V35)
"""Where nodes may have to have a driver, and where nodes have to announce migrated plugins."""
LOADED = [config.load(CONFIGURATION, "test.yaml", features=features) for features in FEATURES]
_SCORED = {"totals", "scores"}


def framework_over(snapshot: Snapshot, version: int) -> Framework:
    return profiles.frameworks(LOADED[version], registry.intree(), Handle(snapshot, clock=CLOCK))[NAME]


def told(evaluation: Evaluation, snapshot: Snapshot) -> dict[str, Any]:
    """What it says; where one node fits, whether that was scored makes no difference."""
    found = said(evaluation, snapshot.table)
    return {name: found[name] for name in found.keys() - (_SCORED if len(found.get("feasible", ())) == 1 else set())}


def one_after_the_other(seed: int, nodes: int, version: int) -> Counter[str]:
    """Place pods one by one, as the cycle does it, and compare; in between others come and go, are promised nodes, and
    claims, volumes and drivers change. What happened, by kind."""
    rng = Random(seed)
    claims = random_claims(rng, nodes, placed=rng.randrange(2 * nodes))
    cluster, snapshot = claims.cluster, claims.cluster.snapshot()
    framework = framework_over(snapshot, version)
    seen: Counter[str] = Counter()

    def judge(evaluations: list[Evaluation]) -> None:
        seen["judged"] += len(evaluations)
        for each in evaluations:
            each.judge_here()

    cache = EvaluationCache(snapshot, judge)
    promised: list[tuple[PodInfo, NodeName]] = []
    for number in range(24):
        pod = PodInfo(claims.pod(f"pod{number}"))
        claims.tell(snapshot)
        evaluation = cache.evaluation(framework, pod)
        new = cluster.snapshot()
        for other, node in promised:
            new.nominations.set(other, node)
        alone = evaluate(framework_over(new, version), pod, new)
        assert told(evaluation, snapshot) == told(alone, new), number
        seen["evaluated"] += 1
        seen.update(said(alone, new.table).get("plugins", ()))
        rows = np.flatnonzero(alone.feasible) if alone.open and alone.failure is None else []
        if len(rows) and rng.random() < 0.7:
            row = int(rng.choice(rows))
            evaluation.before_placing(row)
            name = snapshot.table.names[row]
            snapshot.table.add_pod(pod, name)
            cluster.placed.append((name, pod.pod))
            evaluation.placed(row)
        elif rng.random() < 0.5:
            promised.append((pod, NodeName(rng.choice(cluster.nodes).name)))
            snapshot.nominations.set(*promised[-1])
        if promised and rng.random() < 0.2:
            snapshot.nominations.drop(promised.pop()[0].uid)
        if rng.random() < 0.3:
            claims.change(snapshot, number)
    return seen


@settings(max_examples=150, deadline=None)
@given(SEEDS, st.integers(1, 6), st.integers(0, 1))
def test_each_is_told_what_it_would_be_told_alone(seed: int, nodes: int, version: int) -> None:
    one_after_the_other(seed, nodes, version)


@settings(max_examples=80, deadline=None)
@given(SEEDS, st.integers(1, 6))
def test_a_batch_is_its_pods_one_by_one(seed: int, nodes: int) -> None:
    cluster = random_claims(Random(seed), nodes, placed=nodes, waiting=16).cluster
    assert in_batches(cluster, 16) == in_batches(cluster, 1)


def test_the_random_clusters_show_what_they_are_for() -> None:
    """Each of the four plugins rejects now and then, and a good part of the pods is of a class that is known."""
    seen: Counter[str] = Counter()
    for seed in range(40):
        seen += one_after_the_other(seed, 5, seed % 2)
    plugins = ("VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits")
    assert min(seen[name] for name in plugins) >= 10, seen
    assert seen["judged"] < 0.75 * seen["evaluated"], seen
