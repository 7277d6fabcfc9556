"""DeferredPodScheduling, and what else is said of deferred resizes by plugins alone.

Cases: pkg/scheduler/framework/plugins/deferredpodscheduling/deferred_pod_scheduling_test.go, noderesources/fit_test.go.
"""

from typing import Any

import msgspec
import pytest

from dsched.config import NodeResourcesFitArgs, ScoringStrategy
from dsched.config.feature_gates import DEFAULT, NEWEST, Features, features
from dsched.framework import deferred_resizes
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Action, Code, Resource
from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NodeName
from dsched.model.node import Node, NodePodPreemptionPolicy
from dsched.model.pod import Pod
from dsched.plugins.deferred_pod_scheduling import DeferredPodScheduling
from dsched.plugins.node_resources_fit import NodeResourcesFit
from tests.builders import make_node, make_pod, make_table
from tests.unit.framework.frameworks import Handle
from tests.unit.plugins.asking import filtered, filtered_few, reasons, skips
from tests.unit.plugins.hints import queues

ON = features(NEWEST, {deferred_resizes.GATE: True})
GPU = "example.com/gpu"


def plugin(on: Features = ON) -> DeferredPodScheduling:
    return DeferredPodScheduling(None, None, on)


def fit(on: Features = ON) -> NodeResourcesFit:
    return NodeResourcesFit(NodeResourcesFitArgs((), (), ScoringStrategy("LeastAllocated", (), ())), Handle(), on)


def resize(cpu: str | None = None, *, node: str = "n1", reason: str = "Deferred", **more: Any) -> Pod:
    """A pod on a node whose resize waits for a reason."""
    conditions = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    return make_pod("shop/web", cpu, node=node, status={"conditions": conditions}, **more)


def forbidding(node: Node, *owners: str) -> Node:
    policy = NodePodPreemptionPolicy(list(owners))
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, pod_preemption_policy=policy))


class TestPlugin:
    TABLE = make_table([make_node("n1"), forbidding(make_node("n2"), "autoscaler"), forbidding(make_node("n3"))])

    @pytest.mark.parametrize(
        ("node", "said"),
        [
            ("n1", ["", "pod assigned to different node", "pod assigned to different node"]),
            (
                "n2",
                [
                    "pod assigned to different node",
                    "node had resize preemption disabled",
                    "pod assigned to different node",
                ],
            ),
            ("n3", ["pod assigned to different node", "pod assigned to different node", ""]),
            ("", ["", "node had resize preemption disabled", ""]),
            ("gone", ["pod assigned to different node"] * 3),
        ],
    )
    def test_it_stays_where_it_is_unless_that_is_forbidden(self, node: str, said: list[str]) -> None:
        assert reasons(plugin(), resize(node=node), self.TABLE) == said
        codes = {status.code for status in filtered(plugin(), resize(node=node), self.TABLE) if status is not None}
        assert codes == {Code.UNSCHEDULABLE_AND_UNRESOLVABLE}

    @pytest.mark.parametrize("reason", ["", "Infeasible"])
    def test_of_other_pods_it_says_nothing(self, reason: str) -> None:
        pod = resize(node="n2", reason=reason)
        assert skips(plugin(), "pre_filter", pod, self.TABLE)
        assert reasons(plugin(), pod, self.TABLE) == ["", "", ""]
        assert plugin().permit(CycleState(), PodInfo(pod), NodeName("n1")) is None

    def test_without_the_gate_it_says_nothing(self) -> None:
        assert skips(plugin(DEFAULT), "pre_filter", resize(node="n2"), self.TABLE)
        assert reasons(plugin(DEFAULT), resize(node="n2"), self.TABLE) == ["", "", ""]
        assert plugin(DEFAULT).permit(CycleState(), PodInfo(resize()), NodeName("n1")) is None

    def test_what_fits_waits_for_the_kubelet(self) -> None:
        assert not skips(plugin(), "pre_filter", resize(), self.TABLE)
        result = plugin().permit(CycleState(), PodInfo(resize()), NodeName("n1"))
        assert result is not None and result.status is not None
        assert result.status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        assert result.status.message == "pod resize fits, waiting for Kubelet actuation"

    @pytest.mark.parametrize(
        ("old", "new", "wakes"),
        [
            (forbidding(make_node("n1"), "a"), make_node("n1"), True),
            (forbidding(make_node("n1"), "a"), forbidding(make_node("n1")), True),
            (forbidding(make_node("n1"), "a"), forbidding(make_node("n1"), "b"), False),
            (make_node("n1"), forbidding(make_node("n1"), "a"), False),
            (make_node("n1"), make_node("n1", cpu="8"), False),
            (forbidding(make_node("n2"), "a"), make_node("n2"), False),
            (None, make_node("n1"), True),
            (None, forbidding(make_node("n1"), "a"), False),
            (None, make_node("n2"), False),
        ],
    )
    def test_it_is_woken_when_its_node_forbids_it_no_longer(self, old: Node | None, new: Node, wakes: bool) -> None:
        action = Action.ADD if old is None else Action.UPDATE
        assert queues(plugin(), resize(), Resource.NODE, action, old, new) == wakes
        assert not queues(plugin(), resize(reason=""), Resource.NODE, action, old, new)
        assert not queues(plugin(DEFAULT), resize(), Resource.NODE, action, old, new)


