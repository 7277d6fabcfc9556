"""Who holds which parts of the table: all parts, evenly, and as they were where nobody comes or goes."""

from hypothesis import given
from hypothesis import strategies as st

from dsched.framework.parts import PARTS
from dsched.leader.shares import KEPT_S, Shares

NAMES = st.sets(st.sampled_from([f"evaluator-{number}" for number in range(7)]), min_size=1)


@given(st.lists(NAMES, min_size=1, max_size=8))
def test_every_part_is_held_once_and_no_more_change_hands_than_must(turns: list[set[str]]) -> None:
    shares = Shares()
    before: dict[int, str] = {}
    now_s = 0.0
    for names in turns:
        found = shares.among(names, now_s := now_s + KEPT_S)
        owner = {part: name for name, parts in found.items() for part in parts}
        assert sorted(part for parts in found.values() for part in parts) == list(range(PARTS))
        sizes = {len(found[name]) for name in names}
        assert found.keys() == names
        assert max(sizes) - min(sizes) <= 1
        if before:
            kept_back = {part for part, name in before.items() if name in names}
            moved = [part for part in kept_back if owner[part] != before[part]]
            held = {name: sum(before[part] == name for part in kept_back) for name in names}
            least = sum(max(0, held[name] - len(found[name])) for name in names)
            assert len(moved) == least
        before = owner


def test_who_comes_takes_from_the_others_and_they_only_let_go() -> None:
    shares = Shares()
    first = {name: set(parts) for name, parts in shares.among(["a", "b"], 0.0).items()}
    then = {name: set(parts) for name, parts in shares.among(["a", "b", "c"], 1.0).items()}
    assert then["a"] < first["a"]
    assert then["b"] < first["b"]
    assert then["c"] == set(range(PARTS)) - then["a"] - then["b"]


def test_more_evaluators_than_parts() -> None:
    found = Shares().among([f"e{number}" for number in range(PARTS + 3)], 0.0)
    assert sorted(len(parts) for parts in found.values()) == [0] * 3 + [1] * PARTS


def test_nobody() -> None:
    assert Shares().among([], 0.0) == {}


def test_who_is_away_for_a_while_keeps_its_parts() -> None:
    shares = Shares()
    first = {name: list(parts) for name, parts in shares.among(["a", "b"], 0.0).items()}
    assert shares.among(["b"], KEPT_S - 1) == first
    assert shares.among(["a", "b"], KEPT_S + 1) == first
    assert shares.among(["b"], 2 * KEPT_S) == first
    assert shares.among(["b"], 2 * KEPT_S + 1) == {"b": list(range(PARTS))}
