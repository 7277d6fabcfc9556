"""A completed configuration for another version than the one that it was completed for."""

from collections.abc import Mapping
from typing import Any

from dsched.config import plugins, schema
from dsched.config.feature_gates import NEWEST, Features


def carried_over(document: Mapping[str, Any], features: Features) -> dict[str, Any]:
    """The document without what the version, or its feature gates, would refuse because it does not know it yet:
    extension points, plugins in tree, fields of arguments. What the version would fill in otherwise stays as it is.

    Args:
        document: as `dsched.config.completed` gives it.
    """
    return {**document, "profiles": [_profile(profile, features) for profile in document.get("profiles") or ()]}


def _profile(profile: Mapping[str, Any], features: Features) -> dict[str, Any]:
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
