"""Pods with claims: where they fit and why not, whether the answer is new or was kept."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.engine.evaluation import Evaluation, evaluate
from dsched.engine.evaluation_cache import EvaluationCache
from dsched.framework.cycle_state import CycleState
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName
from dsched.plugins.dynamic_resources import inventory
from dsched.plugins.dynamic_resources.judgement import Judgement, Wish
from dsched.plugins.dynamic_resources.reserved import Errand, Reserved, charges_of
from tests.builders import make_node, make_pod
from tests.devices import alternative, asking, make_claim, make_class, make_slice, one_of, result
from tests.unit.plugins.dynamic_resources.judging import (
    claiming,
    cluster,
    framework,
    generated,
    judged,
    plugin,
    post_filtered,
    put,
    reasons,
    reserve,
)

GPUS = make_class("gpu")
ON_NODE_2 = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]}


def held(name: str, device: str, *, pool: str = "n2", selector: Any = ON_NODE_2, **status: Any) -> dict[str, Any]:
    claim = make_claim(f"default/{name}", asking(), allocated=[result(device, pool=pool)], **status)
    claim["status"]["allocation"]["nodeSelector"] = selector
    return claim


def feasible(evaluation: Evaluation, snapshot: Snapshot) -> list[str]:
    return [snapshot.table.names[row] for row in evaluation.feasible.nonzero()[0]]


def test_only_nodes_with_free_devices_will_do() -> None:
    objects = [GPUS, make_slice("n1", ["d0"]), make_slice("n2", ["d0"]), held("other", "d0")]
    snapshot = cluster(*objects, make_claim("default/mine", asking()))
    evaluation = judged(framework(snapshot), claiming("mine"), snapshot)
    assert feasible(evaluation, snapshot) == ["n1"]
    assert reasons(evaluation, snapshot) == dict.fromkeys(("n2", "n3"), "cannot allocate all claims")


def test_a_claim_with_devices_ties_its_pod_to_them() -> None:
    snapshot = cluster(GPUS, make_slice("n2", ["d0"]), held("mine", "d0"))
    evaluation = judged(framework(snapshot), claiming("mine"), snapshot)
    assert feasible(evaluation, snapshot) == ["n2"]
    assert reasons(evaluation, snapshot)["n1"] == "resourceclaim not available on the node"


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ([], 'could not find ResourceClaim "default/mine"'),
        ([make_claim("default/mine", asking(of="tpu"))], "request r: device class tpu does not exist"),
    ],
)
def test_before_any_node_is_looked_at(objects: list[Any], words: str) -> None:
    snapshot = cluster(GPUS, *objects)
    rejection = judged(framework(snapshot), claiming("mine"), snapshot).rejection
    assert rejection is not None and rejection.message == words


def test_a_pod_is_not_queued_before_its_claims_are_there() -> None:
    snapshot = cluster(GPUS)
    of = framework(snapshot)
    status = of.run_pre_enqueue(claiming("mine"))
    assert status is not None and status.message == 'could not find ResourceClaim "default/mine"'
    put(snapshot, make_claim("default/mine", asking()))
    assert of.run_pre_enqueue(claiming("mine")) is None


def test_a_claim_of_somebody_else_is_not_the_pods() -> None:
    pod, claim = generated("web", make_claim("default/web-c", asking()))
    claim["metadata"]["ownerReferences"][0]["uid"] = "another"
    snapshot = cluster(GPUS, claim)
    for minor, word in ((35, "pod"), (37, "Pod")):
        status = plugin(framework(snapshot, minor)).pre_enqueue(pod)
        assert status is not None
        assert status.message == (
            f"ResourceClaim default/web-c was not created for {word} default/web ({word} is not owner)"
        )


def test_1_35_fails_to_score_a_pod_that_has_devices_and_needs_more() -> None:
    anywhere = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "no-such-label", "operator": "DoesNotExist"}]}]}
    slices = [make_slice("n1", ["d0"]), make_slice("n2", ["d0", "d1"])]
    snapshot = cluster(GPUS, *slices, held("old", "d0", selector=anywhere), make_claim("default/new", asking()))
    for minor in (34, 36, 37):
        assert feasible(judged(framework(snapshot, minor), claiming("old", "new"), snapshot), snapshot) == ["n1", "n2"]
    failure = evaluate(framework(snapshot, 35), PodInfo(claiming("old", "new")), snapshot).failure
    assert failure is not None and failure.plugin == "DynamicResources"
    words = "number of allocations 1 is smaller than number of claims"
    assert failure.message == f'running Score plugins: plugin "DynamicResources" failed with: {words}'
    evaluation = judged(framework(snapshot, 35), claiming("old"), snapshot)
    assert feasible(evaluation, snapshot) == ["n1", "n2", "n3"]


def test_what_one_pod_was_promised_the_next_does_not_get() -> None:
    snapshot = cluster(GPUS, make_slice("n1", ["d0", "d1"]), *(make_claim(f"default/{n}", asking()) for n in "abc"))
    of = framework(snapshot)
    taken = []
    for name in "ab":
        state, status = reserve(of, claiming(name, name=f"pod-{name}"), "n1")
        assert status is None
        (charge,) = charges_of(state)
        assert charge.holder == f"uid-{name}"
        taken += charge.amounts
    assert taken == ["gpu.example.com/n1/d0", "gpu.example.com/n1/d1"]
    assert feasible(judged(of, claiming("c"), snapshot), snapshot) == []
    plugin(of).unreserve(CycleState(), PodInfo(claiming("a", name="pod-a")), NodeName("n1"))
    assert feasible(judged(of, claiming("c"), snapshot), snapshot) == ["n1"]


def test_a_claim_that_is_being_given_devices_has_to_be_waited_for() -> None:
    snapshot = cluster(GPUS, make_slice("n1", ["d0", "d1"]), make_claim("default/both", asking()))
    of = framework(snapshot)
    assert reserve(of, claiming("both", name="first"), "n1")[1] is None
    rejection = judged(of, claiming("both", name="second"), snapshot).rejection
    assert rejection is not None
    assert rejection.message == "resource claim default/both is in the process of being allocated"
    shown = make_claim("default/both", asking(), allocated=[result("d0", pool="n1")])
    put(snapshot, shown)
    assert judged(of, claiming("both", name="second"), snapshot).rejection is None


def test_what_the_binder_is_told() -> None:
    snapshot = cluster(GPUS, make_slice("n2", ["d0", "d1"]), held("has", "d0"), make_claim("default/wants", asking()))
    state, status = reserve(framework(snapshot), claiming("has", "wants"), "n2")
    assert status is None
    errand = Errand.unpacked(state.shared["DynamicResources"])
    assert [(write.key, write.allocation is not None) for write in errand.writes] == [
        ("default/wants", True),
        ("default/has", False),
    ]
    assert errand.stamped


def test_earlier_alternatives_are_liked_better() -> None:
    slices = [make_slice("n1", ["d0"]), make_slice("n2", ["d0", "d1"])]
    mine = make_claim("default/mine", one_of("r", alternative("two", 2), alternative("one", 1)))
    snapshot = cluster(GPUS, *slices, mine)
    scores = judged(framework(snapshot), claiming("mine"), snapshot).score_columns()["DynamicResources"]
    assert scores[:2].tolist() == [2 * (100 * 7 // 8), 200]


def test_devices_that_nobody_can_use_are_taken_away() -> None:
    snapshot = cluster(
        GPUS,
        held(
            "mine",
            "d0",
            selector={"nodeSelectorTerms": [{"matchExpressions": [{"key": "gone", "operator": "Exists"}]}]},
        ),
    )
    found = post_filtered(framework(snapshot), claiming("mine"), snapshot)
    assert [(each.key, each.deallocate) for each in found.deallocations] == [("default/mine", True)]
    assert found.status.message.startswith("deallocation of ResourceClaim completed")
    other = {"resource": "pods", "name": "other", "uid": "other"}
    put(
        snapshot,
        held(
            "mine",
            "d0",
            reservedFor=[other],
            selector={"nodeSelectorTerms": [{"matchExpressions": [{"key": "gone", "operator": "Exists"}]}]},
        ),
    )
    assert post_filtered(framework(snapshot), claiming("mine"), snapshot).deallocations == ()


def test_extended_resources_are_met_by_a_class() -> None:
    by_class = make_class("gpu", extendedResourceName="example.com/gpu")
    nodes = [make_node("n1"), make_node("n2", allocatable={"example.com/gpu": "1"}), make_node("n3")]
    snapshot = cluster(by_class, make_slice("n1", ["d0"]), nodes=nodes)
    pod = make_pod("default/web", requests={"example.com/gpu": "1"})
    of = framework(snapshot)
    evaluation = judged(of, pod, snapshot)
    assert feasible(evaluation, snapshot) == ["n1", "n2"]
    state, status = reserve(of, pod, "n1")
    assert status is None
    errand = Errand.unpacked(state.shared["DynamicResources"])
    assert errand.extended is not None and errand.devices is not None
    assert errand.extended.claim["metadata"]["generateName"] == "web-extended-resources-"
    assert [each.request_name for each in errand.extended.mappings] == [
        errand.extended.claim["spec"]["devices"]["requests"][0]["name"]
    ]
    on_n2, status = reserve(of, pod, "n2")
    assert status is None and not (on_n2.read(Reserved) or Reserved()).claims


def test_pods_of_a_template_are_one_class() -> None:
    pods = [generated(f"web-{n}", make_claim(f"default/web-{n}-c", asking())) for n in range(2)]
    other = generated("big", make_claim("default/big-c", asking(count=2)))
    snapshot = cluster(GPUS, *(claim for _, claim in [*pods, other]))
    of = framework(snapshot)
    one, two, big = (of.class_of(PodInfo(pod), snapshot) for pod, _ in [*pods, other])
    assert one == two != big


def _has_room(of: Framework, pod: PodInfo, snapshot: Snapshot, row: int) -> bool:
    """Whether a search that knows nothing of others of the class finds devices."""
    known = inventory.of(snapshot, of.profile.features)
    found = plugin(of)._wish(pod, plugin(of)._claims(pod.pod, snapshot), known)
    assert isinstance(found, Wish)
    return Judgement(found, known, plugin(of)._limits).allocate(snapshot.table, row) is not None


@given(st.data())
def test_what_is_kept_of_a_class_is_what_a_new_evaluation_says(data: st.DataObject) -> None:
    """Pods come, are promised devices and lose them again, claims and slices change."""
    snapshot = cluster(GPUS, make_slice("n1", ["d0", "d1"]), make_slice("n2", ["d0", "d1", "d2"]))
    put(snapshot, make_slice("", ["s0"], name="shared", pool="shared", allNodes=True))
    of = framework(snapshot)

    def judge(evaluations: Sequence[Evaluation]) -> None:
        for each in evaluations:
            each.judge_here()

    cache = EvaluationCache(snapshot, judge)
    placed: list[Any] = []
    for number in range(data.draw(st.integers(2, 8))):
        count = data.draw(st.integers(1, 2))
        pod, claim = generated(f"web-{number}", make_claim(f"default/web-{number}-c", asking(count=count)))
        put(snapshot, claim)
        info = PodInfo(pod)
        kept = cache.evaluation(of, info)
        free = [snapshot.table.names[row] for row in range(3) if _has_room(of, info, snapshot, row)]
        assert feasible(kept, snapshot) == free
        nodes = feasible(kept, snapshot)
        if nodes and data.draw(st.booleans()):
            node = data.draw(st.sampled_from(nodes))
            snapshot.table.add_pod(info, node)
            state = kept.state.clone()
            assert plugin(of).reserve(state, info, node) is None
            placed.append((info, state, node))
        elif placed and data.draw(st.booleans()):
            info, state, node = placed.pop()
            plugin(of).unreserve(state, info, node)
            snapshot.table.remove_pod(info.uid)
