"""A leader process as it is started by hand: what SIGUSR2 has it write, the pages that it serves, and the file that it
writes instead of leading."""

import json
import os
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dsched import __version__
from dsched.state import keys, lease
from dsched.state.client import Store
from tests.integration.workers.processes import WorkerProcess, wait_until
from tests.manifests import apply, node_manifest, pod_manifest
from tests.redis_server import free_port

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
STRUCTURED = "application/json;v=v1beta1;g=config.k8s.io;as="
ENDS = "dump ends"


class LeaderProcess(WorkerProcess):
    """One leader with a page to ask, and a log as JSON."""

    def __init__(self, name: str, store: Store, folder: Path, *options: str) -> None:
        self.port = free_port()
        words = ("--identity", name, "--metrics-port", str(self.port), *options)
        where = {"DSCHED_REDIS_URL": store.url, "DSCHED_NAME": store.name, "DSCHED_LOG": "json"}
        super().__init__(name, (sys.executable, "-m", "dsched", "leader", *words), where, folder)

    def lines(self, sentence: str) -> list[dict[str, Any]]:
        """Lines of its log with this sentence."""
        texts = self.log.read_text().splitlines(keepends=True)
        read = [json.loads(text) for text in texts if text.endswith("\n")]
        return [line for line in read if line["message"] == sentence]

    def page(self, name: str, accept: str = "") -> bytes:
        """What a page says; empty while nobody answers."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/{name}", headers={"Accept": accept})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                found: bytes = answer.read()
                return found
        except (urllib.error.URLError, ConnectionError):
            return b""


@pytest.fixture
def begin(store: Store, tmp_path: Path) -> Iterator[Callable[..., LeaderProcess]]:
    """Starts leaders; ends them afterwards."""
    running: list[LeaderProcess] = []

    def begin(name: str, *options: str) -> LeaderProcess:
        running.append(LeaderProcess(name, store, tmp_path, *options))
        return running[-1]

    yield begin
    for each in running:
        each.stop()


def leads(store: Store, name: str) -> bool:
    held = lease.holder(store)
    return held is not None and held[0].startswith(f"{name}-")


def configured(leader: LeaderProcess) -> Any:
    body = leader.page("configz")
    return json.loads(body)["componentconfig"] if body else {}


def test_a_signal_has_it_write_what_it_holds_and_it_goes_on(
    store: Store, tmp_path: Path, begin: Callable[..., LeaderProcess]
) -> None:
    apply(store, tmp_path, node_manifest("n1"), pod_manifest("shop/web"), pod_manifest("shop/no", nodeName="n1"))
    leader = begin("one", "--log-level", "ERROR", "--mode", "local")
    wait_until("it has taken over", lambda: store.redis.exists(store.key(keys.INTAKE.name)))
    os.kill(leader.pid, signal.SIGUSR2)
    (end,) = wait_until("it is written", lambda: leader.lines(ENDS))
    assert end["differences"] == 0
    (node,) = leader.lines("node in the cache")
    assert (node["node"], node["pods"]) == ("n1", end["pods"])
    assert "shop/no" in {line["pod"] for line in leader.lines("pod on a node")}
    assert end["epoch"] == 1
    os.kill(leader.pid, signal.SIGUSR2)
    wait_until("it is written again", lambda: len(leader.lines(ENDS)) == 2)
    assert leads(store, "one")


def test_a_standby_says_that_it_holds_nothing_and_goes_on(store: Store, begin: Callable[..., LeaderProcess]) -> None:
    first = begin("first")
    wait_until("the first one leads", lambda: leads(store, "first"))
    second = begin("second")
    wait_until("the second one stands by", lambda: second.page("readyz") == b"ok")
    os.kill(second.pid, signal.SIGUSR2)
    wait_until("it says so", lambda: second.lines("nothing to dump, this process does not lead"))
    first.stop()
    wait_until("the second one leads", lambda: leads(store, "second"))


def test_pages_tell_of_options_and_of_the_configuration_that_it_has_now(
    tmp_path: Path, begin: Callable[..., LeaderProcess]
) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(f"{HEAD}parallelism: 3\n")
    leader = begin("one", "--config", str(file), "--otlp", "")
    wait_until("it answers", lambda: configured(leader))
    assert configured(leader)["parallelism"] == 3
    assert configured(leader)["profiles"][0]["pluginConfig"]

    flags = json.loads(leader.page("flagz", f"{STRUCTURED}Flagz"))["flags"]
    assert (flags["config"], flags["identity"], flags["lease"], flags["mode"]) == (str(file), "one", "3.0", "auto")
    assert b"\nidentity=one\n" in leader.page("flagz")

    status = json.loads(leader.page("statusz", f"{STRUCTURED}Statusz"))
    assert status["binaryVersion"] == __version__
    assert status["paths"] == ["/configz", "/flagz", "/healthz", "/livez", "/metrics", "/readyz"]
    # /readyz says so once it leads.
    wait_until("every page answers", lambda: all(leader.page(path.strip("/")) for path in status["paths"]))

    file.write_text(f"{HEAD}parallelism: 5\n")
    os.kill(leader.pid, signal.SIGHUP)
    wait_until("it has the other one", lambda: configured(leader)["parallelism"] == 5)
    file.write_text(f"{HEAD}parallelism: -5\n")
    os.kill(leader.pid, signal.SIGHUP)
    wait_until("it refuses it", lambda: leader.lines("configuration refused, the last good one stays"))
    assert configured(leader)["parallelism"] == 5


def test_passwords_do_not_show_on_pages(store: Store, begin: Callable[..., LeaderProcess]) -> None:
    """The test's Redis takes any password of the user who needs none."""
    secret = store.url.replace("://", "://default:s3cr3t@")
    leader = begin("one", "--redis-url", secret, "--otlp", "")
    shown = wait_until("it answers", lambda: leader.page("flagz")).decode()
    assert f"redis-url={secret.replace('s3cr3t', '***')}\n" in shown
    for page in ("configz", "statusz", "metrics"):
        assert b"s3cr3t" not in leader.page(page)


