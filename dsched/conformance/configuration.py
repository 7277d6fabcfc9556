"""Vectors of the family ``configuration``: what a configuration file comes to, here and in kube-scheduler.

Compared are whether the text decodes and whether the configuration is taken, the field paths of validation errors as a
multiset, the profile and the plugin that a profile error names, the plugins of every extension point, and of the
completed configuration the settings outside profiles and each plugin's arguments. DynamicResources is left out on both
sides.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from dsched import config
from dsched.config import Features
from dsched.config.feature_gates import UNSAID
from dsched.config.plugins import DYNAMIC_RESOURCES
from dsched.errors import ConfigError

_PROFILE = re.compile(
    r'creating profile for scheduler name (?P<built>.*?): |for profile "(?P<compared>[^"]*)"', re.DOTALL
)
_PLUGIN = re.compile(r'[pP]lugin "([^"]*)"|different queue sort plugins for profile "[^"]*": "([^"]*)"')
_ABSENT = object()


def check(case: Mapping[str, Any], expect: Mapping[str, Any], features: Features = UNSAID) -> list[str]:
    """Run one vector.

    Args:
        case: its ``case``; ``configuration`` holds the text.
        expect: its ``expect``.
        features: of the version that it was recorded from.
    Returns:
        The differences, one line each; empty when there is none.
    """
    text = case["configuration"]
    try:
        loaded = config.load(text, case["name"], features=features)
    except ConfigError as error:
        return _refused(error, expect) + _completed_anyway(text, error, expect, features)
    differences = _verdict("taken", expect)
    if differences:
        return differences
    return _plugins(loaded, expect["plugins"]) + _completed(config.completed(loaded), expect["completed"])


def _verdict(found: str, expect: Mapping[str, Any]) -> list[str]:
    if not expect["decoded"]:
        expected = "decode"
    elif not expect["accepted"]:
        expected = "validation"
    else:
        expected = "profile" if expect.get("profileError") else "taken"
    if found == expected:
        return []
    why = expect.get("profileError") or expect.get("errors") or ""
    return [f"verdict: found {found}, expected {expected} {why}".rstrip()]


def _refused(error: ConfigError, expect: Mapping[str, Any]) -> list[str]:
    if differences := _verdict(error.stage, expect):
        return [*differences, *(f"  found: {line}" for line in error.errors)]
    if error.stage == "validation":
        return _multiset("errors", map(_field, error.errors), map(_field, expect["errors"]))
    if error.stage == "profile":
        profile, plugin = _PROFILE.search(expect["profileError"]), _PLUGIN.search(expect["profileError"])
        return _same("profileError.profile", error.profile, _named(profile)) + _same(
            "profileError.plugin", error.plugin, _named(plugin)
        )
    return []


def _completed_anyway(text: str, error: ConfigError, expect: Mapping[str, Any], features: Features) -> list[str]:
    """A configuration whose profiles cannot be built has a completed form all the same."""
    if error.stage != "profile" or "completed" not in expect:
        return []
    return _completed(config.completed_document(text, features=features), expect["completed"])


def _named(match: re.Match[str] | None) -> str | None:
    return match and next(group for group in match.groups() if group is not None)


def _field(line: str) -> str:
    return line.partition(": ")[0]


def _plugins(loaded: config.SchedulerConfiguration, expected: Mapping[str, Mapping[str, list[str]]]) -> list[str]:
    found = {
        profile.scheduler_name: {point: _listed(point, refs) for point, refs in profile.plugins.items()}
        for profile in loaded.profiles
    }
    differences = _same("plugins: profiles", sorted(found), sorted(expected))
    for name in found.keys() & expected.keys():
        for point in found[name].keys() | expected[name].keys():
            names = [entry for entry in expected[name].get(point, []) if entry.split("=")[0] != DYNAMIC_RESOURCES]
            differences += _same(f"plugins.{name}.{point}", found[name].get(point, []), names)
    return differences


def _listed(point: str, refs: Iterable[config.PluginRef]) -> list[str]:
    kept = [ref for ref in refs if ref.name != DYNAMIC_RESOURCES]
    return [f"{ref.name}={ref.weight}" if point in ("score", "placementScore") else ref.name for ref in kept]


def _completed(found: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    differences = []
    for key in sorted((found.keys() | expected.keys()) - {"profiles"}):
        differences += _same(f"completed.{key}", found.get(key, _ABSENT), expected.get(key, _ABSENT))
    differences += _same("completed.profiles: how many", len(found["profiles"]), len(expected["profiles"]))
    for position, (ours, theirs) in enumerate(zip(found["profiles"], expected["profiles"], strict=False)):
        path = f"completed.profiles[{position}]"
        for key in ("schedulerName", "percentageOfNodesToScore"):
            differences += _same(f"{path}.{key}", ours.get(key, _ABSENT), theirs.get(key, _ABSENT))
        ours_args, theirs_args = _args(ours), _args(theirs)
        for plugin in sorted(ours_args.keys() | theirs_args.keys()):
            place = f"{path}.args.{plugin}"
            differences += _same(place, ours_args.get(plugin, _ABSENT), theirs_args.get(plugin, _ABSENT))
    return differences


def _args(profile: Mapping[str, Any]) -> dict[str, Any]:
    entries = profile.get("pluginConfig") or []
    return {entry["name"]: entry.get("args") for entry in entries if entry["name"] != DYNAMIC_RESOURCES}


def _same(what: str, found: object, expected: object) -> list[str]:
    if found == expected:
        return []
    return [f"{what}: found {_shown(found)}, expected {_shown(expected)}"]


def _shown(value: object) -> str:
    return "nothing" if value is _ABSENT else repr(value)


def _multiset(what: str, found: Iterable[str], expected: Iterable[str]) -> list[str]:
    ours, theirs = Counter(found), Counter(expected)
    return [f"{what}: {path} is reported but not expected" for path in sorted((ours - theirs).elements())] + [
        f"{what}: {path} is expected but not reported" for path in sorted((theirs - ours).elements())
    ]
