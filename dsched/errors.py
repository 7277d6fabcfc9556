"""Every error that dsched raises on purpose; those of one room stand in that room.

::

    DschedError
    ├── ConfigError            a configuration file that cannot be taken
    ├── ManifestError          a manifest that cannot be taken: file, document and field
    ├── QuantityError          text that is no Kubernetes quantity
    ├── SelectorError          text that is no label selector
    ├── PluginError            a plugin that cannot be found or built, or that broke its contract
    ├── StateError             state in Redis
    │   ├── StaleEpoch         a script refused the caller's epoch: another leader has taken over
    │   ├── ScriptError        a script that is missing, malformed or was called wrongly
    │   ├── WrongType          a key of another type than dsched writes (`dsched.state.client`)
    │   ├── RedisUnavailable   Redis does not answer
    │   ├── UnfitRedis         a Redis that must not be used (too old, evicts keys)
    │   └── NotAllowed         the Redis user may not do that
    ├── ClusterError           the source of truth refused
    │   ├── Conflict           the object is not what the caller thinks it is
    │   ├── NotFound           there is no such object
    │   ├── ClusterUnavailable it does not answer
    │   │   └── Broken         the connection broke (`dsched.cluster.kubernetes.http.exchange`)
    │   │       └── TimedOut   no answer came in time (the same)
    │   ├── WatchExpired       the watch's starting point is gone: list again
    │   └── Withheld           this user may not list a kind (`dsched.cluster.kubernetes.objects`)
    ├── RecordingError         a recording that cannot be read or written
    │   └── NothingRecorded    one without a beginning that is told to its end
    ├── JudgeError             the program that decides as kube-scheduler does is missing, or failed
    ├── CannotEvaluate         an evaluator cannot judge nodes as it was asked to
    ├── SystemNotFound         no running system at the given address
    ├── CompileError           a CEL expression that cannot be used (`dsched.cel.errors`)
    │   └── NoProgram          one of which no program can be made (the same)
    ├── EvaluationError        one that failed on what it was given (`dsched.cel.errors`)
    ├── PatternError           text that is no regular expression (`dsched.cel.regex.characters`)
    ├── AllocationError        a claim, class or slice at fault (`dsched.plugins.dynamic_resources.allocation`)
    │   └── AllocationTimeout  looking for devices took too long
    ├── InvalidPools           no devices on a node with invalid pools (the same)
    ├── Unsupported            a workload that asks for what is not built (`dsched.bench.operations`)
    ├── WorkloadFailed         one that did not come to its end (`dsched.bench.running`)
    ├── Busy                   too many computations of the page wait already (`dsched.ui.evaluating`)
    └── OutputLost             standard output takes nothing (`dsched.cli.streams`)
"""

from collections.abc import Sequence


class DschedError(Exception):
    """Root of the tree. The command line prints it without a traceback and exits 1."""


class ConfigError(DschedError):
    """A configuration file was refused.

    Attributes:
        stage: ``decode``, ``validation`` or ``profile``.
        errors: one ``FIELD.PATH: what`` each.
        profile, plugin: the profile and plugin at fault, stage ``profile`` only.
    """

    def __init__(
        self,
        message: str,
        *,
        stage: str = "decode",
        errors: Sequence[str] = (),
        profile: str | None = None,
        plugin: str | None = None,
    ) -> None:
        super().__init__(message)
        self.stage = stage
        self.errors = tuple(errors)
        self.profile = profile
        self.plugin = plugin


class ManifestError(DschedError):
    """One or more manifests were refused; nothing of the call was applied.

    Attributes:
        problems: one ``FILE[DOCUMENT]: FIELD: what`` each.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class QuantityError(DschedError, ValueError):
    """Text is not a Kubernetes quantity."""

    def __init__(self, text: object) -> None:
        super().__init__(f'"{text}" is not a quantity')
        self.text = text


class SelectorError(DschedError, ValueError):
    """Text is not a label selector, or a requirement of one is not legal."""


class PluginError(DschedError):
    """A plugin cannot be found or built, or broke its contract."""


class StateError(DschedError):
    """Something is wrong with the state in Redis."""


class StaleEpoch(StateError):
    """The caller's epoch is older than the present one; a leader that sees this must stop leading."""

    def __init__(self, offered: int, script: str) -> None:
        super().__init__(f"{script} refused: epoch {offered} is not the present one; another leader has taken over")
        self.offered = offered


class ScriptError(StateError):
    """A Lua script is missing, has a malformed header, or was called with the wrong keys."""


class RedisUnavailable(StateError):
    """Redis does not answer."""


class UnfitRedis(StateError):
    """The Redis server must not be used: too old, or it evicts keys."""


class NotAllowed(StateError):
    """The Redis user that the URL names may not do what was asked of it."""


class ClusterError(DschedError):
    """The source of truth refused a request."""


class Conflict(ClusterError):
    """The object is not what the caller thinks it is (another UID, already bound, changed meanwhile)."""


class NotFound(ClusterError):
    """There is no such object."""


class ClusterUnavailable(ClusterError):
    """The source of truth does not answer; what was asked of it may or may not have been done."""


class WatchExpired(ClusterError):
    """The log no longer reaches back to the watch's starting point; list again and watch from there."""


class RecordingError(DschedError):
    """A recording cannot be read or written; the message names the file and the place in it."""


class NothingRecorded(RecordingError):
    """A recording has no beginning that is told to its end, so there is nothing to replay."""


class JudgeError(DschedError):
    """The program that decides with kube-scheduler's framework is missing, or failed; the message says what to do."""


class CannotEvaluate(DschedError):
    """An evaluator cannot judge nodes as it was asked to: its replica is another one, or the task makes no sense."""


class SystemNotFound(DschedError):
    """No running system at the given address."""
