"""A system as its user sees it: started, asked and stopped through the command line, in processes of its own."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from dsched.cli.main import app
from tests import command_server
from tests.acceptance import processes

TRACEBACK = re.compile(r"^Traceback \(most recent call last\):\n(?:[ \t].*\n)*(.*)", re.MULTILINE)
COMMAND_S = 180.0
"""A command that takes this long hangs."""
ELSEWHERE = ("DSCHED_", "CELERY_")
"""Variables that begin so would point commands to another system."""

Json = dict[str, Any]


def environment(**more: str) -> dict[str, str]:
    """This process's environment without what would point commands to another system."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ELSEWHERE)}
    return {**kept, **more}


class System:
    """One data folder and the commands about it.

    Args:
        folder: where commands run and files are written; the data folder is in it.
        redis_url, name: of a Redis that runs already, and the system's name there.
        variables: set for every command besides the environment.
    """

    def __init__(self, folder: Path, redis_url: str | None = None, name: str | None = None, **variables: str) -> None:
        self.folder = folder
        self.data_dir = folder / "data"
        self.redis_url = redis_url
        self.name = name
        self.environment = environment(**variables)
        self._by_hand: dict[str, subprocess.Popen[bytes]] = {}
        folder.mkdir(parents=True, exist_ok=True)

    # -- commands --------------------------------------------------------------------------------------------------

    def run(self, *words: str, stdin: str | None = None) -> "subprocess.CompletedProcess[str]":
        """Run a command as it is typed."""
        return command_server.run(
            *words, environment=self.environment, folder=self.folder, stdin=stdin, timeout_s=COMMAND_S
        )

    def ask(self, *words: str, stdin: str | None = None, exit_code: int = 0) -> str:
        """Run a command about this system; what it prints.

        Raises:
            AssertionError: another exit code than expected.
        """
        done = self.run(*words, *self.where(), stdin=stdin)
        assert done.returncode == exit_code, f"dsched {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout if exit_code == 0 else done.stderr

    def here(self, *words: str, stdin: str | None = None) -> Result:
        """Run a command about this system in this process, from its options to what it prints. For tests that are about
        something else: a process of its own takes nearly all of its time to start. Not in several threads at once."""
        elsewhere = {name: None for name in os.environ if name.startswith(ELSEWHERE)}
        own = {name: value for name, value in self.environment.items() if name.startswith(ELSEWHERE)}
        return CliRunner().invoke(app, [*words, *self.where()], input=stdin, env={**elsewhere, **own})

    def told(self, *words: str, stdin: str | None = None) -> str:
        """What a command about this system prints, run in this process.

        Raises:
            AssertionError: it has failed.
        """
        done = self.here(*words, stdin=stdin)
        assert done.exit_code == 0, f"dsched {' '.join(words)}: {done.exit_code}\n{done.output}{done.exception}"
        return done.stdout

    def begin(self, *words: str) -> "subprocess.Popen[str]":
        """Start a command about this system without waiting for it."""
        return subprocess.Popen(
            dsched(*words, *self.where()),
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def where(self) -> list[str]:
        """The words that name this system."""
        return self._redis_words() if self.redis_url is not None else ["--data-dir", str(self.data_dir)]

    def _redis_words(self) -> list[str]:
        url = ["--redis-url", self.redis_url] if self.redis_url is not None else []
        return [*url, *(["--name", self.name] if self.name is not None else [])]

    # -- the system ------------------------------------------------------------------------------------------------

    def up(self, *options: str) -> None:
        """Start it and wait until it is ready."""
        words = ["up", "--detach", "--data-dir", str(self.data_dir), *self._redis_words(), *options]
        done = self.run(*words)
        assert done.returncode == 0, f"dsched {' '.join(words)}\n{done.stdout}{done.stderr}"

    def down(self) -> None:
        """Stop it."""
        done = self.run("down", "--data-dir", str(self.data_dir))
        assert done.returncode == 0, done.stdout + done.stderr

    def end(self) -> None:
        """Stop whatever runs, and see that nothing is left running.

        Raises:
            AssertionError: processes were left; they are killed.
        """
        try:
            self.stop(*self._by_hand)
            self.down()
        finally:
            left = processes.of_folder(self.folder)
            for pid in left:
                processes.kill(pid)
        assert left == {}, f"left running after dsched down: {left}"

    def status(self) -> Json:
        """``dsched status``, whatever its exit code; run in this process, for it is asked again and again."""
        done = self.here("status", "--data-dir", str(self.data_dir), "--output", "json")
        assert done.stdout, f"{done.output}{done.exception}"
        answer: Json = json.loads(done.stdout)
        return answer

    def pids(self) -> dict[str, int]:
        """Name to process id of the supervisor's children that run, as its record has them."""
        try:
            text = (self.data_dir / "children.json").read_text()
        except FileNotFoundError:
            return {}
        return {child["name"]: child["pid"] for child in json.loads(text) if child["pid"]}

    # -- its processes one by one, without a supervisor ------------------------------------------------------------

    def leader(self, *options: str) -> None:
        """Run a leader."""
        self._start("leader", dsched("leader", *self.where(), *options))

    def worker(self, kind: str) -> None:
        """Run a worker and wait until it takes tasks."""
        self._start(kind, [sys.executable, "-m", "celery", "-A", f"workers.{kind}", "worker", "--concurrency", "1"])
        processes.wait_until(
            f"the {kind} is there", lambda: kind in [each["kind"] for each in self.status()["state"]["workers"]]
        )

    def pid(self, name: str) -> int:
        """Of a process that was started one by one."""
        return self._by_hand[name].pid

    def stop(self, *names: str) -> None:
        """Ask processes to stop.

        Raises:
            AssertionError: one does not end well.
        """
        asked = {name: self._by_hand.pop(name) for name in names}
        for process in asked.values():
            process.terminate()
        codes = {name: process.wait(COMMAND_S) for name, process in asked.items()}
        assert codes == dict.fromkeys(codes, 0), f"ended with {codes}\n{self.logs()}"

    def kill(self, name: str) -> None:
        """kill -9."""
        process = self._by_hand.pop(name)
        process.kill()
        process.wait(COMMAND_S)

    def _start(self, name: str, command: list[str]) -> None:
        logs = self.data_dir / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        where = {"DSCHED_REDIS_URL": self.redis_url or "", "DSCHED_NAME": self.name or ""}
        with (logs / f"{name}.log").open("ab") as log:
            self._by_hand[name] = subprocess.Popen(
                command,
                env={**self.environment, **where, "DSCHED_DATA_DIR": str(self.data_dir)},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    # -- objects ---------------------------------------------------------------------------------------------------

    def apply(self, *objects: Json) -> str:
        """Apply objects, in this process; what was said about them."""
        return self.told("apply", "-f", "-", stdin=json.dumps(listed(objects)))

    def get(self, kind: str, *words: str) -> list[Json]:
        """Objects of a kind, read in this process; of all namespaces unless told otherwise."""
        answer = json.loads(self.told("get", kind, *(words or ("-A",)), "-o", "json"))
        items: list[Json] = answer["items"] if answer["kind"] == "List" else [answer]
        return items

    def settle(self, timeout_s: float = 150.0) -> None:
        """Wait until the scheduler has nothing left to try; in this process."""
        self.told("wait", "--for", "settled", "-A", "--timeout", f"{timeout_s:g}")

    def logs(self) -> str:
        """The ends of all logs, for messages."""
        texts = [f"== {path.name}\n{path.read_text(errors='replace')[-2000:]}" for path in self._logs()]
        return "\n".join(texts)

    def tracebacks(self) -> list[str]:
        """Errors that processes have logged with a traceback: log and last line. Celery does so for a pool process
        that was killed, which is left out."""
        logs = {path.name: path.read_text("utf-8", "replace") for path in self._logs()}
        found = [(name, line) for name, text in logs.items() for line in TRACEBACK.findall(text)]
        return [f"{name}: {line}" for name, line in found if not line.startswith("billiard.")]

    def _logs(self) -> Sequence[Path]:
        return sorted((self.data_dir / "logs").glob("*.log"))


def dsched(*words: str) -> list[str]:
    """A command line."""
    return [sys.executable, "-m", "dsched", *words]


def listed(objects: Iterable[Json]) -> Json:
    """Objects as one manifest."""
    return {"apiVersion": "v1", "kind": "List", "items": list(objects)}
