"""Priorities and default storage classes."""

from typing import Any

from dsched.manifests import admission, kinds
from dsched.manifests.admission import Classes, classes
from tests.manifests import Json, pod_manifest

HIGH: Json = {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"}
USUAL: Json = {"metadata": {"name": "usual"}, "value": 50, "globalDefault": True}
LOW: Json = {"metadata": {"name": "low"}, "value": 10, "globalDefault": True}


def storage(name: str, created: str) -> Json:
    annotations = {admission.DEFAULT_CLASS_ANNOTATION: "true"}
    return {"metadata": {"name": name, "creationTimestamp": created, "annotations": annotations}}


def admitted(known: Classes, stored: Json | None = None, **spec: Any) -> tuple[Json, list[str]]:
    """The pod's spec, and what was reported."""
    value, told = pod_manifest(**spec), []
    admission.admit(kinds.POD, value, stored, known, lambda path, what: told.append(f"{path}: {what}"))
    found = value["spec"]
    return {name: found.get(name) for name in ("priorityClassName", "priority", "preemptionPolicy")}, told


def test_a_class_gives_priority_and_policy():
    found, told = admitted(classes([HIGH], []), priorityClassName="high")
    assert (found, told) == ({"priorityClassName": "high", "priority": 1000, "preemptionPolicy": "Never"}, [])


def test_builtin_classes_need_not_be_applied():
    assert admitted(classes([], []), priorityClassName="system-node-critical")[0]["priority"] == 2_000_001_000
    assert admitted(classes([], []), priorityClassName="system-cluster-critical")[0]["priority"] == 2_000_000_000


def test_without_a_class_the_lowest_default_counts():
    found, _ = admitted(classes([HIGH, USUAL, LOW], []))
    assert found == {"priorityClassName": "low", "priority": 10, "preemptionPolicy": "PreemptLowerPriority"}


def test_without_any_class_priority_is_zero():
    found, _ = admitted(classes([HIGH], []))
    assert found == {"priorityClassName": None, "priority": 0, "preemptionPolicy": "PreemptLowerPriority"}


def test_a_priority_that_the_pod_names_itself_stands():
    assert admitted(classes([USUAL], []), priority=7)[0] == {
        "priorityClassName": None,
        "priority": 7,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def test_an_unknown_class_is_refused():
    _, told = admitted(classes([], []), priorityClassName="none")
    assert told == ['spec.priorityClassName: there is no PriorityClass "none"; apply it first or in the same call']


def test_what_was_admitted_stays_when_the_class_changes():
    stored = pod_manifest(priorityClassName="high", priority=900, preemptionPolicy="PreemptLowerPriority")
    found, _ = admitted(classes([HIGH], []), stored, priorityClassName="high")
    assert found == {"priorityClassName": "high", "priority": 900, "preemptionPolicy": "PreemptLowerPriority"}


def test_claims_get_the_newest_default_storage_class():
    known = classes([], [storage("old", "2024-01-01T00:00:00Z"), storage("new", "2025-01-01T00:00:00Z")])
    claim: Json = {"spec": {}}
    admission.admit(kinds.PERSISTENT_VOLUME_CLAIM, claim, None, known, lambda path, what: None)
    assert claim["spec"] == {"storageClassName": "new"}
    assert classes([], [storage("b", "2025"), storage("a", "2025")]).default_storage == "a"
    none: Json = {"spec": {"storageClassName": ""}}
    admission.admit(kinds.PERSISTENT_VOLUME_CLAIM, none, None, known, lambda path, what: None)
    assert none["spec"] == {"storageClassName": ""}
