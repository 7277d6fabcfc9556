"""Extension points measured from outside, so that what they do stays free of it."""

from collections.abc import Callable, Sequence
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
            if not framework.points.get(plugins):
                return method(framework, *args, **more)
            started = collect.now()
            try:
                answer = method(framework, *args, **more)
            except PluginFailure as failure:
                status = str(failure.status.code)
                collect.extension_point(point, status, framework.profile_name, collect.now() - started)
                raise
            status = "Success" if answer is None else outcome(answer)
            collect.extension_point(point, status, framework.profile_name, collect.now() - started)
            if point in _COUNTED:
                skipped = args[0].skip_filter | args[0].skip_score
                ran = [plugin.name for plugin in framework.points[plugins] if plugin.name not in skipped]
                collect.evaluated(point, framework.profile_name, ran)
            return answer

        return run  # type: ignore[return-value]

    return wrap


class WholeRun:
    """Around filters or scores that run over all rows of a shard or a table: measured, and counted for each plugin that
    ran."""

    __slots__ = ("_framework", "_point", "_runners", "_skipped", "_started")

    def __init__(self, point: str, framework: Any, runners: Sequence[Any], state: Any) -> None:
        """
        Args:
            point: Filter or Score.
            state: the cycle's.
        """
        self._point = point
        self._framework = framework
        self._runners = runners
        self._skipped = state.skip_filter if point == "Filter" else state.skip_score

    def __enter__(self) -> None:
        self._started = collect.now()

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        profile = self._framework.profile_name
        failed = str(error.status.code) if isinstance(error, PluginFailure) else "Error"
        status = "Success" if kind is None else failed
        collect.extension_point(self._point, status, profile, collect.now() - self._started)
        if kind is None:
            ran = [runner.name for runner in self._runners if runner.name not in self._skipped]
            collect.evaluated(self._point, profile, ran)
