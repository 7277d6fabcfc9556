"""How a worker's process comes to the leader's configuration, or says why it does not."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsched.config import SchedulerConfiguration
from dsched.errors import PluginError
from dsched.leader.config_watch import HOLDS_KEYS
from dsched.plugins import profiles, registry
from dsched.state import leader_config
from dsched.state.client import Store
from dsched.state.leader_config import LeaderConfig
from tests.integration.state.support import take_over

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
MORE = HEAD + "podInitialBackoffSeconds: 2\n"


def hash_of(text: str) -> str:
    return profiles.parsed(text, "scheduler.yaml", registry.load()).hash


@pytest.fixture
def make(store: Store, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A process that works for the system, with a file of its own or none."""
    monkeypatch.setenv("DSCHED_REDIS_URL", store.url)
    from workers.leader_config import LeaderConfigFollower

    def make(file: Path | None = None) -> Any:
        monkeypatch.setenv("DSCHED_CONFIG", str(file or ""))
        return LeaderConfigFollower(lambda: store)

    return make


def publish(store: Store, text: str, *, cluster: str = "standalone", withheld: str = "", name: str = "") -> str:
    """As a new leader does; the configuration's hash."""
    wanted = name or hash_of(text)
    told = "" if withheld else text
    leader_config.publish(store, LeaderConfig(take_over(store), wanted, cluster, "scheduler.yaml", told, withheld))
    return wanted


def test_a_worker_without_a_file_takes_up_the_leaders(store: Store, make: Callable[..., Any]) -> None:
    following, built = make(), []
    following.build = built.append
    wanted = publish(store, MORE)
    assert following.refusal(wanted, "standalone") == ""
    assert following.config.hash == wanted
    assert [each.hash for each in built] == [wanted]


def test_a_ping_is_enough(store: Store, make: Callable[..., Any]) -> None:
    following = make()
    following.look()
    assert following.trouble == ""
    wanted = publish(store, MORE)
    following.look()
    assert (following.config.hash, following.trouble) == (wanted, "")
    default = publish(store, HEAD)
    following.look()
    assert following.config.hash == default


def test_a_configuration_that_cannot_be_built_here_is_refused_and_the_old_one_stays(
    store: Store, make: Callable[..., Any]
) -> None:
    following = make()
    before, tried = following.config.hash, []

    def build(config: SchedulerConfiguration) -> None:
        tried.append(config.hash)
        raise PluginError("profile default-scheduler: there is no plugin Mine")

    following.build = build
    wanted = publish(store, MORE)
    for _ in range(3):
        assert "there is no plugin Mine" in following.refusal(wanted, "standalone")
    assert (following.config.hash, tried) == (before, [wanted]), "not tried for each task"
    assert following.refusal(before, "standalone") == ""


def test_what_the_text_comes_to_here_has_to_be_what_the_leader_has(store: Store, make: Callable[..., Any]) -> None:
    """As with a worker of another version."""
    following = make()
    wanted = publish(store, MORE, name="0123456789ab")
    assert "differ in version or plugins" in following.refusal(wanted, "standalone")


def test_a_leader_that_no_longer_leads_turns_nobody_back(
    store: Store, make: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(HEAD)
    following = make(file)
    old, new = following.config.hash, publish(store, MORE)
    assert following.refusal(new, "standalone") == ""
    assert old in following.refusal(old, "standalone")
    assert following.config.hash == new


def test_a_file_that_is_kept_back_is_read_where_the_worker_has_it(
    store: Store, make: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(HEAD)
    following = make(file)
    assert following.config.hash == hash_of(HEAD)
    file.write_text(MORE)
    wanted = publish(store, MORE, withheld=HOLDS_KEYS)
    assert following.refusal(wanted, "standalone") == ""
    assert "DSCHED_CONFIG" in make().refusal(wanted, "standalone")


def test_another_kind_of_cluster_is_refused(
    store: Store, make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    following = make()
    told = following.refusal(following.config.hash, "kubernetes")
    assert "DSCHED_CLUSTER=kubernetes" in told
    assert following.other_cluster("kubernetes")
    assert not following.other_cluster("")
    publish(store, HEAD, cluster="kubernetes")
    following.look()
    assert following.trouble == told
    monkeypatch.setenv("DSCHED_CLUSTER", "kubernetes")
    again = make()
    assert again.refusal(again.config.hash, "kubernetes") == ""


@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [
        ("DSCHED_CONFIG", HEAD + "podInitialBackoff: 2\n", 'unknown field "podInitialBackoff"'),
        ("DSCHED_CLUSTER", "mesos", "DSCHED_CLUSTER=mesos: no such cluster; it can be standalone or kubernetes"),
    ],
)
def test_a_worker_whose_own_settings_are_wrong_ends_and_says_so(
    store: Store, tmp_path: Path, variable: str, value: str, why: str
) -> None:
    if variable == "DSCHED_CONFIG":
        (tmp_path / "scheduler.yaml").write_text(value)
        value = str(tmp_path / "scheduler.yaml")
    done = subprocess.run(
        [sys.executable, "-m", "celery", "-A", "workers.evaluator", "worker", "--concurrency", "1"],
        env={**os.environ, "DSCHED_REDIS_URL": store.url, variable: value},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert why in done.stderr.split("error: ")[-1]
    assert "Traceback" not in done.stderr
