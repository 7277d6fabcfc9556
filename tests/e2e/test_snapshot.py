"""A snapshot of a live cluster, simulated, says what the scheduler then does there."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.acceptance.system import environment
from tests.e2e.apiserver import ApiServer
from tests.e2e.cluster import Cluster, make_node, make_pod, scheduled_condition
from tests.e2e.processes import Processes

ZONE = "topology.kubernetes.io/zone"
SECRET = "hunter2"
Json = dict[str, Any]


def dsched(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "dsched", *words],
        env=environment(),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def workload() -> list[Json]:
    """Pods of all kinds, more than fit; the first one needs a volume."""
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }
    pods = [make_pod("volume", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])]
    pods += [make_pod(f"web-{n}", "500m", labels={"app": "web"}, topologySpreadConstraints=[spread]) for n in range(7)]
    pods += [make_pod(f"db-{n}", "700m", labels={"app": "db"}, affinity=apart) for n in range(8)]
    pods += [make_pod(f"any-{n}", "300m") for n in range(5)] + [make_pod("gpu", nodeSelector={"gpu": "yes"})]
    for pod in pods:
        pod["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": SECRET}]
        pod["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": SECRET}
    return pods


def volumes(cluster: Cluster) -> None:
    """A volume that one node can reach, and its claim."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n4"]}]}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
    name = f"disk-{cluster.namespace}"
    cluster.storage.create_storage_class(
        {"metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner"},
    )
    claim = cluster.core.create_namespaced_persistent_volume_claim(
        cluster.namespace,
        {
            "metadata": {"name": "data", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {**spec, "volumeName": name, "resources": {"requests": {"storage": "1Gi"}}},
        },
    )
    cluster.core.create_persistent_volume(
        {
            "metadata": {"name": name},
            "spec": {
                **spec,
                "capacity": {"storage": "1Gi"},
                "local": {"path": "/data"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
                "claimRef": {"namespace": cluster.namespace, "name": "data", "uid": claim.metadata.uid},
            },
        }
    )


def test_a_snapshot_simulated_is_what_the_live_scheduler_decides(
    api_server: ApiServer, cluster: Cluster, processes: Processes, tmp_path: Path
):
    cluster.add_nodes(*(make_node(f"n{n}", "2", pods="20", labels={ZONE: f"z{n % 3}"}) for n in range(6)))
    volumes(cluster)
    first, *others = workload()
    cluster.add_pods(first)
    cluster.add_pods(*others)
    told = dsched(
        tmp_path, "snapshot", "--from-kubernetes", "--kubeconfig", str(api_server.kubeconfig), "-o", "now.json"
    )
    assert told.startswith("now.json: ")
    assert "6 nodes" in told
    assert SECRET not in (tmp_path / "now.json").read_text()
    full = dsched(
        tmp_path,
        "snapshot",
        "--from-kubernetes",
        "--kubeconfig",
        str(api_server.kubeconfig),
        "--full",
        "--format",
        "json",
    )
    assert SECRET not in full
    assert "PASSWORD" in full
    assert "managedFields" not in full
    kinds = {each["kind"] for each in json.loads(full)["items"]}
    assert {"Pod", "Node", "StorageClass", "PersistentVolume", "PersistentVolumeClaim", "Namespace"} <= kinds
    assert not kinds & {"Secret", "ConfigMap"}
    (tmp_path / "full.json").write_text(full)
    config = tmp_path / "scheduler.yaml"
    config.write_text(processes._configuration.read_text())
    simulated, of_all = (
        json.loads(dsched(tmp_path, "simulate", "-f", name, "--config", str(config), "-o", "json"))
        for name in ("now.json", "full.json")
    )
    assert simulated == of_all
    processes.start(binders=1, evaluators=0)
    outcomes = {
        pod["key"].partition("/")[2]: pod for pod in simulated["pods"] if pod["key"].startswith(cluster.namespace)
    }
    assert len(outcomes) == len(workload())
    placed = {name: pod["node"] for name, pod in outcomes.items() if pod["ending"] == "placed"}
    assert placed["volume"] == "n4"
    assert 0 < len(placed) < len(outcomes)
    assert cluster.wait_placed(*placed) == placed
    for name in outcomes.keys() - placed.keys():
        assert cluster.wait_unschedulable(name)
        assert scheduled_condition(cluster.pod(name))["status"] == "False"
    assert cluster.placed() == placed
