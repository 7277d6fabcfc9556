"""How a worker's process comes to the leader's configuration, or says why it does not."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dsched import config
from dsched.config import Features, SchedulerConfiguration, feature_gates
from dsched.config.feature_gates import DEFAULT, parse_version
from dsched.emulation import UNSAID
from dsched.errors import ConfigError, PluginError
from dsched.leader.config_watch import HOLDS_KEYS, Loaded
from dsched.plugins import profiles, registry
from dsched.state import keys, leader_config
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
    assert following.config.features == DEFAULT
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
        ("DSCHED_EMULATED_VERSION", "2.0", "--emulated-version: refused"),
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


# -- the version that the leader emulates --------------------------------------------------------------------------

GATE = "TaintTolerationComparisonOperators"
NEWER = feature_gates.features(parse_version("1.36"), {GATE: True, "NodeDeclaredFeatures": False})


def publish_as(store: Store, features: Features, text: str = "", *, withheld: str = "") -> str:
    """As a leader that emulates a version does; without a text, the default configuration."""
    loaded = profiles.parsed(text, "scheduler.yaml", registry.load(), features) if text else config.default(features)
    told = Loaded(loaded, None if withheld else text, "scheduler.yaml").published(take_over(store), "standalone")
    leader_config.publish(store, msgspec.structs.replace(told, withheld=withheld))
    return loaded.hash


@pytest.mark.parametrize("text", ["", MORE])
def test_what_the_leader_emulates_is_followed(store: Store, make: Callable[..., Any], text: str) -> None:
    following = make()
    assert following.config.features == DEFAULT
    wanted = publish_as(store, NEWER, text)
    following.look()
    assert (following.config.hash, following.trouble) == (wanted, "")
    assert following.config.features == NEWER
    older = publish_as(store, feature_gates.features(parse_version("1.35")), text)
    assert following.refusal(older, "standalone") == ""
    assert following.config.features.version == (1, 35)


def test_a_file_that_is_kept_back_is_read_as_the_leader_reads_it(
    store: Store, make: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(MORE)
    following = make(file)
    wanted = publish_as(store, NEWER, MORE, withheld=HOLDS_KEYS)
    assert following.refusal(wanted, "standalone") == ""
    assert following.config.features == NEWER


def test_a_workers_own_file_may_be_for_a_version_that_the_leader_has_to_name(
    store: Store, make: Callable[..., Any], tmp_path: Path
) -> None:
    """Workers are not told what is emulated; the file is refused by the default version."""
    shape = "[{utilization: 0, score: 0}, {utilization: 100, score: 10}]"
    text = HEAD + f"profiles: [{{pluginConfig: [{{name: VolumeBinding, args: {{shape: {shape}}}}}]}}]\n"
    with pytest.raises(ConfigError, match="shape"):
        hash_of(text)
    file = tmp_path / "scheduler.yaml"
    file.write_text(text)
    following = make(file)
    following.check()
    wanted = publish_as(store, feature_gates.features(parse_version("1.37")), text)
    following.look()
    assert (following.config.hash, following.trouble) == (wanted, "")


def test_a_worker_begins_as_its_environment_says_and_then_follows_the_leader(
    store: Store, make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSCHED_EMULATED_VERSION", "1.35")
    monkeypatch.setenv("DSCHED_FEATURE_GATES", f"{GATE}=true")
    following, built = make(), []
    following.build = built.append
    begun = following.config
    assert str(begun.features) == f"1.35 {GATE}=true"
    publish_as(store, begun.features)
    following.look()
    assert (following.config, built) == (begun, []), "nothing to take up"
    wanted = publish_as(store, NEWER)
    following.look()
    assert (following.config.hash, following.trouble) == (wanted, "")


def test_gates_alone_are_for_the_newest_version_that_takes_them(
    make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSCHED_FEATURE_GATES", "NodeDeclaredFeatures=false")  # locked since 1.37
    assert make().config.features.version == (1, 36)


def test_a_leader_of_an_older_release_says_nothing_and_decides_as_the_oldest_version(
    store: Store, make: Callable[..., Any]
) -> None:
    """A rolling upgrade: the entry in Redis has neither field."""
    following = make()
    publish_as(store, NEWER)
    following.look()
    wanted = hash_of(MORE)
    told = {"epoch": take_over(store), "hash": wanted, "cluster": "standalone", "source": "old.yaml", "text": MORE}
    store.redis.set(store.key(keys.CONFIGURATION.name), json.dumps(told))
    following.look()
    assert (following.config.hash, following.trouble) == (wanted, "")
    assert following.config.features == UNSAID


def test_a_leader_of_a_newer_release_may_emulate_what_is_not_known_here(store: Store, make: Callable[..., Any]) -> None:
    following = make()
    told = LeaderConfig(take_over(store), "0123456789ab", "standalone", version="1.99", gates="Wings=true")
    leader_config.publish(store, told)
    following.look()
    assert "cannot emulate kube-scheduler 1.99 Wings=true" in following.trouble
