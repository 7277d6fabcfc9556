"""Columns on their way between evaluators and the leader."""

import numpy as np
from numpy.typing import NDArray

from dsched.engine.judge import OPEN, Columns
from dsched.errors import CannotEvaluate
from dsched.framework.interface import Code, Hazard, Status, Verdict
from dsched.framework.validation import PluginFailure
from dsched.model.messages import ClassResult, ScoreColumn, VerdictColumn


def pack(columns: Columns) -> ClassResult:
    """The columns as a message."""
    verdicts = [
        VerdictColumn(
            name,
            [(int(status.code), list(status.reasons)) for status in verdict.statuses],
            verdict.index.astype("<i4").tobytes(),
        )
        for name, verdict in columns.verdicts.items()
    ]
    scores = [ScoreColumn(name, raw.astype("<i8").tobytes()) for name, raw in columns.raw_scores.items()]
    return ClassResult(verdicts, scores)


def pack_closed(closed: NDArray[np.int16]) -> bytes:
    """What `dsched.engine.judge.closed_by` says of some rows."""
    return b"" if (closed == OPEN).all() else closed.astype("<i2").tobytes()


def unpack_closed(raw: bytes, rows: int) -> NDArray[np.int16]:
    """
    Raises:
        CannotEvaluate: it is about another number of rows.
    """
    if len(raw) not in (0, 2 * rows):
        raise CannotEvaluate(f"what other plugins say is about {len(raw) / 2:g} rows of {rows}")
    return np.frombuffer(raw, dtype="<i2").astype(np.int16) if raw else np.full(rows, OPEN, dtype=np.int16)


def pack_failure(failure: PluginFailure) -> ClassResult:
    """A plugin's failure as a message."""
    return ClassResult([], [], failure.status.plugin, failure.cause, failure.status.hazard is Hazard.OVERRAN)


def unpack(result: ClassResult, rows: int) -> Columns:
    """Columns over ``rows`` rows.

    Raises:
        PluginFailure: the answer is that a plugin failed.
        ValueError: the columns have another length, or name statuses that are not there.
    """
    if result.failure:
        hazard = Hazard.OVERRAN_ELSEWHERE if result.overran else Hazard.NONE
        raise PluginFailure(result.failed_plugin, result.failure, hazard)
    columns = Columns(np.ones(rows, dtype=np.bool_))
    for verdict in result.verdicts:
        index = np.frombuffer(verdict.index, dtype="<i4").astype(np.int32)
        _check(verdict.plugin, len(index), rows)
        if rows and not 0 <= index.min() <= index.max() <= len(verdict.statuses):
            raise ValueError(f"plugin {verdict.plugin} names a status that is not among its {len(verdict.statuses)}")
        statuses = tuple(Status(Code(code), tuple(reasons)) for code, reasons in verdict.statuses)
        columns.verdicts[verdict.plugin] = Verdict(index, statuses)
        columns.passed &= index == 0
    for scores in result.scores:
        raw = np.frombuffer(scores.scores, dtype="<i8").astype(np.int64)
        _check(scores.plugin, len(raw), rows)
        columns.raw_scores[scores.plugin] = raw
    return columns


def _check(plugin: str, length: int, rows: int) -> None:
    if length != rows:
        raise ValueError(f"plugin {plugin} answered about {length} rows of {rows}")
