"""Names, labels and amounts."""

import pytest

from dsched.manifests import kinds, syntax


@pytest.mark.parametrize("text", ["a", "web-1", "a.b", "1", "a" * 63, ".".join(["a" * 49] * 5)])
def test_names(text: str):
    assert syntax.subdomain(text) == ""


@pytest.mark.parametrize("text", ["", "A", "-a", "a-", "a..b", "a_b", "a b", "a\n", "a" * 254])
def test_no_names(text: str):
    assert "is not a DNS subdomain" in syntax.subdomain(text)


@pytest.mark.parametrize("text", ["a", "A_b.c", "example.com/gpu", "kubernetes.io/hostname"])
def test_qualified_names(text: str):
    assert syntax.qualified_name(text) == ""


@pytest.mark.parametrize("text", ["", "/a", "a/", "a/b/c", "Ex.com/a", "a b", "a" * 64, "_a"])
def test_no_qualified_names(text: str):
    assert "is not a qualified name" in syntax.qualified_name(text)


def test_label_values_may_be_empty_and_not_long():
    assert syntax.label_value("") == ""
    assert syntax.label_value("A.b_c-1") == ""
    assert "is not a label value" in syntax.label_value("a" * 64)


@pytest.mark.parametrize("word", ["po", "pod", "pods", "Pod", "PODS"])
def test_kinds_go_by_kubectls_names(word: str):
    assert kinds.spoken(word) is kinds.POD


def test_words_for_kinds_are_unambiguous():
    words = [word for kind in kinds.ALL for word in {kind.singular, kind.plural, *kind.short}]
    assert len(words) == len(set(words))
    assert kinds.spoken("deploy") is None
