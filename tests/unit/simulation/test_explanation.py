"""Explanations of single pods."""

from typing import Any

import pytest

from dsched.engine.evaluation import evaluate
from dsched.errors import NotFound
from dsched.framework.interface import Code, PermitResult, Status, unschedulable
from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NodeName, PodKey
from dsched.scheduler.memory import Memory
from dsched.scheduler.ports import Record
from dsched.simulation.explanation import Explanation, NodeAnswer, Score, explain
from dsched.simulation.live_cluster import LiveCluster
from tests.builders import make_node, make_pod, make_snapshot, make_term
from tests.unit.framework.frameworks import Handle, default_framework
from tests.unit.simulation.worlds import configured, known, plugin

NODES = [
    make_node("n1", cpu=4, labels={"disk": "ssd"}),
    make_node("n2", cpu=8),
    make_node("n3", cpu=8, taints=["gpu=yes:NoSchedule"]),
]


def memory_of(nodes: Any = NODES, pods: Any = ()) -> Memory:
    memory = Memory()
    memory.snapshot = make_snapshot(nodes, pods)
    return memory


def ask(
    pod: Any, memory: Memory | None = None, *plugins: type[Any], more: str = "", seed: int = 0, **more_of_it: Any
) -> Explanation:
    standing = LiveCluster(memory or memory_of(), pod, **more_of_it)
    return explain(configured(*plugins, more=more), known(*plugins), standing, seed)


def answer(explained: Explanation, name: str) -> NodeAnswer:
    (found,) = (node for node in explained.nodes if node.name == name)
    return found


def test_every_node_is_told_of() -> None:
    pod = make_pod("shop/web", cpu=1, preferred=[(5, make_term("disk Exists"))])
    explained = ask(pod)
    assert [node.name for node in explained.nodes] == ["n1", "n2", "n3"]
    n3 = answer(explained, "n3")
    assert n3.rejection == Status(
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) had untolerated taint {gpu: yes}",), "TaintToleration"
    )
    assert (n3.total, n3.scores) == (None, {})
    # A preference of weight 5 that n1 alone has: 5 is the highest, so it is 100, times the plugin's weight of 2.
    assert answer(explained, "n1").scores["NodeAffinity"] == Score(5, 100, 200)
    assert answer(explained, "n2").scores["NodeAffinity"] == Score(0, 0, 0)
    # No taints but n3's: none is counted against either, and fewer is better; times 3.
    assert answer(explained, "n1").scores["TaintToleration"] == Score(0, 100, 300)
    # (4000 - 1000) * 100 / 4000 = 75 of the CPU, and (16Gi - 200Mi) * 100 / 16Gi = 98 of the memory: 86.
    assert answer(explained, "n1").scores["NodeResourcesFit"] == Score(86, 86, 86)
    assert explained.best == ("n1",)
    assert explained.chosen == "n1"


def test_totals_are_the_engines() -> None:
    pod = make_pod("shop/web", cpu=1, image="web:1", preferred=[(5, make_term("disk Exists"))])
    memory = memory_of(pods=[make_pod("shop/there", cpu=3, node="n2")])
    evaluation = evaluate(default_framework(Handle(memory.snapshot)), PodInfo(pod), memory.snapshot)
    totals = evaluation.totals.tolist()
    explained = ask(pod, memory)
    assert [node.total for node in explained.nodes] == [None if total < 0 else total for total in totals]
    for node in explained.nodes:
        if node.total is not None:
            assert node.total == sum(score.weighted for score in node.scores.values())
            assert all(each.weighted == each.normalised * explained.weights[name] for name, each in node.scores.items())


def test_equals_are_told_and_the_choice_is_the_leaders() -> None:
    nodes = [make_node(f"n{number}") for number in range(6)]
    chosen = {ask(make_pod(), memory_of(nodes), seed=seed).chosen for seed in range(20)}
    assert len(chosen) > 1
    assert ask(make_pod(), memory_of(nodes)).best == tuple(node.name for node in nodes)
    assert len({ask(make_pod(), memory_of(nodes), attempts=attempts).chosen for attempts in range(20)}) > 1


def test_a_pod_that_fits_nowhere_says_why() -> None:
    explained = ask(make_pod("shop/web", cpu=100))
    assert (explained.chosen, explained.best) == (None, ())
    assert explained.message.startswith(
        "0/3 nodes are available: 1 node(s) had untolerated taint {gpu: yes}, 2 Insufficient cpu."
    )
    assert answer(explained, "n1").rejection is not None


