"""Queue objects as a forest."""

from hypothesis import given
from hypothesis import strategies as st

from dsched.model.queue_forest import Forest
from tests.manifests import Json, queue_manifest

TREE = [queue_manifest("web"), queue_manifest("train", "ml"), queue_manifest("ml"), queue_manifest("infer", "ml")]
CIRCLE = [queue_manifest(*each) for each in (("a", "b"), ("b", "a"), ("c", "b"), ("d", "d"))]
NAMES = st.sampled_from("abcdef")


def in_tree(values: list[Json]) -> list[tuple[int, str]]:
    return [(depth, each["metadata"]["name"]) for depth, each in Forest(values).in_tree()]


def test_children_stand_behind_their_parents_by_name() -> None:
    assert in_tree(TREE) == [(0, "ml"), (1, "infer"), (1, "train"), (0, "web")]


def test_who_is_without_the_parent_stands_at_the_top() -> None:
    assert in_tree([TREE[1]]) == [(0, "train")]


def test_a_circle_that_somebody_wrote_is_there() -> None:
    assert in_tree(CIRCLE) == [(0, "a"), (1, "b"), (2, "c"), (0, "d")]
    assert Forest(CIRCLE).path_of("c") == ["a", "b", "c"]
    assert Forest(CIRCLE).below("b") == {"a", "b", "c"}
    assert Forest(CIRCLE).below("d") == {"d"}


def test_a_place_in_the_tree() -> None:
    forest = Forest(TREE)
    assert forest.path_of("train") == ["ml", "train"]
    assert forest.path_of("ml") == ["ml"]
    assert Forest([queue_manifest("x", "gone")]).path_of("x") == ["gone", "x"]
    assert forest.children_of("ml") == ["infer", "train"]
    assert forest.children_of("train") == []
    assert forest.below("ml") == {"ml", "infer", "train"}
    assert forest.below("who") == {"who"}


@given(st.dictionaries(NAMES, st.one_of(st.just(""), NAMES)))
def test_each_is_there_once_and_below_itself_and_those_above(parents: dict[str, str]) -> None:
    forest = Forest([queue_manifest(name, parent) for name, parent in parents.items()])
    assert sorted(each["metadata"]["name"] for _, each in forest.in_tree()) == sorted(parents)
    for name in parents:
        below = forest.below(name)
        assert all(child in below for each in below for child in forest.children_of(each))
        assert name in below
        assert all(name in forest.below(above) for above in forest.path_of(name) if above in parents)
