"""What a leader makes of its configuration file: a look at a time, no thread."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dsched.clock import SystemClock
from dsched.config import Features, feature_gates
from dsched.errors import ConfigError
from dsched.leader import config_watch as configured_module
from dsched.leader.config_watch import HOLDS_KEYS, ConfigWatch, Loaded
from dsched.leader.health import LeaderHealth, Stage
from dsched.metrics import CONFIG_REFUSED, CONFIG_RELOADS
from dsched.plugins import profiles, registry
from dsched.state import leaders
from dsched.state.client import Store
from tests.integration.workers.processes import wait_until
from tests.metrics import value

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
MORE = "podInitialBackoffSeconds: 2\n"
BAD = "percentageOfNodesToScore: 200\n"


class Watched:
    """A configuration in a file, and how often another one was taken up."""

    def __init__(
        self, store: Store, file: Path | None, cluster: str = "standalone", features: Features = feature_gates.UNSAID
    ) -> None:
        self.taken = 0
        clock, plugins = SystemClock(), registry.intree()
        self.first = profiles.configuration(file, plugins, features)
        self.progress = LeaderHealth(clock)
        self.configured = ConfigWatch(
            store, "me", cluster, self.first, plugins, self.progress, clock, file, self._count
        )

    def _count(self) -> None:
        self.taken += 1

    @property
    def hash(self) -> str:
        return self.configured.loaded.config.hash

    def look(self, times: int = 1, *, at_once: bool = False) -> None:
        for _ in range(times):
            self.configured.look(at_once=at_once)

    def told(self) -> Any:
        return self.configured._told(0)


class Reloads:
    """Reloads counted since."""

    def __init__(self) -> None:
        self._before = self._now()

    def __call__(self) -> dict[str, int]:
        return {result: count - self._before[result] for result, count in self._now().items()}

    def _now(self) -> dict[str, int]:
        return {result: int(value(CONFIG_RELOADS.labels(result))) for result in ("taken", "unchanged", "refused")}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "scheduler.yaml"
    found.write_text(HEAD)
    return found


@pytest.fixture
def watched(store: Store, file: Path) -> Iterator[Watched]:
    yield Watched(store, file)
    CONFIG_REFUSED.set(0)


def test_a_file_that_stays_is_not_read_twice(watched: Watched) -> None:
    reloads = Reloads()
    watched.look(3)
    assert watched.taken == 0
    assert set(reloads().values()) == {0}


def test_a_change_is_taken_up_once_it_has_stood_for_two_looks(watched: Watched, file: Path) -> None:
    reloads = Reloads()
    watched.look()
    file.write_text(HEAD + MORE)
    watched.look()
    assert watched.hash == watched.first.hash
    watched.look(3)
    assert watched.hash != watched.first.hash
    assert watched.taken == 1
    assert reloads() == {"taken": 1, "unchanged": 0, "refused": 0}


def test_who_asks_does_not_wait(watched: Watched, file: Path) -> None:
    file.write_text(HEAD + MORE)
    watched.look(at_once=True)
    assert watched.taken == 1


def test_a_bad_file_leaves_the_last_good_one(watched: Watched, file: Path) -> None:
    reloads = Reloads()
    file.write_text(HEAD + BAD)
    watched.look(4)
    assert (watched.hash, watched.taken) == (watched.first.hash, 0)
    assert "percentageOfNodesToScore" in watched.told().error
    assert value(CONFIG_REFUSED) == 1
    assert reloads()["refused"] == 1, "what stays bad is refused once"
    file.write_text(HEAD)
    watched.look(2)
    assert (watched.told().error, value(CONFIG_REFUSED)) == ("", 0)
    assert watched.taken == 0


def test_a_profile_that_cannot_be_built_is_refused(watched: Watched, file: Path) -> None:
    file.write_text(HEAD + "extenders: [{urlPrefix: 'https://e', filterVerb: f, tlsConfig: {caFile: /missing/ca}}]\n")
    watched.look(2)
    assert watched.taken == 0
    assert watched.told().error


def test_what_means_the_same_starts_nothing_anew(watched: Watched, file: Path) -> None:
    reloads = Reloads()
    file.write_text(HEAD + "# a comment\n")
    watched.look(2)
    assert watched.taken == 0
    assert reloads()["unchanged"] == 1
    assert watched.configured.loaded.text == HEAD + "# a comment\n"


def test_a_swapped_link_is_seen(store: Store, tmp_path: Path) -> None:
    """As a kubelet updates a mounted ConfigMap: ``..data`` is made to point elsewhere."""
    for folder, text in (("..one", HEAD), ("..two", HEAD + MORE)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "scheduler.yaml").write_text(text)
    (tmp_path / "..data").symlink_to("..one")
    (tmp_path / "scheduler.yaml").symlink_to("..data/scheduler.yaml")
    watched = Watched(store, tmp_path / "scheduler.yaml")
    watched.look(2)
    (tmp_path / "..tmp").symlink_to("..two")
    (tmp_path / "..tmp").rename(tmp_path / "..data")
    watched.look(2)
    assert watched.taken == 1


def test_a_file_that_is_away_for_a_moment_is_no_error(watched: Watched, file: Path) -> None:
    text = file.read_text()
    watched.look()
    file.unlink()
    watched.look()
    assert watched.told().error == ""
    watched.look()
    assert "cannot be read" in watched.told().error
    file.write_text(text)
    watched.look(2)
    assert (watched.told().error, watched.taken) == ("", 0)
    CONFIG_REFUSED.set(0)


def test_private_keys_are_not_published(store: Store, file: Path) -> None:
    plugins = registry.intree()
    text = HEAD + "extenders: [{urlPrefix: 'https://e', filterVerb: f, tlsConfig: {certData: Yg==, keyData: YQ==}}]\n"
    config = profiles.parsed(text, "scheduler.yaml", plugins)
    told = Loaded(config, text, "scheduler.yaml").published(3, "standalone")
    assert (told.text, told.withheld) == ("", HOLDS_KEYS)
    told = Loaded(profiles.parsed(HEAD, "scheduler.yaml", plugins), HEAD, "scheduler.yaml").published(3, "standalone")
    assert (told.text, told.withheld) == (HEAD, "")


def test_what_takes_a_restart_is_said(store: Store, file: Path) -> None:
    watched = Watched(store, file, cluster="kubernetes")
    file.write_text(HEAD + "clientConnection: {kubeconfig: /other}\nprofiles: [{schedulerName: other}]\n")
    watched.look(2)
    assert watched.taken == 1
    assert len(watched.told().restart) == 2


@contextmanager
def running(store: Store, file: Path) -> Iterator[Watched]:
    """A configuration whose thread looks at it, noted in Redis."""
    watched = Watched(store, file)
    watched.configured.start()
    try:
        wait_until("it is noted", lambda: leaders.read(store))
        yield watched
    finally:
        watched.configured.close()


def test_the_thread_notes_the_process_and_answers_requests(
    store: Store, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configured_module, "LOOK_EVERY_S", 0.01)
    with running(store, file):
        file.write_text(HEAD + BAD)
        number = leaders.ask_reload(store)
        wait_until("it has answered", lambda: leaders.read(store)[0].reload == number)
        assert "percentageOfNodesToScore" in leaders.read(store)[0].error
    assert leaders.read(store) == []


def test_what_the_process_does_is_told_when_it_changes(
    store: Store, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a leader that has just begun shows as standing by, and one that has lost its lease as leading."""
    monkeypatch.setattr(configured_module, "LOOK_EVERY_S", 3600.0)
    with running(store, file) as watched:
        for stage, epoch in ((Stage.TAKEOVER, 3), (Stage.LEADING, 3), (Stage.STANDBY, 0)):
            watched.progress.enter(stage, epoch)
            wait_until(stage, lambda: [(each.stage, each.epoch) for each in leaders.read(store)] == [(stage, epoch)])  # noqa: B023


