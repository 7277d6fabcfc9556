"""Which pods with claims are evaluated together; that it is right is compared in tests/parity."""

from typing import Any

import numpy as np
import pytest

from dsched.arithmetic import matching
from dsched.engine.evaluation import Evaluation, evaluate
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Rows, Verdict
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model.meta import NodeName
from dsched.plugins.node_ports import NodePorts
from tests.builders import make_node, make_term
from tests.storage import (
    ZONE,
    claiming,
    csi,
    info,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
    put,
    with_volumes,
    world,
)
from tests.unit.framework.answers import said
from tests.unit.framework.frameworks import Handle, default_framework, framework_of
from tests.unit.scheduler.test_cycle import AssumingSnapshot, Candidate, Selector, cycle_of

DRIVER = "disk.example.com"


def bound(name: str, handle: str = "", modes: tuple[str, ...] = ("ReadWriteOnce",), **volume: Any) -> list[Any]:
    """A claim and its volume."""
    claim = make_claim(f"shop/{name}", volume=f"pv-{name}", modes=modes)
    return [claim, make_volume(f"pv-{name}", claim=claim, csi=csi(DRIVER, handle or name), **volume)]


def limited(limit: int, nodes: int = 2) -> Snapshot:
    names = [f"n{number}" for number in range(1, nodes + 1)]
    return world([make_node(name) for name in names], (), *(make_csi_node(name, {DRIVER: limit}) for name in names))


def pod(*claims: str, name: str = "") -> PodInfo:
    return info(claiming(*claims, key=f"shop/pod-{name or '-'.join(claims)}"))


def together(snapshot: Snapshot, *pods: PodInfo) -> bool:
    framework = default_framework(Handle(snapshot))
    return len({framework.class_of(each, snapshot) for each in pods}) == 1


def test_claims_of_their_own_are_alike() -> None:
    snapshot = limited(5)
    put(snapshot, *bound("a"), *bound("b"))
    assert together(snapshot, pod("a"), pod("b"))
    assert pod("a").class_key != pod("b").class_key
    assert not together(snapshot, pod("a"), pod("a", "b"))


def test_a_claim_in_use_is_itself_where_a_node_may_be_full() -> None:
    snapshot = limited(2)
    put(snapshot, *bound("a"), *bound("b"), *bound("c"))
    snapshot.table.add_pod(pod("a", name="first"), NodeName("n1"))
    assert together(snapshot, pod("a"), pod("b"))
    snapshot.table.add_pod(pod("c", name="second"), NodeName("n1"))
    assert not together(snapshot, pod("a"), pod("b"))


def test_so_is_one_whose_volume_others_have() -> None:
    snapshot = limited(1)
    put(snapshot, *bound("a"), *bound("b"), *bound("c", handle="a"), make_claim("shop/d", volume="pv-b"))
    put(snapshot, *bound("e"), *bound("f"))
    snapshot.table.add_pod(pod("f", name="first"), NodeName("n1"))
    framework = default_framework(Handle(snapshot))
    named = [framework.class_of(pod(name), snapshot).claims is None for name in "abcdef"]
    assert named == [True, True, True, True, False, True]


def test_so_is_one_that_a_promised_pod_has() -> None:
    """Its node may be full with it."""
    snapshot = limited(5)
    put(snapshot, *bound("a"), *bound("b"), *bound("c"))
    snapshot.nominations.set(pod("a", name="promised"), NodeName("n1"))
    assert not together(snapshot, pod("a"), pod("b"))
    assert together(snapshot, pod("b"), pod("c"))


INLINE = {"awsElasticBlockStore": {"volumeID": "vol"}}


@pytest.mark.parametrize("promised", [False, True])
def test_so_is_any_where_a_node_may_be_full_and_pods_describe_volumes_themselves(promised: bool) -> None:
    snapshot = limited(5 if promised else 1)
    put(snapshot, *bound("a"), *bound("b"), *bound("c"))
    other = info(with_volumes(INLINE, key="shop/other"))
    if promised:
        snapshot.nominations.set(other, NodeName("n1"))
    else:
        snapshot.table.add_pod(other, NodeName("n1"))
    assert not together(snapshot, pod("a"), pod("b"))


def test_so_is_one_that_was_made_for_another_pod() -> None:
    snapshot = limited(1)
    owner = with_volumes({"ephemeral": {}}, key="shop/owner")
    _, volume = bound("owner-v0")
    put(snapshot, make_claim("shop/owner-v0", volume="pv-owner-v0", owner=owner), volume, *bound("b"))
    snapshot.table.add_pod(info(owner), NodeName("n1"))
    assert not together(snapshot, pod("owner-v0"), pod("b"))


