"""Scenarios with queues, and what says that one had more than its limit."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from dsched import config
from dsched.model.queues import LABEL
from dsched.plugins import registry
from tests.faults import queued
from tests.faults.history import ADDED, BOUND, DELETED, LOST, Entry
from tests.faults.scenario import STANDALONE, all_scenarios
from tests.manifests import pod_manifest

RED, BLUE = queued.labels(0, own=False), queued.labels(1, own=False)


SHARED = {"name": "gpu", "resourceClaimName": "shared"}
OWN_CLAIM = {"name": "gpu", "resourceClaimTemplateName": "gpu"}


def pods(count: int, cpu: str = "1", labels: dict[str, str] = RED, **spec: Any) -> list[Entry]:
    """As many pods of queue red, or another one, created and bound."""
    found: list[Entry] = []
    for number in range(count):
        containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
        value = pod_manifest(f"default/p{number}", labels=labels, containers=containers, **spec)
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


def test_devices_are_looked_at() -> None:
    assert queued.exceeded(pods(4, "1m", resourceClaims=[OWN_CLAIM]), lifted=100) == []
    (told,) = queued.exceeded(pods(5, "1m", resourceClaims=[OWN_CLAIM]), lifted=100)
    assert told == f"I14 queue red had 5 of {queued.GPU}, more than 4, once default/p4 was bound"


def test_a_claim_that_several_share_counts_once_for_each_queue() -> None:
    red = pods(4, "1m", resourceClaims=[SHARED])
    assert queued.exceeded(red, lifted=100) == []
    blue = [replace(each, uid=f"blue-{each.uid}") for each in pods(4, "1m", BLUE, resourceClaims=[SHARED])]
    own = [replace(each, at=9, uid=f"own-{each.uid}") for each in pods(4, "1m", BLUE, resourceClaims=[OWN_CLAIM])]
    found = queued.exceeded([*red, *blue, *own], lifted=100)
    assert found == [f"I14 queue teams had 8 of {queued.GPU}, more than 7, once default/p3 was bound"]
    left = [Entry(8, number, DELETED, "Pod", each.key, each.uid) for number, each in enumerate(red) if each.object]
    assert queued.exceeded([*red, *blue, *left, *own], lifted=100) == []


def test_who_waits_for_devices_that_others_have_is_not_judged_by_who_knows_none() -> None:
    def made(number: int, claim: dict[str, str] | None, node: str = "") -> dict[str, Any]:
        placed = {"nodeName": node} if node else {}
        return pod_manifest(f"default/p{number}", **placed, **({"resourceClaims": [claim]} if claim else {}))

    there = [made(number, OWN_CLAIM, "n1") for number in range(queued.DEVICES - 3)]
    waiting = [made(100, OWN_CLAIM), made(101, SHARED), made(102, None)]

    def names(*pods: dict[str, Any]) -> list[str]:
        found = queued.judged([*pods, *waiting])
        assert not any(pod["spec"]["resourceClaims"] for pod in found)
        return [pod["metadata"]["name"] for pod in found if not pod["spec"].get("nodeName")]

    assert names(*there) == ["p100", "p101", "p102"]
    assert names(*there, made(50, OWN_CLAIM, "n1"), made(51, OWN_CLAIM, "n1")) == ["p100", "p102"]
    assert names(*there, made(50, SHARED, "n1"), made(51, OWN_CLAIM, "n1")) == ["p101", "p102"]


def test_pods_of_the_churn_claim_devices_in_each_queue() -> None:
    found = {
        (queued.labels(number, own=False)[LABEL], name) for number in range(10) if (name := queued.claim(number, False))
    }
    assert found == {("red", "shared"), ("red", "gpu"), ("blue", "shared"), ("blue", "gpu")}


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
