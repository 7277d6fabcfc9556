"""``dsched simulate``: no Redis is there."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from dsched.cli.main import app
from dsched.errors import ConfigError, ManifestError
from tests.manifests import node_manifest, other_manifest, pod_manifest, resizing_manifest

Json = dict[str, Any]
Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("DSCHED_REDIS_URL", "redis://127.0.0.1:1/0")
    monkeypatch.delenv("DSCHED_CONFIG", raising=False)

    def run(*words: object, stdin: str | None = None) -> Result:
        result = CliRunner().invoke(app, ["simulate", *map(str, words)], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def file(folder: Path, name: str, *objects: Json) -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump_all(objects))
    return path


def sized(key: str, cpu: str, **spec: Any) -> Json:
    pod = pod_manifest(key, **spec)
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    return pod


def told(result: Result) -> list[str]:
    """Lines with single blanks between words."""
    assert result.exit_code == 0, result.output
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    return file(
        tmp_path, "cluster.yaml", node_manifest("n1"), node_manifest("n2"), sized("shop/low", "3", nodeName="n1")
    )


def test_what_goes_where(run: Run, cluster: Path, tmp_path: Path) -> None:
    pods = file(
        tmp_path,
        "pods.yaml",
        sized("shop/web", "2"),
        sized("shop/big-1", "9"),
        sized("shop/big-2", "9"),
        sized("shop/later", "1", schedulingGates=[{"name": "example.com/later"}]),
        sized("shop/other", "1", schedulerName="other"),
    )
    lines = told(run("-f", cluster, "-f", pods))
    assert lines[0] == "5 pods: 1 placed, 2 unschedulable, 1 gated, 1 ignored"
    assert "cpu 3 (37.5%) 5 (62.5%) 8" in lines
    assert "pods 1 (0.5%) 2 (0.9%) 220" in lines
    assert lines[lines.index("Nodes:") + 1 :][:2] == ["NODE CAME CPU MEMORY PODS", "n2 +1 2/4 0/8Gi 1/110"]
    assert lines[lines.index("Unschedulable:") + 1].startswith(
        "shop/big-1, shop/big-2: 0/2 nodes are available: 2 Insufficient cpu."
    )
    gate = "waiting for scheduling gates: [example.com/later]"
    assert lines[lines.index("Gated:") + 1] == f"shop/later: SchedulingGates: {gate}"
    assert lines[lines.index("Ignored:") + 1] == 'shop/other: schedulerName "other" is none of default-scheduler'


def test_pods_that_have_to_go(run: Run, cluster: Path, tmp_path: Path) -> None:
    high = other_manifest("PriorityClass", "scheduling.k8s.io/v1", "high", value=1000)
    pods = [sized(f"shop/high-{number}", "4", priorityClassName="high") for number in range(2)]
    lines = told(run("-f", cluster, "-f", file(tmp_path, "pods.yaml", high, *pods)))
    assert lines[0] == "3 pods: 2 placed, 1 evicted"
    assert lines[lines.index("Evicted:") + 1 :][0] == "POD NODE FOR"
    assert lines[lines.index("Evicted:") + 2].startswith("shop/low n1 shop/high-")


def test_wide_lists_every_pod_and_node(run: Run, cluster: Path, tmp_path: Path) -> None:
    pods = [sized(f"shop/p{number:02}", "100m") for number in range(30)]
    nodes = [node_manifest(f"m{number:02}") for number in range(30)]
    path = file(tmp_path, "pods.yaml", *pods, *nodes)
    lines = told(run("-f", cluster, "-f", path))
    assert any(line.startswith("… ") and line.endswith(" more; -o wide lists all") for line in lines)
    lines = told(run("-f", cluster, "-f", path, "-o", "wide"))
    assert not any(line.startswith("…") for line in lines)
    placements = lines[lines.index("Placements:") + 1 :]
    assert placements[0] == "POD NODE ATTEMPTS"
    assert sorted(line.split()[0] for line in placements[1:]) == [f"shop/p{number:02}" for number in range(30)]
    assert lines.index("Placements:") - lines.index("Nodes:") == 2 + 32 + 1


def test_json(run: Run, cluster: Path, tmp_path: Path) -> None:
    pods = file(tmp_path, "pods.yaml", sized("shop/web", "2"), sized("shop/big", "9"))
    answer = json.loads(run("-f", cluster, "-f", pods, "-o", "json").stdout)
    assert answer["counts"] == {
        "placed": 1,
        "waiting": 0,
        "unschedulable": 1,
        "failed": 0,
        "gated": 0,
        "evicted": 0,
        "ignored": 0,
    }
    assert answer["resources"][0] == {"resource": "cpu", "before": 3000, "after": 5000, "allocatable": 8000}
    assert [node["name"] for node in answer["nodes"]] == ["n1", "n2"]
    by_key = {pod["key"]: pod for pod in answer["pods"]}
    assert (by_key["shop/web"]["ending"], by_key["shop/web"]["node"]) == ("placed", "n2")
    assert by_key["shop/big"]["message"].startswith("0/2 nodes are available")


def test_decisions_are_written_anew(run: Run, cluster: Path, tmp_path: Path) -> None:
    pods = file(tmp_path, "pods.yaml", sized("shop/web", "2", priority=1), sized("shop/big", "9"))
    path = tmp_path / "decisions.jsonl"
    for _ in range(2):
        run("-f", cluster, "-f", pods, "--decisions", path, "--seed", 5)
    first, second = (json.loads(line) for line in path.read_text().splitlines())
    assert (first["sequence"], first["pod"], first["node"], first["seed"]) == (1, "shop/web", "n2", 5)
    assert (second["sequence"], second["pod"]) == (2, "shop/big")


def test_the_seed_decides_among_equals(run: Run, tmp_path: Path) -> None:
    path = file(tmp_path, "all.yaml", *(node_manifest(f"n{number}") for number in range(9)), sized("shop/web", "1"))

    def placed(seed: int) -> str:
        return str(json.loads(run("-f", path, "-o", "json", "--seed", seed).stdout)["pods"][0]["node"])

    assert placed(1) == placed(1)
    assert len({placed(seed) for seed in range(12)}) > 1


def test_a_configuration(run: Run, cluster: Path, tmp_path: Path) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: other}]\n"
    )
    pods = file(tmp_path, "pods.yaml", sized("shop/web", "2"), sized("shop/other", "1", schedulerName="other"))
    lines = told(run("-f", cluster, "-f", pods, "--config", path))
    assert lines[0] == "2 pods: 1 placed, 1 ignored"


def test_standard_input_and_pods_on_nodes_that_were_not_given(run: Run) -> None:
    lost = json.dumps(
        {"apiVersion": "v1", "kind": "List", "items": [node_manifest(), sized("shop/a", "1", nodeName="x")]}
    )
    result = run("-f", "-", stdin=lost)
    assert told(result)[0] == "no pods to place"
    assert result.stderr == "note: bound pods on nodes that were not given: 1\n"


def test_it_takes_what_apply_takes(run: Run, tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r'status\.allocatable\.cpu: "x" is not a quantity'):
        run("-f", file(tmp_path, "bad.yaml", node_manifest(cpu="x")))
    assert run().exit_code == 2


def test_it_is_decided_as_the_version_that_is_named_does(run: Run, tmp_path: Path) -> None:
    """Two containers of a pod are resized, one up, one down: since 1.37 the sums count, before each container."""
    resized = resizing_manifest("shop/resizing", "n1", asked=("1", "2"), has=("2", "1"))
    objects = file(tmp_path, "all.yaml", node_manifest("n1", cpu="4"), resized, sized("shop/web", "1"))

    def node_of(*words: str) -> str:
        (pod,) = json.loads(run("-f", objects, "-o", "json", *words).stdout)["pods"]
        return str(pod["node"])

    assert node_of("--emulated-version", "1.37") == "n1"
    assert node_of("--emulated-version", "1.36") == "", "not what the command before had in mind"
    with pytest.raises(ConfigError, match="PreAlpha"):
        run("-f", objects, "--emulated-version", "1.34", "--feature-gates", "NodeDeclaredFeatures=true")


def test_what_another_version_would_decide_differently(run: Run, tmp_path: Path) -> None:
    rules = {"name": "main", "restartPolicyRules": [{"action": "RestartAllContainers"}]}
    needing = pod_manifest("shop/needing", containers=[rules])
    path = file(tmp_path, "all.yaml", node_manifest("n1"), pod_manifest("shop/plain"), needing)
    base = ("-f", path, "--emulated-version", "1.35")
    assert told(run(*base, "--compare-version", "1.35")) == [
        "2 decisions of kube-scheduler 1.35, each made again as 1.35: all the same"
    ]
    lines = told(run(*base, "--compare-version", "1.37"))
    assert lines[:5] == [
        "2 decisions of kube-scheduler 1.35, each made again as 1.37: 1 the same",
        "1 pods would wait instead of being placed",
        "",
        "On account of",
        "1 NodeDeclaredFeatures, gate NodeDeclaredFeatures, since 1.36",
    ]
    answer = json.loads(run(*base, "--compare-version", "1.37", "-o", "json").stdout)
    assert (answer["version"], answer["decisions"], answer["counts"]["waits"]) == (1, 2, 1)
    (difference,) = answer["differences"]
    assert (difference["pod"], difference["recorded"]["node"], difference["compared"]["node"]) == (
        "shop/needing",
        "n1",
        "",
    )
    assert difference["cause"]["gates"] == ["NodeDeclaredFeatures"]
    gates = ("--feature-gates", "NodeDeclaredFeatures=false")
    assert "all the same" in run(*base, "--compare-version", "1.36", *gates).stdout
    assert run(*base, "--compare-version", "1.36", "--decisions", tmp_path / "d").exit_code == 2
