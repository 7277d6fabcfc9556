"""What is kept of attempts: what was said when it was said, bounded, and readable by whoever asks."""

from typing import Any

import pytest

from dsched.framework.interface import Code, Status
from dsched.leader.observers.explanations import Explain
from dsched.leader.settings import Settings
from dsched.model.meta import PodKey, PodUid
from dsched.state import attempt_history, keys
from dsched.state.attempt_history import Attempt, AttemptHistory, Group, Scored
from dsched.state.client import Store
from tests.integration.leader.rig import Led, Rig
from tests.integration.state.support import take_over
from tests.manifests import node_manifest, pod_manifest

WEB = PodKey("shop/web")


def tainted(name: str) -> dict[str, Any]:
    node = node_manifest(name)
    node["spec"] = {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}
    return node


def lead(rig: Rig, monkeypatch: pytest.MonkeyPatch, explain: Explain) -> Led:
    """A leader that keeps what it is told to keep."""
    monkeypatch.setattr("tests.integration.leader.rig.Settings", lambda **given: Settings(explain=explain, **given))
    return rig.lead()


def test_a_pod_that_fits_nowhere(rig: Rig) -> None:
    rig.apply(*(tainted(f"t{number}") for number in range(5)), node_manifest("n1"), node_manifest("n2", cpu="50m"))
    rig.apply(pod_manifest("shop/web", nodeName=None, containers=[requesting("16")]))
    led = rig.lead()
    led.run()
    (attempt,) = attempt_history.read(rig.store, WEB)
    assert (attempt.attempt, attempt.result, attempt.nodes, attempt.epoch) == (1, "unschedulable", 7, led.epoch)
    assert (attempt.uid, attempt.profile, attempt.at_ms) == (rig.uid(WEB), "default-scheduler", rig.clock.now_ms())
    assert attempt.message == rig.condition(WEB)[1]
    first, second = attempt.groups
    assert (first.plugin, first.nodes, first.code) == ("TaintToleration", 5, "UnschedulableAndUnresolvable")
    assert first.reasons == ("node(s) had untolerated taint(s)",)
    assert len(first.examples) == 3
    assert {name[0] for name in first.examples} == {"t"}
    assert (second.plugin, second.nodes, set(second.examples)) == ("NodeResourcesFit", 2, {"n1", "n2"})
    assert (attempt.best, attempt.feasible, attempt.node) == ((), None, None)


def requesting(cpu: str) -> dict[str, Any]:
    return {"name": "main", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}


def test_each_pod_of_a_batch_is_told_what_was_so_in_its_turn(rig: Rig) -> None:
    rig.apply(node_manifest("n1", cpu="4"), tainted("n2"))
    rig.apply(*(pod_manifest(f"shop/web-{number}", containers=[requesting("3")]) for number in range(2)))
    rig.lead().run()
    assert attempt_history.read(rig.store, PodKey("shop/web-0")) == []
    (attempt,) = attempt_history.read(rig.store, PodKey("shop/web-1"))
    assert {group.plugin: group.examples for group in attempt.groups} == {
        "NodeResourcesFit": ("n1",),
        "TaintToleration": ("n2",),
    }


def test_attempts_come_newest_first_and_outlive_the_leader_and_the_pod(rig: Rig) -> None:
    rig.apply(tainted("n1"), pod_manifest(WEB))
    first = rig.lead()
    first.run()
    rig.clock.advance(60)
    second = rig.lead()
    second.run()
    assert [(each.attempt, each.epoch) for each in attempt_history.read(rig.store, WEB)] == [
        (2, second.epoch),
        (1, first.epoch),
    ]
    rig.delete_pod(WEB)
    second.run()
    assert len(attempt_history.read(rig.store, WEB)) == 2


def test_preemption_is_told(rig: Rig) -> None:
    rig.apply(node_manifest("n1", cpu="1"), pod_manifest("shop/low", containers=[requesting("1")]))
    led = rig.lead()
    led.run()
    rig.apply(pod_manifest(WEB, priority=100, containers=[requesting("1")]))
    led.run()
    attempt = attempt_history.read(rig.store, WEB)[-1]
    assert (attempt.nominated, attempt.victims) == ("n1", ("shop/low",))
    assert [group.plugin for group in attempt.groups] == ["NodeResourcesFit"]


def test_without_nodes_and_with_a_prefilter_that_says_no(rig: Rig) -> None:
    rig.apply(pod_manifest(WEB))
    led = rig.lead()
    led.run()
    (attempt,) = attempt_history.read(rig.store, WEB)
    assert (attempt.nodes, attempt.groups, attempt.message) == (0, (), "no nodes available to schedule pods")
    rig.apply(node_manifest("n1"), pod_manifest("shop/grouped", schedulingGroup={"podGroupName": "group"}))
    led.run()
    (attempt,) = attempt_history.read(rig.store, PodKey("shop/grouped"))
    assert attempt.result == "unschedulable"
    assert [(group.nodes, group.examples) for group in attempt.groups] == [(1, ())]


