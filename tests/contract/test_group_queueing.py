"""Pod groups in the queue: in the leader, over Redis, and in a simulation, they stand in the same places, their pods
beside them, and have the same turns."""

from pathlib import Path
from typing import Any

import pytest

from dsched.manifests import kinds
from dsched.scheduler.ports import entity_key
from dsched.state.client import Store
from tests.contract.queueing import CONFIGURATION, GROUPED, Both, Door, make
from tests.integration.leader.rig import Rig
from tests.manifests import Json, group_manifest

TRAIN = entity_key("default/train")
LATER = ["later"]
"""A scheduling gate."""


@pytest.fixture
def both(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    rig = Rig(store, tmp_path, monkeypatch)
    made = Both(rig, CONFIGURATION, GROUPED)
    made.node("n1")
    yield made
    rig.over()


def gang(both: Both, min_count: int | None, pods: int, name: str = "train", **spec: Any) -> None:
    """A group and its pods."""
    both.object(kinds.POD_GROUP, group_manifest(f"default/{name}", min_count, **spec))
    both.put(*(member(number, name) for number in range(pods)))


def member(number: int, group: str = "train", **given: Any) -> Json:
    return make(f"{group}-{number}", group=group, **given)


def rejected(both: Both, *plugins: str) -> None:
    """The group has its turn, and its pods are rejected."""
    turn = both.pop()
    assert turn is not None and turn[0] == TRAIN
    both.failed(turn, *plugins or ("Size",))


def test_a_gang_waits_for_its_pods_and_is_tried_with_all_of_them(both: Both) -> None:
    gang(both, 2, 1)
    assert both.places() == {TRAIN: "gated", "default/train-0": "group"}
    assert both.pop() is None
    both.put(member(1), make("a"))
    assert both.places()[TRAIN] == "active"
    turn = both.pop()
    assert turn == (TRAIN, 2)
    assert both.pods(turn) == ["default/train-0", "default/train-1"]
    assert both.places()["default/train-1"] == "inflight"


def test_a_gated_group_is_told_what_gates_it_now(both: Both) -> None:
    gang(both, 3, 1)
    before = both.of(TRAIN)
    assert before.plugins == ("GangScheduling",) and before.why
    both.put(member(1, gates=LATER))
    now = both.of(TRAIN)
    assert now.plugins == ("SchedulingGates",)
    assert now.why == "waiting for scheduling gates: [later]"
    both.change(member(1))
    assert both.of(TRAIN) == before


def test_pods_without_their_group_wait_for_it_alone(both: Both) -> None:
    both.put(member(0), member(1, gates=LATER))
    assert both.of("default/train-0").place == both.of("default/train-1").place == "gated"
    both.object(kinds.POD_GROUP, group_manifest("default/train", 1))
    assert both.places() == {TRAIN: "gated", "default/train-0": "group", "default/train-1": "group"}
    assert both.of(TRAIN).plugins == ("SchedulingGates",)
    both.change(member(1))
    assert both.places()[TRAIN] == "active"


def test_a_group_that_fits_nowhere_waits_for_its_pause_and_for_no_event(both: Both) -> None:
    gang(both, 2, 2)
    rejected(both)
    assert both.places() == {TRAIN: "backoff", "default/train-0": "group", "default/train-1": "group"}
    both.helped(Size="all")
    assert both.of(TRAIN).place == "backoff" and both.of(TRAIN).attempts == 1
    both.passed(2)
    assert both.places()[TRAIN] == "active"
    rejected(both)
    both.passed(2)
    assert both.of(TRAIN).place == "backoff", "its pause has doubled"
    both.passed(1)
    assert both.pop() == (TRAIN, 2)
    assert both.of("default/train-0").attempts == 3


def test_pauses_of_groups_double_up_to_the_root_of_how_many_pods_they_have(both: Both) -> None:
    gang(both, 4, 4)
    pauses = []
    for _ in range(6):
        began_ms = both.leading.clock.now_ms()
        rejected(both)
        pauses.append((both.of(TRAIN).ends_ms - began_ms) // 1000)
        both.passed(pauses[-1])
    assert pauses == [2, 3, 5, 9, 17, 21]


def test_after_errors_the_pause_of_a_group_is_by_how_many_there_were_in_a_row(both: Both) -> None:
    gang(both, 2, 2)
    rejected(both)
    for errors in (1, 2, 3):
        both.passed(60)
        both.failed(both.pop() or ("", 0), error="no answer")
        assert (both.of(TRAIN).attempts, both.of(TRAIN).errors) == (1, errors)
    both.passed(60)
    rejected(both)
    assert (both.of(TRAIN).attempts, both.of(TRAIN).errors) == (2, 0)


def test_a_group_is_activated_with_any_of_its_pods(both: Both) -> None:
    gang(both, 2, 2)
    gang(both, 2, 1, "serve")
    rejected(both)
    both.activate("default/train-1", "default/serve-0")
    assert both.places()[TRAIN] == "active"
    assert both.places()[entity_key("default/serve")] == "gated", "it has not enough pods"
    assert both.pop() == (TRAIN, 2)


def test_what_is_left_of_a_group_that_was_placed_has_its_turn_at_once(both: Both) -> None:
    gang(both, 2, 3)
    both.put(make("a"))
    both.placed(both.pop() or ("", 0), "n1", 1, "Size")
    assert both.places() == {TRAIN: "active", "default/train-2": "group", "default/a": "active"}
    assert both.pop() == (TRAIN, 1)
    both.failed((TRAIN, 1), "Size")
    assert both.pop() == ("default/a", 1)
    both.ends("default/train-0")
    both.passed(5)
    assert both.of(TRAIN).place == "active"


def test_a_group_that_was_placed_whole_is_gone(both: Both) -> None:
    gang(both, 2, 2)
    both.placed(both.pop() or ("", 0))
    assert both.places() == {}
    both.put(member(2))
    assert both.places() == {TRAIN: "active", "default/train-2": "group"}, "with those that run it is enough"


def test_pods_leave_their_group_one_by_one(both: Both) -> None:
    gang(both, 2, 3)
    both.gone("default/train-0")
    assert both.places()[TRAIN] == "active"
    both.gone("default/train-1")
    assert both.places()[TRAIN] == "active", "who goes is counted still when the others are asked"
    both.gone("default/train-2")
    assert both.places() == {}
    both.put(member(3))
    assert both.places() == {TRAIN: "gated", "default/train-3": "group"}


def test_who_comes_while_a_group_is_tried_stands_beside_it_afterwards(both: Both) -> None:
    gang(both, 2, 2)
    turn = both.pop()
    assert turn == (TRAIN, 2)
    both.put(member(2))
    assert both.of("default/train-2").place == "group" and both.of(TRAIN).place == "inflight"
    both.failed(turn, "Size")
    both.passed(2)
    assert both.pop() == (TRAIN, 3)


def test_who_joins_a_group_in_backoff_does_not_change_its_pause(both: Both) -> None:
    gang(both, 2, 2)
    rejected(both)
    before = both.of(TRAIN).ends_ms
    both.put(member(2), member(3))
    assert (both.of(TRAIN).place, both.of(TRAIN).ends_ms) == ("backoff", before)
    both.passed(2)
    assert both.pop() == (TRAIN, 4)


def test_who_joins_and_is_gated_gates_the_group(both: Both) -> None:
    gang(both, 2, 2)
    both.put(member(2, gates=LATER))
    assert both.of(TRAIN).place == "gated" and both.of("default/train-2").held
    both.change(member(2))
    assert both.places()[TRAIN] == "active" and not both.of("default/train-2").held


def test_a_gate_that_opens_after_a_pause_began_leaves_it_as_it_was(both: Both) -> None:
    gang(both, 2, 2)
    rejected(both)
    both.put(member(2, gates=LATER))
    assert both.of(TRAIN).place == "gated"
    both.change(member(2))
    assert both.of(TRAIN).place == "backoff"
    both.passed(2)
    assert both.places()[TRAIN] == "active"


def test_an_event_lets_a_group_go_whose_pods_a_plugin_has_gated(both: Both) -> None:
    Door.shut.add("a")
    gang(both, 2, 2)
    assert both.of(TRAIN).plugins == ("Door",)
    both.helped(Size="a")
    both.helped(Door="a")
    assert both.of(TRAIN).place == "gated"
    Door.shut.clear()
    both.helped(Size="a")
    assert both.of(TRAIN).place == "gated", "it waits for what the plugin that gates it waits for"
    both.helped(Door="a")
    assert both.of(TRAIN).place == "active"


def test_once_the_pod_that_held_it_back_has_gone_the_next_event_lets_a_group_go(both: Both) -> None:
    Door.shut.add("b")
    gang(both, 1, 1)
    both.put(member(1, team="b"))
    assert both.of(TRAIN).plugins == ("Door",)
    both.gone("default/train-1")
    assert both.of(TRAIN).place == "gated"
    both.helped(Size="nobody")
    assert both.of(TRAIN).place == "active", "nodes that come are what Door wants to hear of"


def test_a_change_of_a_pod_that_nobody_has_rejected_has_the_group_asked_about(both: Both) -> None:
    gang(both, 1, 1)
    both.put(member(1, gates=LATER))
    both.gone("default/train-1")
    both.change(member(0, team="b"))
    assert both.of(TRAIN).place == "active"


def test_the_pods_of_a_group_that_is_deleted_are_gated_alone(both: Both) -> None:
    gang(both, 2, 2)
    both.put(make("a"))
    rejected(both)
    both.object_gone(kinds.POD_GROUP, "default/train")
    assert both.places() == {"default/train-0": "gated", "default/train-1": "gated", "default/a": "active"}
    both.run_dry("Size")
    both.object(kinds.POD_GROUP, group_manifest("default/train", 2))
    assert both.places()[TRAIN] == "active"
    assert both.pop() == (TRAIN, 2)
    assert both.of("default/train-0").attempts == 2


def test_a_gang_of_fewer_is_let_go(both: Both) -> None:
    gang(both, 3, 2)
    assert both.places()[TRAIN] == "gated"
    both.object(kinds.POD_GROUP, group_manifest("default/train", 2))
    assert both.places()[TRAIN] == "active"


def test_a_group_stands_by_its_priority(both: Both) -> None:
    both.put(make("a", priority=5))
    gang(both, 2, 2)
    gang(both, None, 1, "urgent", priority=9)
    turns = []
    while (turn := both.pop()) is not None:
        turns.append(turn)
        both.failed(turn, "Size")
    assert turns == [(entity_key("default/urgent"), 1), ("default/a", 1), (TRAIN, 2)]


def test_while_time_stands_still_a_group_waits(both: Both) -> None:
    gang(both, 2, 2)
    rejected(both)
    assert both.pop() is None
