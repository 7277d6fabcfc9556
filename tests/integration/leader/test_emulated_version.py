"""Which version a leader emulates: the one that was named, else the API server's own, asked at each reign's start."""

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dsched.clock import SystemClock
from dsched.cluster.interface import Cluster
from dsched.cluster.kubernetes import version as version_module
from dsched.cluster.kubernetes.access import Access
from dsched.cluster.kubernetes.cluster import Kubernetes
from dsched.cluster.opening import Kind
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.config.feature_gates import DEFAULT
from dsched.emulation import NOTHING, Asked, asked
from dsched.errors import ConfigError, DschedError
from dsched.leader import term as term_module
from dsched.leader.gauges import EmulatedVersion
from dsched.leader.main import Leader
from dsched.leader.settings import Settings
from dsched.leader.sources import Sources
from dsched.metrics import CONFIG_REFUSED
from dsched.plugins import profiles, registry
from dsched.state import keys, leader_config, leaders, lease
from dsched.state.client import Store
from tests.integration.cluster.kubernetes.fake_api import FakeApi
from tests.integration.cluster.kubernetes.fixtures import api
from tests.integration.leader.rig import RecordingDispatcher
from tests.integration.workers.processes import wait_until

__all__ = ["api"]

GATE = "TaintTolerationComparisonOperators"
"""There since 1.35, off by default."""
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


class Running:
    """A leader process in a thread of this one."""

    def __init__(self, store: Store, cluster: Cluster, what: Asked, file: Path | None) -> None:
        plugins = registry.intree()
        possible = what.possible(on_kubernetes=cluster.kind == Kind.KUBERNETES)
        loaded = profiles.first_accepted(file, plugins, possible)
        settings = Settings(identity="one", lease_s=0.6)
        self.store = store
        self.leader = Leader(settings, store, cluster, loaded, plugins, SystemClock(), config_file=file, asked=what)
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.leader.run()
        except DschedError as error:
            self.error = error

    @property
    def leads(self) -> bool:
        """Whether it has taken over."""
        term = self.leader.term
        return term is not None and isinstance(term.sources, Sources)

    def ended(self) -> bool:
        return not self._thread.is_alive()

    def stop(self) -> None:
        self.leader.stop()
        wait_until("the leader ends", self.ended)

    def told(self) -> tuple[str, str]:
        """What it publishes."""
        told = leader_config.read(self.store)
        return ("", "") if told is None else (told.version, told.gates)

    def leads_again(self) -> None:
        """The lease is lost and had again."""
        _, epoch = lease.holder(self.store) or ("", 0)
        self.store.redis.incr(self.store.key(keys.EPOCH.name))
        self.store.redis.delete(self.store.key(keys.LEADER.name))
        wait_until("it leads again", lambda: (lease.holder(self.store) or ("", 0))[1] > epoch + 1 and self.leads)


Run = Callable[..., Running]


