"""The load beside the runs is there while they run, and ends with them."""

import subprocess
import sys
from pathlib import Path

from tests.faults import load
from tests.integration.workers.processes import wait_until

STARTS_AND_DIES = """
import os
from tests.faults import load
with load.beside(1) as pids:
    print(*pids, flush=True)
    os._exit(1)
"""


def running(pid: int) -> bool:
    """Whether it runs, and is not only waiting to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_so_many_processes_are_busy_and_end_with_the_block() -> None:
    with load.beside(2) as pids:
        assert len(pids) == 2
        assert all(running(pid) for pid in pids)
    assert not any(running(pid) for pid in pids)


def test_they_do_not_outlive_who_has_started_them() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STARTS_AND_DIES],
        cwd=Path.cwd(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    pid = int(done.stdout)
    wait_until("it has ended", lambda: not running(pid))
