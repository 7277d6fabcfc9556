"""What commands say of the version that the leader emulates, and that they count and explain as it does."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dsched import config
from dsched.cli.main import app
from dsched.config import feature_gates
from dsched.config.feature_gates import parse_version
from dsched.leader.config_watch import Loaded
from dsched.plugins import profiles
from dsched.state import keys, leader_config
from dsched.state.client import Store
from dsched.ui.live import Following, read_overview
from dsched.ui.system import System
from tests.integration.state.support import take_over
from tests.manifests import apply, node_manifest, pod_manifest, resizing_manifest

GATE = "InPlacePodLevelResourcesVerticalScaling"
Run = Callable[..., Result]


@pytest.fixture
def dsched(store: Store, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command against the test's own system."""
    monkeypatch.setenv("DSCHED_REDIS_URL", store.url)
    monkeypatch.setenv("DSCHED_NAME", store.name)
    for name in ("DSCHED_CONFIG", "DSCHED_EMULATED_VERSION", "DSCHED_FEATURE_GATES"):
        monkeypatch.delenv(name, raising=False)

    def run(*words: str, code: int = 0) -> Result:
        result = CliRunner().invoke(app, list(words))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return run


@pytest.fixture
def resizing(store: Store, tmp_path: Path) -> None:
    """A pod that takes up 4 cores of n1 until 1.36, and 3 since; another that wants one."""
    pod = resizing_manifest("shop/resizing", "n1", asked=("1", "2"), has=("2", "1"))
    web = pod_manifest("shop/web")
    web["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1"
    apply(store, tmp_path, node_manifest("n1", cpu="4"), pod, web)


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Any:
    yield
    profiles.emulate(feature_gates.UNSAID)


def led_as(store: Store, version: str, **gates: bool) -> None:
    """A leader has published the default configuration of a version."""
    features = feature_gates.features(parse_version(version), gates)
    told = Loaded(config.default(features), "").published(take_over(store), "standalone")
    leader_config.publish(store, told)


def answer(done: Result) -> Any:
    return json.loads(done.stdout)


def test_status_says_it(store: Store, dsched: Run) -> None:
    assert answer(dsched("status", "-o", "json", code=1))["state"]["emulated"] is None
    led_as(store, "1.36", **{GATE: False})
    emulated = answer(dsched("status", "-o", "json"))["state"]["emulated"]
    assert emulated == {"version": "1.36", "feature_gates": f"{GATE}=false"}
    (line,) = [line for line in dsched("status").stdout.splitlines() if line.startswith("emulates")]
    assert line.split(maxsplit=1)[1] == f"kube-scheduler 1.36, {GATE}=false"


def test_status_says_nothing_of_a_leader_that_does_not_say(store: Store, dsched: Run) -> None:
    told = {"epoch": take_over(store), "hash": "0123456789ab", "cluster": "standalone"}
    store.redis.set(store.key(keys.CONFIGURATION.name), json.dumps(told))
    assert "emulates" not in dsched("status").stdout
    assert answer(dsched("status", "-o", "json"))["state"]["emulated"] is None


@pytest.mark.usefixtures("resizing")
def test_what_pods_take_up_is_counted_as_the_leader_counts(store: Store, dsched: Run) -> None:
    def used() -> int:
        return int(answer(dsched("describe", "node", "n1", "-o", "json"))["used"]["cpu"])

    def requested() -> int:
        return int(answer(dsched("describe", "pod", "shop/resizing", "-o", "json"))["requests"]["cpu"])

    def in_table() -> bool:
        return "3/4" in dsched("get", "nodes").stdout

    assert (used(), requested(), in_table()) == (3000, 3000, True), "as the default version, before the first leader"
    led_as(store, "1.35")
    assert (used(), requested(), in_table()) == (4000, 4000, False)
    led_as(store, "1.37")
    assert (used(), requested(), in_table()) == (3000, 3000, True)
    led_as(store, "1.36")
    assert (used(), requested(), in_table()) == (4000, 4000, False)


@pytest.mark.usefixtures("resizing")
def test_fsck_counts_as_the_leader_counts(store: Store, dsched: Run) -> None:
    store.redis.hset(store.key("node:n1"), mapping={"used.cpu": 3000, "used.pods": 1, "allocatable.cpu": 4000})

    def wrong() -> bool:
        found = CliRunner().invoke(app, ["fsck", "--pause", "0", "-o", "json"])
        said = answer(found)
        return any("cpu" in each["message"] for each in (*said["breaches"], *said["open"]))

    led_as(store, "1.37")
    assert not wrong()
    led_as(store, "1.36")
    assert wrong()


@pytest.mark.usefixtures("resizing")
def test_explain_decides_as_the_leader_or_as_it_is_told(store: Store, dsched: Run, tmp_path: Path) -> None:
    def node(*words: str) -> str:
        return str(answer(dsched("explain", "pod", "shop/web", "-o", "json", *words))["chosen"] or "")

    led_as(store, "1.37")
    file = tmp_path / "scheduler.yaml"
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    assert node() == node("--config", str(file)) == "n1"
    assert node("--emulated-version", "1.36") == node("--config", str(file), "--emulated-version", "1.36") == ""
    assert node("--feature-gates", f"{GATE}=false") == "n1", "the version is the leader's"
    led_as(store, "1.36")
    assert node() == node("--config", str(file)) == ""
    assert node("--emulated-version", "1.37") == "n1"


def test_the_page_says_it(store: Store) -> None:
    system = System(store, "redis://test", None, {}, lambda _: None, None)  # type: ignore[arg-type, return-value]
    system.clock = type("Clock", (), {"now_ms": lambda self: 1})()
    assert read_overview(system, Following()).emulated == ""
    led_as(store, "1.35", **{GATE: True})
    found = read_overview(system, Following())
    assert (found.emulated, found.feature_gates) == ("1.35", f"{GATE}=true")
