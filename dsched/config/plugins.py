"""The in-tree plugins, the default set of them, and how a profile's own plugins are merged into that set.

Source: kubernetes v1.37 pkg/scheduler/framework/plugins/registry.go, pkg/scheduler/apis/config/v1/default_plugins.go,
and the same files of the versions before.
"""

from collections.abc import Iterable, Mapping

from dsched.config import schema
from dsched.config.decode import Wire
from dsched.config.feature_gates import Features, Version
from dsched.config.schema import MULTI_POINT

ALL = "*"
DYNAMIC_RESOURCES = "DynamicResources"
DEFAULT_PREEMPTION = "DefaultPreemption"

_FILTER = ("preFilter", "filter")
_SCORE = ("preScore", "score")

_SERVED: Mapping[str, frozenset[str]] = {
    "DefaultBinder": frozenset({"bind"}),
    "DefaultPreemption": frozenset({"preEnqueue", "postFilter"}),
    "DynamicResources": frozenset({"preEnqueue", *_FILTER, "postFilter", "reserve", "preBind"}),
    "ImageLocality": frozenset({"score"}),
    "InterPodAffinity": frozenset({*_FILTER, *_SCORE}),
    "NodeAffinity": frozenset({*_FILTER, *_SCORE}),
    "NodeName": frozenset({"filter"}),
    "NodePorts": frozenset(_FILTER),
    "NodeResourcesBalancedAllocation": frozenset(_SCORE),
    "NodeResourcesFit": frozenset({*_FILTER, *_SCORE}),
    "NodeUnschedulable": frozenset({"filter"}),
    "NodeVolumeLimits": frozenset(_FILTER),
    "PodTopologySpread": frozenset({*_FILTER, *_SCORE}),
    "PrioritySort": frozenset({"queueSort"}),
    "SchedulingGates": frozenset({"preEnqueue"}),
    "TaintToleration": frozenset({"filter", *_SCORE}),
    "VolumeBinding": frozenset({*_FILTER, *_SCORE, "reserve", "preBind"}),
    "VolumeRestrictions": frozenset(_FILTER),
    "VolumeZone": frozenset(_FILTER),
}
"""Name of each in-tree plugin of v1.34 to the extension points it serves."""

_LATER: Mapping[tuple[int, str], frozenset[str]] = {
    (35, "DynamicResources"): frozenset({"score"}),
    (35, "GangScheduling"): frozenset({"preEnqueue", "reserve", "permit"}),
    (35, "NodeDeclaredFeatures"): frozenset(_FILTER),
    (36, "NodeResourcesFit"): frozenset({"placementScore"}),
    (36, "PodGroupPodsCount"): frozenset({"placementScore"}),
    (36, "TopologyPlacementGenerator"): frozenset({"placementGenerate"}),
    (37, "DefaultPreemption"): frozenset({"podGroupPostFilter"}),
    (37, "DeferredPodScheduling"): frozenset({*_FILTER, "permit"}),
    (37, "DynamicResources"): frozenset({"podGroupPostFilter"}),
    (37, "NodeName"): frozenset({"preFilter"}),
    (37, "NodeUnschedulable"): frozenset({"preFilter"}),
    (37, "TaintToleration"): frozenset({"preFilter"}),
}
"""What came with which minor version: extension points of plugins that there were, and plugins."""

_NO_LONGER: Mapping[tuple[int, str], frozenset[str]] = {(36, "GangScheduling"): frozenset({"reserve"})}
"""Which extension points plugins do not serve since a minor version."""

_DEFAULT: tuple[tuple[str, int | None], ...] = (
    ("SchedulingGates", None),
    ("PrioritySort", None),
    ("NodeUnschedulable", None),
    ("NodeName", None),
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodePorts", None),
    ("NodeResourcesFit", 1),
    ("VolumeRestrictions", None),
    ("NodeVolumeLimits", None),
    ("VolumeBinding", None),
    ("VolumeZone", None),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    (DYNAMIC_RESOURCES, None),
    (DEFAULT_PREEMPTION, None),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
    ("DefaultBinder", None),
)
_NODE_NAME = next(place for place, (name, _) in enumerate(_DEFAULT) if name == "NodeName")
"""Since v1.37 it goes before the plugin that it followed, NodeUnschedulable."""


