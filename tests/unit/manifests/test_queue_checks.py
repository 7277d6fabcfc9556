"""Queues are checked each by itself and as the forest that they are together; every problem names its field."""

from pathlib import Path
from typing import Any

import pytest

from dsched.errors import ManifestError
from dsched.manifests import queue_checks
from tests.manifests import Json, guaranteed, loaded, pod_manifest, queue_manifest

GPU = "nvidia.com/gpu"
DEVICES = "gpu.example.com.deviceclass.resource.k8s.io/devices"


def problems(folder: Path, *objects: Json) -> list[str]:
    with pytest.raises(ManifestError) as error:
        loaded(folder, *objects)
    return [problem.partition("]: ")[2] for problem in error.value.problems]


def of(resource: str = "cpu", **fields: Any) -> Json:
    return queue_manifest(resources={resource: fields})


def test_what_is_sound_is_taken(tmp_path: Path) -> None:
    sound = [
        queue_manifest("bare"),
        {"apiVersion": "dsched.io/v1alpha1", "kind": "Queue", "metadata": {"name": "without-spec"}},
        queue_manifest(
            "full",
            "bare",
            weight=0,
            reclaim="LowerPriority",
            minRuntime="1h30m",
            namespaces=["a", "b"],
            resources={
                "cpu": {"guaranteed": "500m", "limit": 1.5, "weight": 3},
                "memory": {"guaranteed": "1Gi", "limit": "1Gi"},
                "pods": {"limit": 10},
                GPU: {"guaranteed": 8},
                DEVICES: {"limit": "4"},
            },
        ),
    ]
    found = loaded(tmp_path, *sound)
    assert [(each.key, each.kind.plural) for each in found] == [
        ("bare", "queues"),
        ("without-spec", "queues"),
        ("full", "queues"),
    ]
    assert found[1].value["spec"] == {}


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        (queue_manifest("q" * 64), f'metadata.name: "{"q" * 64}" is not a label value'),
        (queue_manifest("Q"), 'metadata.name: "Q" is not a DNS subdomain'),
        (queue_manifest("a", "A"), 'spec.parent: "A" is not a DNS subdomain'),
        (queue_manifest("a", "a"), 'spec.parent: "a" is the queue itself'),
        (queue_manifest(weight=-1), "spec.weight: -1 is negative"),
        (queue_manifest(weight=2**31), "spec.weight: 2147483648 is more than 2147483647"),
        (queue_manifest(reclaim="Sometimes"), 'spec.reclaim: "Sometimes" is not one of Never, LowerPriority, Any'),
        (queue_manifest(reclaim=1), "spec.reclaim: expected text, found a whole number"),
        (queue_manifest(minRuntime="10"), 'spec.minRuntime: "10" is not a duration, as 90s, 10m or 1h30m are'),
        (queue_manifest(minRuntime="-1s"), 'spec.minRuntime: "-1s" is negative'),
        (queue_manifest(namespaces=["a", "B"]), 'spec.namespaces[1]: "B" is not a DNS label'),
        (queue_manifest(namespaces=["a", "a"]), 'spec.namespaces[1]: "a" is given twice'),
        (queue_manifest(wait=1), "spec.wait: there is no such field; there are parent, weight, resources, reclaim"),
        (of(guarantee=1), "spec.resources.cpu.guarantee: there is no such field; there are guaranteed, limit, weight"),
        (of(guaranteed="1x"), 'spec.resources.cpu.guaranteed: "1x" is not a quantity'),
        (of(guaranteed=-1), 'spec.resources.cpu.guaranteed: "-1" is negative'),
        (of(limit="-1m"), 'spec.resources.cpu.limit: "-1m" is negative'),
        (of(guaranteed=[]), "spec.resources.cpu.guaranteed: expected a quantity, found a list"),
        (of(guaranteed="2", limit="1999m"), 'spec.resources.cpu.limit: "1999m" is less than what is guaranteed, "2"'),
        (of(weight=-3), "spec.resources.cpu.weight: -3 is negative"),
        (of("memory", weight=2**31), "spec.resources.memory.weight: 2147483648 is more than 2147483647"),
        (of(GPU, limit="500m"), f'spec.resources.{GPU}.limit: "500m" is not a whole number'),
        (of(DEVICES, limit="1.5"), f'spec.resources.{DEVICES}.limit: "1.5" is not a whole number'),
        (of("pods", limit="1.5"), 'spec.resources.pods.limit: "1.5" is not a whole number'),
        (of("a/b/c", limit=1), 'spec.resources.a/b/c: "a/b/c" is not a qualified name'),
        (queue_manifest(resources={"cpu": {}, "memory": 3}), "spec.resources.memory: expected an object, found a who"),
        (queue_manifest(resources=[]), "spec.resources: expected an object, found a list"),
        ({**queue_manifest(), "spec": 3}, "spec: expected an object, found a whole number"),
    ],
)
def test_what_is_wrong_is_refused_by_its_path(tmp_path: Path, manifest: Json, problem: str) -> None:
    (found,) = problems(tmp_path, manifest, pod_manifest("default/other"))
    assert found.startswith(problem)


