"""Pod groups in the queue, and the pods beside them, are compared with Redis, repaired, and dumped."""

import pytest

from dsched import config
from dsched.model.meta import PodKey
from dsched.scheduler.ports import QueueName, entity_key
from dsched.state import keys
from dsched.state.queue import read_records
from tests.integration.leader.audit.test_compare import Counting, looks
from tests.integration.leader.audit.test_dump import asked, written
from tests.integration.leader.rig import Led, Rig
from tests.manifests import group_manifest, node_manifest, pod_manifest
from tests.unit.scheduler.grouped import features

KEY, GROUP = "default/train", entity_key("default/train")
POD = "default/train-0"


@pytest.fixture
def led(rig: Rig) -> Led:
    """A gang of three that is gated, for only two of its pods are there."""
    rig.configuration = config.default(features())
    rig.apply(node_manifest("n1"), group_manifest(KEY, min_count=3))
    rig.apply(
        *(pod_manifest(f"default/train-{number}", schedulingGroup={"podGroupName": "train"}) for number in range(2))
    )
    led = rig.lead()
    led.run()
    assert where(led) == BEGAN
    return led


BEGAN = {GROUP: "gated", POD: "group", "default/train-1": "group"}


def where(led: Led) -> dict[str, str]:
    return {record.key: record.fields["queue"] for record in read_records(led.rig.store)}


def listed(led: Led) -> set[str]:
    members = led.rig.store.redis.zrange(led.rig.store.key(keys.GROUP.name), 0, -1)
    return {member.decode() for member in members}


def is_bound_when_whole(led: Led) -> bool:
    """The third pod comes; all three get their node."""
    led.rig.apply(pod_manifest("default/train-2", schedulingGroup={"podGroupName": "train"}))
    led.run()
    return [led.rig.node_of(f"default/train-{number}") for number in range(3)] == ["n1"] * 3


def test_nothing_is_found_where_nothing_is_wrong(led: Led) -> None:
    counting = Counting()
    looks(led)
    assert (counting.repaired(), where(led)) == ({}, BEGAN)
    assert is_bound_when_whole(led)


@pytest.mark.parametrize("key", [GROUP, POD])
def test_a_record_that_was_lost_is_written_anew(led: Led, key: str) -> None:
    counting = Counting()
    led.rig.store.redis.delete(led.rig.store.key(keys.POD.name + key))
    looks(led)
    assert counting.repaired() == {"queue_missing": 1}
    assert where(led) == BEGAN
    assert listed(led) == {f"{KEY} {POD}", f"{KEY} default/train-1"}
    led.run()
    assert is_bound_when_whole(led)


def test_a_pod_that_is_listed_nowhere_is_listed_again(led: Led) -> None:
    counting = Counting()
    led.rig.store.redis.delete(led.rig.store.key(keys.GROUP.name))
    looks(led)
    assert counting.repaired() == {"queue_missing": 2}
    assert listed(led) == {f"{KEY} {POD}", f"{KEY} default/train-1"}
    assert is_bound_when_whole(led)


def test_a_pod_of_a_group_never_stands_in_a_queue(led: Led) -> None:
    counting = Counting()
    record = led.term.memory.pending.get(PodKey(POD))
    assert record is not None
    led.term.state.queue.move([led.term.memory.pending.move(record, QueueName.ACTIVE)])
    looks(led)
    assert counting.repaired() == {"queue_elsewhere": 1}
    assert where(led) == BEGAN
    assert is_bound_when_whole(led)


def test_a_record_of_no_group_is_removed(led: Led) -> None:
    counting = Counting()
    strange = led.rig.store.key(f"{keys.POD.name}podgroup/default/none")
    led.rig.store.redis.hset(strange, mapping={"uid": "x", "queue": "gated"})
    looks(led)
    assert counting.repaired() == {"queue_redundant": 1}
    assert where(led) == BEGAN


def test_groups_are_dumped(led: Led, caplog: pytest.LogCaptureFixture) -> None:
    asked(led)
    queued = {each["pod"]: each for each in written(caplog, "pod in the queue")}
    assert (queued[POD]["queue"], queued[POD]["group"]) == ("group", KEY)
    (group,) = written(caplog, "pod group in the queue")
    assert [group[name] for name in ("group", "queue", "plugins", "pods")] == [KEY, "gated", "GangScheduling", 2]
    (end,) = written(caplog, "dump ends")
    assert [end[name] for name in ("gated", "group", "differences")] == [1, 2, 0]
