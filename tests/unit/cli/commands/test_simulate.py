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
from tests.manifests import (
    deferred_manifest,
    group_manifest,
    guaranteed,
    node_manifest,
    other_manifest,
    pod_manifest,
    queue_manifest,
    resizing_manifest,
)

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
        "resizable": 0,
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


RESIZES = "InPlacePodVerticalScalingSchedulerPreemption=true"


def test_a_deferred_resize_evicts_as_it_does_in_a_running_system(run: Run, tmp_path: Path) -> None:
    path = file(
        tmp_path,
        "all.yaml",
        node_manifest("n1"),
        node_manifest("n2"),
        deferred_manifest("shop/web", "n1", "3"),
        sized("shop/low", "2", nodeName="n1", priority=1),
        sized("shop/new", "1"),
    )
    lines = told(run("-f", path, "--feature-gates", RESIZES, "-o", "wide"))
    assert lines[0] == "3 pods: 1 placed, 1 resizable, 1 evicted"
    assert lines[lines.index("Placements:") + 2 :][:2] == ["shop/new n2 1", "shop/web n1 2"]
    assert lines[lines.index("Evicted:") + 2] == "shop/low n1 shop/web"
    assert told(run("-f", path))[0] == "1 pods: 1 placed", "without the gate nobody tries it"


