"""Explanations of recorded cases say what kube-scheduler v1.34.1 said."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dsched import config
from dsched.conformance import decisions, vectors
from dsched.model import meta
from dsched.model.pod import Pod
from dsched.plugins import registry
from dsched.scheduler.memory import Memory
from dsched.simulation.explanation import Explanation, explain
from dsched.simulation.live_cluster import LiveCluster
from tests.parity.test_conformance import FAMILIES

PER_FAMILY = 12


def explained(case: Any) -> Explanation:
    configured = config.load(json.dumps(case["config"]), case["name"]) if "config" in case else config.default()
    memory = Memory()
    memory.snapshot = decisions.cluster(case)
    pod = meta.from_builtins(case["pod"], Pod)
    spec = msgspec.structs.replace(pod.spec, scheduler_name=configured.profiles[0].scheduler_name)
    return explain(configured, registry.intree(), LiveCluster(memory, msgspec.structs.replace(pod, spec=spec)))


def statuses(found: Explanation) -> dict[str, Any]:
    return {
        node.name: {
            "code": str(node.rejection.code),
            "plugin": node.rejection.plugin,
            "reasons": sorted(node.rejection.reasons),
        }
        for node in found.nodes
        if node.rejection is not None
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_family(shared: Path, family: str) -> None:
    compared = 0
    for vector in vectors.select([shared / "conformance"], [family])[:PER_FAMILY]:
        found, expect = explained(vector.case), vector.expect
        if "preEnqueue" in expect:
            assert found.gate is not None
            assert found.gate.plugin == expect["preEnqueue"]["plugin"], vector.name
            compared += 1
            continue
        filtered = {name: {**each, "reasons": sorted(each["reasons"])} for name, each in expect["filtered"].items()}
        assert statuses(found) == filtered, vector.name
        totals = {node.name: node.total for node in found.nodes if node.total is not None}
        assert totals == expect.get("totals", {}), vector.name
        for plugin, by_node in expect.get("scores", {}).items():
            scores = {node.name: node.scores[plugin].weighted for node in found.nodes if node.total is not None}
            assert scores == by_node, vector.name
        assert sorted(found.best) == expect.get("best", []), vector.name
        if found.best:
            assert found.chosen in found.best
        else:
            assert found.message.startswith(expect["fitError"]), vector.name
        compared += 1
    assert compared == PER_FAMILY
