"""Why a pod fits nowhere, word for word as kube-scheduler says it.

Source: pkg/scheduler/framework/types.go ``FitError.Error`` and its test.
"""

from typing import Any

import pytest

from dsched.engine.diagnosis import NO_NODES, Diagnosis, diagnose
from dsched.engine.evaluation import evaluate
from dsched.framework.interface import Code, Status, unresolvable, unschedulable
from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NodeName
from tests.builders import make_node, make_pod, make_snapshot, make_term
from tests.unit.framework.frameworks import default_framework


def of(nodes: int, *reasons: tuple[Status, int], rejection: Status | None = None, post: str = "") -> str:
    return Diagnosis(nodes, rejection, reasons, frozenset(), post_filter_message=post).message


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (of(0), "no nodes available to schedule pods"),
        (of(3, (unresolvable("a"), 3)), "0/3 nodes are available: 3 a."),
        (
            of(4, (unschedulable("a", "b"), 1), (unschedulable("b"), 2), (unresolvable("c"), 1)),
            "0/4 nodes are available: 1 a, 1 c, 3 b.",
        ),
        # sorted as text: 10 comes before 2
        (of(12, (unschedulable("z"), 10), (unschedulable("a"), 2)), "0/12 nodes are available: 10 z, 2 a."),
        (of(2), "0/2 nodes are available:"),
        (
            of(5, (unresolvable("x y"), 5), rejection=Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("x", "y"))),
            "0/5 nodes are available: x, y.",
        ),
        (
            of(2, (unschedulable("a"), 2), post="preemption: 0/2 nodes are available: 2 No preemption victims found."),
            "0/2 nodes are available: 2 a. preemption: 0/2 nodes are available: 2 No preemption victims found.",
        ),
    ],
)
def test_texts(message: str, expected: str) -> None:
    assert message == expected


def found(nodes: list[Any], **of_pod: Any) -> Diagnosis:
    snapshot = make_snapshot(nodes)
    return diagnose(evaluate(default_framework(), PodInfo(make_pod(**of_pod)), snapshot), len(nodes))


def test_each_node_counts_for_its_first_filter() -> None:
    nodes = [
        make_node("n1", cpu="1"),
        make_node("n2", cpu="1", taints=["a=b:NoSchedule"]),
        make_node("n3", cpu="1", unschedulable=True, taints=["a=b:NoSchedule"]),
        make_node("n4", pods=0, cpu="1"),
    ]
    diagnosis = found(nodes, cpu="2")
    assert diagnosis.message == (
        "0/4 nodes are available: 1 Too many pods, 1 node(s) had untolerated taint {a: b}, "
        "1 node(s) were unschedulable, 2 Insufficient cpu."
    )
    assert diagnosis.unschedulable_plugins == {"NodeResourcesFit", "TaintToleration", "NodeUnschedulable"}


def test_a_search_that_was_narrowed_to_nothing_there() -> None:
    diagnosis = found([make_node("n1"), make_node("n2")], required=[make_term(fields=["metadata.name In gone"])])
    assert diagnosis.message == "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    assert diagnosis.unschedulable_plugins == {"NodeAffinity"}


def nominated(nodes: list[Any], node: str, *others: Any, **of_pod: Any) -> Diagnosis:
    """Why a pod that was promised a node fits nowhere."""
    snapshot = make_snapshot(nodes, others)
    pod = PodInfo(make_pod(**of_pod))
    snapshot.nominations.set(pod, NodeName(node))
    return diagnose(evaluate(default_framework(), pod, snapshot), len(nodes))


BOUND_FOR_N1 = [make_term(fields=["metadata.name In n1"])]


def test_what_rejected_the_promised_node_is_named_among_those_that_narrowed_the_search() -> None:
    """Source: schedule_one.go ``evaluateNominatedNode``, which adds to the set that ``findNodesThatFitPod`` prints."""
    nodes = [make_node("n1", cpu="1"), make_node("n2", cpu="4"), make_node("n3", cpu="4")]
    diagnosis = nominated(nodes, "n1", cpu="2", required=BOUND_FOR_N1)
    assert diagnosis.message == (
        "0/3 nodes are available: 1 Insufficient cpu, "
        "2 node(s) didn't satisfy plugin(s) [NodeAffinity NodeResourcesFit]."
    )
    assert diagnosis.unschedulable_plugins == {"NodeAffinity", "NodeResourcesFit"}


def test_a_promised_node_beyond_the_narrowed_search_is_looked_at_all_the_same() -> None:
    nodes = [make_node("n1", cpu="1"), make_node("n2", cpu="4"), make_node("n3", taints=["a=b:NoSchedule"])]
    assert nominated(nodes, "n2", cpu="2", required=BOUND_FOR_N1).message == (
        "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )
    assert nominated(nodes, "n3", cpu="2", required=BOUND_FOR_N1).message == (
        "0/3 nodes are available: 1 Insufficient cpu, "
        "1 node(s) didn't satisfy plugin(s) [NodeAffinity TaintToleration], 1 node(s) had untolerated taint {a: b}."
    )


def test_without_a_narrowed_search_the_promised_node_is_one_like_the_others() -> None:
    nodes = [make_node("n1", cpu="1"), make_node("n2", cpu="1")]
    assert nominated(nodes, "n1", cpu="2").message == "0/2 nodes are available: 2 Insufficient cpu."


def test_a_promised_node_that_is_gone_is_not_looked_at() -> None:
    nodes = [make_node("n1", cpu="1"), make_node("n2", cpu="4")]
    assert nominated(nodes, "n9", cpu="2", required=BOUND_FOR_N1).message == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


def test_a_rejection_by_pre_filter() -> None:
    diagnosis = found(
        [make_node("n1"), make_node("n2")], required=[make_term(fields=["metadata.name In x", "metadata.name In y"])]
    )
    assert diagnosis.message == "0/2 nodes are available: pod affinity terms conflict."
    assert diagnosis.unschedulable_plugins == {"NodeAffinity"}


def test_without_nodes() -> None:
    diagnosis = found([])
    assert diagnosis.message == NO_NODES
    assert diagnosis.unschedulable_plugins == frozenset()


def test_pending_plugins_are_told_apart() -> None:
    from tests.unit.framework.frameworks import framework_of

    class Later:
        name = "Later"

        def __init__(self, args: Any, handle: Any) -> None:
            pass

        def filter(self, state: Any, pod: Any, node: Any) -> Status:
            return Status(Code.PENDING, ("claim not ready",))

    snapshot = make_snapshot([make_node("n1")])
    diagnosis = diagnose(evaluate(framework_of(Later), PodInfo(make_pod()), snapshot), 1)
    assert diagnosis.message == "0/1 nodes are available: 1 claim not ready."
    assert (diagnosis.unschedulable_plugins, diagnosis.pending_plugins) == (frozenset(), {"Later"})


def test_one_node_that_turned_the_pod_away() -> None:
    diagnosis = Diagnosis.of_node(unschedulable("busy").by("Reserver"))
    assert diagnosis.message == "0/1 nodes are available: 1 busy."
    assert diagnosis.unschedulable_plugins == {"Reserver"}
