"""The words that name kinds and objects."""

import pytest
import typer

from dsched.cli import choosing
from dsched.manifests import kinds


def test_kinds_and_names():
    assert choosing.kind_and_names(["po,nodes"]) == ([kinds.POD, kinds.NODE], [])
    assert choosing.kind_and_names(["pod", "a", "b"]) == ([kinds.POD], ["a", "b"])
    assert choosing.kind_and_names(["pod/a", "b"]) == ([kinds.POD], ["a", "b"])


@pytest.mark.parametrize("words", [[], ["deploy"], ["po,", "a"], ["po,no", "a"]])
def test_words_that_name_nothing(words: list[str]):
    with pytest.raises(typer.BadParameter):
        choosing.kind_and_names(words)


def test_keys():
    assert choosing.keys(kinds.POD, ["a", "shop/b"], None) == ["default/a", "shop/b"]
    assert choosing.keys(kinds.POD, ["a"], "shop") == ["shop/a"]
    assert choosing.keys(kinds.NODE, ["a"], "shop") == ["a"]
