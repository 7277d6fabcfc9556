"""Which plugins a profile runs at each extension point, in which order and with which weight.

Source: kubernetes v1.37 pkg/scheduler/framework/runtime/framework.go, pkg/scheduler/profile/profile.go.
"""

from collections.abc import Mapping, Sequence

from dsched.config import validation_args
from dsched.config.decode import Wire
from dsched.config.feature_gates import Features
from dsched.config.plugins import ALL, enabled_names
from dsched.config.schema import MULTI_POINT
from dsched.config.types import PluginRef

Known = Mapping[str, frozenset[str]]
"""Every plugin there is, in tree and out of tree, to the extension points it serves."""

Points = dict[str, tuple[PluginRef, ...]]
"""Extension point to the plugins that run there, in order."""

_BUILD_ORDER = (
    "preFilter",
    "filter",
    "postFilter",
    "reserve",
    "preScore",
    "score",
    "preBind",
    "bind",
    "postBind",
    "permit",
    "preEnqueue",
    "queueSort",
    "placementGenerate",
    "placementScore",
    "podGroupPostFilter",
)
"""The first fault in this order is the one that is reported."""


_SCORERS = {"score": "score plugins", "placementScore": "placement score plugins"}
"""Extension points at which plugins have weights, and what upstream calls who is there."""
_NOBODY: Wire = {"enabled": None}


class ProfileError(ValueError):
    """A profile cannot be built: ``profile`` and, where one is at fault, ``plugin``; ``errors`` with full paths."""

    def __init__(self, message: str, errors: Sequence[str], profile: str, plugin: str | None = None) -> None:
        super().__init__(message)
        self.errors = tuple(errors)
        self.profile = profile
        self.plugin = plugin


def build_all(profiles: Sequence[Wire], known: Known, features: Features) -> list[Points]:
    """Build every profile of a valid configuration.

    Raises:
        ProfileError: a plugin does not exist, does not serve its extension point, is registered twice there or refuses
            its arguments; a profile lacks its queue sort or bind plugin; profiles sort the queue differently.
    Source: profile.go ``NewMap``, ``cfgValidator``.
    """
    built: list[Points] = []
    for position, profile in enumerate(profiles):
        built.append(_Builder(profile, f"profiles[{position}]", known, features).build())
        _check_queue_sort(position, profile, _sorter(built[-1]), profiles[0], _sorter(built[0]))
    return built


def _sorter(points: Points) -> str:
    return points["queueSort"][0].name


def _check_queue_sort(position: int, profile: Wire, sorter: str, first: Wire, first_sorter: str) -> None:
    """There is one queue: its order, and the arguments of the plugin that makes it, have to be the first profile's.

    Source: profile.go ``cfgValidator.validate``.
    """
    name, path = profile["schedulerName"], f"profiles[{position}]"
    if sorter != first_sorter:
        what = f'different queue sort plugins for profile "{name}": "{sorter}", first: "{first_sorter}"'
        raise ProfileError(what, [f"{path}.plugins.queueSort: {what}"], name, sorter)
    if _args_of(sorter, profile) != _args_of(sorter, first):
        what = f'different queue sort plugin args for profile "{name}"'
        raise ProfileError(what, [f"{path}.pluginConfig: {what}"], name)


def _args_of(plugin: str, profile: Wire) -> object:
    return next((entry["args"] for entry in profile["pluginConfig"] if entry["name"] == plugin), None)


