"""From a configuration to its frameworks, with the plugins there are."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dsched import config
from dsched.config import Features, PluginRef, Profile, SchedulerConfiguration
from dsched.config.feature_gates import UNSAID
from dsched.config.plugins import DYNAMIC_RESOURCES
from dsched.errors import ConfigError
from dsched.framework.counting import emulate as emulate
from dsched.framework.extender import Extending, ReadObjects
from dsched.framework.interface import Registry
from dsched.framework.runtime import Framework
from dsched.plugins import gang_scheduling, registry, unsupported
from dsched.plugins.unsupported import UnsupportedFields

NEVER_IGNORED = frozenset({DYNAMIC_RESOURCES, gang_scheduling.NAME})
"""Plugins of kube-scheduler's own default profile without which a pod that needs them is refused."""


def configuration(path: Path | None, plugins: Registry, features: Features = UNSAID) -> SchedulerConfiguration:
    """The configuration in a file, with every plugin there is; the default one without a file.

    Raises:
        ConfigError: the file cannot be read, or was refused.
    """
    if path is None:
        return config.default(features)
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    return parsed(text, str(path), plugins, features)


def first_accepted(path: Path | None, plugins: Registry, possible: Sequence[Features]) -> SchedulerConfiguration:
    """The configuration in a file as one of these takes it, the first that does: for a process that does not know yet
    what is emulated.

    Raises:
        ConfigError: none of them takes it; what the first has against it.
    """
    first: ConfigError | None = None
    for features in possible:
        try:
            return configuration(path, plugins, features)
        except ConfigError as error:
            first = first or error
    assert first is not None
    raise first


def parsed(text: str | bytes, source: str, plugins: Registry, features: Features = UNSAID) -> SchedulerConfiguration:
    """The configuration in a text, with every plugin there is; ``source`` is its file's name, for messages.

    Raises:
        ConfigError: it was refused.
    """
    loaded = config.load(text, source, plugins=registry.served(plugins, features.version), features=features)
    return replace(loaded, code=_code(loaded, plugins))


def _code(configured: SchedulerConfiguration, plugins: Registry) -> str:
    """What tells the code of the plugins that it uses and that do not come with dsched."""
    used = {ref.name for profile in configured.profiles for refs in profile.plugins.values() for ref in refs}
    return ", ".join(f"{name}: {registry.code(name, plugins[name])}" for name in sorted(used - registry.INTREE_NAMES))


def frameworks(
    configured: SchedulerConfiguration,
    plugins: Registry,
    handle: Any,
    read: ReadObjects | None = None,
) -> dict[str, Framework]:
    """A framework for each profile, by scheduler name; all have the same extenders.

    Args:
        read: where extenders get whole pods and nodes from.

    Raises:
        PluginError: a plugin is in no registry, or cannot be built; or an extender's TLS settings cannot be used.
    """
    called = extenders(configured, read)
    return {profile.scheduler_name: framework(profile, plugins, handle, called) for profile in configured.profiles}


def extenders(configured: SchedulerConfiguration, read: ReadObjects | None = None) -> Extending | None:
    """The configuration's extenders, None where it has none; what calls them is loaded only where there are some.

    Raises:
        PluginError: the TLS settings of one cannot be used.
    """
    if not configured.extenders:
        return None
    from dsched.extenders.extenders import Extenders

    return Extenders(configured.extenders, read)


def framework(profile: Profile, plugins: Registry, handle: Any, extenders: Extending | None = None) -> Framework:
    """The framework of a profile. In-tree plugins of kube-scheduler that dsched does not have yet are left out, and
    `UnsupportedFields` refuses the pods that need a plugin that is not there.

    Raises:
        PluginError: a plugin is in no registry, or cannot be built.
    """
    emulate(profile.features)
    named = {ref.name for refs in profile.plugins.values() for ref in refs}
    absent = dict.fromkeys((named & registry.INTREE_NAMES | NEVER_IGNORED) - plugins.keys(), "dsched does not have yet")
    absent |= {name: _why_not(name, profile.features) for name in NEVER_IGNORED & plugins.keys() - named}

    def serves(ref: PluginRef, point: str) -> bool:
        return ref.name not in absent and (ref.name, point) not in registry.SILENT

    kept = {
        point: tuple(ref for ref in profile.plugins.get(point, ()) if serves(ref, point))
        for point in _points(profile.features)
    }
    kept["preFilter"] = (PluginRef(unsupported.NAME), *kept.get("preFilter", ()))
    args = {**profile.args, unsupported.NAME: {"plugins": absent}}
    reduced = replace(profile, plugins=kept, args=args)
    return Framework(reduced, {**plugins, unsupported.NAME: UnsupportedFields}, handle, extenders)


def _points(features: Features) -> tuple[str, ...]:
    """The extension points that are run."""
    return config.extension_points(features.version) if features.enabled("GenericWorkload") else config.EXTENSION_POINTS


def _why_not(plugin: str, features: Features) -> str:
    """Why a profile does not have a plugin that there is."""
    if plugin == gang_scheduling.NAME and not features.enabled("GenericWorkload"):
        return "needs the feature gate GenericWorkload"
    return "this profile does not enable"
