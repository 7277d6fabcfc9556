"""Pods that differ in labels at which nobody looks are evaluated together, and told what each would be told alone."""

from random import Random
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from dsched.arithmetic import matching
from dsched.engine.evaluation import Evaluation, evaluate
from dsched.engine.evaluation_cache import EvaluationCache
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Rows, Verdict
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model.meta import NodeName
from dsched.model.pod import Pod
from dsched.plugins.node_ports import NodePorts
from tests.builders import make_node, make_pod, make_snapshot
from tests.unit.framework.answers import said
from tests.unit.framework.frameworks import Handle, default_framework, framework_of, frameworks
from tests.unit.framework.random_clusters import CONFIGURATION, random_change, random_cluster

_SCORED = {"totals", "scores"}


def signed(pod: Pod, rng: Random) -> PodInfo:
    """Of some kind or none, and with a label of its own."""
    labels = {**(pod.metadata.labels if rng.random() < 0.5 else {}), "signature": str(rng.random())}
    return PodInfo(replace(pod, metadata=replace(pod.metadata, labels=labels)))


def told(evaluation: Evaluation, snapshot: Snapshot) -> dict[str, Any]:
    """What it says; where one node fits, whether that was scored makes no difference."""
    found = said(evaluation, snapshot.table)
    return {name: found[name] for name in found.keys() - (_SCORED if len(found.get("feasible", ())) == 1 else set())}


def judged(evaluations: list[Evaluation]) -> None:
    for each in evaluations:
        each.judge_here()


@pytest.mark.parametrize("seed", range(60))
def test_each_is_told_what_it_would_be_told_alone(seed: int) -> None:
    rng = Random(seed)
    cluster = random_cluster(rng, rng.choice([1, 5, 20]), waiting=6, classes=3)
    snapshot = cluster.snapshot()
    by_name = frameworks(CONFIGURATION, Handle(snapshot))
    cache = EvaluationCache(snapshot, judged)
    for number in range(60):
        pod = signed(rng.choice(cluster.waiting), rng)
        framework = by_name[pod.pod.spec.scheduler_name]
        evaluation = cache.evaluation(framework, pod)
        assert told(evaluation, snapshot) == told(evaluate(framework, pod, snapshot), snapshot), number
        if rng.random() < 0.5:
            random_change(rng, snapshot.table, number)


def test_pods_at_whose_labels_nobody_looks_are_one_class() -> None:
    snapshot = make_snapshot([make_node("n1", cpu=4)])
    framework = default_framework(Handle(snapshot))
    first, second = (PodInfo(make_pod(f"shop/{of}", cpu=1, labels={"of": of})) for of in ("first", "second"))
    assert framework.class_of(first, snapshot) == framework.class_of(second, snapshot)
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"of": "second"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    asking = make_pod("shop/asking", cpu=1, spec={"affinity": apart})
    snapshot.table.add_pod(PodInfo(asking), NodeName("n1"))
    assert framework.class_of(first, snapshot) != framework.class_of(second, snapshot)
    assert framework.class_of(first, snapshot) == first.class_key


class Choosy(NodePorts):
    """Looks at labels, which the plugin that it is made from does not."""

    def filter_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> Verdict:
        return Verdict(np.zeros(matching.count(rows), dtype=np.int32))


@pytest.mark.parametrize(("plugin", "together"), [(NodePorts, True), (Choosy, False)])
def test_a_plugin_that_says_nothing_of_labels_may_look_at_them(plugin: type[NodePorts], together: bool) -> None:
    """What it inherits was said of the methods that it does not override."""
    snapshot = make_snapshot([make_node("n1")])
    framework = framework_of(plugin, handle=Handle(snapshot))
    first, second = (PodInfo(make_pod(f"shop/{of}", labels={"of": of})) for of in ("first", "second"))
    assert (framework.class_of(first, snapshot) == framework.class_of(second, snapshot)) is together


class Failing(NodePorts):
    label_blind = False

    def ignores_labels(self, pod: PodInfo, snapshot: Snapshot) -> bool:
        raise ValueError("no")


def test_a_plugin_that_fails_to_say_looks_at_labels() -> None:
    snapshot = make_snapshot([make_node("n1")])
    framework = framework_of(Failing, handle=Handle(snapshot))
    pod = PodInfo(make_pod("shop/web"))
    assert framework.class_of(pod, snapshot) == pod.class_key