class _Builder:
    """Builds one profile."""

    def __init__(self, profile: Wire, path: str, known: Known, features: Features) -> None:
        self._profile = profile
        self._features = features
        self._sets: Wire = profile["plugins"]
        self._path = path
        self._known = known
        self._multi_point = [plugin["name"] for plugin in self._sets[MULTI_POINT]["enabled"] or ()]

    def build(self) -> Points:
        """Source: ``NewFramework``."""
        self._check_args()
        for point in self._points:
            self._check_enabled(point)
        order = {point: self._expanded(point) for point in self._points}
        if len(order["queueSort"]) != 1:
            self._fail(
                "queueSort",
                f'only one queue sort plugin required for profile with scheduler name "{self._name}", '
                f"but got {len(order['queueSort'])}",
            )
        if not order["bind"]:
            self._fail("bind", f'at least one bind plugin is needed for profile with scheduler name "{self._name}"')
        if len(order.get("placementGenerate", ())) > 1:
            self._fail(
                "placementGenerate",
                f'at most one placement generate plugin is allowed for profile with scheduler name "{self._name}"',
            )
        self._check_weights("score")
        self._check_weights("placementScore")
        return {point: self._weighted(point, order[point]) for point in self._sets if point != MULTI_POINT}

    @property
    def _points(self) -> list[str]:
        return [point for point in _BUILD_ORDER if point in self._sets]

    @property
    def _name(self) -> str:
        return str(self._profile["schedulerName"])

    def _fail(self, point: str, what: str, plugin: str | None = None) -> None:
        self._raise(what, [f"{self._path}.plugins.{point}: {what}"], plugin)

    def _raise(self, what: str, errors: Sequence[str], plugin: str | None) -> None:
        raise ProfileError(f"creating profile for scheduler name {self._name}: {what}", errors, self._name, plugin)

    def _check_args(self) -> None:
        """Source: ``NewFramework``, where it calls the factories of the plugins needed."""
        needed = enabled_names(self._sets)
        for position, entry in enumerate(self._profile["pluginConfig"]):
            name = entry["name"]
            if name not in needed or name not in self._known or name not in validation_args.CHECKED_WHEN_BUILT:
                continue
            path = f"{self._path}.pluginConfig[{position}].args"
            if errors := validation_args.CHECKED_WHEN_BUILT[name](path, entry["args"], self._features):
                listed = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
                self._raise(f'initializing plugin "{name}": {listed}', errors, name)

    def _check_enabled(self, point: str) -> None:
        """Source: ``updatePluginList``."""
        kind = _interface(point)
        seen = set()
        for plugin in self._sets[point]["enabled"] or ():
            name = plugin["name"]
            if name not in self._known:
                self._fail(point, f'{kind} "{name}" does not exist', name)
            if point not in self._known[name]:
                self._fail(point, f'plugin "{name}" does not extend {kind} plugin', name)
            if name in seen:
                self._fail(point, f'plugin "{name}" already registered as "{kind}"', name)
            seen.add(name)

    def _expanded(self, point: str) -> list[str]:
        """Plugins of one extension point with those of ``multiPoint`` added.

        First those at both in the extension point's order, then those of ``multiPoint`` alone, then the rest. Disabling
        all at the extension point keeps ``multiPoint`` out; disabling one keeps that one out of what it adds.

        Source: ``expandMultiPointPlugins``.
        """
        own = [plugin["name"] for plugin in self._sets[point]["enabled"] or ()]
        disabled = {plugin["name"] for plugin in self._sets[point]["disabled"] or ()}
        if ALL in disabled:
            return own
        added: list[str] = []
        overridden = set()
        for name in self._multi_point:
            if name not in self._known:
                self._fail(MULTI_POINT, f'{_interface(point)} "{name}" does not exist', name)
            if point not in self._known[name] or name in disabled:
                continue
            if name in own:
                overridden.add(name)
            elif name in added:
                self._fail(MULTI_POINT, f'plugin "{name}" already registered as "{_interface(point)}"', name)
            else:
                added.append(name)
        return [name for name in own if name in overridden] + added + [name for name in own if name not in overridden]

    def _check_weights(self, point: str) -> None:
        """No plugin may follow whose weights add up to less than nothing: upstream takes what they leave of the highest
        score for an overflow. A sum of weights that overflows cannot be written down.

        Source: ``getValidScoreWeights``.
        """
        total, seen = 0, set[str]()
        for plugin in self._ranked(point):
            if plugin["name"] in seen or point not in self._known.get(plugin["name"], ()):
                continue
            if total < 0:
                of = f"{_SCORERS[point]}: " if self._features.since(36) else ""
                self._fail(point, f"{of}total score of Score plugins could overflow")
            seen.add(plugin["name"])
            total += plugin["weight"] or 1

    def _ranked(self, point: str) -> list[Wire]:
        """Those that may have a weight at an extension point, what counts more first."""
        sets = self._sets.get(point, _NOBODY), self._sets[MULTI_POINT]
        return [plugin for each in sets for plugin in each["enabled"] or ()]

    def _weighted(self, point: str, names: Sequence[str]) -> tuple[PluginRef, ...]:
        """A weight at the point goes before one at ``multiPoint``, the first of several counts, zero stands for one.

        Source: ``getScoreWeights``.
        """
        if point not in _SCORERS:
            return tuple(PluginRef(name) for name in names)
        weights: dict[str, int] = {}
        for plugin in self._ranked(point):
            weights.setdefault(plugin["name"], plugin["weight"] or 1)
        return tuple(PluginRef(name, weights[name]) for name in names)


def _interface(point: str) -> str:
    return f"{point[0].upper()}{point[1:]}Plugin"
