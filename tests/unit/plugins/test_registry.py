"""The registry of plugins."""

from collections.abc import Iterable
from importlib import metadata
from typing import Any

import pytest

from dsched.config.feature_gates import NEWEST, OLDEST
from dsched.config.plugins import intree
from dsched.errors import PluginError
from dsched.plugins import registry
from dsched.plugins.node_name import NodeName


class Quiet:
    """A plugin that serves Reserve and, node by node, Filter and Score."""

    name = "Quiet"

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def reserve(self) -> None: ...

    def unreserve(self) -> None: ...

    def filter(self) -> None: ...

    def score(self) -> None: ...


NOT_SERVED = {
    **{name: {point} for name, point in registry.SILENT},
}


def build_quiet(args: Any, handle: Any) -> Quiet:
    return Quiet(args, handle)


def build_something(args: Any, handle: Any):  # type: ignore[no-untyped-def]
    return Quiet(args, handle)


def offer(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    """Entry points as an installed package would have them."""
    entries = [metadata.EntryPoint(name, value, registry.ENTRY_POINTS) for name, value in values.items()]

    def entry_points(*, group: str) -> Iterable[metadata.EntryPoint]:
        return [entry for entry in entries if entry.group == group]

    monkeypatch.setattr(metadata, "entry_points", entry_points)


def test_plugins_in_tree_serve_the_points_that_the_configuration_knows_them_by() -> None:
    known = intree(NEWEST)
    for name, factory in registry.intree().items():
        if name == "FairShare":
            continue  # dsched's own
        served = registry.extension_points(factory)
        assert served == known[name] - NOT_SERVED.get(name, set()), name


def test_points_of_classes_and_of_functions_that_say_what_they_build() -> None:
    assert registry.extension_points(Quiet) == {"reserve", "filter", "score"}
    assert registry.extension_points(build_quiet) == {"reserve", "filter", "score"}
    with pytest.raises(PluginError, match="annotate the class it returns"):
        registry.extension_points(build_something)


def test_a_configuration_may_name_plugins_in_tree_and_out_of_it() -> None:
    assert registry.served({**registry.intree(), "Quiet": Quiet}) == {
        **intree(OLDEST),
        "FairShare": {"queueSort", "preEnqueue", "postFilter", "reserve", "podGroupPostFilter"},
        "Quiet": {"reserve", "filter", "score"},
    }


def test_entry_points_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, Quiet=f"{__name__}:Quiet", Built=f"{__name__}:build_quiet")
    loaded = registry.load()
    assert loaded["Quiet"] is Quiet and loaded["Built"] is build_quiet
    assert loaded["NodeName"] is NodeName
    assert "Quiet" not in registry.intree()
    assert registry.load(entry_points=False) == registry.intree()


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("NodeName", f"{__name__}:Quiet", "there is another plugin of that name"),
        ("Quiet", "no.such.module:Quiet", r'Quiet of an installed package \("no.such.module:Quiet"\) cannot be loaded'),
        ("Quiet", f"{__name__}:NoSuchThing", "cannot be loaded"),
        ("Quiet", f"{__name__}:__name__", "neither a class nor a function"),
    ],
)
def test_entry_points_that_are_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str, problem: str) -> None:
    offer(monkeypatch, **{name: value})
    with pytest.raises(PluginError, match=problem):
        registry.load()
