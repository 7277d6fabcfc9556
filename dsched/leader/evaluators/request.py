"""One request to the evaluators on its way: shards out, answers in, and what is heard of those that do not come.

A class whose evaluation held an evaluator up, or took its process with it, is *out*: it fails, and neither is it asked
about again in this request nor is it judged in this process.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from dsched.engine.evaluation import Evaluation
from dsched.engine.judge import Columns, closed_by, join
from dsched.engine.wire import unpack
from dsched.framework.interface import Hazard
from dsched.framework.validation import PluginFailure
from dsched.log import cut, logger
from dsched.model.messages import EvaluateShard, ShardResult, Trouble

_log = logger(__name__)

GRACE_S = 1.0
"""How long an evaluator may take to answer after it has told a plugin to end."""


@dataclass(frozen=True, slots=True)
class Shard:
    """What one evaluator is asked.

    Attributes:
        evaluator: who holds these parts of the table, empty where that one cannot be asked now.
        message: without a deadline, which it gets each time it is sent.
        rows: of the leader's table, in the order of the answers.
    """

    evaluator: str
    message: EvaluateShard
    rows: NDArray[np.intp]


class Question:
    """A class that evaluators are asked about.

    Attributes:
        beyond: what the plugins say that evaluators are not asked.
        closed: the same as evaluators need it, see `dsched.engine.judge.closed_by`.
    """

    def __init__(self, evaluation: Evaluation) -> None:
        """
        Raises:
            PluginFailure: one of those plugins raised or broke its contract.
        """
        self.evaluation = evaluation
        self.beyond = evaluation.judge_beyond()
        self.closed = closed_by(evaluation.framework, self.beyond)


class ShardedRequest:
    """One request.

    Attributes:
        shards: by number, at least one.
        heard: whether anybody has said anything.
    """

    def __init__(self, shards: Sequence[Shard], questions: Sequence[Question], limit_s: float) -> None:
        """
        Args:
            limit_s: how long a plugin may take; 0 for no limit.
        """
        self.shards = shards
        self.questions = questions
        self.name = shards[0].message.request
        self.heard = False
        self._limit_s = limit_s
        self._answers: dict[int, list[Columns | PluginFailure]] = {}
        self._refused: set[int] = set()
        self._out: dict[int, PluginFailure] = {}
        self._lost: dict[int, PluginFailure] = {}
        """Classes with which a process was lost in an earlier try."""
        self._losing: dict[int, PluginFailure] = {}
        """Classes with which a process was lost in this try."""
        self._busy: dict[int, Trouble] = {}
        """What shards are held up by."""

    def judge_own(self) -> list[int]:
        """Answer in this process for the shards of which no evaluator can be asked; returns these."""
        own = [number for number, shard in enumerate(self.shards) if not shard.evaluator]
        if own:
            self._leave_out_lost()
        for number in own:
            self.judge_here(number)
        return own

    def due(self, deadline_ms: int) -> list[tuple[str, EvaluateShard]]:
        """Evaluators and messages for the shards without an answer, to be answered by a wall-clock time."""
        self._refused.clear()
        skip = sorted(self._out)
        return [
            (shard.evaluator, msgspec.structs.replace(shard.message, deadline_ms=deadline_ms, skip=skip))
            for shard in (self.shards[number] for number in self.missing())
            if shard.evaluator
        ]

    def refuse(self, shard: int) -> None:
        """Take that nobody will answer for a shard this time."""
        self._refused.add(shard)

    def hear(self, shard: int, trouble: Trouble) -> float:
        """Take in why the answer about a shard is late or does not come; returns how much longer to wait for it."""
        if shard not in self.missing() or not 0 <= trouble.at < len(self.questions):
            return 0.0
        if trouble.lost:
            self._losing[trouble.at] = PluginFailure(
                cut(trouble.plugin), f"the evaluator's process was lost: {cut(trouble.lost)}", Hazard.LOST
            )
            self._busy.pop(shard, None)
            self.refuse(shard)
            return 0.0
        if not self._limit_s:
            return 0.0
        self._busy[shard] = trouble
        return max(0.0, self._limit_s - trouble.seconds + GRACE_S)

    def longest_s(self) -> float:
        """How much longer than its patience a try may take at most, whatever is heard: every class is slow."""
        return len(self.questions) * (self._limit_s + GRACE_S)

    def end_try(self) -> None:
        """No more is waited for this time. A process may be lost for any reason once; not twice with the same class."""
        for at in self._losing.keys() & self._lost.keys():
            self._out[at] = self._losing[at]
        self._lost |= self._losing
        self._losing = {}
        for shard, trouble in self._busy.items():
            if shard not in self._answers:
                text = f"did not end within {self._limit_s:g} s in an evaluator, nor when it was told to"
                self._out.setdefault(trouble.at, PluginFailure(cut(trouble.plugin), text, Hazard.OVERRAN_ELSEWHERE))
        self._busy = {}

    def give_up(self) -> list[int]:
        """The shards that are to be judged in this process; classes that are not judged here are out."""
        if self.missing():
            self._leave_out_lost()
        return self.missing()

    def _leave_out_lost(self) -> None:
        for at, failure in self._lost.items():
            self._out.setdefault(at, failure)

    def keep_away(self, at: int, failure: PluginFailure) -> None:
        """A class is not to be judged in this process, should it come to that."""
        self._lost.setdefault(at, failure)

    def awaited(self) -> bool:
        """Whether an answer can still come in."""
        return any(number not in self._refused for number in self.missing())

    def missing(self) -> list[int]:
        """Shards without an answer that is needed."""
        if len(self._out) == len(self.questions):
            return []
        return [number for number in range(len(self.shards)) if number not in self._answers]

    def rows_by_profile(self, shard: int) -> Mapping[str, int]:
        """Rows judged in a shard, over all classes of a profile."""
        rows: dict[str, int] = {}
        for question in self.questions:
            profile = question.evaluation.framework.profile_name
            rows[profile] = rows.get(profile, 0) + len(self.shards[shard].rows)
        return rows

    def accept(self, result: ShardResult) -> bool:
        """Take a shard's answer; False when it is not one to this request, or the second one."""
        if result.shard not in self.missing() or len(result.classes) != len(self.questions):
            return False
        rows = len(self.shards[result.shard].rows)
        try:
            self._answers[result.shard] = [_caught(unpack, found, rows) for found in result.classes]
        except ValueError as error:
            _log.warning("reply refused", extra={"action": "reply", "error": cut(str(error))})
            return False
        return True

    def judge_here(self, number: int) -> None:
        """Answer for a shard in this process."""
        rows = self.shards[number].rows
        self._answers[number] = [
            self._out.get(at) or _caught(question.evaluation.judge_shard, rows, question.closed[rows])
            for at, question in enumerate(self.questions)
        ]

    def deliver(self) -> None:
        """Put the shards together and fill the evaluations."""
        for at, question in enumerate(self.questions):
            evaluation, failed = question.evaluation, self._out.get(at)
            parts: list[tuple[NDArray[np.intp], Columns]] = []
            for number, shard in enumerate(() if failed is not None else self.shards):
                said = self._answers[number][at]
                if isinstance(said, PluginFailure):
                    failed = failed or said
                else:
                    parts.append((shard.rows, said))
            if failed is not None:
                evaluation.failure = failed.status
            else:
                evaluation.fill(join(evaluation.framework, question.beyond, parts))


def _caught(answer: Callable[..., Columns], *args: Any) -> Columns | PluginFailure:
    try:
        return answer(*args)
    except PluginFailure as failure:
        return failure