def intree(version: Version) -> Mapping[str, frozenset[str]]:
    """Name of each in-tree plugin of a version to the extension points it serves."""
    found = dict(_SERVED)
    for (minor, name), points in _LATER.items():
        if version >= (1, minor):
            found[name] = found.get(name, frozenset()) | points
    for (minor, name), points in _NO_LONGER.items():
        if version >= (1, minor):
            found[name] -= points
    return found


def defaults(features: Features) -> list[tuple[str, int | None]]:
    """The default plugins in their order, with their weights.

    Source: default_plugins.go ``getDefaultPlugins``, ``applyFeatureGates``.
    """
    found = [(name, 2 if name == DYNAMIC_RESOURCES and features.since(35) else weight) for name, weight in _DEFAULT]
    if not features.enabled("DynamicResourceAllocation"):
        found = [each for each in found if each[0] != DYNAMIC_RESOURCES]
    if features.since(37):
        found[_NODE_NAME - 1 : _NODE_NAME + 1] = reversed(found[_NODE_NAME - 1 : _NODE_NAME + 1])
    if features.enabled("InPlacePodVerticalScalingSchedulerPreemption"):
        fit = next(place for place, (name, _) in enumerate(found) if name == "NodeResourcesFit")
        found.insert(fit, ("DeferredPodScheduling", None))
    if features.enabled("NodeDeclaredFeatures"):
        found.append(("NodeDeclaredFeatures", None))
    if features.enabled("GenericWorkload"):
        found.append(("GangScheduling", None))
    if features.enabled("TopologyAwareWorkloadScheduling"):
        found += [("TopologyPlacementGenerator", None), ("PodGroupPodsCount", 1)]
    return found


def merged(custom: Wire | None, features: Features) -> Wire:
    """The plugin sets of a profile: the default ones at ``multiPoint``, with the profile's own merged in.

    Source: default_plugins.go ``mergePlugins``.
    """
    points = schema.extension_points(features.version)
    own = custom or {point: {"enabled": None, "disabled": None} for point in (*points, MULTI_POINT)}
    default = [{"name": name, "weight": weight} for name, weight in defaults(features)]
    sets = {point: _merged_set((), own[point]) for point in points}
    return sets | {MULTI_POINT: _merged_set(default, own[MULTI_POINT])}


def _merged_set(default: Iterable[Wire], custom: Wire) -> Wire:
    """Merge one plugin set.

    A default plugin that is enabled anew keeps its place and takes the new weight (of several, the last); the other
    enabled ones follow in their order. Disabling applies to the defaults only.

    Source: default_plugins.go ``mergePluginSet``.
    """
    disabled = [plugin["name"] for plugin in custom["disabled"] or ()]
    own = list(custom["enabled"] or ())
    last = {plugin["name"]: position for position, plugin in enumerate(own)}
    enabled: list[Wire] = []
    replaced = set()
    for plugin in default if ALL not in disabled else ():
        if plugin["name"] in disabled:
            continue
        position = last.get(plugin["name"])
        if position is not None:
            replaced.add(position)
            plugin = own[position]
        enabled.append(plugin)
    enabled += [plugin for position, plugin in enumerate(own) if position not in replaced]
    return {
        "enabled": [{"name": plugin["name"], "weight": plugin["weight"] or 0} for plugin in enabled] or None,
        "disabled": [{"name": name, "weight": 0} for name in disabled] or None,
    }


def enabled_names(sets: Wire) -> set[str]:
    """Names of all plugins that are enabled anywhere in the sets."""
    return {plugin["name"] for plugin_set in sets.values() for plugin in plugin_set["enabled"] or ()}
