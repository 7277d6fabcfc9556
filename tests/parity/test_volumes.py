"""I7 where storage decides: batches, shards and what is kept give the decisions of one pod at a time.

VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits look at objects that belong to no node, and the first
of them assumes volumes for pods that are reserved: all of it may go wrong in what is cached.
"""

from collections import Counter
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dsched import config
from dsched.clock import ManualClock
from dsched.engine.evaluation import Evaluation, evaluate
from dsched.engine.select import Selector
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot
from dsched.plugins import profiles, registry
from tests.parity.random_storage import Storage, random_change, random_storage
from tests.storage import Handle
from tests.unit.framework.answers import said
from tests.unit.framework.shards import replicas_of, through_the_wire
from tests.unit.scheduler.test_cycle import AssumingSnapshot, Outcome, cycle_of, outcomes, queue_order

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {postFilter: {disabled: [{name: "*"}]}}
"""
NAME = "default-scheduler"
LOADED = config.load(CONFIGURATION, "test.yaml")
CLOCK = ManualClock()
SEEDS = st.integers(0, 2**32)
SOME = settings(max_examples=40, deadline=None)


def framework_over(snapshot: Snapshot) -> Framework:
    """Plugins that have seen nothing yet, over a snapshot."""
    return profiles.frameworks(LOADED, registry.intree(), Handle(snapshot, clock=CLOCK))[NAME]


def in_batches(cluster: Storage, size: int) -> tuple[list[Outcome], dict[str, list[Any]]]:
    """Decisions, and what the plugins of the cycle leave for those of the binding cycle."""
    cache = AssumingSnapshot(cluster.snapshot())
    by_name = {NAME: framework_over(cache.snapshot)}
    pods, selector = queue_order(by_name, cluster.waiting), Selector(3)
    found: list[Outcome] = []
    left: dict[str, list[Any]] = {}
    cycle = cycle_of(cache, by_name, selector)
    for start in range(0, len(pods), size):
        if size == 1:  # nothing is kept from one to the next but what the plugins have assumed
            cycle = cycle_of(cache, by_name, selector)
        decisions = cycle.decide(pods[start : start + size])
        found += outcomes(decisions)
        left |= {decision.candidate.info.key: sorted(decision.state.shared.items()) for decision in decisions}
    return found, left


@SOME
@given(SEEDS, st.integers(2, 6))
def test_a_batch_is_its_pods_one_by_one(seed: int, nodes: int) -> None:
    cluster = random_storage(Random(seed), nodes, waiting=8)
    assert in_batches(cluster, 8) == in_batches(cluster, 1)


@SOME
@given(SEEDS, st.integers(1, 7), st.integers(1, 4))
def test_shards_joined_are_the_whole(seed: int, nodes: int, shards: int) -> None:
    """Evaluators have plugins of their own, over their replicas."""
    cluster = random_storage(Random(seed), nodes, waiting=4)
    snapshot = cluster.snapshot()
    here = framework_over(snapshot)
    replicas = replicas_of(snapshot, shards, [here])
    there = [framework_over(replica) for replica in replicas]
    for pod in cluster.waiting:
        evaluation = Evaluation(here, PodInfo(pod), snapshot)
        if not evaluation.open or not isinstance(evaluation.rows, slice):
            continue
        through_the_wire(evaluation, snapshot, replicas, there)
        assert said(evaluation, snapshot.table) == said(evaluate(here, PodInfo(pod), snapshot), snapshot.table)


@SOME
@given(SEEDS, st.integers(2, 5))
def test_what_is_kept_is_what_is_judged_from_scratch(seed: int, nodes: int) -> None:
    """From scratch: on a snapshot built from the objects as they are, by plugins that have seen nothing before."""
    rng = Random(seed)
    cluster = random_storage(rng, nodes, waiting=4)
    snapshot = cluster.snapshot()
    framework = framework_over(snapshot)
    kept = [evaluate(framework, PodInfo(pod), snapshot) for pod in cluster.waiting]
    for number in range(6):
        random_change(rng, cluster, snapshot, number)
        new = cluster.snapshot()
        anew = framework_over(new)
        for place, evaluation in enumerate(kept):
            if not evaluation.refresh():
                kept[place] = evaluation = evaluate(framework, evaluation.pod, snapshot)
            fresh = evaluate(anew, evaluation.pod, new)
            assert said(evaluation, snapshot.table) == said(fresh, new.table), f"change {number}"


def test_the_random_clusters_show_what_they_are_for() -> None:
    """Every one of the four plugins rejects now and then, volumes are chosen and made, and pods find their place."""
    seen: Counter[str] = Counter()
    for seed in range(40):
        cluster = random_storage(Random(seed), 5, waiting=8)
        found, left = in_batches(cluster, 8)
        seen.update("placed" for outcome in found if outcome.node is not None)
        seen.update("assumed" for values in left.values() if values)
        snapshot = cluster.snapshot()
        framework = framework_over(snapshot)
        for pod in cluster.waiting:
            seen.update(said(evaluate(framework, PodInfo(pod), snapshot), snapshot.table)["plugins"])
    expected = {"placed", "assumed", "VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits"}
    assert expected <= set(seen), seen
    assert min(seen[each] for each in expected) >= 10, seen
