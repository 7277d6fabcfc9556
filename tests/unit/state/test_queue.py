"""Moves as scripts take them, records as they are kept."""

from dsched.model.meta import PodKey, PodUid
from dsched.scheduler.ports import Move, QueueName, Record

KEY, UID = PodKey("ns/a"), PodUid("uid-a")


def test_a_move_is_packed_in_the_order_of_the_script():
    move = Move(KEY, UID, QueueName.INFLIGHT, QueueName.BACKOFF, 17, "turn", -5, {"error": 0, "message": "why"})
    assert move.packed() == ["ns/a", "uid-a", "inflight", "backoff", 17, "turn", -5, ["error", 0, "message", "why"]]


def test_a_record_with_everything():
    fields = {"uid": UID, "queue": "unschedulable", "attempts": "3", "plugins": "NodeName NodePorts"}
    record = Record(KEY, fields)
    assert (record.uid, record.queue, record.attempts) == (UID, QueueName.UNSCHEDULABLE, 3)
    assert record.plugins == {"NodeName", "NodePorts"}


def test_a_record_of_a_pod_that_was_never_tried():
    record = Record(KEY, {})
    assert (record.uid, record.queue, record.attempts, record.plugins) == ("", QueueName.NOWHERE, 0, frozenset())
