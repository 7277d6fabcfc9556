"""The registry of plugins, and what tells the code of a plugin of another package."""

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dsched import __version__
from dsched.config.feature_gates import NEWEST, OLDEST
from dsched.config.plugins import intree
from dsched.errors import PluginError
from dsched.framework.interface import Registry
from dsched.plugins import profiles, registry
from dsched.plugins.node_name import NodeName

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
USED = HEAD + "profiles: [{plugins: {filter: {enabled: [{name: Quiet}]}}}]\n"
CODE = """
class Quiet:
    name = "Quiet"

    def __init__(self, args, handle):
        pass

    def filter(self, state, pod, node):
        return None


def build(args, handle) -> Quiet:
    return Quiet(args, handle)
"""

Offer = Callable[..., Registry]


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


def offer_entries(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
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
    offer_entries(monkeypatch, Quiet=f"{__name__}:Quiet", Built=f"{__name__}:build_quiet")
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
    offer_entries(monkeypatch, **{name: value})
    with pytest.raises(PluginError, match=problem):
        registry.load()


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Offer]:
    """Another process's view: the plugins there are when a package has this code and this version."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(registry, "_codes", {})

    def offer(code: str = CODE, version: str = "1.0", value: str = "quiet_plugin:Quiet") -> Registry:
        (tmp_path / "quiet_plugin.py").write_text(code)
        (tmp_path / "factories.py").write_text("from quiet_plugin import Quiet, build\n")
        for each in tmp_path.glob("*.dist-info"):
            for file in each.iterdir():
                file.unlink()
            each.rmdir()
        info = tmp_path / f"quiet-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: quiet\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[dsched.plugins]\nQuiet = {value}\n")
        for name in ("quiet_plugin", "factories"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return registry.load()

    yield offer
    for name in ("quiet_plugin", "factories"):
        sys.modules.pop(name, None)


def configured(plugins: Registry, text: str = USED) -> Any:
    return profiles.parsed(text, "scheduler.yaml", plugins)


def test_the_hash_tells_the_code_of_plugins_apart_that_are_used(offer: Offer) -> None:
    first = configured(offer())
    assert configured(offer()).hash == first.hash
    changed = configured(offer(CODE + "# changed\n"))
    newer = configured(offer(version="1.1"))
    assert len({first.hash, changed.hash, newer.hash}) == 3
    assert first.carried_out_by == f"dsched {__version__}, {first.code}"
    assert first.code.startswith("Quiet: quiet 1.0 ")
    assert newer.code == first.code.replace("1.0", "1.1")


def test_plugins_that_are_not_used_make_no_difference(offer: Offer) -> None:
    first = configured(offer(), HEAD)
    assert first.code == ""
    assert configured(offer(CODE + "# changed\n"), HEAD).hash == first.hash == profiles.configuration(None, {}).hash


def test_what_counts_is_what_was_loaded(offer: Offer, tmp_path: Path) -> None:
    plugins = offer()
    first = configured(plugins)
    (tmp_path / "quiet_plugin.py").write_text("# replaced under a running process\n")
    assert configured(plugins).hash == first.hash
    assert configured(registry.load()).hash == first.hash


def test_a_factory_counts_with_the_class_that_it_builds(offer: Offer) -> None:
    by_factory = configured(offer(value="factories:build"))
    assert configured(offer(CODE + "# changed\n", value="factories:build")).hash != by_factory.hash


def test_a_plugin_without_a_file_has_no_digest() -> None:
    module = ModuleType("nowhere_plugin")
    sys.modules["nowhere_plugin"] = module
    try:
        exec(compile(CODE, "<nowhere>", "exec"), module.__dict__)
        assert registry.code("Quiet", module.Quiet) == "-"
    finally:
        del sys.modules["nowhere_plugin"]


def test_the_version_of_dsched_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = profiles.configuration(None, {}).hash
    monkeypatch.setattr("dsched.__version__", "99.0")
    assert profiles.configuration(None, {}).hash != before
    assert metadata.version("dsched") == __version__
