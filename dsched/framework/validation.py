"""What a plugin may answer. It may raise anything and answer anything; here, at the edge, whatever breaks its contract
becomes a status Error that names the plugin, so that one pod fails and nothing else does.
"""

from asyncio import CancelledError
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from random import random
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dsched.framework.plugin_timeout import WATCH, Overrun
from dsched.framework.status import Code, Hazard, Status, Verdict, cut
from dsched.metrics import collect

Result = TypeVar("Result")

LAST = 2**53
"""The last place in the active queue; the highest number that its order is exact for."""
_RAISED = (Exception, SystemExit, GeneratorExit, CancelledError)
"""What a plugin may raise to its own harm. Not `Overrun`, which ends it, and not Ctrl-C."""
_CAUGHT = (*_RAISED, Overrun, KeyboardInterrupt)
"""Of which `_failure` says what becomes."""
STATUS = (Status, type(None))
"""What most methods answer; None is success."""


class PluginFailure(Exception):
    """A plugin raised, or answered out of contract; carries the status Error that the attempt ends with."""

    def __init__(self, plugin: str, cause: str, hazard: Hazard = Hazard.NONE) -> None:
        super().__init__(cause)
        self.cause = cause
        self.status = Status(Code.ERROR, (f'running plugin "{plugin}": {cause}',), plugin, hazard)


class AnsweredError(PluginFailure):
    """A filter answered with an error, which it may. That ends the attempt; where pods are taken off a node in a
    trial, it is an answer about that node."""

    def __init__(self, plugin: str, message: str) -> None:
        super().__init__(plugin, message)
        self.status = Status(Code.ERROR, (f'running "{plugin}" filter plugin: {message}',), plugin)


def no_rejection(plugin: str, status: Status) -> PluginFailure:
    """The failure of a filter whose status rejects nothing."""
    if status.code is Code.ERROR:
        return AnsweredError(plugin, status.message)
    return PluginFailure(plugin, f"{status.code}: {status.message}")


def failed(status: Status) -> PluginFailure:
    """The failure that a status Error has come from."""
    failure = PluginFailure(status.plugin, status.message.removeprefix(f'running plugin "{status.plugin}": '))
    failure.status = status
    return failure


def binding_failure(point: str, plugin: str, message: str) -> str:
    """What is told of a pod whose binding cycle a plugin at ``PreBind`` or ``Bind`` has failed, unless it broke its
    contract, which is told already.

    Source: framework/runtime/framework.go ``RunPreBindPlugins``, ``RunBindPlugins``.
    """
    if message.startswith(f'running plugin "{plugin}": '):
        return message
    return f'running {point} plugin "{plugin}": {message}'


def guarded(plugin: str, call: Callable[..., Result], *args: Any) -> Result:
    """Call a plugin.

    Raises:
        PluginFailure: it raised, or took too long.
    """
    before = WATCH.plugin
    try:
        # `WATCH.run` written out, twice: each pod pays for some of these calls.
        WATCH.turns += 1
        WATCH.plugin = plugin
        if WATCH.show is not None:
            WATCH.show(plugin)
        try:
            return call(*args) if random() >= collect.SAMPLED else measured(plugin, call, *args)
        finally:
            WATCH.turns += 1
            WATCH.plugin = before
            if WATCH.show is not None:
                WATCH.show(before)
    except PluginFailure:  # of a plugin that this one asked, or told already
        raise
    except _CAUGHT as error:
        WATCH.run(before)  # its end may come in between the plugin's and here
        raise _failure(plugin, error) from error


def guarded_each(calls: Iterable[tuple[str, Callable[..., Result]]], *args: Any) -> list[Result]:
    """Call plugins one after the other, each by its name, as `guarded` does; cheaper where they have little to do.

    Raises:
        PluginFailure: one raised, or took too long; those behind it are not called.
    """
    before, plugin, found = WATCH.plugin, "", []
    try:
        try:
            for plugin, call in calls:
                WATCH.turns += 1
                WATCH.plugin = plugin
                if WATCH.show is not None:
                    WATCH.show(plugin)
                found.append(call(*args) if random() >= collect.SAMPLED else measured(plugin, call, *args))
        finally:
            WATCH.run(before)
    except PluginFailure:
        raise
    except _CAUGHT as error:
        WATCH.run(before)
        raise _failure(plugin, error) from error
    return found


