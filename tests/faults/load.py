"""A stated load beside the runs: processes that compute all the time, at the priority of everything else."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

BUSY = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    sum(range(10_000))
"""
"""Ends by itself with whoever has started it, however that one ends."""


@contextmanager
def beside(processes: int) -> Iterator[list[int]]:
    """So many busy processes in the block; their pids."""
    started = [subprocess.Popen([sys.executable, "-c", BUSY, str(os.getpid())]) for _ in range(processes)]
    try:
        yield [each.pid for each in started]
    finally:
        for each in started:
            each.kill()
        for each in started:
            each.wait()
