"""Real Celery workers as processes of their own, started as the supervisor starts them, and ended by their ids."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dsched.state import workers
from dsched.state.client import Store
from dsched.supervisor import commands

START_DEADLINE_S = 60.0
DEADLINE_S = 30.0


def wait_until(what: str, condition: Callable[[], Any], deadline_s: float = DEADLINE_S) -> Any:
    """The condition's first true value; fails the test if there is none in time."""
    deadline = time.monotonic() + deadline_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not in {deadline_s:g} s: {what}"
        time.sleep(0.02)
    return value


class WorkerProcess:
    """One worker and the child that it runs tasks in."""

    def __init__(self, name: str, command: tuple[str, ...], environment: dict[str, str], folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def children(self) -> list[int]:
        """Its pool."""
        text = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [int(pid) for pid in text.split()]

    def signal(self, number: signal.Signals) -> None:
        """To the worker and its child, which are a process group of their own."""
        os.killpg(self.pid, number)

    def stop(self) -> None:
        """As the supervisor does: in order, by SIGTERM; what does not end is killed."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(DEADLINE_S)
            except subprocess.TimeoutExpired:
                self.signal(signal.SIGKILL)
                self._process.wait(DEADLINE_S)

    def kill(self) -> None:
        """At once, the child as well."""
        if self._process.poll() is None:
            self.signal(signal.SIGKILL)
            self._process.wait(DEADLINE_S)


class Workers:
    """The workers of one system.

    Attributes:
        store: the system's state.
    """

    def __init__(self, store: Store, folder: Path, configuration: Path | None = None, evaluators: int = 2) -> None:
        self.store = store
        self._folder = folder
        self._system = commands.System(
            folder, redis_url=store.url, name=store.name, config=configuration, evaluators=evaluators
        )
        self._running: dict[str, WorkerProcess] = {}

    def begin(self, *names: str) -> None:
        """Start workers, e.g. ``evaluator-1``."""
        specs = {spec.name: spec for spec in commands.specs(self._system)}
        environment = commands.environment(self._system, self.store.url)
        for name in names:
            self._running[name] = WorkerProcess(name, specs[name].command, environment, self._folder)

    def start(self, *names: str) -> None:
        """Start workers and wait until they are known."""
        self.begin(*names)
        wait_until(f"{', '.join(names)} are known", lambda: set(names) <= set(self.known()), START_DEADLINE_S)

    def __getitem__(self, name: str) -> WorkerProcess:
        return self._running[name]

    def known(self) -> dict[str, workers.Worker]:
        """The workers that show a sign of life, by short name."""
        return {worker.name.partition("@")[0]: worker for worker in workers.read(self.store)}

    def log(self, name: str) -> str:
        """Everything a worker has logged."""
        return self._running[name].log.read_text()

    def stop(self) -> None:
        """End them all."""
        for worker in self._running.values():
            worker.signal(signal.SIGCONT)
            worker.stop()
