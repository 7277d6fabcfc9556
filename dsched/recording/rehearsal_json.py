"""A rehearsal as JSON, written and read; docs/record-replay.md says what the fields mean."""

from pathlib import Path

import msgspec

from dsched import emulation
from dsched.config import Features
from dsched.errors import RecordingError
from dsched.model.meta import NodeName, PodKey
from dsched.model.reading import decoded
from dsched.recording.causes import Cause
from dsched.recording.causes import Kind as Changed
from dsched.recording.rehearsal import Difference, Kind, Outcome, Rehearsed

VERSION = 1
"""Of the form; another one where a field is gone or means something else."""


class _Struct(msgspec.Struct, frozen=True, rename="camel"):
    """Base of what the JSON is made of."""


class Emulated(_Struct, frozen=True):
    """A version, and the gates that were set."""

    version: str
    feature_gates: str

    def __str__(self) -> str:
        return f"{self.version} {self.feature_gates}".rstrip()


class CauseIs(_Struct, frozen=True):
    """A cause; ``counts`` by kind of difference, where it is one of the list of causes."""

    plugins: list[str]
    gates: list[str]
    others: list[str]
    together: bool
    since: str | None
    counts: dict[str, int] = {}


class DifferenceIs(_Struct, frozen=True):
    """A decision that is another one."""

    kind: str
    pod: PodKey
    attempt: int
    line: int
    recorded: "OutcomeIs"
    compared: "OutcomeIs"
    chance: bool
    cause: CauseIs


class OutcomeIs(_Struct, frozen=True):
    """What a decision came to."""

    node: NodeName
    message: str
    nominated: NodeName | None
    victims: list[PodKey]


class Report(_Struct, frozen=True):
    """The whole."""

    version: int
    recorded: Emulated
    compared: Emulated
    decisions: int
    not_reproduced: int
    counts: dict[str, int]
    causes: list[CauseIs]
    differences: list[DifferenceIs]


def report(found: Rehearsed) -> Report:
    """What is written of a rehearsal that has begun."""
    assert found.was is not None and found.now is not None
    causes = [
        msgspec.structs.replace(_cause(cause), counts={kind.value: counts[kind] for kind in Kind})
        for cause, counts in found.causes
    ]
    return Report(
        VERSION,
        _emulated(found.was),
        _emulated(found.now),
        found.decisions,
        found.not_reproduced,
        {kind.value: found.counts[kind] for kind in Kind},
        causes,
        [_difference(each) for each in found.differences],
    )


def read(path: Path) -> Report:
    """
    Raises:
        RecordingError: the file cannot be read, or is no rehearsal of this form.
    """
    try:
        found = decoded(lambda text: msgspec.json.decode(text, type=Report), path.read_bytes())
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise RecordingError(
            f"{path} is not what 'dsched replay --compare-version … -o json' writes: {error}"
        ) from error
    if found.version != VERSION:
        raise RecordingError(f"{path} is a rehearsal of form {found.version}; this dsched reads form {VERSION}")
    return found


def _emulated(features: Features) -> Emulated:
    return Emulated(*emulation.written(features))


def _cause(cause: Cause) -> CauseIs:
    others = [change.kind.value for change in cause.changes if not change.name]
    since = None if cause.since is None else str(cause.since)
    return CauseIs(cause.names(Changed.PLUGIN), cause.names(Changed.GATE), others, cause.together, since)


def _difference(each: Difference) -> DifferenceIs:
    return DifferenceIs(
        each.kind.value,
        each.pod,
        each.attempt,
        each.line,
        _outcome(each.before),
        _outcome(each.after),
        each.chance,
        _cause(each.cause),
    )


def _outcome(outcome: Outcome) -> OutcomeIs:
    return OutcomeIs(outcome.node, outcome.message, outcome.nominated, list(outcome.victims))
