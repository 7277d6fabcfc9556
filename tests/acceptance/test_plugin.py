"""A plugin of another package takes part in all processes."""

import shutil
import time
from pathlib import Path

import pytest

from tests.acceptance import processes
from tests.acceptance.fixtures import MakeSystem
from tests.acceptance.system import System
from tests.manifests import node_manifest, pod_manifest

PLUGIN = Path(__file__).with_name("plugin")
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      enabled: [{name: EvenNodes}]
"""


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """The folder in which the plugin leaves word."""
    folder = tmp_path / "journal"
    folder.mkdir()
    return folder


@pytest.fixture
def system(make_system: MakeSystem, tmp_path: Path, journal: Path) -> System:
    """A system into whose Python the plugin's package is installed."""
    installed = tmp_path / "site"
    shutil.copytree(PLUGIN, installed, ignore=shutil.ignore_patterns("__pycache__"))
    metadata = installed / "even_nodes-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: even-nodes\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[dsched.plugins]\nEvenNodes = even_nodes:EvenNodes\n")
    path = ":".join(filter(None, (str(installed), System(tmp_path / "plain").environment.get("PYTHONPATH"))))
    made = make_system(PYTHONPATH=path, EVEN_NODES_JOURNAL=str(journal))
    (made.folder / "scheduler.yaml").write_text(CONFIG)
    return made


def pids(journal: Path, point: str) -> set[int]:
    """Processes in which the plugin was asked at an extension point."""
    return {int(path.name.rpartition("-")[2]) for path in journal.glob(f"{point}-*")}


def test_leader_evaluators_and_binders_ask_it(system: System, journal: Path):
    system.up("--config", "scheduler.yaml", "--mode", "distributed", "--evaluators", "2", "--binders", "1")
    system.apply(*(node_manifest(f"n{number}") for number in range(10)))
    system.apply(*(pod_manifest(f"default/web-{number}") for number in range(20)))
    system.apply(pod_manifest("default/stuck", nodeSelector={"kubernetes.io/none": "none"}))
    system.settle()
    nodes = {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in system.get("pods")}
    assert nodes.pop("stuck") == ""
    assert {int(node[1:]) % 2 for node in nodes.values()} == {0}
    running = system.pids()

    def pool(worker: str) -> set[int]:  # which a worker that has only just begun does not have yet
        return set(processes.children(running[worker]))

    for evaluator in ("evaluator-1", "evaluator-2"):
        more, until = 0, time.monotonic() + 60
        while not pool(evaluator) & pids(journal, "filter"):  # the leader may not have known of it yet
            assert time.monotonic() < until, f"{evaluator} did not ask the plugin"
            more += 1  # of a class of its own: what is known of a class, nobody is asked again
            resources = {"requests": {"cpu": f"{more}m"}}
            containers = [{"name": "main", "image": "nginx", "resources": resources}]
            system.apply(pod_manifest(f"default/more-for-{evaluator}-{more}", containers=containers))
            system.settle()
    assert pids(journal, "reserve") == {running["leader-1"]}
    assert pids(journal, "pre_bind") <= pool("binder-1")
    assert pids(journal, "pre_bind")
    assert not pids(journal, "unreserve")


def test_its_reason_is_told(system: System):
    system.up("--config", "scheduler.yaml", "--evaluators", "0", "--binders", "1")
    system.apply(node_manifest("n1"), pod_manifest("default/web"))
    system.settle()
    assert "0/1 nodes are available: 1 node(s) had an odd number." in system.ask("get", "pods", "-o", "wide")
    system.apply(node_manifest("n2"))
    system.told("wait", "--for", "scheduled", "--timeout", "60")


def test_a_plugin_that_is_not_there_is_refused_before_anything_starts(make_system: MakeSystem):
    plain = make_system()
    (plain.folder / "scheduler.yaml").write_text(CONFIG)
    told = plain.run("up", "--detach", "--config", "scheduler.yaml", *plain.where())
    assert told.returncode == 1
    assert "EvenNodes" in told.stderr
    assert not plain.data_dir.exists()
