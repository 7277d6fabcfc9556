"""What becomes of a pod group's condition."""

from typing import Any

import pytest

from dsched.cluster import pod_groups
from dsched.cluster.interface import GroupStatus
from dsched.model.pod_groups import GroupKey

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"


def said(scheduled: bool, message: str = "", **fields: Any) -> GroupStatus:
    reason = "Scheduled" if scheduled else "Unschedulable"
    return GroupStatus(GroupKey("default/train"), fields.pop("uid", "u1"), scheduled, reason, message, **fields)


def group(*conditions: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "train", "uid": "u1"}, "status": {"conditions": list(conditions), "new": 1}}


def written(status: str, reason: str, message: str = "", **fields: Any) -> dict[str, Any]:
    own = {"lastTransitionTime": THEN, "reason": reason, "message": message}
    return {"type": "PodGroupInitiallyScheduled", "status": status, **fields, **own}


REFUSED, SCHEDULED = written("False", "Unschedulable", "no"), written("True", "Scheduled")


def test_the_first_word_is_written_beside_what_others_say() -> None:
    other = {"type": "DisruptionTarget", "status": "True"}
    found = pod_groups.told(group(other), said(False, "no"), NOW)
    assert found is not None
    assert found["status"] == {"conditions": [other, {**REFUSED, "lastTransitionTime": NOW}], "new": 1}
    bare = pod_groups.told({"metadata": {"uid": "u1"}}, said(True), NOW)
    assert bare is not None
    assert bare["status"]["conditions"] == [{**SCHEDULED, "lastTransitionTime": NOW}]


@pytest.mark.parametrize(
    ("before", "status"),
    [
        (REFUSED, said(False, "no")),
        (SCHEDULED, said(True)),
        (SCHEDULED, said(False, "pods beyond the gang")),
        (REFUSED, said(True, uid="another")),
    ],
)
def test_nothing_is_written(before: dict[str, Any], status: GroupStatus) -> None:
    assert pod_groups.told(group(before), status, NOW) is None


def test_the_time_of_change_is_that_of_the_status() -> None:
    again = pod_groups.condition(group(REFUSED), said(False, "still not"), NOW)
    assert again == {**REFUSED, "message": "still not"}
    changed = pod_groups.condition(group(REFUSED), said(True), NOW)
    assert changed == {**SCHEDULED, "lastTransitionTime": NOW}


def test_the_generation_is_that_of_the_group_as_it_was_decided() -> None:
    found = pod_groups.condition(group(SCHEDULED), said(True, generation=3), NOW)
    assert found == written("True", "Scheduled", observedGeneration=3)
