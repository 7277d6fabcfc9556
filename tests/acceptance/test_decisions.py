"""Where classes of pods are judged makes no difference: line by line the same decisions."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from dsched.state import client, keys
from tests.acceptance import trace
from tests.acceptance.fixtures import MakeSystem
from tests.acceptance.system import System
from tests.redis_server import RedisServer

Json = dict[str, Any]
OF_THE_RUN = ("epoch", "tableVersion")
"""Fields of a decision that say when it was taken rather than what it was."""


@pytest.fixture
def manifests(make_system: MakeSystem, tmp_path: Path) -> Path:
    """A folder with more pods than fit, each with a UID: the choice among equal nodes goes by it."""
    made = trace.generate(tmp_path / "trace", seed=2, nodes=150, pods=1000)
    importing = make_system("importing")
    told = importing.run("import", "openb", str(made.nodes), str(made.pods), "-o", "manifests")
    assert told.returncode == 0, told.stderr
    folder = importing.folder / "manifests"
    pods = json.loads((folder / "pods.json").read_text())
    for pod in pods["items"]:
        pod["metadata"]["uid"] = str(uuid.uuid5(uuid.NAMESPACE_DNS, pod["metadata"]["name"]))
    (folder / "pods.json").write_text(json.dumps(pods))
    return folder


def test_local_and_distributed_decide_the_same(make_system: MakeSystem, redis_server: RedisServer, manifests: Path):
    decided: dict[str, list[Json]] = {}
    for mode in ("local", "distributed"):
        system = make_system(mode, redis_server.url, f"decisions-{uuid.uuid4().hex}")
        # All pods are there before anybody leads: else they would be decided in the order in which they happen to
        # arrive. And so are the workers: a leader without evaluators judges everything itself.
        system.ask("apply", "-f", str(manifests))
        system.worker("evaluator")
        system.worker("binder")
        file = system.folder / "decisions.jsonl"
        system.leader("--mode", mode, "--decisions", str(file))
        system.settle()
        decided[mode] = [json.loads(line) for line in file.read_text().splitlines()]
        log = (system.data_dir / "logs" / "leader.log").read_text()
        assert "action=fallback" not in log, "evaluators did not answer"
        assert asked_evaluators(redis_server, system) == (mode == "distributed")
    local, distributed = ([_what(line) for line in lines] for lines in decided.values())
    assert distributed == local
    assert [line["sequence"] for line in local] == list(range(1, len(local) + 1))
    # All kinds of decisions were taken: by the choice among equals, by score alone, and that nothing fits.
    assert any("best" in line for line in local)
    assert any("node" in line and "best" not in line for line in local)
    assert any("diagnosis" in line for line in local)


def asked_evaluators(server: RedisServer, system: System) -> bool:
    """Whether the leader has written the log that evaluators' copies of the node table follow."""
    store = client.connect(server.url, system.name or "")
    try:
        return bool(store.redis.exists(store.key(keys.NODES_LOG.name)))
    finally:
        store.close()


def _what(line: Json) -> Json:
    return {name: value for name, value in line.items() if name not in OF_THE_RUN}
