"""Deferred resizes in the cycle; and that the gate changes nothing where there are none."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched import config
from dsched.clock import ManualClock
from dsched.config.feature_gates import DEFAULT, NEWEST, Features, features
from dsched.engine.select import Selector
from dsched.framework import deferred_resizes
from dsched.framework.pod_info import PodInfo
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.plugins import registry
from dsched.scheduler.decision import Candidate, Decision
from dsched.scheduler.memory import Memory
from dsched.simulation.offline_cycle import OfflineCycle
from tests.builders import make_node, make_pod, make_snapshot

SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
ON = features(NEWEST, {deferred_resizes.GATE: True})


def decided(nodes: list[Node], placed: list[Pod], pods: list[Pod], on: Features = ON) -> tuple[list[Decision], Memory]:
    """Pods decided one after the other, and what that leaves."""
    memory = Memory()
    memory.snapshot = make_snapshot(nodes, placed)
    made = OfflineCycle(config.default(on), registry.intree(), memory, Selector(7), ManualClock())
    return made.cycle.decide([Candidate(PodInfo(pod), 1) for pod in pods]), memory


def resize(cpu: str, *, priority: int = 10, **more: Any) -> Pod:
    conditions = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]
    return make_pod("shop/web", cpu, node="n1", priority=priority, status={"conditions": conditions}, **more)


def low(key: str, cpu: str, **more: Any) -> Pod:
    return make_pod(key, cpu, node="n1", uid=key, **more)


def test_the_fewest_pods_of_its_node_go_and_nothing_is_promised() -> None:
    big, small = low("shop/big", "2", priority=1), low("shop/small", "500m")
    (decision,), memory = decided([make_node("n1"), make_node("n2")], [big, small, resize("2")], [resize("2")])
    assert [victim.key for victim in decision.victims] == ["shop/small"]
    assert (decision.node, decision.nominated, decision.error) == (None, "n1", None)
    assert decision.message.endswith("preemption: found a potential placement for pod on node n1, preempting 1 victims")
    assert list(memory.snapshot.nominations.nodes()) == []


def test_what_was_promised_of_the_node_to_lesser_ones_ends() -> None:
    nominated = make_pod("shop/next", "1", priority=5, uid="next")
    memory = Memory()
    memory.snapshot = make_snapshot([make_node("n1")], [low("shop/big", "3"), resize("2")])
    memory.snapshot.nominations.set(PodInfo(nominated), "n1")  # type: ignore[arg-type]
    made = OfflineCycle(config.default(ON), registry.intree(), memory, Selector(7), ManualClock())
    (decision,) = made.cycle.decide([Candidate(PodInfo(resize("2")), 1)])
    assert [pod.key for pod in decision.displaced] == ["shop/next"]


def test_one_that_fits_ends_in_the_error_of_upstreams_cache() -> None:
    (decision,), memory = decided([make_node("n1")], [low("shop/small", "1"), resize("2")], [resize("2")])
    assert decision.error is not None
    assert decision.error.message == "pod uid-web(shop/web) is in the cache, so can't be assumed"
    assert memory.snapshot.table.node_of(resize("2").uid) == "n1"


def test_the_next_pod_of_a_batch_is_decided_on_what_is_left() -> None:
    nodes, placed = [make_node("n1"), make_node("n2")], [low("shop/big", "3"), resize("2")]
    decisions, _ = decided(nodes, placed, [resize("2"), make_pod("shop/new", "1", uid="new")])
    assert decisions[1].node == "n2"


@pytest.mark.parametrize(
    "more",
    [
        {"node_selector": {"disk": "ssd"}},
        {"ports": [80]},
        {"spec": {"topologySpreadConstraints": [SPREAD]}},
        {"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]}},
        {"spec": {"resourceClaims": [{"name": "c", "resourceClaimName": "none"}]}},
        {"spec": {"hostUsers": False}},
    ],
)
def test_who_asks_whether_a_pod_may_go_to_a_node_is_not_asked(more: dict[str, Any]) -> None:
    node = make_node("n1", taints=["a=b:NoSchedule"], unschedulable=True)
    other = low("shop/big", "3", ports=more.get("ports", ()))
    (decision,), _ = decided([node], [other, resize("2", **more)], [resize("2", **more)])
    assert [victim.key for victim in decision.victims] == ["shop/big"], decision.message
    off, _ = decided([node], [other, resize("2", **more)], [resize("2", **more)], DEFAULT)
    assert not off[0].victims


def test_a_pod_of_no_lower_priority_does_not_go() -> None:
    (decision,), _ = decided([make_node("n1")], [low("shop/big", "3", priority=10), resize("2")], [resize("2")])
    assert decision.victims == ()
    assert "1 No preemption victims found for incoming pod" in decision.message


_CPUS = st.sampled_from(["0", "500m", "1", "2", "3"])


@st.composite
def _clusters(draw: st.DrawFn) -> tuple[list[Node], list[Pod], list[Pod]]:
    sizes = draw(st.lists(st.tuples(st.sampled_from(["1", "2", "4"]), st.integers(1, 4), st.booleans()), min_size=1))
    nodes = [
        make_node(f"n{number}", cpu, pods=pods, unschedulable=cordoned)
        for number, (cpu, pods, cordoned) in enumerate(sizes[:3])
    ]
    reasons = st.sampled_from(["", "Infeasible"])

    def pod(name: str, node: str) -> Pod:
        reason = draw(reasons)
        status = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}]} if reason else {}
        priority = draw(st.integers(0, 2))
        return make_pod(f"shop/{name}", draw(_CPUS), node=node, uid=name, priority=priority, status=status)

    homes = draw(st.lists(st.integers(0, len(nodes) - 1), max_size=5))
    placed = [pod(f"p{number}", f"n{home}") for number, home in enumerate(homes)]
    return nodes, placed, [pod(f"new{number}", "") for number in range(draw(st.integers(1, 4)))]


@given(_clusters())
def test_where_no_resize_is_deferred_the_gate_changes_nothing(cluster: tuple[list[Node], list[Pod], list[Pod]]) -> None:
    def told(on: Features) -> list[Any]:
        return [
            (each.node, each.best, each.message, each.nominated, [victim.key for victim in each.victims])
            for each in decided(*cluster, on)[0]
        ]

    assert told(ON) == told(DEFAULT)