def test_one_that_only_one_pod_may_use_is_itself() -> None:
    snapshot = limited(5)
    put(snapshot, *bound("a", modes=("ReadWriteOncePod",)), *bound("b", modes=("ReadWriteOncePod",)))
    assert not together(snapshot, pod("a"), pod("b"))


def test_so_is_one_that_waits_or_is_not_there() -> None:
    snapshot = limited(5)
    put(snapshot, make_class(), make_claim("shop/a"), make_claim("shop/b"))
    assert not together(snapshot, pod("a"), pod("b"))
    assert not together(snapshot, pod("c"), pod("d"))


@pytest.mark.parametrize("volume", [{"labels": {ZONE: "b"}}, {"terms": [make_term(f"{ZONE} In b")]}])
def test_it_matters_where_the_volume_is(volume: dict[str, Any]) -> None:
    snapshot = limited(5)
    put(snapshot, *bound("a"), *bound("b", **volume), *bound("c", **volume))
    assert not together(snapshot, pod("a"), pod("b"))
    assert together(snapshot, pod("b"), pod("c"))


def test_the_second_of_a_batch_does_not_fit_where_the_first_took_the_last_attachment() -> None:
    """Both are of one class, and what was said to the first was said before it was placed."""
    cache = AssumingSnapshot(limited(1))
    put(cache.snapshot, *bound("a"), *bound("b"), *bound("c"))
    cycle = cycle_of(cache, {"default-scheduler": default_framework(Handle(cache.snapshot))}, Selector(1))
    decisions = cycle.decide([Candidate(pod(name), 1) for name in "abc"])
    assert sorted(str(decision.node) for decision in decisions[:2]) == ["n1", "n2"]
    assert decisions[2].diagnosis is not None
    assert decisions[2].diagnosis.unschedulable_plugins == {"NodeVolumeLimits"}


def test_what_was_said_beside_a_promised_pod_is_forgotten_when_the_promise_ends() -> None:
    """It uses the claim, which only one pod may use; and the volume is elsewhere, which is what is said afterwards. The
    pod has a disk, too, or nobody would ask about the promised one."""
    snapshot = limited(5, nodes=1)
    put(snapshot, *bound("a", modes=("ReadWriteOncePod",), terms=[make_term(f"{ZONE} In b")]))
    framework = default_framework(Handle(snapshot))
    promised = pod("a", name="promised")
    snapshot.nominations.set(promised, NodeName("n1"))
    claim, disk = {"persistentVolumeClaim": {"claimName": "a"}}, {"awsElasticBlockStore": {"volumeID": "disk"}}
    asking = info(with_volumes(claim, disk, key="shop/asking"))
    kept = Evaluation(framework, asking, snapshot, shared=True)
    kept.judge_here()
    assert said(kept, snapshot.table)["plugins"] == {"VolumeRestrictions"}
    snapshot.nominations.drop(promised.uid)
    assert kept.refresh()
    assert said(kept, snapshot.table) == said(evaluate(framework, asking, snapshot), snapshot.table)


class Nosy(NodePorts):
    """Looks at claims, which the plugin that it is made from does not."""

    def filter_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> Verdict:
        return Verdict(np.zeros(matching.count(rows), dtype=np.int32), ())


class Odd(NodePorts):
    claim_blind = False
    answer: Any = None

    def claims_meaning(self, pod: PodInfo, snapshot: Snapshot) -> Any:
        if self.answer == "fail":
            raise ValueError("no")
        return self.answer


@pytest.mark.parametrize(
    ("plugin", "answer", "alike"),
    [(NodePorts, None, True), (Nosy, None, False)]
    + [(Odd, answer, alike) for answer, alike in ((None, False), ("fail", False), ([], False), ("same", True))],
)
def test_a_plugin_that_says_nothing_of_claims_looks_at_their_names(
    plugin: type[NodePorts], answer: Any, alike: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As does one that fails to say, or inherits what was said of methods that it overrides. Where labels count, names
    do."""
    monkeypatch.setattr(Odd, "answer", answer)
    monkeypatch.setattr(Nosy, "label_blind", True)
    snapshot = limited(5)
    framework = framework_of(plugin, handle=Handle(snapshot))
    first, second = (framework.class_of(pod(name), snapshot) for name in "ab")
    assert (first == second) is alike
    assert (first.key == second.key) is alike
