"""What has to hold of a completed configuration.

Each function returns error lines, ``FIELD.PATH: what``, empty when all is well.

Source: kubernetes v1.37 pkg/scheduler/apis/config/validation/validation.go; component-base config/validation.
"""

from typing import Any

from dsched.config import durations, names, schema, validation_args
from dsched.config.decode import Wire
from dsched.config.feature_gates import Features
from dsched.config.fields import child, duplicate, index, invalid, required

_REMOVED_PLUGINS = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
_REMOVED = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{schema.API_VERSION}")'
_MAX_PERCENTAGE = 100


def errors(config: Wire, features: Features) -> list[str]:
    """Everything that is wrong with a completed configuration.

    Source: ``ValidateKubeSchedulerConfiguration``.
    """
    found = _client_connection(config["clientConnection"]) + _leader_election(config["leaderElection"])
    if config["parallelism"] <= 0:
        found.append(invalid("parallelism", config["parallelism"], "should be an integer value greater than zero"))
    found += _profiles(config["profiles"], features)
    found += _percentage("percentageOfNodesToScore", config["percentageOfNodesToScore"])
    found += _backoff(config["podInitialBackoffSeconds"], config["podMaxBackoffSeconds"])
    return found + _extenders("extenders", config["extenders"] or [])


def _client_connection(connection: Wire) -> list[str]:
    """Source: component-base ``ValidateClientConnectionConfiguration``."""
    if connection["burst"] < 0:
        return [invalid("clientConnection.burst", connection["burst"], "must be non-negative")]
    return []


def _leader_election(election: Wire) -> list[str]:
    """Nothing is asked of it when leader election is off.

    Source: component-base ``ValidateLeaderElectionConfiguration``; validation.go for the kind of lock.
    """
    if not election["leaderElect"]:
        return []
    found = []
    for key in ("leaseDuration", "renewDeadline", "retryPeriod"):
        if election[key] <= 0:
            found.append(invalid(f"leaderElection.{key}", durations.show(election[key]), "must be greater than zero"))
    if election["leaseDuration"] <= election["renewDeadline"]:
        deadline = durations.show(election["renewDeadline"])
        found.append(invalid("leaderElection.leaseDuration", deadline, "must be greater than `RenewDeadline`"))
    for key in ("resourceLock", "resourceNamespace", "resourceName"):
        if not election[key]:
            found.append(required(f"leaderElection.{key}"))
    if election["resourceLock"] != "leases":
        what = 'resourceLock value must be "leases"'
        found.append(invalid("leaderElection.resourceLock", election["resourceLock"], what))
    return found


def _percentage(path: str, percentage: int | None) -> list[str]:
    """Source: ``validatePercentageOfNodesToScore``."""
    if percentage is None or 0 <= percentage <= _MAX_PERCENTAGE:
        return []
    return [invalid(path, percentage, "not in valid range [0-100]")]


def _backoff(initial: int, longest: int) -> list[str]:
    """Source: ``ValidateKubeSchedulerConfiguration``."""
    found = []
    if initial <= 0:
        found.append(invalid("podInitialBackoffSeconds", initial, "must be greater than 0"))
    if longest < initial:
        what = "must be greater than or equal to PodInitialBackoffSeconds"
        found.append(invalid("podMaxBackoffSeconds", longest, what))
    return found


def _profiles(profiles: list[Wire], features: Features) -> list[str]:
    """Source: ``ValidateKubeSchedulerConfiguration``, ``validateKubeSchedulerProfile``."""
    found = []
    seen: dict[str, int] = {}
    for position, profile in enumerate(profiles):
        path = index("profiles", position)
        name = profile["schedulerName"] or ""
        if not name:
            found.append(required(child(path, "schedulerName")))
        found += _percentage(child(path, "percentageOfNodesToScore"), profile["percentageOfNodesToScore"])
        found += _removed_plugins(child(path, "plugins"), profile["plugins"])
        found += _plugin_config(child(path, "pluginConfig"), profile["pluginConfig"], features)
        if name in seen:
            found.append(duplicate(child(path, "schedulerName"), name))
        seen[name] = position
    return found + _common_queue_sort(profiles)


