"""``dsched explain`` against a real Redis."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner, Result

from dsched.cli.main import app
from dsched.errors import ConfigError, NotFound
from dsched.state import keys, leader_config, workers
from dsched.state.client import Store
from dsched.state.leader_config import LeaderConfig
from dsched.state.workers import Worker
from tests.integration.simulation.test_live_cluster import bind, promise, reserve
from tests.manifests import apply, node_manifest, pod_manifest
from tests.schemas import SCHEMAS, checked

Run = Callable[..., Result]
MINE = (
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    "profiles: [{schedulerName: mine, plugins: {filter: {disabled: [{name: TaintToleration}]}}}]\n"
)


@pytest.fixture
def run(store: Store, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command against the test's own system; errors that are no usage errors come out as they are."""
    monkeypatch.setenv("DSCHED_REDIS_URL", store.url)
    monkeypatch.setenv("DSCHED_NAME", store.name)
    monkeypatch.delenv("DSCHED_CONFIG", raising=False)
    monkeypatch.setenv("DSCHED_EMULATED_VERSION", "1.34")  # the numbers below are worked out by its formulas

    def run(*words: str) -> Result:
        result = CliRunner().invoke(app, ["explain", "pod", *words])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def told(result: Result) -> list[str]:
    """Lines with single blanks between words."""
    assert result.exit_code == 0, result.output
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


@pytest.fixture
def cluster(store: Store, tmp_path: Path) -> None:
    """Two nodes that differ in size, one with a taint, and a pod."""
    tainted = node_manifest("n3")
    tainted["spec"] = {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}
    apply(store, tmp_path, node_manifest("n1"), node_manifest("n2", cpu="8"), tainted, pod_manifest("shop/web"))


def test_a_pending_pod(run: Run, cluster: None) -> None:
    lines = told(run("shop/web"))
    assert lines[0] == "Pod: shop/web (profile default-scheduler)"
    assert "Chosen: n2" in lines
    header, first, second = lines[lines.index("Fit (scores: raw > normalised > weighted):") + 1 :][:3]
    assert header.startswith("NODE NOTE TOTAL TaintToleration x3 NodeResourcesFit x1")
    # (4000 - 100) * 100 / 4000 = 97 of n1's CPU, (8000 - 100) * 100 / 8000 = 98 of n2's, and 97 of each one's memory:
    # (8Gi - 200Mi) * 100 / 8Gi; so 97 for both. The taint of n3 counts against nobody else: 100 times 3.
    assert first.startswith("n2 chosen, best ")
    assert "0 > 100 > 300 97 > 97 > 97" in first
    assert second.startswith("n1 ")
    rejected = lines[lines.index("Do not fit:") + 1 :]
    assert rejected == ["NODE PLUGIN WHY", "n3 TaintToleration node(s) had untolerated taint {gpu: yes}"]


def test_only_some_nodes(run: Run, cluster: None) -> None:
    lines = told(run("web", "-n", "shop", "--nodes", "n1"))
    assert "Chosen: n2" in lines
    assert not any(line.startswith(("n2", "n3")) for line in lines)
    with pytest.raises(NotFound, match="there is no node n8, n9"):
        run("shop/web", "--nodes", "n1,n8,n9")


def as_json(result: Result) -> Any:
    """The answer as JSON, of the documented form."""
    return checked(result.stdout, "explanation-v1")


def test_json_has_everything(run: Run, cluster: None) -> None:
    answer = as_json(run("shop/web", "-o", "json"))
    assert answer["version"] == 1
    assert (answer["pod"], answer["profile"], answer["node"], answer["chosen"]) == (
        "shop/web",
        "default-scheduler",
        None,
        "n2",
    )
    assert answer["best"] == ["n2"]
    assert answer["filtered"] == {
        "n3": {
            "code": "UnschedulableAndUnresolvable",
            "plugin": "TaintToleration",
            "reasons": ["node(s) had untolerated taint {gpu: yes}"],
        }
    }
    assert answer["totals"].keys() == answer["scores"].keys() == {"n1", "n2"}
    for name, scores in answer["scores"].items():
        assert answer["totals"][name] == sum(score["weighted"] for score in scores.values())
    assert answer["scores"]["n1"]["TaintToleration"] == {"raw": 0, "normalised": 100, "weighted": 300}
    assert answer["weights"]["TaintToleration"] == 3