def test_the_signal_of_the_plugin_watch_goes_to_other_threads(store: Store, file: Path) -> None:
    """One at the very moment the wait is over would make it wait for ever: nothing was read and told any more."""
    with running(store, file):
        (thread,) = [each for each in threading.enumerate() if each.name == "configuration"]
        status = Path(f"/proc/self/task/{thread.native_id}/status").read_text()
        blocked = int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigBlk")), 16)
        assert blocked >> (signal.SIGALRM - 1) & 1


# -- another version -----------------------------------------------------------------------------------------------

SHAPE = "[{utilization: 0, score: 0}, {utilization: 100, score: 10}]"
FOR_NEWEST = f"profiles: [{{pluginConfig: [{{name: VolumeBinding, args: {{shape: {SHAPE}}}}}]}}]\n"
NEWEST = feature_gates.features(feature_gates.NEWEST)


def test_the_file_is_read_for_the_version_that_is_emulated(watched: Watched, file: Path) -> None:
    before = watched.hash
    watched.configured.emulate(NEWEST)
    loaded = watched.configured.loaded
    assert (loaded.config.features, loaded.text, loaded.source) == (NEWEST, HEAD, str(file))
    assert watched.hash != before
    assert watched.taken == 0, "who asks for it begins with it"
    published = loaded.published(1, "standalone")
    assert (published.version, published.gates) == ("1.37", "")
    file.write_text(HEAD + FOR_NEWEST)
    watched.look(at_once=True)
    assert (watched.taken, watched.told().error) == (1, "")
    assert watched.configured.loaded.config.features == NEWEST


def test_a_file_that_is_none_for_that_version_stays_as_it_was(store: Store, file: Path) -> None:
    file.write_text(HEAD + FOR_NEWEST)
    watched = Watched(store, file, features=NEWEST)
    before = watched.configured.loaded
    with pytest.raises(ConfigError, match="shape"):
        watched.configured.emulate(feature_gates.UNSAID)
    assert watched.configured.loaded is before


def test_what_was_refused_is_tried_again_for_another_version(watched: Watched, file: Path) -> None:
    watched.look()
    file.write_text(HEAD + FOR_NEWEST)
    watched.look(3)
    assert "shape" in watched.told().error
    watched.configured.emulate(NEWEST)
    watched.look(2)
    assert (watched.taken, watched.told().error) == (1, "")


def test_the_default_configuration_is_that_of_the_version(store: Store) -> None:
    watched = Watched(store, None)
    watched.configured.emulate(NEWEST)
    assert watched.hash == profiles.configuration(None, {}, NEWEST).hash
    assert watched.configured.loaded.published(1, "standalone").withheld == ""


def test_a_file_that_changed_while_the_process_was_starting_is_read_for_the_version(store: Store, file: Path) -> None:
    clock, plugins = SystemClock(), registry.intree()
    first = profiles.configuration(file, plugins)
    file.write_text(HEAD + MORE)
    configured = ConfigWatch(store, "me", "standalone", first, plugins, LeaderHealth(clock), clock, file)
    assert configured.loaded.text is None
    configured.emulate(NEWEST)
    assert (configured.loaded.text, configured.loaded.config.features) == (HEAD + MORE, NEWEST)
    file.unlink()
    configured.loaded = Loaded(first, None)
    with pytest.raises(ConfigError, match="cannot be read"):
        configured.emulate(feature_gates.features(feature_gates.Version(1, 36)))
