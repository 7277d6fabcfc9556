"""Plugins by name: those in tree, and those that installed packages offer. The one module that knows them all.

The code of a plugin of another package is told by the distribution that offers it and by a digest of its modules. A
version alone does not tell it: a plugin is changed without it while it is written, and where it is mounted as a file.
"""

import hashlib
import inspect
import sys
from collections.abc import Mapping
from importlib import metadata
from types import ModuleType
from typing import Any, get_type_hints

from dsched.config.feature_gates import NEWEST, UNSAID, Version
from dsched.config.plugins import intree as intree_points
from dsched.errors import PluginError
from dsched.framework.interface import PluginFactory, Registry
from dsched.plugins.default_binder import DefaultBinder
from dsched.plugins.default_preemption.plugin import DefaultPreemption
from dsched.plugins.deferred_pod_scheduling import DeferredPodScheduling
from dsched.plugins.dynamic_resources.plugin import DynamicResources
from dsched.plugins.fair_share.plugin import FairShare
from dsched.plugins.gang_scheduling import GangScheduling
from dsched.plugins.image_locality import ImageLocality
from dsched.plugins.inter_pod_affinity.plugin import InterPodAffinity
from dsched.plugins.node_affinity import NodeAffinity
from dsched.plugins.node_declared_features import NodeDeclaredFeatures
from dsched.plugins.node_name import NodeName
from dsched.plugins.node_ports import NodePorts
from dsched.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from dsched.plugins.node_resources_fit import NodeResourcesFit
from dsched.plugins.node_unschedulable import NodeUnschedulable
from dsched.plugins.node_volume_limits import NodeVolumeLimits
from dsched.plugins.pod_group_pods_count import PodGroupPodsCount
from dsched.plugins.pod_topology_spread.plugin import PodTopologySpread
from dsched.plugins.priority_sort import PrioritySort
from dsched.plugins.scheduling_gates import SchedulingGates
from dsched.plugins.taint_toleration import TaintToleration
from dsched.plugins.topology_placement_generator import TopologyPlacementGenerator
from dsched.plugins.volume_binding import VolumeBinding
from dsched.plugins.volume_restrictions import VolumeRestrictions
from dsched.plugins.volume_zone import VolumeZone

ENTRY_POINTS = "dsched.plugins"
"""Entry point group: ``NAME = "module:factory"`` adds a plugin."""

_IN_TREE: Registry = {
    plugin.name: plugin
    for plugin in (
        PrioritySort,
        SchedulingGates,
        NodeUnschedulable,
        NodeName,
        TaintToleration,
        NodeAffinity,
        NodePorts,
        NodeResourcesFit,
        VolumeRestrictions,
        NodeVolumeLimits,
        VolumeBinding,
        VolumeZone,
        PodTopologySpread,
        InterPodAffinity,
        NodeResourcesBalancedAllocation,
        ImageLocality,
        DefaultBinder,
        DefaultPreemption,
        DeferredPodScheduling,
        DynamicResources,
        GangScheduling,
        TopologyPlacementGenerator,
        PodGroupPodsCount,
        NodeDeclaredFeatures,
        FairShare,
    )
}

INTREE_NAMES = frozenset(intree_points(NEWEST))
"""Plugins of kube-scheduler, whether dsched has them or not."""

SILENT = frozenset(
    {
        ("NodeUnschedulable", "preFilter"),
        ("TaintToleration", "preFilter"),
    }
)
"""Plugins and points of theirs that they do not serve here. They say something there of deferred
resizes only, which is said in one place: `dsched.framework.deferred_resizes`."""

_POINTS: Mapping[str, tuple[str, ...]] = {
    "preEnqueue": ("pre_enqueue",),
    "queueSort": ("sort_key",),
    "preFilter": ("pre_filter",),
    "filter": ("filter_table", "filter"),
    "postFilter": ("post_filter",),
    "preScore": ("pre_score",),
    "score": ("score_table", "score"),
    "reserve": ("reserve",),
    "permit": ("permit",),
    "preBind": ("pre_bind",),
    "bind": ("bind",),
    "postBind": ("post_bind",),
    "placementGenerate": ("generate_placements",),
    "placementScore": ("score_placement",),
    "podGroupPostFilter": ("pod_group_post_filter",),
}
"""Extension point as configurations name it, and the methods of which a plugin that serves it has one."""


