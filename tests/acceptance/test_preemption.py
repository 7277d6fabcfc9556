"""Preemption in a whole system: the more important pod gets the room that it makes, and nobody else does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance import fixtures
from tests.acceptance.history import History
from tests.acceptance.system import System
from tests.manifests import node_manifest, other_manifest, pod_manifest

Json = dict[str, Any]


@pytest.fixture(scope="module")
def arena(redis_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A running system; each test has nodes of its own, of 4 cores, that its pods ask for."""
    system = System(tmp_path_factory.mktemp("arena"))
    try:
        system.up("--evaluators", "1", "--binders", "2")
        kind = ("PriorityClass", "scheduling.k8s.io/v1")
        # Those in the middle wait for room and make none, so that what is seen is whether they take that of others.
        never = {"preemptionPolicy": "Never"}
        system.apply(other_manifest(*kind, "high", value=1000), other_manifest(*kind, "mid", value=500, **never))
        yield system
    finally:
        fixtures.end([system])


def pod(key: str, cpu: str, pool: str, **more: Any) -> Json:
    containers = [{"name": "main", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}]
    return pod_manifest(key, containers=containers, nodeSelector={"pool": pool}, **more)


def placed(system: System, namespace: str) -> dict[str, str]:
    """Pods of a namespace to where they are; "" for those that wait."""
    return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in system.get("pods", "-n", namespace)}


def evicted(system: System) -> set[str]:
    """Uids of the pods that were ever evicted."""
    history = History(system.data_dir)
    try:
        return set(history.evicted())
    finally:
        history.close()


def test_the_more_important_pod_gets_the_room_and_no_other_takes_it(arena: System):
    arena.apply(
        node_manifest("a1", labels={"pool": "a"}),
        other_manifest("Namespace", "v1", "a"),
        *(pod(f"a/low{number}", "2", "a") for number in (1, 2)),
    )
    arena.settle()
    assert placed(arena, "a") == {"low1": "a1", "low2": "a1"}
    victims = {each["metadata"]["uid"] for each in arena.get("pods", "-n", "a")}
    # The pod in the middle could take the room as soon as the victims are gone, were it not promised to the other.
    arena.apply(
        *(pod(f"a/mid{number}", "2", "a", priorityClassName="mid") for number in (1, 2)),
        pod("a/high", "3", "a", priorityClassName="high"),
    )
    arena.settle()
    found = placed(arena, "a")
    assert found["high"] == "a1"
    assert (found["mid1"], found["mid2"]) == ("", "")
    assert victims <= evicted(arena)
    assert {"low1", "low2"}.isdisjoint(found)
    told = next(each for each in arena.get("pods", "-n", "a") if each["metadata"]["name"] == "mid1")
    (condition,) = (each for each in told["status"]["conditions"] if each["type"] == "PodScheduled")
    assert "Insufficient cpu" in condition["message"]
    assert arena.ask("fsck").startswith("clean: ")


def test_a_disruption_budget_is_kept_as_long_as_it_can_be(arena: System):
    budget = other_manifest(
        "PodDisruptionBudget",
        "policy/v1",
        "guard",
        spec={"selector": {"matchLabels": {"app": "guarded"}}, "minAvailable": 1},
        status={"disruptionsAllowed": 0},
    )
    budget["metadata"]["namespace"] = "b"
    arena.apply(
        node_manifest("b1", labels={"pool": "b"}),
        node_manifest("b2", labels={"pool": "b"}),
        other_manifest("Namespace", "v1", "b"),
        budget,
        pod("b/guarded", "3", "b", labels={"app": "guarded"}),
    )
    arena.settle()
    arena.apply(pod("b/plain", "3", "b", labels={"app": "plain"}))
    arena.settle()
    before = placed(arena, "b")
    assert sorted(before.values()) == ["b1", "b2"]
    arena.apply(pod("b/first", "3", "b", priorityClassName="high"))
    arena.settle()
    assert placed(arena, "b") == {"guarded": before["guarded"], "first": before["plain"]}
    # There is no other way now: budgets are kept if possible, not at any price.
    arena.apply(pod("b/second", "3", "b", priorityClassName="high"))
    arena.settle()
    assert placed(arena, "b") == {"first": before["plain"], "second": before["guarded"]}
