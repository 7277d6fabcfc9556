"""Workers that have another version of a plugin's file are told apart, say so, and decide and bind nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dsched.cluster.standalone.applying import Applier
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.state import leaders
from dsched.state.client import Store
from dsched.supervisor import commands
from tests.integration.workers.processes import WorkerProcess, Workers, wait_until
from tests.manifests import loaded, node_manifest, pod_manifest

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    filter: {enabled: [{name: Quiet}]}
"""
CODE = """
class Quiet:
    name = "Quiet"

    def __init__(self, args, handle):
        pass

    def filter(self, state, pod, node):
        return None
"""


def installed(folder: Path, code: str) -> str:
    """The package as an installer leaves it; the PYTHONPATH with which it is found."""
    metadata = folder / "quiet-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / "quiet_plugin.py").write_text(code)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: quiet\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[dsched.plugins]\nQuiet = quiet_plugin:Quiet\n")
    return os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))


def status(store: Store) -> str:
    """What ``dsched status`` prints."""
    command = [sys.executable, "-m", "dsched", "status", "--redis-url", store.url, "--name", store.name]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout


def test_a_worker_with_another_version_of_a_plugin_is_told_apart(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_text(CONFIGURATION)
    old, new = installed(tmp_path / "old", CODE), installed(tmp_path / "new", CODE + "# another line\n")
    farm = Workers(store, tmp_path, path)
    system = commands.System(tmp_path, redis_url=store.url, name=store.name, config=path, mode="distributed")
    (spec,) = [spec for spec in commands.specs(system) if spec.name == "leader-1"]
    environment = commands.environment(system, store.url)
    leader = WorkerProcess("leader-1", spec.command, {**environment, "PYTHONPATH": new}, tmp_path)
    try:
        monkeypatch.setenv("PYTHONPATH", new)
        farm.start("evaluator-1")
        monkeypatch.setenv("PYTHONPATH", old)
        farm.start("evaluator-2", "binder-1")
        monkeypatch.undo()
        found = wait_until("it is noticed", lambda: all(farm.known()[name].trouble for name in OLD) and farm.known())
        (noted,) = leaders.read(store)
        assert found["evaluator-1"].config == noted.config
        assert found["evaluator-1"].trouble == ""
        for name in OLD:
            assert found[name].config != noted.config
            assert "leader and worker differ in version or plugins" in found[name].trouble
            assert found[name].trouble.count("Quiet: quiet 1.0 ") == 2, "its own and the leader's"
        lines = status(store).splitlines()
        for name in ("evaluator-1", "evaluator-2", "binder-1"):
            (line,) = [line for line in lines if line.startswith(f"{name}@")]
            assert ("(not the leader's)" in line) is (name in OLD)
        Applier(store).apply(loaded(tmp_path, node_manifest("n1"), pod_manifest("default/web")))
        cluster = StandaloneCluster(store)
        wait_until("it is decided", lambda: store.redis.hlen(store.key("reservations")))
        assert cluster.list().pods[0].node_name == "", "nobody binds it"
        monkeypatch.setenv("PYTHONPATH", new)
        farm.start("binder-2")
        wait_until("it is bound", lambda: cluster.list().pods[0].node_name == "n1", 60.0)
    finally:
        leader.stop()
        farm.stop()


OLD = ("evaluator-2", "binder-1")
