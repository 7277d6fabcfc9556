"""Waiting for conditions, with a deadline for slow machines."""

import time
from collections.abc import Callable
from typing import Any

DEADLINE_S = 60.0


def wait_until(what: str, condition: Callable[[], Any]) -> Any:
    """The condition's first true value; fails the test if there is none in time."""
    deadline = time.monotonic() + DEADLINE_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not in {DEADLINE_S:g} s: {what}"
        time.sleep(0.01)
    return value
