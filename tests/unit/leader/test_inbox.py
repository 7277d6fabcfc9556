"""A storm of changes is taken in portions, so that the loop gets to what else it has to do."""

from dsched.cluster.interface import Change, Event
from dsched.leader import inbox
from dsched.leader.inbox import Answered, Heard, Inbox


def heard(count: int, version: int) -> Heard:
    return Heard([Event(Change.ADDED, "Pod", f"default/p{number}", version, "u") for number in range(count)], version)


def test_a_storm_is_taken_in_portions() -> None:
    made = Inbox(cluster=None, results=None, version=0)  # type: ignore[arg-type]
    sent = [heard(400, 1), heard(400, 2), Answered([]), heard(400, 3), heard(1, 4), Answered([])]
    for letter in sent:
        made._letters.put(letter)
    first = made.letters(0.0)
    assert first == [Heard([*sent[0].events, *sent[1].events], 2), sent[2], sent[3]]
    assert sum(len(each.events) for each in first if isinstance(each, Heard)) >= inbox.HEARD_AT_ONCE
    assert made.letters(0.0) == sent[4:]
    assert made.letters(0.0) == []


def test_changes_that_came_one_after_the_other_come_as_one() -> None:
    made = Inbox(cluster=None, results=None, version=0)  # type: ignore[arg-type]
    sent = [heard(2, 1), heard(3, 2), heard(1, 3)]
    for letter in sent:
        made._letters.put(letter)
    (letter,) = made.letters(0.0)
    assert letter == Heard([event for each in sent for event in each.events], 3)
