"""A completed configuration for another version than the one that it was completed for."""

from collections.abc import Iterator, Mapping
from typing import Any

from dsched.config import plugins, schema
from dsched.config.feature_gates import NEWEST, Features
from dsched.config.load import completed, default

_MULTI_POINT = schema.MULTI_POINT


def carried_over(document: Mapping[str, Any], was: Features, features: Features) -> dict[str, Any]:
    """The document for another version. What is as by default is left out, so that it is as by the other's default.
    Left out is also what that version, or its feature gates, would refuse because it does not know it yet: extension
    points, plugins in tree, fields of arguments.

    Args:
        document: as `dsched.config.completed` gives it.
        was: what it was completed for.
    """
    profiles = [_as_default(profile, was) for profile in document.get("profiles") or ()]
    return {**document, "profiles": [_known(profile, features) for profile in profiles]}


def _as_default(profile: Mapping[str, Any], was: Features) -> dict[str, Any]:
    """Without what the version that it was completed for had filled in."""
    (filled_in,) = completed(default(was))["profiles"]
    args = {entry["name"]: entry["args"] for entry in filled_in["pluginConfig"]}
    entries = [each for each in profile.get("pluginConfig") or () if each.get("args") != args.get(each["name"])]
    sets = dict(profile.get("plugins") or {})
    if _MULTI_POINT in sets:
        own = list(_own(sets[_MULTI_POINT], filled_in["plugins"][_MULTI_POINT]))
        sets[_MULTI_POINT] = {**sets[_MULTI_POINT], "enabled": own}
    return {**profile, "plugins": sets, "pluginConfig": entries}


def _own(there: Mapping[str, Any], by_default: Mapping[str, Any]) -> Iterator[Any]:
    """Plugins that are not there by default; all of them where the defaults are turned off."""
    off = any(each["name"] == plugins.ALL for each in there.get("disabled") or ())
    for each in there.get("enabled") or ():
        if off or each not in by_default["enabled"]:
            yield each


def _known(profile: Mapping[str, Any], features: Features) -> dict[str, Any]:
    unknown = plugins.intree(NEWEST).keys() - plugins.intree(features.version).keys()
    points = (*schema.extension_points(features.version), schema.MULTI_POINT)
    sets = {
        point: {key: [each for each in listed if each["name"] not in unknown] for key, listed in found.items()}
        for point, found in (profile.get("plugins") or {}).items()
        if point in points
    }
    entries = [
        {**entry, "args": _args(entry["name"], entry.get("args"), features)}
        for entry in profile.get("pluginConfig") or ()
        if entry["name"] not in unknown
    ]
    return {**profile, "plugins": sets, "pluginConfig": entries}


def _args(plugin: str, args: Any, features: Features) -> Any:
    kind = schema.args(features.version).get(plugin)
    if kind is None or not isinstance(args, Mapping):
        return args
    gated = {"bindingTimeout": "DRADeviceBindingConditions"}
    if plugin == "VolumeBinding":
        gated["shape"] = "StorageCapacityScoring"
    off = {field for field, gate in gated.items() if not features.enabled(gate)}
    return {key: value for key, value in args.items() if key in kind.fields and key not in off}
