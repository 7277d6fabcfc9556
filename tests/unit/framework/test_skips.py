"""Evaluations of pods that wide plugins skip are kept up to date, as long as these plugins would skip them again."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.engine.evaluation import Evaluation, evaluate
from dsched.framework.interface import SKIP, Scope, Status
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName
from tests.builders import make_node, make_pod, make_snapshot
from tests.unit.framework.answers import said
from tests.unit.framework.frameworks import Handle, default_framework, framework_of
from tests.unit.plugins.neighbours import AFFINITIES, HOST, ZONE, Cluster, affinity, clusters, pods, term

PLAIN = PodInfo(make_pod("a/plain", labels={"app": "web"}))
GUARD = PodInfo(make_pod("a/guard", spec=affinity(apart=[term(HOST, "app In web")])))
OTHER = PodInfo(make_pod("a/other", spec=affinity(apart=[term(HOST, "app In db")])))
NODES = [make_node(name, labels={HOST: name, ZONE: "z"}) for name in ("n1", "n2")]


def start(pod: PodInfo = PLAIN, nodes: Any = NODES) -> tuple[Evaluation, Snapshot]:
    snapshot = make_snapshot(nodes)
    return evaluate(default_framework(Handle(snapshot)), pod, snapshot), snapshot


def test_pods_that_concern_nobody_do_not_void_an_evaluation() -> None:
    kept, snapshot = start()
    snapshot.table.add_pod(OTHER, NodeName("n1"))
    assert kept.refresh()
    assert said(kept, snapshot.table) == said(evaluate(kept.framework, PLAIN, snapshot), snapshot.table)


def test_a_pod_that_repels_does() -> None:
    kept, snapshot = start()
    snapshot.table.add_pod(GUARD, NodeName("n1"))
    assert not kept.refresh()


def test_a_service_does() -> None:
    kept, snapshot = start()
    snapshot.put("Service", "a/web", {"spec": {"selector": {"app": "web"}}})
    assert not kept.refresh()


def test_a_pod_that_fits_nowhere_is_kept_too_until_it_fits() -> None:
    """It has no scores, so it does not matter what they would depend on."""
    pod = PodInfo(make_pod("a/large", cpu="4", labels={"app": "web"}))
    kept, snapshot = start(pod)
    for node in ("n1", "n2"):
        snapshot.table.add_pod(PodInfo(make_pod(f"a/on-{node}", cpu="1", uid=node)), NodeName(node))
    kept = evaluate(kept.framework, pod, snapshot)
    assert not kept.feasible.any()
    snapshot.table.add_pod(OTHER, NodeName("n1"))
    assert kept.refresh() and not kept.feasible.any()
    snapshot.table.remove_pod("n1")  # type: ignore[arg-type]
    assert kept.refresh()
    assert said(kept, snapshot.table) == said(evaluate(kept.framework, pod, snapshot), snapshot.table)
    assert kept.feasible.tolist() == [True, False]


class Fickle:
    """Skips every pod; cannot say why."""

    name = "Fickle"
    filter_scope = Scope.CLUSTER

    def __init__(self, args: Any, handle: Any) -> None:
        self.broken = False

    def pre_filter(self, state: Any, pod: Any, snapshot: Any) -> Status:
        return SKIP

    def filter_table(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
        raise AssertionError

    def skip_version(self, pod: Any, snapshot: Any) -> int:
        if self.broken:
            raise ValueError("no version")
        return 0


def test_a_plugin_that_fails_to_say() -> None:
    snapshot = make_snapshot(NODES)
    framework = framework_of(Fickle)
    kept = evaluate(framework, PLAIN, snapshot)
    snapshot.table.add_pod(OTHER, NodeName("n1"))
    assert kept.refresh()
    framework.plugin("Fickle").broken = True  # type: ignore[union-attr]
    snapshot.table.add_pod(GUARD, NodeName("n1"))
    assert not kept.refresh()
    failure = evaluate(framework, PLAIN, snapshot).failure
    assert failure is not None and failure.message == 'running plugin "Fickle": ValueError: no version'


class Silent:
    """Skips every pod, and does not say what that depends on."""

    name = "Silent"
    filter_scope = Scope.CLUSTER
    awake = False
    __init__ = Fickle.__init__

    def pre_filter(self, state: Any, pod: Any, snapshot: Any) -> Status | None:
        return None if self.awake else SKIP

    filter_table = Fickle.filter_table


def test_a_plugin_that_does_not_say_is_asked_anew() -> None:
    snapshot = make_snapshot(NODES)
    framework = framework_of(Silent)
    kept = evaluate(framework, PLAIN, snapshot)
    snapshot.table.add_pod(OTHER, NodeName("n1"))
    assert kept.refresh()
    framework.plugin("Silent").awake = True  # type: ignore[union-attr]
    snapshot.table.add_pod(GUARD, NodeName("n1"))
    assert not kept.refresh(), "it does not skip the pod any more"


class Counting(Fickle):
    """Skips every pod, and counts how often it is asked what that depends on, and which labels it reads."""

    name = "Counting"
    blind_to_plain_pods = True
    skip_version_is_the_snapshots = False

    def __init__(self, args: Any, handle: Any) -> None:
        self.asked: list[str] = []

    def skip_version(self, pod: Any, snapshot: Any) -> int:
        self.asked.append("skips")
        return snapshot.version if self.skip_version_is_the_snapshots else 0

    def label_keys(self, pod: Any, snapshot: Any) -> list[str]:
        self.asked.append("labels")
        return ["app"]


class Overriding(Counting):
    """Inherits the promise, of another answer."""

    def skip_version(self, pod: Any, snapshot: Any) -> int:
        return super().skip_version(pod, snapshot)


class Restless(Counting):
    """Would skip a pod again only as long as nothing at all changes."""

    skip_version_is_the_snapshots = True


def _place(snapshot: Snapshot, pod: PodInfo) -> None:
    snapshot.table.add_pod(pod, NodeName("n1"))


CHANGES: dict[str, tuple[Any, bool]] = {
    "a plain pod": (lambda snapshot: _place(snapshot, PodInfo(make_pod("a/new"))), False),
    "a plain pod that goes": (lambda snapshot: snapshot.table.remove_pod("a/there-uid"), False),
    "a pod with affinity to nodes": (
        lambda snapshot: _place(snapshot, PodInfo(make_pod("a/new", spec={"affinity": {"nodeAffinity": {}}}))),
        False,
    ),
    "a pod with terms": (lambda snapshot: _place(snapshot, GUARD), True),
    "a node": (lambda snapshot: snapshot.table.set_node(make_node("n1", labels={ZONE: "other"})), True),
    "an object": (lambda snapshot: snapshot.put("Service", "a/web", {}), True),
    "a promise": (lambda snapshot: snapshot.nominations.set(OTHER, NodeName("n1")), True),
}


@pytest.mark.parametrize("plugin", [Counting, Overriding, Restless])
@pytest.mark.parametrize("change", CHANGES)
def test_who_is_blind_to_plain_pods_is_asked_again_after_other_changes_only(plugin: Any, change: str) -> None:
    snapshot = make_snapshot(NODES)
    snapshot.table.add_pod(PodInfo(make_pod("a/there", uid="a/there-uid")), NodeName("n2"))
    framework = framework_of(plugin)
    asked = framework.plugin("Counting").asked  # type: ignore[union-attr]
    kept = evaluate(framework, PLAIN, snapshot)
    first = framework.class_of(PLAIN, snapshot)
    assert set(asked) == {"skips", "labels"}
    happens, matters = CHANGES[change]
    asked.clear()
    happens(snapshot)
    kept.refresh()
    assert framework.class_of(PLAIN, snapshot) == first
    wanted = {"skips", "labels"} if matters or plugin is Overriding else {"skips"} if plugin is Restless else set()
    assert set(asked) == wanted


def test_one_more_pod_with_the_same_terms_changes_nothing_about_labels() -> None:
    snapshot = make_snapshot(NODES)
    framework = framework_of(Counting)
    asked = framework.plugin("Counting").asked  # type: ignore[union-attr]
    for name, again in (("a/first", True), ("a/second", False), ("a/third", False)):
        asked.clear()
        _place(snapshot, PodInfo(make_pod(name, spec=affinity(apart=[term(HOST, "app In web")]))))
        framework.class_of(PLAIN, snapshot)
        assert asked == (["labels"] if again else []), name
    asked.clear()
    _place(snapshot, PodInfo(make_pod("a/other", spec=affinity(apart=[term(HOST, "app In db")]))))
    framework.class_of(PLAIN, snapshot)
    assert asked == ["labels"]


@settings(max_examples=150, deadline=None)
@given(clusters(), st.lists(pods(st.just("w")), min_size=1, max_size=3), st.data())
def test_refreshed_is_fresh(around: Cluster, waiting: list[Any], data: st.DataObject) -> None:
    snapshot = around.snapshot()
    framework = default_framework(Handle(snapshot))
    kept = [evaluate(framework, PodInfo(pod), snapshot) for pod in waiting]
    for number in range(data.draw(st.integers(1, 5))):
        name = data.draw(st.sampled_from(around.nodes)).name
        match data.draw(st.sampled_from(["add", "add", "remove", "label", "object"])):
            case "remove" if around.placed:
                snapshot.table.remove_pod(around.placed.pop()[1].uid)
            case "label":
                snapshot.table.set_node(make_node(name, labels={ZONE: data.draw(st.sampled_from(["z1", "z9"]))}))
            case "object":
                kind, key = data.draw(st.sampled_from([("Service", "a/s1"), ("Namespace", "a")]))
                of_a: Any = {"metadata": {"labels": {"team": "blue"}}, "spec": {"selector": {"tier": "x"}}}
                snapshot.put(kind, key, of_a)
            case _:
                snapshot.table.add_pod(
                    PodInfo(data.draw(pods(st.just(f"new{number}"), AFFINITIES | st.just({})))), name
                )
        for place, evaluation in enumerate(kept):
            fresh = evaluate(framework, evaluation.pod, snapshot)
            if evaluation.refresh():
                assert said(evaluation, snapshot.table) == said(fresh, snapshot.table)
            else:
                kept[place] = fresh


def test_both_points_of_a_plugin_count() -> None:
    """PreFilter skips, PreScore does not: the evaluation depends on the cluster."""
    fan = PodInfo(make_pod("a/fan", spec=affinity(likes=[(5, term(HOST, "app In web"))])))
    _, snapshot = start()
    snapshot.table.add_pod(fan, NodeName("n1"))
    kept = evaluate(default_framework(Handle(snapshot)), PLAIN, snapshot)
    assert "InterPodAffinity" in kept.state.skip_filter and "InterPodAffinity" in kept.score_columns()
    another = PodInfo(make_pod("a/fan2", spec=affinity(likes=[(9, term(HOST, "app In web"))])))
    snapshot.table.add_pod(another, NodeName("n2"))
    fresh = evaluate(kept.framework, PLAIN, snapshot)
    assert not kept.refresh() or said(kept, snapshot.table) == said(fresh, snapshot.table)