def test_preemption_is_told_and_nobody_goes() -> None:
    memory = memory_of(
        pods=[make_pod("shop/low", cpu=3, node="n1"), make_pod("shop/big", cpu=8, node="n2", priority=9)]
    )
    explained = ask(make_pod("shop/high", cpu=4, priority=5), memory)
    assert (explained.nominated, explained.victims) == ("n1", ("shop/low",))
    assert len(list(memory.snapshot.table.placed())) == 2


def test_a_promised_node_is_taken_although_another_is_better() -> None:
    pod = make_pod("shop/web", preferred=[(5, make_term("disk Exists"))])
    memory = memory_of()
    memory.snapshot.nominations.set(PodInfo(pod), NodeName("n2"))
    explained = ask(pod, memory)
    assert (explained.promised, explained.chosen, explained.best) == ("n2", "n2", ("n1",))


def test_what_narrows_the_search_is_told() -> None:
    explained = ask(make_pod(required=[make_term(fields=["metadata.name In n2"])]))
    assert explained.narrowing == ("NodeAffinity",)
    assert [node.searched for node in explained.nodes] == [False, True, False]
    assert explained.chosen == "n2"


def test_a_rejection_by_pre_filter_leaves_nothing_to_search() -> None:
    made = plugin(pre_filter=lambda self, state, pod, snapshot: unschedulable("not today"))
    explained = ask(make_pod(), None, made)
    assert explained.rejection == Status(Code.UNSCHEDULABLE, ("not today",), "Test")
    assert not any(node.searched for node in explained.nodes)
    assert explained.message.startswith("0/3 nodes are available: not today.")


def test_a_gated_pod_says_by_what_and_is_evaluated_all_the_same() -> None:
    explained = ask(make_pod(gates=["example.com/later"]))
    assert explained.gate is not None
    assert explained.gate.plugin == "SchedulingGates"
    assert explained.gate.message == "waiting for scheduling gates: [example.com/later]"
    assert explained.chosen == "n2"


def test_plugins_that_have_nothing_to_say_are_told() -> None:
    explained = ask(make_pod())
    assert "NodePorts" in explained.skipped_filters
    assert "NodeAffinity" in explained.skipped_scores
    assert "NodeAffinity" not in answer(explained, "n1").scores


def test_reserve_and_permit_are_not_asked() -> None:
    def never(self: Any, *given: Any) -> Any:
        raise AssertionError("asked")

    made = plugin(reserve=never, unreserve=never, permit=never)
    assert ask(make_pod(), None, made).failure is None
    denying = plugin("Deny", permit=lambda self, *given: PermitResult(unschedulable("no")))
    assert ask(make_pod(), None, denying).chosen == "n2"


def test_plugins_see_who_else_is_pending() -> None:
    class Counts:
        name = "Counts"

        def __init__(self, args: Any, handle: Any) -> None:
            self._handle = handle

        def pre_enqueue(self, pod: Any) -> Status | None:
            return unschedulable(
                " ".join(sorted(f"{each.key} {each.attempts}" for each in self._handle.pending_pods()))
            )

    known_one = Record(PodKey("shop/known"), {"uid": "uid-known", "queue": "active", "attempts": "4"})
    pending = ((make_pod("shop/known"), known_one), (make_pod("shop/new"), None))
    explained = ask(make_pod("shop/web"), None, Counts, pending=pending)
    assert explained.gate is not None
    assert explained.gate.message == "shop/known 4 shop/new 0 shop/web 0"


def test_a_plugin_that_fails_is_told() -> None:
    made = plugin(filter=lambda self, state, pod, node: Status(Code.ERROR, ("on fire",)))
    explained = ask(make_pod(), None, made)
    assert explained.failure is not None
    assert "on fire" in explained.failure.message
    assert explained.chosen is None
    assert not any(node.searched for node in explained.nodes)


def test_sampling_is_told() -> None:
    nodes = [make_node(f"n{number}") for number in range(200)]
    half = "percentageOfNodesToScore: 60"
    assert ask(make_pod(), memory_of(nodes), more=half).examined == 120
    assert ask(make_pod(), memory_of(nodes)).examined is None
    assert (
        ask(make_pod(required=[make_term(fields=["metadata.name In n2"])]), memory_of(nodes), more=half).examined
        is None
    )


def test_a_pod_of_another_scheduler_has_no_profile() -> None:
    with pytest.raises(NotFound, match='pod shop/web: schedulerName "other" is none of default-scheduler; --config'):
        ask(make_pod(spec={"schedulerName": "other"}))