def _failure(plugin: str, error: BaseException) -> PluginFailure:
    if isinstance(error, Overrun):
        return PluginFailure(plugin, f"did not answer within {WATCH.limit_s:g} s", Hazard.OVERRAN)
    if isinstance(error, KeyboardInterrupt) and not WATCH.on:
        raise error  # where nothing is watched, Ctrl-C ends what a person has started
    return PluginFailure(plugin, f"{type(error).__name__}: {_text(error)}")


def _text(error: BaseException) -> str:
    """What an error says, as far as it does."""
    try:
        return cut(str(error))
    except _RAISED as another:
        return f"its text cannot be had ({type(another).__name__})"


def sampled(plugin: str, call: Callable[..., Result], *args: Any) -> Result:
    """Call a plugin, one call in ten measured. Where a plugin is called once for each of many nodes, one `guarded` call
    around all of these has the limit, and takes what is raised."""
    return call(*args) if random() >= collect.SAMPLED else measured(plugin, call, *args)


def measured(plugin: str, call: Callable[..., Result], *args: Any) -> Result:
    """Call a plugin, and measure it."""
    started, status = collect.now(), "Error"
    try:
        answer = call(*args)
        status = outcome(answer)
        return answer
    finally:
        collect.plugin_call(plugin, call, collect.now() - started, status)


def outcome(answer: object) -> str:
    """What a call ended with, as metrics say it: the text of a status' code, Success where there is none."""
    if isinstance(answer, tuple) and answer:  # PreFilter's answer for all plugins begins with the rejection
        answer = answer[0]
    status = getattr(answer, "status", answer)
    return str(status.code) if isinstance(status, Status) else "Success"


def answered(plugin: str, kinds: tuple[type[Any], ...], call: Callable[..., Result], *args: Any) -> Result:
    """Call a plugin whose answer has to be of one of these types.

    Raises:
        PluginFailure: it raised, or answered with something else.
    """
    answer = guarded(plugin, call, *args)
    if not isinstance(answer, kinds):
        raise unexpected(plugin, kinds, call, answer)
    return answer


def unexpected(plugin: str, kinds: tuple[type[Any], ...], call: Callable[..., Any], answer: object) -> PluginFailure:
    """The failure of a plugin that had to answer with one of these types."""
    expected = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
    return PluginFailure(plugin, f"{_called(call)} answered with {type(answer).__name__}, expected {expected}")


def whole_turn(plugin: str, answer: object) -> tuple[int, str]:
    """A QueueSort plugin's answer: a number that the queue orders by exactly, and a text.

    Raises:
        PluginFailure: it is something else.
    """
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise PluginFailure(plugin, f"sort_key answered with {type(answer).__name__}, expected (int, str)")
    order, turn = answer
    if not isinstance(order, int) or not isinstance(turn, str) or not -LAST <= order <= LAST:
        shown = _shown(plugin, answer)
        raise PluginFailure(plugin, f"sort_key answered with {shown}, expected an int of up to 2^53 and a str")
    return order, turn


def whole_numbers(plugin: str, what: str, answer: object, length: int) -> NDArray[np.int64]:
    """A plugin's scores as int64, one a row, in an array of their own.

    Raises:
        PluginFailure: they are not that many, or no whole numbers.
    """
    scores: NDArray[Any] = answer.copy() if type(answer) is np.ndarray else guarded(plugin, np.array, answer)
    if scores.shape != (length,):
        raise PluginFailure(plugin, f"{what} scored {scores.shape} rows of ({length},)")
    if length and scores.dtype.kind not in "biu":
        raise PluginFailure(plugin, f"{what} answered with {scores.dtype}, expected int64")
    exact: NDArray[np.int64] = scores.astype(np.int64, copy=False)
    return exact