def test_a_resize_for_which_nobody_can_go_is_told_why(run: Run, tmp_path: Path) -> None:
    elsewhere = deferred_manifest("shop/elsewhere", "n1", "1")
    elsewhere["spec"]["schedulerName"] = "other"
    path = file(
        tmp_path,
        "all.yaml",
        node_manifest("n1"),
        deferred_manifest("shop/web", "n1", "3"),
        elsewhere,
        sized("shop/high", "2", nodeName="n1", priority=100),
    )
    (pod,) = json.loads(run("-f", path, "--feature-gates", RESIZES, "-o", "json").stdout)["pods"]
    assert (pod["key"], pod["ending"], pod["node"], pod["attempts"]) == ("shop/web", "unschedulable", "n1", 1)
    assert pod["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_a_pod_that_waits_for_a_resize_may_have_to_go_itself(run: Run, tmp_path: Path) -> None:
    path = file(
        tmp_path,
        "all.yaml",
        node_manifest("n1"),
        deferred_manifest("shop/web", "n1", "5", priority=1),
        sized("shop/high", "4", priority=100),
    )
    pods = json.loads(run("-f", path, "--feature-gates", RESIZES, "-o", "json").stdout)["pods"]
    assert {each["key"]: each["ending"] for each in pods} == {"shop/web": "evicted", "shop/high": "placed"}


def test_a_rehearsal_counts_deferred_resizes(run: Run, tmp_path: Path) -> None:
    path = file(
        tmp_path,
        "all.yaml",
        node_manifest("n1"),
        deferred_manifest("shop/web", "n1", "3"),
        sized("shop/low", "2", nodeName="n1", priority=1),
    )
    base = ("-f", path, "--compare-version", "1.37", "--emulated-version", "1.36", "-o", "json")
    (difference,) = json.loads(run(*base, "--feature-gates", RESIZES).stdout)["differences"]
    assert (difference["pod"], difference["kind"]) == ("shop/web", "preempts")
    assert (difference["recorded"]["victims"], difference["compared"]["victims"]) == ([], ["shop/low"])
    assert difference["cause"]["gates"] == ["InPlacePodVerticalScalingSchedulerPreemption"]
    assert json.loads(run(*base).stdout)["decisions"] == 0


GROUPS = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true"
RACK = "example.com/rack"


def training(count: int, group: str = "train", cpu: str = "2", **spec: Any) -> list[Json]:
    """Pods of a group."""
    of_group = {"schedulingGroup": {"podGroupName": group}, **spec}
    return [sized(f"shop/{group}-{number}", cpu, **of_group) for number in range(count)]


def racks(*sizes: int) -> list[Json]:
    """Racks ``a``, ``b`` and on of so many nodes of 4 CPU."""
    return [
        node_manifest(f"{rack}{number}", labels={RACK: rack})
        for rack, size in zip("abcd", sizes, strict=False)
        for number in range(size)
    ]


def test_a_pod_group_is_placed_whole_in_one_rack(run: Run, tmp_path: Path) -> None:
    group = group_manifest("shop/train", 4, schedulingConstraints={"topology": [{"key": RACK}]})
    path = file(tmp_path, "all.yaml", *racks(1, 2, 1), group, *training(4), sized("shop/web", "1"))
    lines = told(run("-f", path, "--feature-gates", GROUPS, "-o", "wide"))
    assert lines[0] == "5 pods: 5 placed"
    nodes = [line.split()[1] for line in lines if line.startswith("shop/train-") and line.endswith(" 1")]
    assert sorted(nodes) == ["b0", "b0", "b1", "b1"]
    assert lines[lines.index("Pod groups:") + 2] == "shop/train 4/4 0 4 1 scheduled -"


def test_a_pod_group_that_does_not_fit_is_placed_not_at_all(run: Run, tmp_path: Path) -> None:
    path = file(tmp_path, "all.yaml", *racks(1), group_manifest("shop/train", 3), *training(3), sized("shop/web", "1"))
    found = json.loads(run("-f", path, "--feature-gates", GROUPS, "-o", "json").stdout)
    assert {pod["key"]: pod["ending"] for pod in found["pods"]} == {
        "shop/web": "placed",
        **{f"shop/train-{number}": "unschedulable" for number in range(3)},
    }
    (group,) = found["groups"]
    assert (group["key"], group["placed"], group["pods"], group["wanted"]) == ("shop/train", 0, 3, 3)
    assert "minCount (3) cannot be satisfied: 1 scheduled, 1 remaining" in group["message"]
    lines = told(run("-f", path, "--feature-gates", GROUPS))
    assert lines[lines.index("Pod groups:") + 2].startswith("shop/train 0/3 0 3 2 unschedulable pod group is")


def test_a_pod_group_evicts_pods_of_lower_priority(run: Run, tmp_path: Path) -> None:
    low = [sized(f"shop/low-{node}", "3", nodeName=node, priority=1) for node in ("a0", "b0")]
    low.append(sized("shop/high", "3", nodeName="c0", priority=10))
    group = group_manifest("shop/train", 4, priority=9)
    path = file(tmp_path, "all.yaml", *racks(1, 1, 1), *low, group, *training(4, priority=9))
    found = json.loads(run("-f", path, "--feature-gates", GROUPS, "-o", "json").stdout)
    evicted = [pod for pod in found["pods"] if pod["ending"] == "evicted"]
    assert [pod["evicted_by"] for pod in evicted] == ["podgroup/shop/train"] * 2
    assert (found["groups"][0]["placed"], found["groups"][0]["attempts"]) == (4, 2)


def test_what_a_pod_group_waits_for(run: Run, tmp_path: Path) -> None:
    path = file(
        tmp_path,
        "all.yaml",
        *racks(1),
        group_manifest("shop/train", 3),
        *training(2, cpu="1"),
        *training(1, "nobody", "1"),
    )
    lines = told(run("-f", path, "--feature-gates", GROUPS))
    assert lines[0] == "3 pods: 3 gated"
    few = "GangScheduling: waiting for minCount pods from a gang to appear in scheduling queue"
    assert f"shop/train-0, shop/train-1: {few}" in lines
    missing = 'GangScheduling: waiting for pods\'s pod group "nobody" to appear in scheduling queue'
    assert f"shop/nobody-0: {missing}" in lines


def test_more_than_the_minimum_is_placed_as_far_as_it_fits(run: Run, tmp_path: Path) -> None:
    path = file(tmp_path, "all.yaml", *racks(1), group_manifest("shop/train", 1), *training(3))
    found = json.loads(run("-f", path, "--feature-gates", GROUPS, "-o", "json").stdout)
    assert (found["groups"][0]["placed"], found["groups"][0]["pods"]) == (2, 3)
    assert found["counts"]["unschedulable"] == 1


def test_without_the_gate_a_pod_of_a_group_says_so(run: Run, tmp_path: Path) -> None:
    path = file(tmp_path, "all.yaml", *racks(1), group_manifest("shop/train", 1), *training(1))
    assert "GenericWorkload" in run("-f", path).stdout


# -- queues between teams ----------------------------------------------------------------------------------------------

DIVIDED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      disabled: [{name: PrioritySort}, {name: DefaultPreemption}]
      enabled: [{name: FairShare}]
"""


def placed_of(run: Run, tmp_path: Path, *queues: Json) -> tuple[dict[str, int], str]:
    """How many pods of each queue are placed on four cores that two queues want four of each, and all that is told."""
    (tmp_path / "scheduler.yaml").write_text(DIVIDED)
    pods = [sized(f"shop/{name}-{number}", "1") for name in ("a", "b") for number in range(4)]
    for pod in pods:
        pod["metadata"]["labels"] = {"dsched.io/queue": pod["metadata"]["name"][0]}
    given = file(tmp_path, "cluster.yaml", node_manifest("n1", cpu="4"), *queues, *pods)
    result = run("-f", given, "--config", tmp_path / "scheduler.yaml", "-o", "json")
    assert result.exit_code == 0, result.output
    found = [pod["key"].partition("/")[2][0] for pod in json.loads(result.stdout)["pods"] if pod["ending"] == "placed"]
    return {name: found.count(name) for name in ("a", "b")}, result.stdout


def test_another_division_of_the_cluster_is_tried_out(run: Run, tmp_path: Path) -> None:
    assert placed_of(run, tmp_path, queue_manifest("a"), queue_manifest("b"))[0] == {"a": 2, "b": 2}
    assert placed_of(run, tmp_path, queue_manifest("a", weight=3), queue_manifest("b"))[0] == {"a": 3, "b": 1}


def test_what_a_limit_holds_back_is_told(run: Run, tmp_path: Path) -> None:
    limited = queue_manifest("a", resources={"cpu": {"limit": 1}})
    placed, output = placed_of(run, tmp_path, limited, queue_manifest("b"))
    assert placed == {"a": 1, "b": 3}
    assert 'queue \\"a\\" has no room below its limit of cpu' in output


@pytest.fixture
def divided(tmp_path: Path) -> Path:
    """Four cores, which b has borrowed, and pods of a that wait; half of it is guaranteed to each."""
    halves = [queue_manifest(name, resources=guaranteed(cpu=2)) for name in "ab"]
    there = [of_queue(f"shop/b{number}", "b", nodeName="n1") for number in range(4)]
    waiting = [of_queue(f"shop/a{number}", "a") for number in range(4)]
    return file(tmp_path, "divided.yaml", node_manifest("n1", cpu="4"), *halves, *there, *waiting)


def of_queue(key: str, queue: str, **spec: Any) -> Json:
    pod = sized(key, "1", **spec)
    pod["metadata"]["labels"] = {"dsched.io/queue": queue}
    return pod


def queue_rows(lines: list[str]) -> list[str]:
    after = lines[lines.index("Queues:") + 2 :]
    return after[: after.index("")]


def test_what_queues_have_before_and_after(run: Run, divided: Path, tmp_path: Path) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_text(DIVIDED)
    lines = told(run("-f", divided, "--config", path))
    assert lines[0] == "6 pods: 2 placed, 2 unschedulable, 2 evicted"
    assert queue_rows(lines) == ["a 2 2 0 cpu 0 2 2 2 -", "b 2 0 2 cpu 4 2 2 2 -"]
    found = json.loads(run("-f", divided, "--config", path, "-o", "json").stdout)["queues"]
    assert found[1] == {
        "name": "b",
        "parent": "",
        "running": 2,
        "pending": 0,
        "reclaimed": 2,
        "resources": [
            {"resource": "cpu", "before": 4000, "after": 2000, "fair_share": 2000, "guaranteed": 2000, "limit": None}
        ],
    }


def test_other_queues_divide_the_cluster_in_place_of_its_own(run: Run, divided: Path, tmp_path: Path) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_text(DIVIDED)
    others = [
        queue_manifest("all"),
        queue_manifest("a", "all", resources=guaranteed(cpu=3)),
        queue_manifest("b", "all", resources={"cpu": {"guaranteed": 1, "limit": 2}}),
    ]
    lines = told(run("-f", divided, "--config", path, "--queues", file(tmp_path, "queues.yaml", *others)))
    assert lines[0] == "7 pods: 3 placed, 1 unschedulable, 3 evicted"
    assert queue_rows(lines) == ["all 4 1 3 cpu 4 4 4 4 -", "a 3 1 0 cpu 0 3 3 3 -", "b 1 0 3 cpu 4 1 1 1 2"]


def test_queues_are_all_that_other_queues_may_be(run: Run, divided: Path, tmp_path: Path) -> None:
    path = file(tmp_path, "queues.yaml", queue_manifest("a"), node_manifest("n2"))
    with pytest.raises(ManifestError, match=r"queues\.yaml.*: a Node, where only queues may be"):
        run("-f", divided, "--queues", path)


def test_queues_without_the_plugin_are_refused(run: Run, divided: Path, tmp_path: Path) -> None:
    result = run("-f", divided, "--queues", file(tmp_path, "queues.yaml", queue_manifest("a")))
    assert result.exit_code == 2
    assert "enable it with --config" in " ".join(result.stderr.replace("│", " ").split())