def test_a_process_that_is_to_write_the_configuration_ends(store: Store, tmp_path: Path) -> None:
    written = tmp_path / "written.yaml"
    process = LeaderProcess("one", store, tmp_path, "--write-config-to", str(written))
    wait_until("it has ended", lambda: process._process.poll() is not None)
    assert process._process.returncode == 0
    assert written.read_text().startswith("apiVersion: kubescheduler.config.k8s.io/v1\n")
    assert [line["file"] for line in process.lines("configuration written")] == [str(written)]
    assert lease.holder(store) is None


def test_it_says_which_version_it_emulates(store: Store, begin: Callable[..., LeaderProcess]) -> None:
    gates = ("--feature-gates", "StorageCapacityScoring=true", "--feature-gates", "NodeDeclaredFeatures=false")
    leader = begin("one", "--emulated-version", "1.36", *gates, "--mode", "local")
    wait_until("it leads", lambda: leads(store, "one") and leader.page("readyz") == b"ok")
    lines = leader.page("metrics").decode().splitlines()
    (build,) = [line for line in lines if line.startswith("kubernetes_build_info{")]
    assert build.endswith(" 1.0")
    assert f'git_version="v1.36.0-dsched-{__version__}"' in build
    assert 'kubernetes_feature_enabled{name="StorageCapacityScoring",stage="ALPHA"} 1.0' in lines
    assert 'kubernetes_feature_enabled{name="NodeDeclaredFeatures",stage="BETA"} 0.0' in lines
    assert json.loads(leader.page("statusz", STRUCTURED + "Statusz"))["emulationVersion"] == "1.36"
    flags = json.loads(leader.page("flagz", STRUCTURED + "Flagz"))["flags"]
    assert flags["feature-gates"] == "StorageCapacityScoring=true,NodeDeclaredFeatures=false"
    (said,) = leader.lines("emulating kube-scheduler")
    assert (said["version"], said["gates"]) == ("1.36", "NodeDeclaredFeatures=false,StorageCapacityScoring=true")
