"""The program that decides with kube-scheduler's framework, for tests that need the real one."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import pytest

from dsched.errors import JudgeError
from dsched.judging import program
from dsched.judging.program import Program

Answer = TypeVar("Answer")


def judge_program(release: str) -> Path:
    """What ``scripts/build-judge`` has left in its cache; the test is skipped without."""
    try:
        return program.find(release)
    except JudgeError as error:
        pytest.skip(str(error))


class Restarting(ExitStack):
    """The program, started again where kube-scheduler's code has panicked at a place where it is known to.

    Args:
        panics: a word of what it says then.
    """

    def __init__(self, path: Path, panics: str) -> None:
        super().__init__()
        self._path, self._panics = path, panics
        self._asked: Program | None = None

    def ask(self, question: Callable[[Program], Answer]) -> Answer | None:
        """The answer, None where it panics."""
        self._asked = self._asked or self.enter_context(program.running(self._path))
        try:
            return question(self._asked)
        except JudgeError as error:
            if self._panics not in str(error):
                raise
            self._asked = None
            return None
