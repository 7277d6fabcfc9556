import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.config import text, tree
from dsched.config.tree import Number


def read(content: str | bytes) -> object:
    return tree.plain(text.parse(content))


def test_text_that_opens_with_a_brace_is_json_and_nothing_else():
    assert read(' \n{"a": [1, "x", null, true, 1.5]}') == {"a": [1, "x", None, True, 1.5]}
    with pytest.raises(text.TextError, match="line 1, column 2"):
        text.parse("{a: 1}")
    with pytest.raises(text.TextError, match="Extra data"):
        text.parse('{"a": 1} {"b": 2}')


@pytest.mark.parametrize("content", ['{"a": NaN}', '{"a": Infinity}', '{"a": 01}', '{"a": 1,}', '{"a"', '{"a": 1e999}'])
def test_json_that_is_none(content: str):
    with pytest.raises(text.TextError):
        text.parse(content)


def test_json_numbers_keep_their_spelling_and_objects_their_repeated_keys():
    parsed = text.parse('{"a": 1.0, "b": 1, "b": 2, "b": 3}')
    assert isinstance(parsed, tree.Object)
    assert (parsed["a"], parsed["b"]) == (Number("1.0"), Number("3"))
    assert parsed.repeated == ("b", "b")


def test_half_a_surrogate_pair_and_bytes_that_are_no_utf_8_are_replaced_in_json():
    assert read('{"\\ud800": 1}') == {"\ufffd": 1}
    assert read(b'{"a\xff": 1}') == {"a\ufffd": 1}


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("y", True),
        ("Off", False),
        ("yES", "yES"),
        ("'yes'", "yes"),
        ("~", None),
        ("", None),
        ("NULL", None),
        ("16", 16),
        ("+16", 16),
        ("-0x1F", -31),
        ("0b101", 5),
        ("017", 15),
        ("0o17", 15),
        ("089", 89),
        ("1_000", 1000),
        ("16.0", 16),
        ("1e3", 1000),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e-7", 1e-07),
        ("1e999", "1e999"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("'5'", "5"),
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("!!float 5", 5),
        ("!mine 5", "5"),
        ("!!binary aGk=", "hi"),
        ("=", "="),
        ("<<", "<<"),
    ],
)
def test_yaml_words_mean_what_they_mean_to_kubernetes(word: str, value: object):
    assert read(f"a: {word}") == {"a": value}
    assert type(read(f"a: {word}")["a"]) is type(value)  # type: ignore[index]


def test_yaml_whole_floats_become_integers():
    assert text.parse("a: 16.0") == {"a": "16"}
    assert text.parse("a: 1e21") == {"a": "1e+21"}


def test_yaml_keys_become_strings():
    assert read("1: a\ntrue: b\n1.5: c\n") == {"1": "a", "true": "b", "1.5": "c"}


def test_yaml_anchors_and_merges():
    assert read("a: &x {k: 1}\nb: *x\nc: {<<: *x, l: 2}\nd: {<<: [*x, {m: 3}]}\n") == {
        "a": {"k": 1},
        "b": {"k": 1},
        "c": {"k": 1, "l": 2},
        "d": {"k": 1, "m": 3},
    }
    assert read("a: &x 1\nb: &x 2\nc: *x\n") == {"a": 1, "b": 2, "c": 2}


def test_of_several_documents_the_first_counts():
    assert read("a: 1\n---\nb: 2\n") == {"a": 1}
    assert read("# nothing\n") is None


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("a: 1\na: 2\n", '"a" given more than once'),
        ("a: {b: {c: 1, c: 2}}", '"c" given more than once'),
        ("x: &x {k: 1}\na: {k: 2, <<: *x}\n", '"k" given more than once'),
        ("? [a]\n: 1\n", "a key has to be"),
        ("~: 1", "a key has to be"),
        ("a: .nan", "no JSON spelling"),
        ("a: !!int x", '"x" is no int'),
        ("a: !!int 1.5", '"1.5" is no int'),
        ("a: !!binary '!'", "not base64"),
        ("a: &x [*x]", "contains itself"),
        ("a: *x", "undefined alias"),
        ("a: {<<: 5}", "a merge needs"),
        ("a: [1", "line"),
        ("\ta: 1", "line"),
        (b"a: \xff", "unacceptable character"),
        ('a: "\\UFFFFFFFF"', "an escape .* that stands for no character"),
        ("[" * 5000, "nested too deeply"),
        (f"a: 0x{'f' * 5000}", "out of range"),
    ],
)
def test_yaml_that_is_refused(content: str | bytes, why: str):
    with pytest.raises(text.TextError, match=why):
        text.parse(content)


def test_a_document_that_is_mostly_aliases_is_refused():
    levels = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 9))
    with pytest.raises(text.TextError, match="excessive aliasing"):
        text.parse(f"l0: &l0 [{', '.join('x' * 10)}]\n{levels}\n")


def test_plain_values_have_a_depth():
    with pytest.raises(tree.TooDeep):
        tree.plain(text.parse('{"a": ' * 150 + "1" + "}" * 150))


@given(st.one_of(st.text(), st.binary()))
def test_any_text_is_read_or_refused(content: str | bytes):
    with contextlib.suppress(text.TextError):
        tree.plain(text.parse(content))