def forest(*queues: Json, changed: tuple[str, ...] | None = None) -> dict[str, list[str]]:
    """What is wrong with each queue, of those that have changed."""
    by_name = {each["metadata"]["name"]: each for each in queues}
    told: dict[str, list[str]] = {name: [] for name in (by_name if changed is None else changed)}
    reports = {
        name: lambda path, what, own=own: own.append(f"{path}: {what}")  # type: ignore[misc]
        for name, own in told.items()
    }
    queue_checks.forest(by_name, reports)
    return {name: own for name, own in told.items() if own}


def test_a_forest_is_taken() -> None:
    assert forest(queue_manifest("a"), queue_manifest("b", "a"), queue_manifest("c", "b"), queue_manifest("d")) == {}


def test_a_parent_has_to_be_there() -> None:
    told = forest(queue_manifest("a", "x"))
    assert told == {"a": ['spec.parent: there is no queue "x"; apply it first or in the same call']}


def test_no_queue_is_above_itself() -> None:
    circle = [queue_manifest("a", "c"), queue_manifest("b", "a"), queue_manifest("c", "b")]
    below = queue_manifest("d", "c")
    assert forest(*circle, below, changed=("a", "d")) == {"a": ['spec.parent: "c" is below it: a > c > b > a']}
    assert set(forest(*circle)) == {"a", "b", "c"}


def test_children_are_guaranteed_no_more_than_their_parent() -> None:
    parent = queue_manifest("ml", resources=guaranteed(cpu="10", memory="1Gi"))
    a = queue_manifest("a", "ml", resources=guaranteed(cpu="6", memory="1Gi"))
    b = queue_manifest("b", "ml", resources=guaranteed(cpu="4001m"))
    wrong = ['spec.resources.cpu.guaranteed: children of queue "ml" are guaranteed 6 (a) + 4001m (b), together more '
             "than its 10"]  # fmt: skip
    assert forest(parent, a, b) == {"ml": wrong}
    assert forest(parent, a, b, changed=("b",)) == {"b": wrong}
    assert forest(parent, a, b, changed=()) == {}
    assert forest(parent, a) == {}


@pytest.mark.parametrize("resources", [{}, {"cpu": {"limit": "20"}}])
def test_a_parent_that_says_no_guarantee_is_not_compared(resources: Json) -> None:
    queues = [queue_manifest("ml", resources=resources), queue_manifest("a", "ml", resources=guaranteed(cpu="6"))]
    assert forest(*queues) == {}


def test_a_parent_that_is_guaranteed_nothing_is() -> None:
    queues = [queue_manifest("ml", resources=guaranteed(cpu=0)), queue_manifest("a", "ml", resources=guaranteed(cpu=6))]
    assert set(forest(*queues)) == {"ml"}


def test_a_parent_stays_while_children_do() -> None:
    queues = [queue_manifest("ml"), queue_manifest("a", "ml"), queue_manifest("b", "ml"), queue_manifest("c", "a")]
    assert list(queue_checks.left_behind(queues, ["ml"])) == [("ml", ["a", "b"])]
    assert list(queue_checks.left_behind(queues, ["ml", "a"])) == [("a", ["c"]), ("ml", ["b"])]
    assert list(queue_checks.left_behind(queues, ["ml", "a", "b", "c"])) == []
    assert list(queue_checks.left_behind([queue_manifest("a", "gone")], ["gone"])) == []