@pytest.fixture
def run(store: Store, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs leaders of the fake API server's cluster; ends them afterwards."""
    monkeypatch.setattr(term_module, "Dispatcher", RecordingDispatcher)
    running: list[Running] = []
    clusters: list[Kubernetes] = []

    def run(what: Asked = NOTHING, file: Path | None = None, cluster: Cluster | None = None) -> Running:
        if cluster is None:
            cluster = Kubernetes(Access(api.kubeconfig()))
            clusters.append(cluster)
        running.append(Running(store, cluster, what, file))
        return running[-1]

    yield run
    for each in running:
        each.stop()
    for every in clusters:
        every.close()
    CONFIG_REFUSED.set(0)


def says(api: FakeApi, minor: str) -> None:
    api.version = {"major": "1", "minor": minor}


@pytest.mark.parametrize(("minor", "version"), [("36", "1.36"), ("37+", "1.37")])
def test_it_is_the_api_servers_own(api: FakeApi, run: Run, minor: str, version: str) -> None:
    says(api, minor)
    leader = run()
    wait_until("it leads", lambda: leader.leads)
    assert leader.told() == (version, "")
    assert str(leader.leader.config.features) == version


@pytest.mark.parametrize(("minor", "version"), [("38", "1.37"), ("29", "1.34")])
def test_one_that_is_not_known_is_taken_for_the_nearest_with_a_warning(
    api: FakeApi, run: Run, caplog: pytest.LogCaptureFixture, minor: str, version: str
) -> None:
    says(api, minor)
    with caplog.at_level(logging.INFO):
        leader = run()
        wait_until("it leads", lambda: leader.leads)
    assert leader.told() == (version, "")
    warned = [each for each in caplog.records if "cannot be emulated, the nearest one is" in each.getMessage()]
    assert warned
    assert warned[0].levelno == logging.WARNING
    assert (warned[0].cluster, warned[0].version) == (f"1.{minor}", version)  # type: ignore[attr-defined]
    (said, *_) = [each for each in caplog.records if each.getMessage() == "emulating kube-scheduler"]
    assert (said.version, said.gates) == (version, "")  # type: ignore[attr-defined]


def test_one_that_was_named_is_not_asked_about(api: FakeApi, run: Run) -> None:
    leader = run(asked("1.35", [f"{GATE}=true"]))
    wait_until("it leads", lambda: leader.leads)
    assert leader.told() == ("1.35", f"{GATE}=true")
    assert ("GET", "/version") not in api.requests


def test_a_standalone_leader_emulates_the_default(store: Store, run: Run) -> None:
    leader = run(cluster=StandaloneCluster(store))
    wait_until("it leads", lambda: leader.leads)
    assert leader.told() == (str(DEFAULT.version), "")


def test_a_gate_that_the_version_does_not_have_is_no_leaders(store: Store, api: FakeApi, run: Run) -> None:
    says(api, "34")
    leader = run(asked(None, [f"{GATE}=true"]))
    wait_until("it ends", leader.ended)
    assert isinstance(leader.error, ConfigError)
    assert f"cannot set feature gate {GATE} to true, feature is PreAlpha at emulated version 1.34" in str(leader.error)
    assert lease.holder(store) is None


def test_without_an_answer_nobody_leads(api: FakeApi, run: Run, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version_module, "PATIENCE_S", 0.0)
    version, api.version = api.version, None
    leader = run()
    wait_until("it says why", lambda: "GET /version" in leader.leader.progress.trouble)
    assert leader.told() == ("", "")
    api.version = version
    wait_until("it leads", lambda: leader.leads)
    assert leader.told() == ("1.37", "")


def test_a_cluster_that_was_upgraded_is_seen_by_the_next_reign(
    api: FakeApi, run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(HEAD + "podInitialBackoffSeconds: 2\n")
    says(api, "36")
    leader = run(file=file)
    wait_until("it leads", lambda: leader.leads)
    before = leader_config.read(leader.store)
    says(api, "37")
    leader.leads_again()
    after = leader_config.read(leader.store)
    assert before is not None
    assert after is not None
    assert (before.version, after.version) == ("1.36", "1.37")
    assert before.hash != after.hash, "workers take up the new one"
    assert after.text == before.text == file.read_text()
    file.write_text(HEAD + "podInitialBackoffSeconds: 3\n")
    leader.leader._configured.ask()
    wait_until("the file is read", lambda: (leader_config.read(leader.store) or after).text == file.read_text())
    assert leader.told() == ("1.37", "")


def test_one_that_has_led_goes_on_as_it_was_where_the_new_version_does_not_take_its_gates(
    api: FakeApi, run: Run, store: Store
) -> None:
    says(api, "35")
    leader = run(asked(None, ["StorageCapacityScoring=true", f"{GATE}=true"]))
    wait_until("it leads", lambda: leader.leads)
    says(api, "34")
    leader.leads_again()
    assert leader.told()[0] == "1.35"
    noted = [each.error for each in leaders.read(store)]
    wait_until("it is noted", lambda: any(GATE in each.error for each in leaders.read(store)))
    says(api, "37")
    leader.leads_again()
    assert leader.told()[0] == "1.37", noted
    wait_until("nothing is wrong any more", lambda: not any(each.error for each in leaders.read(store)))


def test_the_metrics_say_it_as_kubernetes_components_do(run: Run) -> None:
    leader = run(asked("1.36", [f"{GATE}=true"]))
    build, enabled, own = EmulatedVersion(lambda: leader.leader.config.features).collect()
    (sample,) = build.samples
    assert (sample.name, sample.value) == ("kubernetes_build_info", 1)
    assert (sample.labels["major"], sample.labels["minor"]) == ("1", "36")
    assert sample.labels["git_version"].startswith("v1.36.0-dsched-")
    assert list(sample.labels) == [
        *("major", "minor", "git_version", "git_commit", "git_tree_state"),
        *("build_date", "go_version", "compiler", "platform"),
    ]
    found = {each.labels["name"]: (each.labels["stage"], each.value) for each in enabled.samples}
    assert {each.name for each in enabled.samples} == {"kubernetes_feature_enabled"}
    assert {(each.name, each.value) for each in own.samples} == {("dsched_feature_enabled", 0)}
    assert found[GATE] == ("ALPHA", 1)
    assert found["StorageCapacityScoring"] == ("ALPHA", 0)
    assert found["NodeDeclaredFeatures"] == ("BETA", 1)
    assert found["DynamicResourceAllocation"] == ("", 1)
    assert "CompositePodGroup" not in found, "1.37 has it first"