_codes: dict[str, tuple[PluginFactory, str]] = {}
"""Of plugins that were loaded, what tells their code: files may change later, the process goes on with what it has."""
_NO_SOURCE = "-"
"""Stands for the digest of a module that was not read from a file."""


def intree() -> Registry:
    """The plugins that come with dsched."""
    return _IN_TREE


def load(entry_points: bool = True) -> Registry:
    """The plugins that come with dsched and those of the entry point group ``dsched.plugins``.

    Raises:
        PluginError: an entry point cannot be imported, is no factory, or takes a name that is taken.
    """
    registry = dict(_IN_TREE)
    for entry in metadata.entry_points(group=ENTRY_POINTS) if entry_points else ():
        if entry.name in registry:
            raise PluginError(
                f"plugin {entry.name} of {_origin(entry)}: there is another plugin of that name; rename the entry point"
            )
        factory = registry[entry.name] = _factory(entry)
        if entry.name not in _codes or _codes[entry.name][0] is not factory:
            _codes[entry.name] = factory, _fingerprint(factory, _built_by(factory), entry.dist)
    return registry


def code(name: str, factory: PluginFactory) -> str:
    """What tells the code of a plugin that does not come with dsched, in a few words."""
    known, told = _codes.get(name, (None, ""))
    return told if known is factory else _fingerprint(factory, _built_by(factory))


def extension_points(factory: PluginFactory) -> frozenset[str]:
    """The extension points that a plugin serves, named as in configurations, by the methods it has.

    Raises:
        PluginError: the factory is a function that does not say what class it returns.
    """
    plugin = factory if inspect.isclass(factory) else _returned(factory)
    return frozenset(
        point for point, methods in _POINTS.items() if any(callable(getattr(plugin, each, None)) for each in methods)
    )


def served(registry: Registry, version: Version = UNSAID.version) -> Mapping[str, frozenset[str]]:
    """Every plugin that a configuration of a version may name, with the extension points it serves."""
    out_of_tree = {name: factory for name, factory in registry.items() if name not in INTREE_NAMES}
    return {**intree_points(version), **{name: extension_points(factory) for name, factory in out_of_tree.items()}}


def _factory(entry: metadata.EntryPoint) -> PluginFactory:
    try:
        factory: Any = entry.load()
    except Exception as error:  # whatever the package raises while it is imported
        raise PluginError(f"plugin {entry.name} of {_origin(entry)} cannot be loaded: {error}") from error
    if not callable(factory):
        raise PluginError(f"plugin {entry.name} of {_origin(entry)} is neither a class nor a function")
    loaded: PluginFactory = factory
    return loaded


def _built_by(factory: PluginFactory) -> type | None:
    """The class that a factory builds, None where it does not say; that is told when it is used."""
    plugin: Any = factory
    try:
        return plugin if inspect.isclass(plugin) else _returned(plugin)
    except (PluginError, NameError, TypeError):
        return None


def _returned(factory: PluginFactory) -> type:
    """The class that a factory function says it returns."""
    hint = get_type_hints(factory).get("return")
    if not inspect.isclass(hint):
        raise PluginError(f"plugin factory {factory!r} does not say what it builds: annotate the class it returns")
    return hint


def _origin(entry: metadata.EntryPoint) -> str:
    package = entry.dist.name if entry.dist else "an installed package"
    return f'{package} ("{entry.value}")'


def _fingerprint(
    factory: PluginFactory, builds: type | None = None, package: metadata.Distribution | None = None
) -> str:
    """The code of a plugin in a few words, e.g. ``gang 1.2 3f2a01b4c9d8``; equal where the code is.

    Args:
        builds: the class that a factory function returns, which may be of another module.
        package: the distribution that offers it, None where that is not known.
    """
    named = f"{package.name} {package.version} " if package is not None else ""
    names = dict.fromkeys(getattr(each, "__module__", None) for each in (factory, builds) if each is not None)
    digests = [_digest(sys.modules[name]) for name in names if name in sys.modules]
    return named + " ".join(digests or [_NO_SOURCE])


def _digest(module: ModuleType) -> str:
    """Of the file as it is now; what the process runs, if that is when the module was loaded."""
    loader: Any = getattr(module, "__loader__", None)
    try:
        content = loader.get_data(module.__file__)
    except (AttributeError, OSError, TypeError):
        return _NO_SOURCE
    return hashlib.sha256(content).hexdigest()[:12]
