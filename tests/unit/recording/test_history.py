"""What a recording says of when what happened."""

import pytest

from dsched.errors import NothingRecorded, RecordingError
from dsched.model import tape
from dsched.model.meta import NodeName, PodUid
from dsched.recording.history import Course, HistoryReader
from tests.builders import make_node
from tests.unit.recording.by_hand import NODE, NOW_MS, ByHand, pod


def seconds(course: Course) -> list[float | None]:
    """When it came, was placed, ended and was evicted, since the beginning."""
    times = (course.came_ms, course.placed_ms, course.ended_ms, course.evicted_ms)
    return [None if each is None else (each - NOW_MS) / 1000 for each in times]


def test_when_a_pod_came_began_and_ended() -> None:
    made = ByHand(there=(pod("old", "a"),))
    made.at = 1
    made.comes("new", "a")
    made.at = 3
    made.begins("new")
    made.at = 8
    made.ends("new")
    made.at = 9
    made.comes("last", "a")
    found = made.history(20)
    assert {uid: seconds(course) for uid, course in found.courses.items()} == {
        "old": [0, 0, None, None],
        "new": [1, 3, 8, None],
        "last": [9, None, None, None],
    }
    assert found.courses[PodUid("new")].run_ms == 5000
    assert found.courses[PodUid("last")].run_ms is None
    assert (found.ended_ms - NOW_MS, found.courses[PodUid("old")].home) == (20_000, NODE)


def test_a_line_without_a_time_is_of_when_the_next_one_with_one_is() -> None:
    """As older releases have recorded: of what comes they say when, of what goes they do not."""
    made = ByHand(timed=False)
    made.at = 1
    made.comes("a", "x")
    made.begins("a")
    made.at = 5
    made.ends("a")
    made.at = 7
    made.comes("b", "x")
    made.at = 8
    made.ends("b")
    found = made.history(30)
    assert [seconds(course) for course in found.courses.values()] == [[1, 1, 7, None], [7, None, 30, None]]


def test_a_pod_waits_from_when_its_last_gate_fell() -> None:
    made = ByHand()
    made.at = 1
    made.comes("a", "x", schedulingGates=[{"name": "later"}])
    made.at = 4
    made.comes("a", "x")
    assert [seconds(course) for course in made.history().courses.values()] == [[4, None, None, None]]


def test_a_place_that_is_lost_before_the_pod_is_bound_does_not_count() -> None:
    made = ByHand()
    made.comes("a", "x")
    made.at = 1
    made.decided("a", node=NODE)
    made.lines.append(tape.Released(PodUid("a")))
    made.at = 2
    made.comes("b", "x")
    made.decided("b", node=NODE)
    made.lines.append(tape.Released(PodUid("b")))
    made.at = 5
    made.begins("a")
    found = made.history()
    assert [seconds(course) for course in found.courses.values()] == [[0, 5, None, None], [2, None, None, None]]


def test_a_pod_that_permit_held_back_waited_until_it_was_let_go() -> None:
    made = ByHand()
    made.comes("a", "x")
    made.at = 1
    made.decided("a", node=NODE)
    made.at = 6
    made.told(tape.Moved(PodUid("a"), "reserved"))
    assert [seconds(course) for course in made.history().courses.values()] == [[0, 6, None, None]]


@pytest.mark.parametrize(
    ("name", "owner", "found"), [("a/2", "", True), ("b", "job", True), ("b", "", False), ("b", "other", False)]
)
def test_who_comes_in_the_place_of_an_evicted_pod_has_its_name_or_its_controller(
    name: str, owner: str, found: bool
) -> None:
    made = ByHand(there=(pod("a/1", "x", owner="job"),))
    made.at = 1
    made.comes("high", "x", priority=9)
    made.decided("high", "a/1")
    made.at = 2
    made.ends("a/1")
    made.at = 3
    made.comes(name, "x", owner=owner)
    made.begins(name)
    made.at = 13
    made.ends(name)
    courses = made.history().courses
    evicted = courses[PodUid("a/1")]
    assert seconds(evicted) == [0, 0, 2, 1]
    assert (evicted.successor is courses[PodUid(name)], evicted.run_ms) == (found, 10_000 if found else None)


def test_each_comes_in_the_place_of_one() -> None:
    made = ByHand(there=tuple(pod(name, "x", owner="job") for name in ("a", "b")))
    made.comes("high", "x", priority=9)
    made.decided("high", "a", "b")
    made.at = 1
    for name in ("c", "d", "e"):
        made.comes(name, "x", owner="job")
    courses = made.history().courses
    successors = [course.successor for course in courses.values()]
    assert successors == [courses[PodUid("c")], courses[PodUid("d")], None, None, None, None]


def test_what_another_beginning_does_not_tell_has_gone() -> None:
    made = ByHand(there=(pod("stays", "x"), pod("goes", "x")))
    made.told(tape.NodeIs(make_node("n2")))
    made.told(tape.ObjectIs("Namespace", "shop", {"metadata": {"name": "shop"}}))
    made.comes("waits", "x")
    made.comes("placed", "x")
    again = ByHand(there=(pod("stays", "x"), pod("placed", "x"), pod("new", "x")))
    again.lines[0] = tape.Began(NOW_MS + 50_000, 2, 7, {}, "")
    made.lines += again.lines
    found = made.history()
    assert {uid: seconds(course)[1:3] for uid, course in found.courses.items()} == {
        "stays": [0, None],
        "goes": [0, 50],
        "waits": [None, 50],
        "placed": [50, None],
        "new": [50, None],
    }
    gone = [change for _, change in found.changes if isinstance(change, tape.NodeGone | tape.ObjectGone)]
    assert gone == [tape.NodeGone(NodeName("n2")), tape.ObjectGone("Namespace", "shop")]
    assert found.beginnings == 2


def test_what_cannot_be_read() -> None:
    with pytest.raises(NothingRecorded, match="no leader told anything"):
        HistoryReader().conclude()
    begun = HistoryReader()
    begun.add(ByHand().lines[0])
    with pytest.raises(NothingRecorded, match="ends before the leader had told all"):
        begun.conclude()
    with pytest.raises(RecordingError, match=r"line 2: .*not with Ready"):
        HistoryReader().add(tape.Ready())
