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
from tests.unit.framework.frameworks import NAME, Handle, default_framework, framework_of, frameworks
from tests.unit.framework.random_clusters import CONFIGURATION, random_change, random_cluster

_SCORED = {"totals", "scores"}


SERVICES: list[dict[str, Any]] = [{}, {"app": "web"}, {"app": "web", "tier": "front"}, {"tier": "back"}]
TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"tier": "front"}}}
KEYED = {**TERM, "matchLabelKeys": ["version"], "mismatchLabelKeys": ["tenant"]}
LIKED = {"weight": 5, "podAffinityTerm": KEYED}
REQUIRED, PREFERRED = (f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in ("required", "preferred"))
AFFINITIES: list[dict[str, Any]] = [
    {"podAntiAffinity": {REQUIRED: [TERM]}},
    {"podAffinity": {REQUIRED: [KEYED]}},
    {"podAntiAffinity": {PREFERRED: [LIKED]}},
    {"podAffinity": {PREFERRED: [LIKED]}},
]
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "labelSelector": TERM["labelSelector"], "matchLabelKeys": ["version"]}


def signed(pod: Pod, rng: Random) -> PodInfo:
    """Of some kind or none, which terms, constraints and services look at, and with a label of its own."""
    drawn = {"tier": rng.choice(["front", "back"]), "version": rng.choice("12"), "tenant": rng.choice("xy")}
    labels = {**(pod.metadata.labels if rng.random() < 0.5 else {}), "signature": str(rng.random())}
    labels |= {key: value for key, value in drawn.items() if rng.random() < 0.5}
    uid = f"{pod.metadata.uid}-{labels['signature']}"
    return PodInfo(replace(pod, metadata=replace(pod.metadata, labels=labels, uid=uid)))


def pods_of_a_few_specs(rng: Random, count: int) -> list[Pod]:
    """With terms, constraints or neither, in no profile but the default one's."""
    more: list[dict[str, Any]] = [{}, *({"affinity": each} for each in AFFINITIES)]
    more += [
        {"topologySpreadConstraints": [{**SPREAD, "whenUnsatisfiable": to}]}
        for to in ("DoNotSchedule", "ScheduleAnyway")
    ]
    return [make_pod(f"shop/pod{number}", cpu="100m", spec=rng.choice(more)) for number in range(count)]


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


@pytest.mark.parametrize("seed", range(80))
def test_each_is_told_what_it_would_be_told_alone_while_they_are_placed(seed: int) -> None:
    """One after the other, as the cycle does it; in between pods go, services and namespaces' labels change."""
    rng = Random(seed)
    cluster = random_cluster(rng, rng.choice([3, 8, 20]), waiting=0)
    snapshot = cluster.snapshot()
    table, waiting = snapshot.table, pods_of_a_few_specs(rng, 3)
    framework = frameworks(CONFIGURATION, Handle(snapshot))[NAME]
    asked: list[Evaluation] = []

    def judge(evaluations: list[Evaluation]) -> None:
        asked.extend(evaluations)
        judged(evaluations)

    cache = EvaluationCache(snapshot, judge)
    for number in range(80):
        pod = signed(rng.choice(waiting), rng)
        evaluation = cache.evaluation(framework, pod)
        alone = evaluate(framework, pod, snapshot)
        assert told(evaluation, snapshot) == told(alone, snapshot), number
        rows = np.flatnonzero(alone.feasible) if alone.open else []
        if len(rows) and rng.random() < 0.8:
            row = int(rng.choice(rows))
            evaluation.before_placing(row)
            table.add_pod(pod, table.names[row])
            evaluation.placed(row)
        if rng.random() < 0.15:
            random_change(rng, table, number)
        if rng.random() < 0.1:
            if rng.random() < 0.7:
                snapshot.put("Service", "shop/service", {"spec": {"selector": rng.choice(SERVICES)}})
            else:
                snapshot.drop("Service", "shop/service")
    assert len(asked) < 80


def test_pods_at_whose_labels_nobody_looks_are_one_class() -> None:
    snapshot = make_snapshot([make_node("n1", cpu=4)])
    framework = default_framework(Handle(snapshot))
    first, second = (PodInfo(make_pod(f"shop/{of}", cpu=1, labels={"of": of})) for of in ("first", "second"))
    assert framework.class_of(first, snapshot) == framework.class_of(second, snapshot)
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"of": "second"}}}
    apart = {"podAntiAffinity": {REQUIRED: [term]}}
    asking = make_pod("shop/asking", cpu=1, spec={"affinity": apart})
    snapshot.table.add_pod(PodInfo(asking), NodeName("n1"))
    assert framework.class_of(first, snapshot) != framework.class_of(second, snapshot)
    third = PodInfo(make_pod("shop/third", cpu=1, labels={"of": "second", "signature": "3"}))
    assert framework.class_of(second, snapshot) == framework.class_of(third, snapshot)


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


class Odd(NodePorts):
    label_blind = False
    answer: Any = None

    def label_keys(self, pod: PodInfo, snapshot: Snapshot) -> Any:
        if self.answer is None:
            raise ValueError("no")
        return self.answer


@pytest.mark.parametrize("answer", [None, 7, [["of"]]])
def test_a_plugin_that_fails_to_say_looks_at_labels(answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Odd, "answer", answer)
    snapshot = make_snapshot([make_node("n1")])
    framework = framework_of(Odd, handle=Handle(snapshot))
    pod = PodInfo(make_pod("shop/web"))
    assert framework.class_of(pod, snapshot).key == pod.class_key
