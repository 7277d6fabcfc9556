"""What was used last is kept."""

from hypothesis import given
from hypothesis import strategies as st

from dsched.lru import LRU


def test_the_one_goes_that_was_used_longest_ago() -> None:
    kept = LRU[str, int](2)
    kept["a"], kept["b"] = 1, 2
    assert kept.used("a") == 1
    kept["c"] = 3
    assert dict(kept) == {"a": 1, "c": 3}
    assert kept.used("b") is None


def test_setting_an_entry_again_uses_it_and_looking_it_up_does_not() -> None:
    kept = LRU[str, int](2)
    kept["a"], kept["b"] = 1, 2
    kept["a"] = 4
    assert kept.get("b") == 2
    kept["c"] = 3
    assert dict(kept) == {"a": 4, "c": 3}


def test_a_lower_limit_holds_from_the_next_entry_on() -> None:
    kept = LRU[int, int](3)
    for number in range(3):
        kept[number] = number
    kept.most = 1
    kept[9] = 9
    assert list(kept) == [9]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5))), st.integers(1, 4))
def test_those_used_last_are_there(steps: list[tuple[bool, int]], most: int) -> None:
    kept, order = LRU[int, int](most), list[int]()
    for sets, key in steps:
        if sets:
            kept[key] = key
        elif kept.used(key) is None:
            continue
        order = [each for each in order if each != key] + [key]
        order = order[-most:]
    assert list(kept) == order