class TestFit:
    """A node of four cores and two devices, with ten places."""

    @staticmethod
    def said(asks: Pod, counted: Pod | None, *others: Pod, pods: int = 10, on: Features = ON) -> list[str]:
        node = make_node("n1", "4", pods=pods, allocatable={GPU: "2"})
        table = make_table([node, make_node("n2", "1")], [*others, *([counted] if counted is not None else [])])
        statuses = filtered(fit(on), asks, table)
        assert filtered_few(fit(on), asks, table, [0, 1]) == statuses
        return ["" if status is None else f"{status.code}: {status.message}" for status in statuses]

    OTHER = make_pod("shop/other", "2", node="n1", uid="other")

    @pytest.mark.parametrize(
        ("asks", "counted", "home"),
        [
            ("2", "2", ""),
            ("3", "3", "Unschedulable: Insufficient cpu"),  # counted in full: the node is overfull
            ("3", "1", "Unschedulable: Insufficient cpu"),  # the node has not heard of it yet: two more are not free
            ("2", "1", ""),
            ("1", "3", "Unschedulable: Insufficient cpu"),  # what it does not ask for any more is still held
            ("5", "5", "UnschedulableAndUnresolvable: Insufficient cpu"),
        ],
    )
    def test_what_is_counted_for_it_need_not_be_free_again(self, asks: str, counted: str, home: str) -> None:
        elsewhere = self.said(resize(asks), make_pod("shop/web", counted, node="n1"), self.OTHER)
        assert elsewhere[0] == home

    def test_on_other_nodes_and_without_the_gate_all_of_it_has_to_be_free(self) -> None:
        counted = make_pod("shop/web", "2", node="n1")
        assert self.said(resize("2"), counted, self.OTHER)[1] == "UnschedulableAndUnresolvable: Insufficient cpu"
        off = self.said(resize("2"), counted, self.OTHER, on=DEFAULT)
        assert off[0] == "Unschedulable: Insufficient cpu"
        assert self.said(resize("3"), None, self.OTHER)[0] == "Unschedulable: Insufficient cpu"

    def test_it_counts_as_one_more_pod_all_the_same(self) -> None:
        counted = make_pod("shop/web", "1", node="n1")
        assert self.said(resize("1"), counted, pods=1)[0] == "Unschedulable: Too many pods"
        assert self.said(resize("1"), counted, pods=2)[0] == ""

    @pytest.mark.parametrize(
        ("asks", "counted", "home"),
        [
            (1, 1, ""),  # of an extended resource that it does not want more of, the node may be overfull
            (2, 1, "Unschedulable: Insufficient example.com/gpu"),
            (4, 1, "UnschedulableAndUnresolvable: Insufficient example.com/gpu"),
            (3, 1, "Unschedulable: Insufficient example.com/gpu"),  # what matters is what it wants more
        ],
    )
    def test_extended_resources(self, asks: int, counted: int, home: str) -> None:
        others = make_pod("shop/other", requests={GPU: 2}, node="n1", uid="other")
        held = make_pod("shop/web", requests={GPU: counted}, node="n1")
        assert self.said(resize(requests={GPU: asks}), held, others)[0] == home

    @pytest.mark.parametrize(
        ("action", "old", "new", "wakes"),
        [
            (Action.DELETE, make_pod("shop/gone", "1", node="n1"), None, True),
            (Action.DELETE, make_pod("shop/gone", "1", node="n2"), None, False),
            (Action.DELETE, make_pod("shop/gone", "1", nominated="n1"), None, False),
            (Action.UPDATE, make_pod("shop/o", "2", node="n1"), make_pod("shop/o", "1", node="n1"), True),
            (Action.UPDATE, make_pod("shop/o", "1", node="n1"), make_pod("shop/o", "2", node="n1"), True),
            (Action.UPDATE, make_pod("shop/o", "2", node="n2"), make_pod("shop/o", "1", node="n2"), False),
            (Action.UPDATE, make_pod("shop/o", "1", node="n2"), make_pod("shop/o", "2", node="n2"), False),
            (Action.UPDATE, make_pod("shop/o", "1", node="n1"), make_pod("shop/o", "1", node="n1"), False),
            (Action.UPDATE, resize("2"), resize("3"), True),
            (Action.UPDATE, resize("3"), resize("2"), True),
        ],
    )
    def test_only_pods_on_its_node_wake_it(self, action: Action, old: Pod, new: Pod | None, wakes: bool) -> None:
        assert queues(fit(), resize("3"), Resource.ASSIGNED_POD, action, old, new) == wakes

    def test_only_its_node_wakes_it(self) -> None:
        grown = make_node("n1", "4"), make_node("n1", "8")
        assert queues(fit(), resize("3"), Resource.NODE, Action.UPDATE, *grown)
        assert not queues(fit(), resize("3", node="n2"), Resource.NODE, Action.UPDATE, *grown)
        assert queues(fit(DEFAULT), resize("3", node="n2"), Resource.NODE, Action.UPDATE, *grown)

    def test_a_pod_that_needs_more_wakes_no_other(self) -> None:
        more = make_pod("shop/o", "1", node="n1"), make_pod("shop/o", "2", node="n1")
        assert not queues(fit(), make_pod("shop/new", "1"), Resource.ASSIGNED_POD, Action.UPDATE, *more)
        assert not queues(fit(DEFAULT), resize("1"), Resource.ASSIGNED_POD, Action.UPDATE, *more)

    def test_pods_on_nodes_are_not_alike(self) -> None:
        one, other = PodInfo(resize("1", uid="a")), PodInfo(resize("1", uid="b"))
        assert not fit().alike(one, other)
        assert fit(DEFAULT).alike(one, other)


def test_it_is_a_class_of_its_own() -> None:
    keys = {PodInfo(pod).class_key for pod in (resize(uid="a"), resize(uid="b"), resize(uid="a", reason=""))}
    assert len(keys) == 3
    assert len({PodInfo(resize(uid=uid, reason="Infeasible")).class_key for uid in "ab"}) == 1
