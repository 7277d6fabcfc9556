"""Frameworks from a few plugin classes, or from the profiles of a configuration."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from dsched import config
from dsched.clock import Clock
from dsched.config import Features, PluginRef, Profile, SchedulerConfiguration
from dsched.config.feature_gates import UNSAID
from dsched.framework.long_search import Searches
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot
from dsched.plugins import profiles, registry

NAME = "default-scheduler"


class Handle:
    """What plugins reach beside their arguments."""

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        self.snapshot = snapshot or Snapshot()
        self.clock: Clock | None = None
        self.searches: Searches | None = None


def framework_of(*plugins: type[Any], weights: Mapping[str, int] | None = None, handle: Any = None) -> Framework:
    """A framework in which each plugin runs wherever it serves, in the order given; a score weighs 1 if not said."""
    points: dict[str, tuple[PluginRef, ...]] = {}
    for plugin in plugins:
        for point in registry.extension_points(plugin):
            weight = (weights or {}).get(plugin.name, 1) if point in ("score", "placementScore") else 0
            points[point] = (*points.get(point, ()), PluginRef(plugin.name, weight))
    known = {plugin.name: plugin for plugin in plugins}
    return Framework(Profile(NAME, None, points, {}), known, handle or Handle())


def frameworks(text: str, handle: Any = None, features: Features = UNSAID) -> dict[str, Framework]:
    """The frameworks of a configuration, by scheduler name, with the plugins in tree."""
    return profiles.frameworks(_loaded(text, features), registry.intree(), handle or Handle())


@cache
def _loaded(text: str, features: Features) -> SchedulerConfiguration:
    return config.load(text, "test.yaml", features=features)


def default_framework(handle: Any = None) -> Framework:
    """kube-scheduler's default profile."""
    return profiles.frameworks(config.default(), registry.intree(), handle or Handle())[NAME]
