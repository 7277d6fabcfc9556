"""PrioritySort."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.plugins.priority_sort import PrioritySort
from tests.builders import make_pod

NO_HANDLE: Any = None
PLUGIN = PrioritySort(None, NO_HANDLE)


def test_the_key_is_minus_priority_and_the_time() -> None:
    assert PLUGIN.sort_key(make_pod(priority=7), 1_700_000_000_000_001) == (-7, "2023-11-14T22:13:20.000001Z")
    assert PLUGIN.sort_key(make_pod(), 0) == (0, "1970-01-01T00:00:00.000000Z")


@settings(deadline=None)
@given(*[st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**52))] * 2)
def test_high_priority_first_then_who_has_waited_longer(first: tuple[int, int], second: tuple[int, int]) -> None:
    keys = [PLUGIN.sort_key(make_pod(priority=priority), queued) for priority, queued in (first, second)]
    assert (keys[0] < keys[1]) is ((-first[0], first[1]) < (-second[0], second[1]))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-(2**22), 2**22) | st.integers(0, 2**52))))
def test_many_are_sorted_as_each_by_itself(given_: list[tuple[int, int]]) -> None:
    pods, queued = [make_pod(priority=priority) for priority, _ in given_], [us for _, us in given_]
    assert PLUGIN.sort_keys(pods, queued) == [PLUGIN.sort_key(*each) for each in zip(pods, queued, strict=True)]
