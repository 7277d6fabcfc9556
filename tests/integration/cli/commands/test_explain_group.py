"""``dsched explain podgroup`` against a real Redis."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dsched.cli.main import app
from dsched.config import feature_gates
from dsched.errors import NotFound
from dsched.plugins import profiles
from dsched.state.client import Store
from tests.integration.simulation.test_live_cluster import bind, reserve
from tests.manifests import apply, group_manifest, node_manifest, pod_manifest
from tests.schemas import checked

Run = Callable[..., Result]
RACK = "example.com/rack"
GATES = ("--feature-gates", "GenericWorkload=true,TopologyAwareWorkloadScheduling=true")


@pytest.fixture
def run(store: Store, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a command against the test's own system; errors that are no usage errors come out as they are."""
    monkeypatch.setenv("DSCHED_REDIS_URL", store.url)
    monkeypatch.setenv("DSCHED_NAME", store.name)
    monkeypatch.delenv("DSCHED_CONFIG", raising=False)

    def run(*words: str, gates: tuple[str, ...] = GATES) -> Result:
        result = CliRunner().invoke(app, ["explain", "podgroup", *words, *gates])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    yield run
    profiles.emulate(feature_gates.UNSAID)


def members(count: int, priority: int = 9) -> list[dict[str, Any]]:
    containers = [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]
    of_group: dict[str, Any] = {"schedulingGroup": {"podGroupName": "train"}, "priority": priority}
    return [pod_manifest(f"shop/train-{number}", containers=containers, **of_group) for number in range(count)]


@pytest.fixture
def cluster(store: Store, tmp_path: Path) -> None:
    """A rack of one node and a rack of two; a gang of four pods that has room in the second one only."""
    nodes = [node_manifest(name, labels={RACK: name[0]}) for name in ("a0", "b0", "b1")]
    topology = {"schedulingConstraints": {"topology": [{"key": RACK}]}, "priority": 9}
    apply(store, tmp_path, *nodes, group_manifest("shop/train", 4, **topology), *members(4))


def as_json(result: Result) -> Any:
    """The answer as JSON, of the documented form."""
    assert result.exit_code == 0, result.output
    return checked(result.stdout, "podgroup-v1")


def told(result: Result) -> list[str]:
    assert result.exit_code == 0, result.output
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


def test_which_racks_were_tried_and_what_each_lacks(run: Run, cluster: None) -> None:
    lines = told(run("shop/train"))
    assert lines[0] == "Group: shop/train (profile default-scheduler)"
    assert "Chosen: b, for 4 of 4 pods" in lines
    table = lines[lines.index("Placements:") + 2 :]
    assert table[0].startswith("b chosen 2 4/4 ")
    assert table[1].startswith(
        "a 1 2/4 - minCount (4) cannot be satisfied: 2 scheduled, 1 remaining; shop/train-2: 0/1"
    )


def test_json_has_everything(run: Run, cluster: None) -> None:
    answer = as_json(run("train", "-n", "shop", "-o", "json"))
    assert (answer["version"], answer["group"], answer["topology"], answer["min_count"]) == (1, "shop/train", RACK, 4)
    assert (answer["chosen"], answer["end"], answer["message"], answer["gated"]) == ("b", "scheduled", None, None)
    assert [(each["name"], each["fits"], len(each["placed"])) for each in answer["placements"]] == [
        ("b", True, 4),
        ("a", False, 2),
    ]
    (rejected,) = answer["placements"][1]["rejected"]
    assert (rejected["message"], rejected["pods"]) == (
        "0/1 nodes are available: 1 Insufficient cpu.",
        ["shop/train-2"],
    )
    assert {each["node"] for each in answer["pods"]} == {"b0", "b1"}


def test_pods_that_have_nodes_count_and_stay(run: Run, store: Store, cluster: None) -> None:
    bind(store, "shop/train-0", "a0")
    reserve(store, "shop/train-1", "a0")
    answer = as_json(run("shop/train", "-o", "json"))
    assert (answer["placed"], answer["moved"]) == ({"shop/train-0": "a0", "shop/train-1": "a0"}, False)
    assert [each["name"] for each in answer["placements"]] == ["a"], "they say which rack it has to be"
    assert [each["pod"] for each in answer["pods"]] == ["shop/train-2", "shop/train-3"]
    assert answer["end"] == "unschedulable"


def test_a_group_that_is_placed_whole_is_evaluated_as_if_it_were_not(run: Run, store: Store, cluster: None) -> None:
    for number in range(4):
        bind(store, f"shop/train-{number}", f"b{number % 2}")
    answer = as_json(run("shop/train", "-o", "json"))
    assert (answer["moved"], len(answer["placed"]), answer["chosen"]) == (True, 4, "b")
    assert "Placed: 4 pods, all that it has; evaluated as if they had no nodes" in told(run("shop/train"))


def test_who_would_have_to_go(run: Run, store: Store, cluster: None, tmp_path: Path) -> None:
    containers = [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]
    apply(store, tmp_path, *(pod_manifest(f"shop/low-{node}", containers=containers, priority=1) for node in ("b0",)))
    bind(store, "shop/low-b0", "b0")
    answer = as_json(run("shop/train", "-o", "json"))
    assert (answer["victims"], answer["end"], answer["chosen"]) == (["shop/low-b0"], "waiting_on_preemption", None)
    assert {each["nominated"] for each in answer["pods"]} == {"b0", "b1"}
    assert "Preemption: of shop/low-b0 makes room on b0, b1" in told(run("shop/train"))


def test_what_cannot_be_explained(run: Run, cluster: None) -> None:
    with pytest.raises(NotFound, match="there is no pod group shop/none"):
        run("shop/none")
    with pytest.raises(NotFound, match="feature gate GenericWorkload"):
        run("shop/train", gates=())


def test_its_schema_is_printed() -> None:
    shown = json.loads(CliRunner().invoke(app, ["explain", "schema", "podgroup"]).stdout)
    assert shown["title"] == "dsched explain podgroup -o json: podgroup"
