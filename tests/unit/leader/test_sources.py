"""A storm of changes is taken in portions, so that the loop gets to what else it has to do."""

from dsched.cluster.interface import Change, Event
from dsched.leader import sources
from dsched.leader.sources import Answered, Heard, Sources
from dsched.state.results import Result


def heard(count: int, version: int) -> Heard:
    return Heard([Event(Change.ADDED, "Pod", f"default/p{number}", version, "u") for number in range(count)], version)


def test_a_storm_is_taken_in_portions() -> None:
    made = Sources(cluster=None, results=None, version=0)  # type: ignore[arg-type]
    sent = [heard(400, 1), heard(400, 2), heard(400, 3), heard(1, 4)]
    for letter in sent:
        made._letters.put(letter)
    (first,) = made.letters(0.0)
    assert isinstance(first, Heard)
    assert first == Heard([event for each in sent[:3] for event in each.events], 3)
    assert len(first.events) >= sources.HEARD_AT_ONCE
    assert made.letters(0.0) == sent[3:]
    assert made.letters(0.0) == []


class Reads:
    """Results that come one by one; then the leader stands down."""

    def __init__(self, *results: Result) -> None:
        self.sources = Sources(cluster=None, results=self, version=0)  # type: ignore[arg-type]
        self._left = list(results)

    def read(self, after: str, wait_s: float) -> list[Result]:
        if not self._left:
            self.sources.close()
            return []
        return [self._left.pop(0)]


def test_results_do_not_wait_behind_a_storm() -> None:
    """Else the binders would be done with all they have, and the leader could give them nothing new."""
    results = [Result(f"{number}-0", 1, "binder-1", []) for number in range(3)]
    made = Reads(*results).sources
    for version in range(2):
        made._letters.put(heard(sources.HEARD_AT_ONCE, version))
    made._read_results()
    assert made.letters(0.0) == [heard(sources.HEARD_AT_ONCE, 0), *(Answered([result]) for result in results)]
    assert made.letters(0.0) == [heard(sources.HEARD_AT_ONCE, 1)]
    assert made.letters(0.0) == []


def test_a_result_wakes_the_loop() -> None:
    made = Reads(Result("1-0", 1, "binder-1", [])).sources
    made._read_results()
    assert made._letters.get_nowait() is None


def test_changes_that_came_one_after_the_other_come_as_one() -> None:
    made = Sources(cluster=None, results=None, version=0)  # type: ignore[arg-type]
    sent = [heard(2, 1), heard(3, 2), heard(1, 3)]
    for letter in sent:
        made._letters.put(letter)
    (letter,) = made.letters(0.0)
    assert letter == Heard([event for each in sent for event in each.events], 3)