def concerned_rows(plugin: str, answer: object, length: int) -> NDArray[np.intp] | None:
    """Rows that a plugin names of a table of so many; None where it does not say.

    Raises:
        PluginFailure: they are no rows of the table.
    """
    if answer is None:
        return None
    if type(answer) is not np.ndarray or answer.ndim != 1 or answer.dtype.kind != "i":
        raise PluginFailure(plugin, f"answered with {_shown(plugin, answer)}, expected an array of rows, or None")
    if len(answer) and (np.minimum.reduce(answer) < 0 or np.maximum.reduce(answer) >= length):
        raise PluginFailure(plugin, f"named rows {answer.min()} to {answer.max()} of {length}")
    return answer


def single_numbers(plugin: str, answer: object, length: int) -> list[int]:
    """A plugin's scores of few rows as int64, one a row.

    Raises:
        PluginFailure: they are not that many, or no whole numbers.
    """
    if not isinstance(answer, list) or len(answer) != length:
        raise PluginFailure(plugin, f"score_few answered with {_shown(plugin, answer)}, expected {length} scores")
    for score in answer:
        if type(score) is not int or not -(2**63) <= score < 2**63:
            raise PluginFailure(plugin, f"score_few answered with {_shown(plugin, score)}, expected an int64")
    return answer


def rejections(plugin: str, answer: object, length: int) -> list[Status | None]:
    """A filter's statuses of few rows, checked.

    Raises:
        PluginFailure: they are not that many, or one is no rejection.
    """
    if not isinstance(answer, list) or len(answer) != length:
        raise PluginFailure(plugin, f"filter_few answered with {_shown(plugin, answer)}, expected {length} statuses")
    for status in answer:
        if status is None:
            continue
        if not isinstance(status, Status):
            raise PluginFailure(plugin, f"filter_few answered with {type(status).__name__}, expected Status or None")
        if not status.rejected:
            raise no_rejection(plugin, status)
    return answer


def sound(plugin: str, verdict: Verdict, length: int, open_: Callable[[], NDArray[np.bool_]]) -> Verdict:
    """A whole-table filter's verdict on so many rows, checked; statuses other than rejections may be there but no open
    row's.

    Args:
        open_: says which rows no earlier filter rejected.
    Raises:
        PluginFailure: it has the wrong shape, names statuses that are not there, or says Error.
    """
    index: Any = verdict.index
    statuses: Any = verdict.statuses
    if not isinstance(index, np.ndarray) or not isinstance(statuses, tuple):
        found = f"({type(index).__name__}, {type(statuses).__name__})"
        raise PluginFailure(plugin, f"filter_table answered with a Verdict of {found}, expected (ndarray, tuple)")
    if index.shape != (length,):
        raise PluginFailure(plugin, f"filter_table judged {index.shape} rows of ({length},)")
    if index.dtype.kind not in "iu":
        raise PluginFailure(plugin, f"filter_table answered with {index.dtype}, expected int32")
    if not np.count_nonzero(index):
        return verdict
    highest = int(np.maximum.reduce(index, initial=0))
    if highest > len(statuses) or (index.dtype.kind == "i" and int(np.minimum.reduce(index, initial=0)) < 0):
        wrong = highest if highest > len(statuses) else int(index.min())
        raise PluginFailure(plugin, f"filter_table names status {wrong} of {len(statuses)}")
    for number, status in enumerate(statuses, start=1):
        if not isinstance(status, Status):
            raise unexpected(plugin, (Status,), guarded, status)
        if not status.rejected and bool((index[open_()] == number).any()):
            raise no_rejection(plugin, status)
    return verdict


def versions(calls: Sequence[tuple[str, Callable[..., Hashable]]], *args: Any) -> Mapping[str, Hashable]:
    """Plugins' versions of something, by name, which are compared with later ones.

    Raises:
        PluginFailure: one raised, or answered with what cannot be compared.
    """
    found = guarded_each(calls, *args)
    for (plugin, _), version in zip(calls, found, strict=True):
        if version is not None:  # most often it is
            guarded(plugin, hash, version)
    return dict(zip([plugin for plugin, _ in calls], found, strict=True))


def _shown(plugin: str, answer: object) -> str:
    return cut(guarded(plugin, repr, answer))


def _called(call: Callable[..., Any]) -> str:
    return str(getattr(call, "__name__", "the call"))
