"""Runs supervisors over stand-in children in processes of their own, and waits for what they do."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHILD = Path(__file__).with_name("child.py")
SCRIPT = """
import json, sys
from pathlib import Path
from dsched.supervisor import commands, supervise
from dsched.supervisor.children import Spec
given = json.loads(sys.argv[1])
specs = [Spec(name, tuple(command), order, grace) for name, command, order, grace in given["specs"]]
system = commands.System(Path(given["data_dir"]), redis_url=given["redis_url"])
supervise.run(system, specs, lambda line: print(line, flush=True))
"""
DEADLINE_S = 30.0


def wait_until(what: str, condition: Callable[[], Any]) -> Any:
    """The condition's first true value; fails the test if there is none in time."""
    deadline = time.monotonic() + DEADLINE_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not in {DEADLINE_S:g} s: {what}"
        time.sleep(0.02)
    return value


def runs(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class SupervisorProcess:
    """A supervisor with stand-in children.

    Attributes:
        journal: where the children write what happens to them.
    """

    def __init__(self, data_dir: Path, redis_url: str | None = None) -> None:
        self.data_dir = data_dir
        self.journal = data_dir / "journal"
        self._redis_url = redis_url
        self._specs: list[tuple[str, list[str], int, float]] = []
        self._process: subprocess.Popen[bytes] | None = None

    def add(self, name: str, *habits: str, order: int = 0, grace_s: float = 20.0) -> None:
        """One more child."""
        command = [sys.executable, str(CHILD), str(self.journal), name, *habits]
        self._specs.append((name, command, order, grace_s))

    def start(self) -> None:
        """Start, not waiting for anything."""
        given = {"data_dir": str(self.data_dir), "redis_url": self._redis_url, "specs": self._specs}
        self.data_dir.mkdir(exist_ok=True)
        with (self.data_dir / "output").open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-c", SCRIPT, json.dumps(given)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def output(self) -> str:
        """Everything the supervisor has reported."""
        return (self.data_dir / "output").read_text()

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def wait(self) -> int:
        """Its exit code."""
        assert self._process is not None
        return self._process.wait(DEADLINE_S)

    def end(self) -> None:
        """Whatever a test has left."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(DEADLINE_S)

    def noted(self) -> list[tuple[str, str, int]]:
        """What the children have written: (word, name, pid)."""
        if not self.journal.exists():
            return []
        lines = [line.split() for line in self.journal.read_text().splitlines()]
        return [(word, name, int(pid)) for word, name, pid in lines]

    def wait_for(self, word: str, name: str, times: int = 1) -> int:
        """Wait until a child has written the word so often; its pid of the last time."""

        def found() -> list[int]:
            pids = [pid for noted, child, pid in self.noted() if (noted, child) == (word, name)]
            return pids if len(pids) >= times else []

        return int(wait_until(f"{name} {word} x{times}", found)[-1])
