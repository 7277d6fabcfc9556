"""Groups of scheduler-plugins in a standalone system: gate ``DschedCoscheduling``."""

from typing import Any

import pytest

from dsched import config
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.config import Features
from dsched.model.coscheduling import API_VERSION, GATE, LABEL
from tests.integration.leader.checker import Checker
from tests.integration.leader.rig import Rig
from tests.integration.leader.test_pod_groups import GROUP, beside, bound, queue_of
from tests.manifests import node_manifest, pod_manifest
from tests.unit.scheduler.grouped import features


def group(min_member: int = 3, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "train", "namespace": "default"}
    return {
        "apiVersion": API_VERSION,
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": {"minMember": min_member, **spec},
    }


def members(count: int, start: int = 0, **spec: Any) -> list[dict[str, Any]]:
    pods = [pod_manifest(f"default/train-{number}", **spec) for number in range(start, start + count)]
    for pod in pods:
        pod["metadata"]["labels"] = {LABEL: "train"}
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1"
    return pods


def with_gate(rig: Rig, *, on: bool) -> None:
    base = features()
    rig.configuration = config.default(Features(base.version, base.on | ({GATE} if on else set())))
    rig.cluster = StandaloneCluster(rig.store, rig.clock, coscheduling=on)


def test_labelled_pods_are_bound_together(rig: Rig, check: Checker) -> None:
    with_gate(rig, on=True)
    rig.apply(node_manifest("n1"), group(), *members(2, priority=5))
    led = rig.lead()
    led.run()
    assert queue_of(rig, GROUP) == "gated" and beside(rig) == ["default/train-0", "default/train-1"]
    check.settled()
    rig.apply(*members(1, start=2, priority=5))
    led.run()
    assert bound(rig, 3) == ["n1"] * 3
    check.at_rest()


@pytest.mark.parametrize("cpu", ["2", "3"])
def test_all_are_bound_or_none(rig: Rig, cpu: str, check: Checker) -> None:
    with_gate(rig, on=True)
    rig.apply(node_manifest("n1", cpu=cpu), group(), *members(3))
    rig.lead().run()
    assert bound(rig, 3) == (["n1"] * 3 if cpu == "3" else [""] * 3)
    check.settled()


def test_without_the_gate_a_label_is_a_label(rig: Rig) -> None:
    with_gate(rig, on=False)
    rig.apply(node_manifest("n1", cpu="2"), group(), *members(3))
    rig.lead().run()
    assert sorted(map(str, bound(rig, 3))) == ["", "n1", "n1"]