def test_a_bound_pod_is_evaluated_as_if_it_were_not(run: Run, store: Store, cluster: None) -> None:
    bind(store, "shop/web", "n1")
    lines = told(run("shop/web"))
    assert "Bound: to n1; evaluated as if it were not" in lines
    assert any(line.startswith("n1 is here ") for line in lines)
    assert any(line.startswith("n2 chosen, best ") for line in lines)
    assert as_json(run("shop/web", "-o", "json"))["node"] == "n1"


def test_a_reserved_pod_is_evaluated_as_if_it_were_not(run: Run, store: Store, cluster: None) -> None:
    reserve(store, "shop/web", "n1")
    lines = told(run("shop/web"))
    assert "Reserved: on n1, being bound; evaluated as if it were not" in lines


def test_a_promise_is_told(run: Run, store: Store, cluster: None) -> None:
    promise(store, "shop/web", "n1")
    lines = told(run("shop/web"))
    assert "Promised: n1 by preemption; taken without looking at others" in lines
    assert "Chosen: n1" in lines


def test_reservations_count_as_assumed(run: Run, store: Store, cluster: None, tmp_path: Path) -> None:
    containers = [{"name": "main", "resources": {"requests": {"cpu": "7950m"}}}]
    apply(store, tmp_path, {**pod_manifest("shop/big"), "spec": {"containers": containers}})
    reserve(store, "shop/big", "n2")
    assert "Chosen: n1" in told(run("shop/web"))


def test_a_gated_pod_says_by_what(run: Run, store: Store, cluster: None, tmp_path: Path) -> None:
    apply(store, tmp_path, pod_manifest("shop/gated", schedulingGates=[{"name": "example.com/later"}]))
    lines = told(run("shop/gated"))
    by = "by SchedulingGates: waiting for scheduling gates: [example.com/later]"
    assert f"Gated: {by}; evaluated as if it were not" in lines
    answer = as_json(run("shop/gated", "-o", "json"))
    assert answer["gated"]["plugin"] == "SchedulingGates"


def test_a_pod_that_fits_nowhere(run: Run, store: Store, cluster: None, tmp_path: Path) -> None:
    apply(store, tmp_path, pod_manifest("shop/picky", nodeSelector={"zone": "z9"}))
    lines = told(run("shop/picky"))
    message = "0/3 nodes are available: 1 node(s) had untolerated taint {gpu: yes}, 2 node(s) didn't match Pod's node"
    assert any(line.startswith(f"Fits: nowhere: {message}") for line in lines)
    assert "n1 NodeAffinity node(s) didn't match Pod's node affinity/selector" in lines
    assert not any(line.startswith("Chosen") for line in lines)
    answer = as_json(run("shop/picky", "-o", "json"))
    assert answer["fit_error"].startswith(message)
    assert answer["preemption"] == {"nominated": None, "victims": []}


def test_preemption_as_json(run: Run, store: Store, cluster: None, tmp_path: Path) -> None:
    containers = [{"name": "main", "resources": {"requests": {"cpu": "7900m"}}}]
    apply(store, tmp_path, {**pod_manifest("shop/low"), "spec": {"containers": containers}})
    bind(store, "shop/low", "n2")
    apply(store, tmp_path, {**pod_manifest("shop/urgent"), "spec": {"containers": containers, "priority": 100}})
    answer = as_json(run("shop/urgent", "-o", "json"))
    assert answer["preemption"] == {"nominated": "n2", "victims": ["shop/low"]}
    assert (answer["chosen"], answer["filtered"]["n2"]["reasons"]) == (None, ["Insufficient cpu"])


def test_a_pod_that_pre_filter_rejects_as_json(run: Run, store: Store, cluster: None, tmp_path: Path) -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "gone"}}]
    apply(store, tmp_path, pod_manifest("shop/claiming", volumes=volumes))
    answer = as_json(run("shop/claiming", "-o", "json"))
    assert answer["pre_filter"]["code"] == "UnschedulableAndUnresolvable"
    assert answer["left_out"] == ["n1", "n2", "n3"]


@pytest.mark.parametrize(
    "wrong",
    [{"version": 2}, {"chosen": 1}, {"pre_filter": {"code": "Odd", "plugin": "", "reasons": []}}, {"filtered": None}],
)
def test_the_schema_refuses_what_is_of_another_form(run: Run, cluster: None, wrong: dict[str, Any]) -> None:
    answer = as_json(run("shop/web", "-o", "json"))
    with pytest.raises(jsonschema.ValidationError):
        checked(json.dumps({**answer, **wrong}), "explanation-v1")
    for field in answer:
        with pytest.raises(jsonschema.ValidationError, match=f"'{field}' is a required property"):
            checked(json.dumps({name: value for name, value in answer.items() if name != field}), "explanation-v1")


