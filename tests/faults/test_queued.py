"""Scenarios with queues, and what says that one had more than its limit."""

from pathlib import Path

import pytest
import yaml

from dsched import config
from dsched.plugins import registry
from tests.faults import queued
from tests.faults.history import ADDED, BOUND, DELETED, LOST, Entry
from tests.faults.scenario import STANDALONE, all_scenarios
from tests.manifests import pod_manifest

RED = queued.labels(0, own=False)


def pods(count: int, cpu: str = "1") -> list[Entry]:
    """As many pods of queue red, created and bound."""
    found: list[Entry] = []
    for number in range(count):
        containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
        value = pod_manifest(f"default/p{number}", labels=RED, containers=containers)
        found.append(Entry(number, number, ADDED, "Pod", f"default/p{number}", f"u{number}", value))
        found.append(bound(number, number))
    return found


def bound(number: int, at: float) -> Entry:
    return Entry(at, number, BOUND, "Pod", f"default/p{number}", f"u{number}", None, "n1")


def test_a_bind_beyond_a_limit_is_told() -> None:
    assert queued.exceeded(pods(6), lifted=100) == []
    (told,) = queued.exceeded(pods(7), lifted=100)
    assert told == "I14 queue red had 7 of cpu, more than 6, once default/p6 was bound"


def test_limits_above_are_looked_at() -> None:
    found = queued.exceeded(pods(25, cpu="1m"), lifted=100)
    assert found == ["I14 queue teams had 25 of pods, more than 24, once default/p24 was bound"]


def test_who_is_gone_counts_no_more_and_neither_does_what_comes_later() -> None:
    entries = pods(7)
    gone = Entry(5.5, 5, DELETED, "Pod", "default/p0", "u0")
    assert queued.exceeded([*entries[:-2], gone, *entries[-2:]], lifted=100) == []
    assert queued.exceeded(entries, lifted=5.5) == []
    assert queued.exceeded([*entries[:-1], Entry(6, 6, LOST), entries[-1]], lifted=100) == []


@pytest.mark.parametrize("number", [each for each, made in all_scenarios().items() if STANDALONE in made.arenas])
def test_scenarios_in_standalone_mode_can_have_queues(number: int) -> None:
    if number == 27:
        pytest.skip("it has queues of its own")
    found = queued.divided(all_scenarios()[number])
    path = Path(found.options[found.options.index("--config") + 1])
    (profile, *_) = yaml.safe_load(path.read_text())["profiles"]
    assert {"name": "FairShare"} in profile["plugins"]["multiPoint"]["enabled"]
    if number not in (5, 16, 20, 21):  # plugins of other packages
        config.load(path.read_text(), plugins=registry.served(registry.intree()))


def test_a_scenario_about_an_api_server_has_none() -> None:
    about = next(each for each in all_scenarios().values() if STANDALONE not in each.arenas)
    with pytest.raises(ValueError, match="does not run with queues"):
        queued.divided(about)