def _removed_plugins(path: str, sets: Wire) -> list[str]:
    """Plugins of former versions; ``multiPoint`` and the points about placements are not looked at.

    Source: ``validatePluginSetForInvalidPlugins``.
    """
    return [
        invalid(index(f"{path}.{point}.enabled", position), plugin["name"], _REMOVED)
        for point in (*schema.EXTENSION_POINTS, "podGroupPostFilter")
        for position, plugin in enumerate(sets.get(point, {}).get("enabled") or ())
        if plugin["name"] in _REMOVED_PLUGINS
    ]


def _plugin_config(path: str, entries: list[Wire], features: Features) -> list[str]:
    """Each plugin once, and its arguments; those of NodeResourcesFit are only looked at when the plugin is built.

    Source: ``validatePluginConfig``.
    """
    found = []
    seen: set[str] = set()
    for position, entry in enumerate(entries):
        place, name = index(path, position), entry["name"]
        if name in seen:
            found.append(duplicate(place, name))
        seen.add(name)
        if name in _REMOVED_PLUGINS:
            found.append(invalid(place, name, _REMOVED))
        elif name in validation_args.CHECKED_WITH_CONFIGURATION:
            found += validation_args.CHECKED_WITH_CONFIGURATION[name](child(place, "args"), entry["args"], features)
    return found


def _common_queue_sort(profiles: list[Wire]) -> list[str]:
    """There is one queue, so all profiles have to sort it alike.

    Source: ``validateCommonQueueSort``.
    """
    first = profiles[0]["plugins"]["queueSort"]
    enabled = first["enabled"] or []
    found = []
    if len(enabled) > 1:
        what = "only one queue sort plugin can be enabled"
        found.append(invalid("profiles[0].plugins.queueSort.Enabled", len(enabled), what))
    sorter = enabled[0]["name"] if enabled else ""
    args = _last_args(profiles[0], sorter) if sorter else None
    for position, profile in enumerate(profiles[1:], start=1):
        path = index("profiles", position)
        if profile["plugins"]["queueSort"] != first:
            shown = profile["plugins"]["queueSort"]
            found.append(invalid(f"{path}.plugins.queueSort", shown, "must be the same for all profiles"))
        for entry in profile["pluginConfig"]:
            if entry["name"] == sorter and entry["args"] != args:
                what = "queueSort must be the same for all profiles"
                found.append(invalid(f"{path}.pluginConfig.args", entry["args"], what))
    return found


def _last_args(profile: Wire, plugin: str) -> Any:
    args = None
    for entry in profile["pluginConfig"]:
        if entry["name"] == plugin:
            args = entry["args"]
    return args


def _extenders(path: str, extenders: list[Wire]) -> list[str]:
    """Source: ``validateExtenders``."""
    found = []
    managed: set[str] = set()
    for position, extender in enumerate(extenders):
        place = index(path, position)
        if extender["prioritizeVerb"] and extender["weight"] <= 0:
            found.append(invalid(f"{place}.weight", extender["weight"], "must have a positive weight applied to it"))
        for number, resource in enumerate(extender["managedResources"] or ()):
            name, where = resource["name"], f"{index(f'{place}.managedResources', number)}.name"
            found += _extended_resource(where, name)
            if name in managed:
                found.append(invalid(where, name, "duplicate extender managed resource name"))
            managed.add(name)
    binders = sum(bool(extender["bindVerb"]) for extender in extenders)
    if binders > 1:
        shown = f"found {binders} extenders implementing bind"
        found.append(invalid(path, shown, "only one extender can implement bind"))
    return found


def _extended_resource(path: str, name: str) -> list[str]:
    """Source: ``validateExtendedResourceName``."""
    problems = names.qualified_name_problems(name)
    if problems:
        return [invalid(path, name, what) for what in problems]
    return [] if names.is_extended_resource(name) else [invalid(path, name, "is an invalid extended resource name")]
