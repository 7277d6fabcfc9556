"""Extension points measured from outside, so that what they do stays free of it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

from dsched.framework.validation import PluginFailure, outcome
from dsched.metrics import collect

_COUNTED = frozenset({"PreFilter", "PreScore"})
"""Points of which it is counted which plugins ran, besides Filter and Score; those that said Skip are left out."""

Call = TypeVar("Call", bound=Callable[..., Any])


def measured(point: str, plugins: str) -> Callable[[Call], Call]:
    """Measure a framework's method that runs an extension point; nothing is observed where the profile has no plugins.

    Args:
        point: the extension point as metrics name it.
        plugins: the extension point as the configuration names it.
    """

    def wrap(method: Call) -> Call:
        @wraps(method)
        def run(framework: Any, *args: Any, **more: Any) -> Any:
            if not framework.at(plugins):
                return method(framework, *args, **more)
            started = collect.now()
            try:
                answer = method(framework, *args, **more)
            except PluginFailure:
                collect.extension_point(point, "Error", framework.profile_name, collect.now() - started)
                raise
            status = "Success" if answer is None else outcome(answer)
            collect.extension_point(point, status, framework.profile_name, collect.now() - started)
            if point in _COUNTED:
                skipped = args[0].skip_filter | args[0].skip_score
                ran = [plugin.name for plugin in framework.at(plugins) if plugin.name not in skipped]
                collect.evaluated(point, framework.profile_name, ran)
            return answer

        return run  # type: ignore[return-value]

    return wrap


@contextmanager
def whole(point: str, framework: Any, runners: Sequence[Any], state: Any) -> Iterator[None]:
    """Filters or scores that run over all rows of a shard or a table: measured, and counted for each plugin that ran.

    Args:
        point: Filter or Score.
        state: the cycle's.
    """
    skipped = state.skip_filter if point == "Filter" else state.skip_score
    started, status = collect.now(), "Error"
    try:
        yield
        status = "Success"
    finally:
        collect.extension_point(point, status, framework.profile_name, collect.now() - started)
    collect.evaluated(point, framework.profile_name, [runner.name for runner in runners if runner.name not in skipped])
