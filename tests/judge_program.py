"""The program that decides with kube-scheduler's framework, for tests that need the real one."""

from pathlib import Path

import pytest

from dsched.errors import JudgeError
from dsched.judging import program


def judge_program(release: str) -> Path:
    """What ``scripts/build-judge`` has left in its cache; the test is skipped without."""
    try:
        return program.find(release)
    except JudgeError as error:
        pytest.skip(str(error))
