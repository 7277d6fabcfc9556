"""A simulation says what the running system then does, line by line."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance import trace
from tests.acceptance.fixtures import MakeSystem
from tests.acceptance.system import System
from tests.redis_server import RedisServer

Json = dict[str, Any]
OF_THE_RUN = ("epoch", "tableVersion")
"""Fields of a decision that say when it was taken rather than what it was."""


@pytest.fixture
def manifests(system: System, tmp_path: Path) -> Path:
    """A folder with more pods than fit, some gated, each with a UID: the choice among equal nodes goes by it."""
    made = trace.generate(tmp_path / "trace", seed=3, nodes=40, pods=300)
    told = system.run("import", "openb", str(made.nodes), str(made.pods), "-o", "manifests")
    assert told.returncode == 0, told.stderr
    folder = system.folder / "manifests"
    pods = json.loads((folder / "pods.json").read_text())
    for number, pod in enumerate(pods["items"]):
        pod["metadata"]["uid"] = str(uuid.uuid5(uuid.NAMESPACE_DNS, pod["metadata"]["name"]))
        if number % 50 == 7:
            pod["spec"]["schedulingGates"] = [{"name": "example.com/later"}]
    (folder / "pods.json").write_text(json.dumps(pods))
    return folder


def test_a_simulation_is_what_the_system_does(
    make_system: MakeSystem, redis_server: RedisServer, system: System, manifests: Path
):
    simulated = system.run("simulate", "-f", str(manifests), "--decisions", "simulated.jsonl", "-o", "json")
    assert simulated.returncode == 0, simulated.stderr
    running = make_system("running", redis_server.url, f"simulate-{uuid.uuid4().hex}")
    # All pods are there before anybody leads: else they would be decided in the order in which they happen to arrive.
    running.ask("apply", "-f", str(manifests))
    running.worker("binder")
    running.leader("--decisions", str(running.folder / "decided.jsonl"))
    running.settle()
    assert decisions(system.folder / "simulated.jsonl") == decisions(running.folder / "decided.jsonl")
    bound = {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in running.get("pods")}
    told = {pod["key"].removeprefix("default/"): pod["node"] for pod in json.loads(simulated.stdout)["pods"]}
    assert told == bound
    assert {node != "" for node in bound.values()} == {True, False}


def decisions(path: Path) -> list[Json]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [{name: value for name, value in line.items() if name not in OF_THE_RUN} for line in lines]
