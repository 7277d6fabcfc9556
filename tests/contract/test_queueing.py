"""The queue: in the leader, over Redis, and in a simulation, the same pods stand in the same places and have the same
turns."""

from pathlib import Path
from typing import Any

import pytest

from dsched.framework.interface import Action, ClusterEvent, Resource
from dsched.model.meta import PodKey
from dsched.scheduler.decision import GroupEnd
from dsched.state.client import Store
from tests.builders import make_node
from tests.contract.queueing import Both, Door, End, make
from tests.integration.leader.rig import Rig

LATER = ["later"]
"""A scheduling gate."""


@pytest.fixture
def both(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    rig = Rig(store, tmp_path, monkeypatch)
    yield Both(rig)
    rig.over()


def test_turns_go_by_priority_then_by_who_came_first(both: Both) -> None:
    both.put(make("a"), make("b", priority=5), make("c"), make("d", priority=5))
    turns = both.run_dry("Size")
    assert turns == [(f"default/{name}", 1) for name in "bdac"]
    assert both.places() == {f"default/{name}": "unschedulable" for name in "abcd"}


def test_who_was_helped_is_tried_again_before_his_pause_is_over_when_nobody_else_is_left(both: Both) -> None:
    both.put(make("a"), make("b", priority=5), make("other", "b"))
    both.run_dry("Size")
    both.helped(Size="a")
    assert both.places() == {
        "default/a": "backoff",
        "default/b": "backoff",
        "default/other": "unschedulable",
    }
    both.put(make("late", priority=-5))
    assert both.run_dry("Shape") == [("default/late", 1), ("default/b", 2), ("default/a", 2)]
    both.helped(Size="all")
    assert both.run_dry("Size") == [("default/other", 2)], "the others were rejected by Shape meanwhile"


def often_and_seldom(both: Both) -> None:
    """A pod that has to pause for long, and one of lower priority that does not."""
    both.put(make("often", "a", priority=5))
    both.run_dry("Size")
    for _ in range(3):
        both.helped(Size="a")
        both.run_dry("Size")
    both.put(make("seldom", "a"))
    both.run_dry("Size")


def test_longer_pauses_end_later(both: Both) -> None:
    often_and_seldom(both)
    both.helped(Size="all")
    assert both.run_dry("Size") == [("default/seldom", 2), ("default/often", 5)]


def test_pauses_that_are_over_leave_the_order_to_priority(both: Both) -> None:
    often_and_seldom(both)
    both.passed(60)
    both.helped(Size="all")
    assert set(both.places().values()) == {"active"}
    assert both.run_dry("Size") == [("default/often", 5), ("default/seldom", 2)]


def test_a_pause_ends_while_others_are_tried(both: Both) -> None:
    both.put(make("often", "a", priority=5))
    both.run_dry("Size")
    both.helped(Size="all")
    both.put(make("b"), make("c"))
    assert both.pop() == ("default/b", 1)
    both.failed(("default/b", 1), "Size")
    both.passed(3)
    assert both.run_dry("Size") == [("default/often", 2), ("default/c", 1)]


def test_gates_hold_back_until_they_are_gone(both: Both) -> None:
    both.put(make("gated", priority=9, gates=LATER), make("a"))
    both.helped(Size="all", Shape="all")
    assert both.places() == {"default/gated": "gated", "default/a": "active"}
    both.change(make("gated", priority=9))
    assert both.run_dry("Size") == [("default/gated", 1), ("default/a", 1)]


def test_a_change_of_the_pod_itself_may_help_it(both: Both) -> None:
    both.put(make("a"), make("b"))
    both.run_dry("Size")
    both.change(make("a", "b"))
    assert both.pop() is None
    both.change(make("a", "c"))
    assert both.run_dry("Size") == [("default/a", 2)]


def test_who_is_gone_has_no_turn(both: Both) -> None:
    both.put(make("a"), make("b"), make("c"))
    both.gone("default/a")
    assert both.pop() == ("default/b", 1)
    both.gone("default/b")
    assert both.run_dry("Size") == [("default/c", 1)]
    both.helped(Size="all")
    both.gone("default/c")
    assert both.pop() is None
    both.put(make("c"))
    assert both.pop() == ("default/c", 1)


def test_who_was_unschedulable_for_long_while_pods_have_gone_has_another_turn(both: Both) -> None:
    both.put(make("a"), make("b", priority=5), make("c"))
    both.run_dry("Size")
    left = ClusterEvent(Resource.NODE, Action.DELETE, old=make_node("n1", labels={"Size": "nobody"}))
    for each in both.all:
        each.happened(left)
        each.passed(400)
        each.rescued()
    turns = [[candidate.info.key for each in "abc" if (candidate := one.pop())] for one in both.all]
    assert turns[0] == turns[1] == ["default/b", "default/a", "default/c"]


# -- plugins that have pods tried again --------------------------------------------------------------------------------


def test_activated_pods_have_their_turn_whatever_their_pauses(both: Both) -> None:
    both.put(make("a"), make("b"), make("c"))
    both.run_dry("Size")
    both.activate("default/b", "default/nobody")
    assert both.places() == {"default/a": "unschedulable", "default/b": "active", "default/c": "unschedulable"}
    assert both.run_dry("Size") == [("default/b", 2)]
    both.helped(Size="all")
    assert both.of("default/b").place == "backoff"
    both.activate("default/b")
    assert both.of("default/b").place == "active"


def test_a_pod_that_is_activated_after_an_error_does_not_wait(both: Both) -> None:
    both.put(make("a"))
    fail(both)
    assert both.of("default/a").place == "backoff"
    both.activate("default/a")
    assert both.pop() == ("default/a", 2)


def test_a_pod_that_is_activated_in_flight_waits_for_its_pause(both: Both) -> None:
    both.put(make("a"))
    turn = both.pop() or ("", 0)
    both.helped(Size="nobody")
    for each in both.all:
        each.pending.activate([PodKey("default/a")])
    for each, tried in zip(both.all, both._tried[turn[0]], strict=True):
        each.ended(tried, {"default/a": End(frozenset({"Size"}))}, GroupEnd.UNSCHEDULABLE)
        each.activated([])
    assert both.of("default/a").place == "backoff"


def test_activated_pods_are_held_back_still(both: Both) -> None:
    Door.shut = {"b"}
    both.put(make("gated", gates=LATER), make("shut", "b"))
    Door.shut = set()
    both.activate("default/gated", "default/shut")
    assert both.places() == {"default/gated": "gated", "default/shut": "active"}


# -- attempts that end in an error -------------------------------------------------------------------------------------


def fail(both: Both, error: str = "no answer") -> list[str]:
    """Everybody has his turn, and a plugin fails with him."""
    tried = []
    while (turn := both.pop()) is not None:
        tried.append(turn[0])
        both.failed(turn, error=error)
    return tried


def test_after_an_error_a_pod_waits_for_the_end_of_its_pause(both: Both) -> None:
    both.put(make("a"), make("b"))
    both.failed(both.pop() or ("", 0), error="no answer")
    assert both.of("default/a").place == "backoff" and both.of("default/a")[1:4] == (1, 0, 1)
    assert both.run_dry("Size") == [("default/b", 1)], "the pause of an error is waited for"
    both.helped(Size="all")
    assert both.run_dry("Size") == [("default/b", 2)]
    both.passed(2)
    assert both.places() == {"default/a": "active", "default/b": "unschedulable"}
    assert both.pop() == ("default/a", 2)


def test_pauses_after_errors_double_and_begin_anew_once_a_plugin_has_rejected_the_pod(both: Both) -> None:
    both.put(make("a"))
    pauses = []
    for _ in range(6):
        began_ms = both.leading.clock.now_ms()
        assert fail(both) == ["default/a"]
        pauses.append((both.of("default/a").ends_ms - began_ms) // 1000)
        both.passed(pauses[-1])
    assert pauses == [2, 3, 5, 9, 11, 11], "the second in which 1, 2, 4, 8, 10, 10 end is waited for to its end"
    turn = both.pop()
    assert turn == ("default/a", 7)
    both.failed(turn, "Size")
    assert both.of("default/a")[1:4] == (7, 1, 0)
    both.helped(Size="all")
    both.failed(both.pop() or ("", 0), error="no answer")
    assert both.of("default/a")[1:4] == (8, 1, 1)


def test_pods_after_errors_are_tried_again_in_the_order_of_the_queue(both: Both) -> None:
    both.put(make("a"), make("b", priority=5), make("c"))
    assert fail(both) == ["default/b", "default/a", "default/c"]
    both.passed(30)
    assert fail(both) == ["default/b", "default/a", "default/c"]


def test_while_time_stands_still_a_pod_after_an_error_waits(both: Both) -> None:
    both.put(make("a"))
    fail(both)
    assert both.pop() is None


def test_after_an_error_pre_enqueue_is_asked(both: Both) -> None:
    both.put(make("a"))
    turn = both.pop()
    Door.shut.add("a")
    assert turn is not None
    both.failed(turn, error="no answer")
    assert both.of("default/a").place == "gated" and both.of("default/a").plugins == ("Door",)
    Door.shut.clear()
    both.helped(Door="a")
    assert both.places() == {"default/a": "backoff"}
    assert both.pop() == ("default/a", 2), "who was gated does not wait for the end of its pause"


def test_one_that_is_gone_after_an_error_is_another_when_it_comes_back(both: Both) -> None:
    both.put(make("a"))
    fail(both)
    both.gone("default/a")
    both.put(make("a"))
    both.passed(5)
    assert both.pop() == ("default/a", 1)
    assert both.pop() is None


# -- attempts that end in Pending --------------------------------------------------------------------------------------


def test_what_a_pending_plugin_waits_for_ends_the_pause(both: Both) -> None:
    both.put(make("a"), make("b", priority=5))
    for _ in "ab":
        both.failed(both.pop() or ("", 0), waiting=["Size"])
    both.put(make("c", priority=9))
    assert both.pop() == ("default/c", 1)
    both.helped(Size="a")
    assert both.of("default/a").place == both.of("default/b").place == "active"
    assert (both.pop(), both.pop()) == (("default/b", 2), ("default/a", 2))


def test_what_only_others_wait_for_does_not_end_the_pause(both: Both) -> None:
    both.put(make("a"), make("b"))
    both.failed(both.pop() or ("", 0), "Shape", waiting=["Size"])
    both.helped(Shape="a")
    assert both.of("default/a").place == "backoff" and both.of("default/a").waiting == ("Size",)
    both.helped(Size="a")
    assert both.of("default/a").place == "backoff", "it is not looked at again"
    both.failed(both.pop() or ("", 0), "Size")
    assert both.pop() == ("default/a", 2)


def test_a_change_of_the_pod_itself_may_be_what_is_waited_for(both: Both) -> None:
    both.put(make("a"))
    both.failed(both.pop() or ("", 0), waiting=["Size"])
    both.change(make("a", "c"))
    assert both.places() == {"default/a": "active"}


def test_nobody_waits_any_more_after_another_attempt(both: Both) -> None:
    both.put(make("a"))
    both.failed(both.pop() or ("", 0), waiting=["Size"])
    both.helped(Size="a")
    both.run_dry("Size")
    both.helped(Size="a")
    assert both.of("default/a").place == "backoff" and both.of("default/a").waiting == ()


# -- PreEnqueue --------------------------------------------------------------------------------------------------------


def test_an_update_takes_gates_away_one_by_one(both: Both) -> None:
    both.put(make("a", gates=["one", "two"]))
    both.change(make("a", gates=["two"]))
    assert both.of("default/a").place == "gated"
    both.change(make("a"))
    assert both.places() == {"default/a": "active"}


def test_another_plugin_gates_once_the_first_does_no_more(both: Both) -> None:
    Door.shut.add("a")
    both.put(make("a", gates=LATER))
    assert both.of("default/a").plugins == ("SchedulingGates",)
    both.change(make("a"))
    assert both.of("default/a").plugins == ("Door",) and both.of("default/a").why == "shut for a"
    both.helped(Door="a")
    assert both.of("default/a").place == "gated"
    both.helped(Size="a")
    Door.shut.clear()
    both.helped(Size="a")
    assert both.of("default/a").place == "gated", "it waits for what the plugin that gates it waits for"
    both.helped(Door="b")
    assert both.of("default/a").place == "gated"
    both.helped(Door="a")
    assert both.places() == {"default/a": "active"}


def test_who_was_rejected_is_gated_when_it_is_helped_and_pauses_when_it_is_let_go(both: Both) -> None:
    both.put(make("a"), make("b", "b"))
    both.run_dry("Size")
    Door.shut.add("a")
    both.helped(Size="all")
    assert both.places() == {"default/a": "gated", "default/b": "backoff"}
    Door.shut.clear()
    both.change(make("a", "c"))
    assert both.places() == {"default/a": "backoff", "default/b": "backoff"}
    both.passed(60)
    assert both.run_dry("Shape") == [("default/a", 2), ("default/b", 2)]