class Unwilling:
    """Reserves nothing, or fails."""

    name = "Unwilling"
    says = Status(Code.UNSCHEDULABLE, ("not on this one",))

    def __init__(self, args: Any, handle: Any) -> None: ...

    def reserve(self, state: Any, pod: Any, node: Any) -> Status | None:
        return type(self).says

    def unreserve(self, state: Any, pod: Any, node: Any) -> None: ...


UNWILLING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: Unwilling}]}}}]
"""


@pytest.mark.parametrize(
    ("says", "result"),
    [
        (Status(Code.UNSCHEDULABLE, ("not on this one",)), "unschedulable"),
        (Status(Code.ERROR, ("broken",)), "error"),
    ],
)
def test_a_pod_that_reserve_turns_away(rig: Rig, monkeypatch: pytest.MonkeyPatch, says: Status, result: str) -> None:
    monkeypatch.setattr(Unwilling, "says", says)
    rig.configure(UNWILLING, Unwilling)
    rig.apply(node_manifest("n1"), pod_manifest(WEB))
    rig.lead().turn()
    (attempt,) = attempt_history.read(rig.store, WEB)
    assert attempt.result == result
    assert attempt.message == rig.condition(WEB)[1]
    if result == "unschedulable":
        assert attempt.groups == (Group("Unwilling", "Unschedulable", ("not on this one",), 1),)


def test_successes_are_kept_where_asked_for(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.apply(node_manifest("n1"), node_manifest("n2", cpu="64", memory="64Gi"), tainted("n3"), pod_manifest(WEB))
    lead(rig, monkeypatch, Explain.ALL).run()
    (attempt,) = attempt_history.read(rig.store, WEB)
    assert (attempt.result, attempt.node, attempt.feasible, attempt.nodes) == ("scheduled", "n2", 2, 3)
    assert [scored.node for scored in attempt.best] == ["n2", "n1"]
    best, other = attempt.best
    assert best.total == sum(best.scores.values()) > other.total == sum(other.scores.values())
    assert attempt.groups == ()


def test_the_only_node_that_fits_has_no_scores(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.apply(node_manifest("n1"), tainted("n2"), pod_manifest(WEB))
    lead(rig, monkeypatch, Explain.ALL).run()
    (attempt,) = attempt_history.read(rig.store, WEB)
    assert (attempt.node, attempt.feasible, attempt.best) == ("n1", 1, (Scored("n1", None, {}),))


@pytest.mark.parametrize(("explain", "kept"), [(Explain.NONE, 0), (Explain.FAILURES, 1), (Explain.ALL, 2)])
def test_what_is_kept_is_a_setting(rig: Rig, monkeypatch: pytest.MonkeyPatch, explain: Explain, kept: int) -> None:
    rig.apply(node_manifest("n1"), pod_manifest("shop/a"), pod_manifest("shop/b", nodeSelector={"disk": "ssd"}))
    lead(rig, monkeypatch, explain).run()
    assert sum(len(attempt_history.read(rig.store, PodKey(f"shop/{name}"))) for name in "ab") == kept


# -- bounds --------------------------------------------------------------------------------------------------------


def attempt(number: int) -> Attempt:
    return Attempt(number, 0, 1, PodUid("u"), "default-scheduler", "unschedulable", 1)


def test_of_a_pod_the_last_attempts_are_kept_for_a_while(store: Store) -> None:
    keeper = AttemptHistory(store, take_over(store), attempts=3)
    for number in range(1, 6):
        keeper.keep([(WEB, attempt(number))], number)
    assert [each.attempt for each in attempt_history.read(store, WEB)] == [5, 4, 3]
    assert 0 < store.redis.ttl(store.key(keys.EXPLAINED.name + WEB)) <= attempt_history.KEPT_S


def test_of_many_pods_those_tried_last_are_kept(store: Store) -> None:
    keeper = AttemptHistory(store, take_over(store), pods=3)
    names = [PodKey(f"shop/web-{number}") for number in range(5)]
    dropped = [keeper.keep([(name, attempt(1))], at_ms) for at_ms, name in enumerate(names)]
    assert dropped == [0, 0, 0, 1, 1]
    keeper.keep([(names[2], attempt(2))], 9)
    keeper.keep([(PodKey("shop/new"), attempt(1))], 10)
    assert [len(attempt_history.read(store, name)) for name in names] == [0, 0, 2, 0, 1]
    assert len(store.names(keys.EXPLAINED.name)) == store.redis.zcard(store.key(keys.EXPLANATIONS.name)) == 3
