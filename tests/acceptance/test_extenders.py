"""A running system whose configuration names extenders, one of them dead; what simulate and explain say of them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.system import System
from tests.extender import TestExtender, keeping, scoring
from tests.integration.extenders.conftest import named, text
from tests.manifests import node_manifest, pod_manifest

NODES = [node_manifest(name) for name in ("n1", "n2", "n3")]
WEB, DB = pod_manifest("default/web"), pod_manifest("default/db", nodeSelector={"disk": "ssd"})


@pytest.fixture
def extender() -> Iterator[TestExtender]:
    """Lets no pod onto n3, likes n2 best, and leaves binding to others."""

    def filter(question: Any) -> Any:
        return keeping(question, "n1", "n2", FailedNodes={"n3": "no licence"})

    server = TestExtender(filter=filter, prioritize=scoring({"n2": 10}), bind=lambda question: {"Error": "not mine"})
    yield server
    server.stop()


def test_a_system_with_extenders(system: System, extender: TestExtender) -> None:
    dead = TestExtender()
    dead.stop()
    config = system.folder / "scheduler.yaml"
    config.write_text(
        text(
            named(dead, "filter", "prioritize", "preempt", ignorable=True),
            named(extender, "filter", "prioritize", "bind", nodeCacheCapable=True, weight=10, ignorable=True),
        )
    )
    assert "ok" in system.run("config", "check", str(config)).stdout
    simulated = system.run(
        "simulate", "--config", str(config), "-f", "-", "-o", "json", stdin=json.dumps({"items": [*NODES, WEB]} | LIST)
    )
    assert simulated.returncode == 0, simulated.stderr
    assert '"n2"' in simulated.stdout

    system.up("--config", str(config), "--evaluators", "1", "--binders", "1")
    system.apply(*NODES, WEB, DB)
    system.settle()
    pods = {pod["metadata"]["name"]: pod for pod in system.get("pods")}
    assert pods["web"]["spec"]["nodeName"] == "n2"
    assert not pods["db"]["spec"].get("nodeName")
    sent = {question["Pod"]["metadata"]["uid"] for verb, question in extender.asked if verb == "filter"}
    assert pods["web"]["metadata"]["uid"] in sent
    bound = [question for verb, question in extender.asked if verb == "bind"]
    assert [(each["PodName"], each["Node"]) for each in bound] == [("web", "n2")]

    words = ("explain", "pod", "web", "--config", str(config))
    told = json.loads(system.ask(*words, "-o", "json"))
    by = f"Extender {extender.url}"
    assert told["filtered"]["n3"] == {"code": "Unschedulable", "plugin": by, "reasons": ["no licence"]}
    assert told["scores"]["n2"][by] == {"raw": 10, "normalised": 100, "weighted": 1000}
    assert told["chosen"] == "n2"
    table = system.ask(*words)
    assert f"{by} x10" in table
    assert "no licence" in table


LIST = {"apiVersion": "v1", "kind": "List"}
