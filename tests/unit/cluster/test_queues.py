"""What becomes of a queue's status."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dsched.cluster import queues
from dsched.model.queues import QueueStatus

AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.sampled_from(["1", "1500m", 2]))
STATUSES = st.builds(
    QueueStatus,
    usage=AMOUNTS,
    fair_share=AMOUNTS,
    borrowed=AMOUNTS,
    pending=AMOUNTS,
    pending_pods=st.integers(0, 2),
    reclaimed_pods=st.integers(0, 2),
)
NOTHING: dict[str, Any] = {"metadata": {"name": "train"}, "spec": {"weight": 2}}


def merged(old: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    found = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = merged(found.get(name), value)
    return found


def test_a_queue_gets_its_status() -> None:
    found = queues.told(NOTHING, QueueStatus({"cpu": "1500m"}, {"cpu": 2}, pending_pods=3))
    assert found == {**NOTHING, "status": {"usage": {"cpu": "1500m"}, "fairShare": {"cpu": 2}, "pendingPods": 3}}


def test_what_it_says_already_is_not_written() -> None:
    said = {**NOTHING, "status": {"usage": {"cpu": "1"}}}
    assert queues.told(said, QueueStatus({"cpu": "1"})) is None
    assert queues.told(NOTHING, QueueStatus()) is None
    assert queues.changes(said, QueueStatus({"cpu": "1"})) == {}


def test_a_patch_says_what_goes() -> None:
    said = {**NOTHING, "status": {"usage": {"cpu": "1", "memory": "1Gi"}, "pendingPods": 1}}
    assert queues.changes(said, QueueStatus({"cpu": "2"})) == {
        "usage": {"cpu": "2", "memory": None},
        "pendingPods": None,
    }


@given(STATUSES, STATUSES)
def test_a_patch_makes_one_status_of_the_other(before: QueueStatus, after: QueueStatus) -> None:
    queue = queues.told(NOTHING, before) or NOTHING
    wanted = queues.told(NOTHING, after) or NOTHING
    patch = queues.changes(queue, after)
    assert queues.status_of(merged(queue, {"status": patch})) == queues.status_of(wanted)
    assert (patch == {}) == (before == after)
