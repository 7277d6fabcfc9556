"""An evaluation that is kept up to date says what evaluating anew says."""

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.engine import evaluation as evaluation_module
from dsched.engine import lookahead
from dsched.engine.evaluation import Evaluation, evaluate
from dsched.framework.interface import Normalization, Scope, Verdict, unschedulable
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName
from dsched.model.node import Node
from dsched.plugins.inter_pod_affinity.plugin import InterPodAffinity
from dsched.plugins.pod_topology_spread.plugin import PodTopologySpread
from tests.builders import make_node, make_pod, make_snapshot, make_term
from tests.unit.framework.answers import said
from tests.unit.framework.frameworks import Handle, default_framework, framework_of, frameworks
from tests.unit.framework.random_clusters import CONFIGURATION, random_change, random_cluster
from tests.unit.framework.shards import replica_of, replicas_of, through_the_wire
from tests.unit.plugins.neighbours import HOST, ZONE, affinity, constraint, spread, term


def keep_up(seed: int, shared: bool = False) -> int:
    """Keep evaluations up to date while the table changes, and compare them with fresh ones; how many were kept."""

    def comparable(evaluation: Evaluation) -> dict[str, Any]:
        """Without scores where a class has a single node, which need not be scored."""
        found = said(evaluation, snapshot.table)
        if shared and len(found.get("feasible", ())) == 1:
            del found["scores"], found["totals"]
        return found

    rng = Random(seed)
    cluster = random_cluster(rng, rng.choice([1, 5, 20]), waiting=6, classes=6)
    snapshot = cluster.snapshot()
    by_name = frameworks(CONFIGURATION, Handle(snapshot))
    kept = [evaluate(by_name[pod.spec.scheduler_name], PodInfo(pod), snapshot, shared) for pod in cluster.waiting]
    refreshed = 0
    for number in range(30):
        for _ in range(rng.choice([1, 1, 4])):
            random_change(rng, snapshot.table, number)
        for place, evaluation in enumerate(kept):
            fresh = evaluate(evaluation.framework, evaluation.pod, snapshot, shared)
            if evaluation.refresh():
                refreshed += 1
                assert comparable(evaluation) == comparable(fresh), f"change {number}"
            else:
                kept[place] = fresh
    return refreshed


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_refreshed_is_fresh(seed: int, shared: bool) -> None:
    keep_up(seed, shared)


