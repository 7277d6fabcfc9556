"""The completed configuration in its v1 form.

Source: kubernetes v1.37 staging kube-scheduler config/v1 (field order and ``omitempty``), apimachinery metav1 Duration.
"""

from typing import Any

from dsched.config import defaults, durations, schema
from dsched.config.decode import Wire
from dsched.config.feature_gates import NEWEST, Version


def document(config: Wire, version: Version) -> Wire:
    """Plain JSON values of a completed configuration, ready to be printed.

    A ``percentageOfNodesToScore`` that nothing set shows as 0, kube-scheduler's default.
    """
    shown = dict(config)
    shown |= {"apiVersion": schema.API_VERSION, "kind": schema.KIND}
    if shown["percentageOfNodesToScore"] is None:
        shown["percentageOfNodesToScore"] = defaults.ADAPTIVE_PERCENTAGE
    result: Wire = _encoded(schema.configuration(version), shown)
    for profile, source in zip(result["profiles"], config["profiles"], strict=True):
        for entry in profile.get("pluginConfig", ()):
            entry["args"] = args(entry["name"], entry["args"], version)
        profile["plugins"] = _plugin_sets(source["plugins"])
    return result


def args(plugin: str, value: Any, version: Version = NEWEST) -> Any:
    """Completed arguments of one plugin, as v1."""
    known = schema.args(version)
    return _encoded(known[plugin], value) if plugin in known else value


def _plugin_sets(sets: Wire) -> Wire:
    return {point: {key: plugins for key, plugins in found.items() if plugins} for point, found in sets.items()}


def _encoded(kind: schema.Type, value: Any) -> Any:
    match kind:
        case schema.Basic():
            return durations.show(value) if kind is schema.DURATION else value
        case schema.Pointer():
            return None if value is None else _encoded(kind.item, value)
        case schema.ListOf():
            return None if value is None else [_encoded(kind.item, item) for item in value]
        case schema.MapOf():
            return None if value is None else {key: _encoded(kind.item, item) for key, item in value.items()}
        case schema.Struct():
            return {
                key: _encoded(field.type, value[key])
                for key, field in kind.fields.items()
                if field.always or not _empty(field.type, value[key])
            }
        case schema.Raw():
            return value


def _empty(kind: schema.Type, value: Any) -> bool:
    """What ``omitempty`` leaves out: an absent pointer, but not one to a zero."""
    match kind:
        case schema.Pointer():
            return value is None
        case schema.Struct():
            return False
        case _:
            return not value