@pytest.mark.parametrize("form", ["explanation", "history"])
def test_the_schema_is_printed(form: str) -> None:
    printed = CliRunner().invoke(app, ["explain", "schema", form])
    assert json.loads(printed.stdout) == json.loads((SCHEMAS / f"{form}-v1.json").read_text())


def test_many_rejected_nodes_are_counted_by_reason(run: Run, store: Store, cluster: None, tmp_path: Path) -> None:
    apply(store, tmp_path, *(node_manifest(f"m{number:02}", cpu="0") for number in range(30)))
    lines = told(run("shop/web"))
    assert lines[lines.index("Do not fit:") + 1 :][:3] == [
        "NODES PLUGIN WHY",
        "30 NodeResourcesFit Insufficient cpu",
        "1 TaintToleration node(s) had untolerated taint {gpu: yes}",
    ]


def test_many_nodes_that_fit_are_cut(run: Run, store: Store, cluster: None, tmp_path: Path) -> None:
    apply(store, tmp_path, *(node_manifest(f"m{number:02}") for number in range(30)))
    lines = told(run("shop/web"))
    assert "… 12 more; -o json has all, --nodes some" in lines
    assert sum(line.startswith("n2 chosen, best") for line in lines) == 1


def test_a_profile_of_ones_own(run: Run, store: Store, cluster: None, tmp_path: Path) -> None:
    apply(store, tmp_path, pod_manifest("shop/mine", schedulerName="mine"))
    with pytest.raises(NotFound, match='schedulerName "mine" is none of default-scheduler; --config names'):
        run("shop/mine")
    path = tmp_path / "scheduler.yaml"
    path.write_text(MINE)
    lines = told(run("shop/mine", "--config", str(path)))
    assert "Pod: shop/mine (profile mine)" in lines
    assert "Do not fit:" not in lines


def publish(store: Store, text: str, withheld: str = "") -> None:
    """As a leader does when it begins."""
    store.redis.set(store.key(keys.EPOCH.name), 1)
    leader_config.publish(store, LeaderConfig(1, "123456789abc", "standalone", "scheduler.yaml", text, withheld))


def test_without_a_file_it_is_the_leaders_configuration(run: Run, store: Store, cluster: None, tmp_path: Path) -> None:
    publish(store, MINE)
    apply(store, tmp_path, pod_manifest("shop/mine", schedulerName="mine"))
    for words in ([], ["--config", ""]):
        lines = told(run("shop/mine", *words))
        assert "Pod: shop/mine (profile mine)" in lines
        assert "Do not fit:" not in lines
    path = tmp_path / "other.yaml"
    path.write_text(MINE.replace("mine", "other"))
    with pytest.raises(NotFound, match='schedulerName "mine" is none of other'):
        run("shop/mine", "--config", str(path))


def test_a_configuration_that_the_leader_keeps_back(run: Run, store: Store, cluster: None) -> None:
    publish(store, "", "the configuration holds private keys, which are not written to Redis")
    workers.note(store, Worker("evaluator-1", "evaluator", 2**50, "123456789abc"))
    result = run("shop/web")
    assert "Pod: shop/web (profile default-scheduler)" in told(result)
    assert result.stderr == (
        "note: the leader keeps its configuration back (the configuration holds private keys, which are not written to "
        "Redis), so the default configuration was used; --config names the leader's file\n"
    )


def test_before_the_first_leader_it_is_the_default_configuration(run: Run, cluster: None) -> None:
    result = run("shop/web")
    assert "Pod: shop/web (profile default-scheduler)" in told(result)
    assert "no leader has published its configuration yet" in result.stderr


def test_the_leaders_configuration_may_not_be_usable_here(run: Run, store: Store, cluster: None) -> None:
    publish(store, MINE.replace("disabled: [{name: TaintToleration}]", "enabled: [{name: NotInstalledHere}]"))
    with pytest.raises(ConfigError, match="NotInstalledHere"):
        run("shop/web")


def test_workers_with_another_configuration_are_told_of(run: Run, store: Store, cluster: None) -> None:
    publish(store, "")
    assert run("shop/web").stderr == ""
    workers.note(store, Worker("evaluator-1", "evaluator", 2**50, "123456789abc"))
    assert "the system's workers have another configuration" in run("shop/web").stderr


def test_a_pod_that_is_not_there(run: Run) -> None:
    with pytest.raises(NotFound, match="there is no pod default/web"):
        run("web")