@pytest.mark.parametrize("seed", range(15))
def test_rows_judged_by_arrays_are_fresh_too(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few they are."""
    monkeypatch.setattr("dsched.engine.evaluation.FEW_ROWS", 0)
    keep_up(seed)


def test_evaluations_are_indeed_kept() -> None:
    """Of 30 changes for each of six classes, a good part leaves an evaluation good."""
    assert sum(keep_up(seed) for seed in range(100, 105)) > 5 * 30


@pytest.mark.parametrize("seed", range(25))
def test_shards_joined_are_the_whole(seed: int) -> None:
    rng = Random(1000 + seed)
    cluster = random_cluster(rng, rng.choice([1, 7, 25]), waiting=6, classes=6)
    snapshot = cluster.snapshot()
    by_name = frameworks(CONFIGURATION, Handle(snapshot))
    for pod in cluster.waiting:
        framework = by_name[pod.spec.scheduler_name]
        here = evaluate(framework, PodInfo(pod), snapshot)
        there = Evaluation(framework, PodInfo(pod), snapshot)
        if not there.open or not isinstance(there.rows, slice):
            continue
        shards = rng.choice([1, 2, 3, len(snapshot.table)])
        through_the_wire(there, snapshot, replicas_of(snapshot, shards, [framework]))
        assert said(there, snapshot.table) == said(here, snapshot.table)
        for number in range(5):
            random_change(rng, snapshot.table, number)
            if there.refresh():
                assert said(there, snapshot.table) == said(evaluate(framework, PodInfo(pod), snapshot), snapshot.table)
            else:
                there = evaluate(framework, PodInfo(pod), snapshot)


def test_a_replica_that_starts_late_has_the_same_rows() -> None:
    rng = Random(7)
    snapshot = random_cluster(rng, 30, waiting=0).snapshot()
    for number in range(200):
        random_change(rng, snapshot.table, number)
    snapshot.put("Namespace", "shop", {"metadata": {"name": "shop"}})
    replica = replica_of(snapshot)
    assert replica.table.names == snapshot.table.names
    assert replica.others("Namespace") == {"shop": {"metadata": {"name": "shop"}}}
    assert [[pod.uid for pod in replica.table.info(row).pods] for row in range(len(replica.table))] == [
        [pod.uid for pod in snapshot.table.info(row).pods] for row in range(len(snapshot.table))
    ]
    names = {name for node in snapshot.table.nodes for image in node.status.images for name in image.names}
    assert names
    assert {name: _size(replica, name) for name in names} == {name: _size(snapshot, name) for name in names}


def _size(snapshot: Snapshot, image: str) -> int | None:
    found = snapshot.table.images.get(image)
    return None if found is None else found.size


def test_without_any_score_every_feasible_node_is_best() -> None:
    class Odd:
        name = "Odd"
        filter_scope = Scope.NODE

        def __init__(self, args: Any, handle: Any) -> None:
            pass

        def filter_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Verdict:
            rows = np.arange(len(table))[rows]
            return Verdict.where(rows % 2 == 0, unschedulable("even"))

    snapshot = make_snapshot([make_node(f"n{number}") for number in range(4)])
    evaluation = evaluate(framework_of(Odd), PodInfo(make_pod()), snapshot)
    assert evaluation.best_rows().tolist() == [1, 3]
    assert evaluation.totals.tolist() == [-1, 0, -1, 0]


def test_every_score_skipped_leaves_every_feasible_node_best() -> None:
    text = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    preScore: {disabled: [{name: "*"}], enabled: [{name: NodeAffinity}]}
    score: {disabled: [{name: "*"}], enabled: [{name: NodeAffinity}]}
"""
    snapshot = make_snapshot([make_node("n1"), make_node("n2")])
    evaluation = evaluate(frameworks(text)["default-scheduler"], PodInfo(make_pod()), snapshot)
    assert evaluation.best_rows().tolist() == [0, 1]


def test_an_image_on_another_node_changes_what_the_image_is_worth() -> None:
    """More holders make an image count more on every node that has it, not only on the one that changed."""
    image = {"web:1": 500_000_000}
    snapshot = make_snapshot([make_node("n1", images=image), make_node("n2"), make_node("n3")])
    evaluation = evaluate(default_framework(), PodInfo(make_pod(image="web:1")), snapshot)
    snapshot.table.set_node(make_node("n2", images=image))
    fresh = evaluate(evaluation.framework, evaluation.pod, snapshot)
    assert not evaluation.refresh() or said(evaluation, snapshot.table) == said(fresh, snapshot.table)


@pytest.mark.parametrize("others", [(), (1,)])
def test_pods_that_raise_the_highest_score_lower_the_others(others: tuple[int, ...]) -> None:
    """Scores that look at the pods of a node may still be scaled by the highest of all nodes."""

    class Crowded:
        name = "Crowded"
        score_scope = Scope.USAGE
        normalization = Normalization.MAX

        def __init__(self, args: Any, handle: Any) -> None:
            pass

        def score_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
            return table.pod_count[rows]

    snapshot = make_snapshot([make_node(f"n{number}") for number in range(3)])
    snapshot.table.add_pod(PodInfo(make_pod("shop/first")), NodeName("n0"))
    evaluation = evaluate(framework_of(Crowded), PodInfo(make_pod()), snapshot)
    assert evaluation.totals.tolist() == [100, 0, 0]
    for number, row in enumerate((2, 2, *others)):
        snapshot.table.add_pod(PodInfo(make_pod(f"shop/more{number}")), NodeName(f"n{row}"))
    assert evaluation.refresh()
    assert evaluation.totals.tolist() == [50, 50 if others else 0, 100]


class FullestFirst:
    """Scores by how many pods the whole cluster has: any change anywhere counts."""

    name = "FullestFirst"
    score_scope = Scope.CLUSTER
    normalization = Normalization.MAX

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def score_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
        return table.pod_count[rows] * int(table.pod_count.sum()) + 1


def test_a_plugin_that_looks_at_the_cluster_is_asked_anew() -> None:
    snapshot = make_snapshot([make_node("n1"), make_node("n2")], [make_pod("shop/a", node="n1")])
    evaluation = evaluate(framework_of(FullestFirst), PodInfo(make_pod()), snapshot)
    snapshot.table.add_pod(PodInfo(make_pod("shop/b")), NodeName("n2"))
    fresh = evaluate(evaluation.framework, evaluation.pod, snapshot)
    assert not evaluation.refresh() or said(evaluation, snapshot.table) == said(fresh, snapshot.table)


def test_a_plugin_that_looks_at_the_cluster_sees_other_objects_change() -> None:
    snapshot = make_snapshot([make_node("n1")])
    evaluation = evaluate(framework_of(FullestFirst), PodInfo(make_pod()), snapshot)
    assert evaluation.refresh()
    snapshot.put("Namespace", "shop", {})
    assert not evaluation.refresh()


def test_a_new_layout_voids_what_was_kept() -> None:
    snapshot = make_snapshot([make_node("n1")])
    evaluation = evaluate(default_framework(), PodInfo(make_pod()), snapshot)
    snapshot.table.set_node(make_node("n2"))
    assert not evaluation.refresh()


def test_a_rejection_stands_until_something_changes() -> None:
    snapshot = make_snapshot([make_node("n1")])
    pod = make_pod(required=[make_term(fields=["metadata.name In x", "metadata.name In y"])])
    evaluation = evaluate(default_framework(), PodInfo(pod), snapshot)
    assert evaluation.rejection is not None
    assert evaluation.refresh()
    snapshot.table.add_pod(PodInfo(make_pod("shop/b")), NodeName("n1"))
    assert not evaluation.refresh()


def test_feasible_again_after_all_nodes_were_full() -> None:
    snapshot = make_snapshot([make_node("n1", pods=1), make_node("n2", pods=1)])
    blockers = [PodInfo(make_pod(f"shop/b{number}")) for number in range(2)]
    evaluation = evaluate(default_framework(), PodInfo(make_pod(cpu="1")), snapshot)
    for blocker, name in zip(blockers, ("n1", "n2"), strict=True):
        snapshot.table.add_pod(blocker, NodeName(name))
    assert evaluation.refresh()
    assert evaluation.best_rows().tolist() == []
    snapshot.table.remove_pod(blockers[1].uid)
    assert evaluation.refresh()
    assert evaluation.best_rows().tolist() == [1]
    assert said(evaluation, snapshot.table) == said(
        evaluate(evaluation.framework, evaluation.pod, snapshot), snapshot.table
    )


class Neighbours:
    """Likes nodes by how many pods the cluster has on nodes of their parity; its answers are about every node."""

    name = "Neighbours"
    filter_scope = score_scope = pre_filter_scope = Scope.CLUSTER
    normalization = Normalization.MAX

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def pre_filter(self, state: Any, pod: Any, snapshot: Any) -> None:
        state.write(snapshot.table.pod_count.copy())

    def filter_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Verdict:
        seen = state.read(np.ndarray)
        alike = np.array([seen[row % 2 :: 2].sum() for row in np.arange(len(table))[rows]], dtype=np.int64)
        return Verdict.where(alike > 4, unschedulable("crowded"))

    def score_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
        return [int(table.pod_count[row % 2 :: 2].sum()) for row in np.arange(len(table))[rows]]


class Slots:
    """Three pods a node, and the fewer the better."""

    name = "Slots"
    filter_scope = score_scope = Scope.SUMS
    normalization = Normalization.NONE

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def filter_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Verdict:
        return Verdict.where(table.pod_count[rows] >= 3, unschedulable("full"))

    def score_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
        return 10 - table.pod_count[rows]


class Steep:
    """As many pods a node as there is room for; the second one's score is beyond what a score may be."""

    name = "Steep"
    room = 3
    filter_scope = score_scope = Scope.SUMS
    normalization = Normalization.NONE

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def filter_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Verdict:
        return Verdict.where(table.pod_count[rows] >= self.room, unschedulable("full"))

    def filter_few(self, state: Any, pod: Any, table: Any, rows: Any) -> list[Any]:
        return [unschedulable("full") if table.pod_count[row] >= self.room else None for row in rows]

    def score_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
        return 90 * table.pod_count[rows]

    def score_few(self, state: Any, pod: Any, table: Any, rows: Any) -> list[int]:
        return [90 * int(table.pod_count[row]) for row in rows]


@pytest.mark.parametrize("few_rows", [0, 24])
@pytest.mark.parametrize(("room", "fails"), [(2, False), (3, True)])
def test_a_score_out_of_range_fails_the_pod_where_it_fits(
    few_rows: int, room: int, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a kept evaluation hears of it."""
    monkeypatch.setattr("dsched.engine.evaluation.FEW_ROWS", few_rows)
    monkeypatch.setattr(Steep, "room", room)
    snapshot = make_snapshot([make_node(f"n{number}") for number in range(3)])
    framework = framework_of(Steep)
    evaluation = evaluate(framework, PodInfo(make_pod()), snapshot)
    for number in range(2):
        assert evaluation.failure is None
        snapshot.table.add_pod(PodInfo(make_pod(f"shop/p{number}")), NodeName("n1"))
        assert evaluation.refresh() is not (fails and number == 1)
    assert (evaluation.failure is not None) is fails
    if not fails:
        assert said(evaluation, snapshot.table) == said(evaluate(framework, evaluation.pod, snapshot), snapshot.table)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=30))
def test_a_plugin_that_looks_at_the_cluster_is_kept_up_to_date(changes: list[tuple[int, bool]]) -> None:
    """Pods come and go; a kept evaluation says what a fresh one says."""
    snapshot = make_snapshot([make_node(f"n{number}", pods=3) for number in range(5)])
    framework = framework_of(Neighbours, Slots)
    evaluation = evaluate(framework, PodInfo(make_pod()), snapshot)
    there: list[Any] = []
    for number, (row, comes) in enumerate(changes):
        if comes or not there:
            info = PodInfo(make_pod(f"shop/p{number}", cpu="100m"))
            there.append(info.uid)
            snapshot.table.add_pod(info, NodeName(f"n{row}"))
        else:
            snapshot.table.remove_pod(there.pop(row % len(there)))
        assert evaluation.refresh()
        assert said(evaluation, snapshot.table) == said(evaluate(framework, evaluation.pod, snapshot), snapshot.table)


IN_A_ROW: list[dict[str, Any]] = [
    {},
    {"topologySpreadConstraints": [constraint(2, ZONE, "app In web")]},
    {"topologySpreadConstraints": [constraint(1, ZONE, "app In web", hard=False)]},
    {"topologySpreadConstraints": [constraint(1, key, "app In web", hard=False) for key in (HOST, ZONE)]},
    affinity(near=[term(ZONE, "app In web")]),
    affinity(apart=[term(HOST, "app In web")]),
    affinity(likes=[(3, term(HOST, "app In web")), (1, term(ZONE, "app In web"))]),
    affinity(near=[term(ZONE, "app In web")], dislikes=[(3, term(HOST, "app In web"))])
    | spread(constraint(2, ZONE, "app In web"), constraint(1, HOST, "app In web", hard=False)),
]


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]),
    st.lists(st.sampled_from(["place", "place", "place", "place", "other", "leave", "node"]), max_size=40),
    st.integers(0, 2**16),
    st.sampled_from([1, 3, 16]),
    st.sampled_from(IN_A_ROW),
    st.sampled_from([None, [0, 2, 3, 5]]),
    st.sampled_from([1, 2, 12]),
)
def test_placing_pods_of_a_class_in_a_row_is_evaluating_each_anew(
    strategy: str, steps: list[str], seed: int, least: int, spec: dict[str, Any], part: list[int] | None, few: int
) -> None:
    """What was foreseen of a node is what the plugins say once the pod is there, whatever happens in between.

    Args:
        least: of how many nodes at least it is foreseen; there are six.
        part: the only ones that there are for the pods.
        few: up to how many rows are judged in plain numbers.
    """
    text = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: {strategy}
        resources: [{{name: cpu, weight: 3}}, {{name: memory, weight: 1}}]
        requestedToCapacityRatio: {{shape: [{{utilization: 0, score: 10}}, {{utilization: 100, score: 2}}]}}
"""
    if strategy != "RequestedToCapacityRatio":
        text = "\n".join(line for line in text.splitlines() if "requestedToCapacityRatio" not in line)
    rng = Random(seed)

    def node(number: int) -> Node:
        labels = {HOST: f"n{number}", ZONE: f"z{number % 2}"}
        return make_node(f"n{number}", cpu=str(rng.randint(1, 3)), pods=9, labels=labels)

    snapshot = make_snapshot([node(number) for number in range(6)])
    framework = frameworks(text)["default-scheduler"]
    first = make_pod("shop/first", labels={"app": "web"}, cpu="250m", spec=spec)

    def anew(pod: PodInfo) -> Evaluation:
        if part is None:
            return evaluate(framework, pod, snapshot)
        found = Evaluation(framework, pod, snapshot, among=np.array(part))
        if found.open:
            found.judge_here()
        return found

    evaluation = anew(PodInfo(first))
    for number, step in enumerate(steps):
        alike = {"labels": {"app": "web"}, "cpu": "250m", "spec": spec}
        info = PodInfo(make_pod(f"shop/p{number}", **(alike if step == "place" else {"cpu": "90m"})))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(evaluation_module, "FEW_ROWS", few)
            if not evaluation.refresh():
                evaluation = anew(evaluation.pod)
        fresh = anew(evaluation.pod)
        assert said(evaluation, snapshot.table) == said(fresh, snapshot.table), f"step {number}"
        best = evaluation.best_rows()
        match step:
            case "place" if len(best):
                row = int(rng.choice(best.tolist()))
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(lookahead, "LEAST", least)
                    evaluation.before_placing(row)
                snapshot.table.add_pod(info, snapshot.table.names[row])
                evaluation.placed(row)
            case "leave" if any(snapshot.table.pods):
                snapshot.table.remove_pod(rng.choice([uid for pods in snapshot.table.pods for uid in pods]))
            case "node":
                snapshot.table.set_node(node(1))
            case _:
                snapshot.table.add_pod(info, NodeName(f"n{rng.randrange(6)}"))


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        (PodTopologySpread, spread(constraint(2, ZONE, "app In web"))),
        (PodTopologySpread, spread(*(constraint(1, key, "app In web", hard=False) for key in (HOST, ZONE)))),
        (InterPodAffinity, affinity(near=[term(ZONE, "app In web")])),
        (InterPodAffinity, affinity(apart=[term(HOST, "app In web")])),
        (InterPodAffinity, affinity(likes=[(3, term(ZONE, "app In web"))])),
    ],
)
def test_who_takes_in_what_was_placed_does_not_begin_anew(
    kind: type[Any], spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = make_snapshot(
        [make_node(f"n{each}", cpu=4, pods=9, labels={HOST: f"n{each}", ZONE: f"z{each % 2}"}) for each in range(20)]
    )
    begun = {"pre_filter": 0, "pre_score": 0}

    def counted(point: str) -> Any:
        says = getattr(kind, point)

        def call(*given: Any) -> Any:
            begun[point] += 1
            return says(*given)

        return call

    for point in begun:
        monkeypatch.setattr(kind, point, counted(point))
    framework = default_framework(Handle(snapshot))
    pods = [PodInfo(make_pod(f"shop/p{each}", labels={"app": "web"}, cpu="250m", spec=spec)) for each in range(10)]
    snapshot.table.add_pod(pods[0], NodeName("n0"))
    snapshot.table.add_pod(pods[1], NodeName("n1"))
    evaluation = evaluate(framework, pods[2], snapshot)
    after_first = dict(begun)
    for pod in pods[2:]:
        row = int(evaluation.best_rows()[0])
        evaluation.before_placing(row)
        snapshot.table.add_pod(pod, snapshot.table.names[row])
        evaluation.placed(row)
        assert evaluation.refresh()
    assert begun == after_first
    snapshot.table.add_pod(PodInfo(make_pod("shop/other", labels={"app": "web"})), NodeName("n5"))
    assert evaluation.refresh()
    assert begun != after_first, "this pod is of another class"
