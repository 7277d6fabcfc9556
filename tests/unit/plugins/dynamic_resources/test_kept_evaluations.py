"""What is kept of a class of pods while objects come, change and go is what evaluating each pod anew says."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.engine.diagnosis import diagnose
from dsched.engine.evaluation import Evaluation, evaluate
from dsched.engine.evaluation_cache import EvaluationCache
from dsched.engine.failed_attempt import FailedAttempt
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.validation import AnsweredError
from dsched.model.meta import NodeName
from dsched.plugins.dynamic_resources import device_search, inventory
from dsched.plugins.dynamic_resources.allocation.selection import SelectorCache
from tests.builders import make_node, make_pod
from tests.devices import asking, make_claim, make_class, make_device, make_slice, result, taint_rule
from tests.unit.framework.answers import said
from tests.unit.plugins.dynamic_resources.allocation import random_devices
from tests.unit.plugins.dynamic_resources.allocation.finding import compiled
from tests.unit.plugins.dynamic_resources.judging import InTurn, claiming, cluster, framework, generated, plugin, put

Json = dict[str, Any]

HELD = result("d0", pool="p0")


def judge(evaluations: Sequence[Evaluation]) -> None:
    for each in evaluations:
        each.judge_here()


def told(found: Evaluation, snapshot: Snapshot) -> Json:
    """What it says but scores, which a single node need not have."""
    return {name: value for name, value in said(found, snapshot.table).items() if name not in ("totals", "scores")}


@pytest.mark.parametrize("elsewhere", [False, True])
@given(data=st.data())
def test_kept_is_new(elsewhere: bool, data: st.DataObject) -> None:
    """Pods of two templates and pods that share a claim; devices are taken, given back, tainted, renamed.

    Args:
        elsewhere: whatever is not told by counting is searched for elsewhere.
    """
    with pytest.MonkeyPatch.context() as patch:
        if elsewhere:
            patch.setattr(device_search, "MOST_S", -1.0)
        _kept_is_new(data, InTurn() if elsewhere else None)


def _kept_is_new(data: st.DataObject, searches: InTurn | None) -> None:
    slices = data.draw(random_devices.clusters(plain=data.draw(st.booleans())))
    snapshot = cluster(make_class("gpu"), *slices, make_claim("default/shared", asking()))
    of = framework(snapshot, searches=searches)
    inventory.of(snapshot, of.profile.features).selectors = SelectorCache(compiled)
    templates = [data.draw(random_devices.claims(plain=plain))[0]["spec"] for plain in (True, False)]
    cache = EvaluationCache(snapshot, judge)
    placed: list[Any] = []
    for number in range(data.draw(st.integers(2, 10))):
        kind = data.draw(st.sampled_from([0, 0, 0, 1, 2]))
        if kind == 2:
            pod = claiming("shared", name=f"web-{number}")
        else:
            claim = make_claim(f"default/web-{number}-c") | {"spec": templates[kind]}
            pod, claim = generated(f"web-{number}", claim)
            put(snapshot, claim)
        info = PodInfo(pod)
        kept = cache.evaluation(of, info)
        while searches is not None and searches.do():
            kept = cache.evaluation(of, info)
        assert told(kept, snapshot) == told(evaluate(framework(snapshot), info, snapshot), snapshot)
        change = data.draw(st.sampled_from(["place", "place", "unplace", "hold", "slice", "class", "taint", "share"]))
        feasible = [] if kept.failure else [snapshot.table.names[row] for row in kept.best_rows()]
        if change == "place" and feasible:
            node = NodeName(data.draw(st.sampled_from(feasible)))
            snapshot.table.add_pod(info, node)
            state = kept.state.clone()
            assert plugin(of).reserve(state, info, node) is None
            placed.append((info, state, node))
        elif change == "unplace" and placed:
            info, state, node = placed.pop()
            plugin(of).unreserve(state, info, node)
            snapshot.table.remove_pod(info.uid)
        elif change == "hold":
            taken = data.draw(st.sampled_from([[], [HELD]]))
            put(snapshot, make_claim("default/other", asking(), allocated=taken))
        elif change == "slice":
            put(snapshot, make_slice(data.draw(st.sampled_from(["n1", "n3"])), ["d0", "d9"], name="p0-0", pool="p0"))
        elif change == "class":
            put(snapshot, make_class("gpu", *data.draw(st.sampled_from([["any"], ["model=a"], []]))))
        elif change == "taint":
            put(snapshot, taint_rule("x", device=data.draw(st.sampled_from(["d0", "d1"]))))
        elif change == "share":
            allocated = data.draw(st.sampled_from([[], [HELD]]))
            put(snapshot, make_claim("default/shared", asking(), allocated=allocated))


def test_claims_of_other_pods_are_no_reason_to_evaluate_anew() -> None:
    snapshot = cluster(make_class("gpu"), make_slice("n1", ["d0", "d1"]), make_slice("n2", ["d0", "d1"]))
    of, cache = framework(snapshot), EvaluationCache(snapshot, judge)
    found = []
    for name in ("one", "two"):
        pod, claim = generated(name, make_claim(f"default/{name}-c", asking()))
        put(snapshot, claim, make_claim(f"default/other-{name}", asking(), allocated=[result("d0")]))
        found.append(cache.evaluation(of, PodInfo(pod)))
    assert found[0] is found[1]


def test_an_error_that_comes_with_a_change_is_about_the_pod_itself() -> None:
    """Filter failed for the second pod of a template in words about the claim of the first."""
    numa = [make_device(name, attributes={"gpu.example.com/numa": 0}) for name in ("d0", "d1")]
    snapshot = cluster(make_class("gpu"), make_slice("n1", numa))
    of, cache = framework(snapshot), EvaluationCache(snapshot, judge)
    found = []
    for name in ("one", "two"):
        pod, claim = generated(
            name,
            make_claim(
                f"default/{name}-c", asking(count=None), constraints=[{"matchAttribute": "gpu.example.com/numa"}]
            ),
        )
        put(snapshot, claim)
        found.append(cache.evaluation(of, PodInfo(pod)).failure)
        put(snapshot, make_slice("n1", ["d0", "d1"]))
    assert found[0] is None
    assert found[1] is not None and "claim default/two-c" in found[1].reasons[0]


@pytest.mark.parametrize("preempts", [False, True])
def test_a_trial_speaks_of_the_claims_of_the_pod_that_is_tried(preempts: bool) -> None:
    """Though pods of a class share what nodes were told, where that names no claim."""
    failing = asking(where=['device.attributes["gpu.example.com"].nothing == 1'])
    snapshot = cluster(make_class("gpu"), make_slice("n1", ["d1"]), nodes=[make_node("n1", pods=1)])
    low = PodInfo(make_pod("default/low"))
    snapshot.table.add_pod(low, NodeName("n1"))
    of = framework(snapshot, 37, {"DschedDevicePreemption": preempts})
    cache = EvaluationCache(snapshot, judge)
    made = [generated(name, make_claim(f"default/{name}-claim", failing)) for name in ("one", "two")]
    put(snapshot, *(claim for _, claim in made))
    evaluated = [(info, cache.evaluation(of, info)) for info in (PodInfo(pod) for pod, _ in made)]
    for info, evaluation in evaluated:
        attempt = FailedAttempt(of, evaluation.state, info, snapshot, evaluation, diagnose(evaluation, 1))
        named = f"^claim {info.key}-claim: selector #0"
        with attempt.try_on(0) as trial, pytest.raises(AnsweredError, match=named):
            trial.remove(low)
            trial.status()
