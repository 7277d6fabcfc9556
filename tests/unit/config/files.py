"""Configuration texts for tests."""

import json
from typing import Any

from dsched import config
from dsched.errors import ConfigError

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def file(**fields: Any) -> str:
    """A configuration with these fields, as JSON."""
    return json.dumps(HEAD | fields)


def with_args(plugin: str, **args: Any) -> str:
    """A configuration with one profile that gives one plugin these arguments."""
    return file(profiles=[{"pluginConfig": [{"name": plugin, "args": args}]}])


def with_plugins(**points: Any) -> str:
    """A configuration with one profile with these plugin sets: ``score={"enabled": ["X", ("Y", 2)]}``."""
    return file(profiles=[{"plugins": plugin_sets(**points)}])


def plugin_sets(**points: Any) -> dict[str, Any]:
    """Plugin sets; a plugin is a name or a pair of name and weight."""
    return {
        point: {key: [_plugin(item) for item in items] for key, items in plugin_set.items()}
        for point, plugin_set in points.items()
    }


def _plugin(item: str | tuple[str, int]) -> dict[str, Any]:
    return {"name": item} if isinstance(item, str) else {"name": item[0], "weight": item[1]}


def refusal(text: str | bytes, **options: Any) -> ConfigError | None:
    """The error that refuses the text, None when it is taken."""
    try:
        config.load(text, **options)
    except ConfigError as error:
        return error
    return None


def paths(text: str | bytes) -> list[str]:
    """Stage and field paths of the errors, ``[]`` when the text is taken: ``["validation", "parallelism"]``."""
    error = refusal(text)
    return [] if error is None else [error.stage, *sorted(line.partition(": ")[0] for line in error.errors)]


def names(loaded: config.SchedulerConfiguration, point: str) -> list[str]:
    """Plugins of the only profile at one extension point, in order."""
    (profile,) = loaded.profiles
    return [ref.name for ref in profile.plugins[point]]
