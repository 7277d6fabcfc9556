"""Commands in forks of one process that has loaded dsched: a tenth of the CPU is left of what it takes to run one.

For tests of what a command says and does. How ``python -m dsched`` starts is tested by those that start it: pages and
examples, which run in a shell, `System.begin`, and all that a supervisor starts.

A command has its own arguments, environment, folder, streams and exit code, and knows nothing of the one before. What
Python and libraries read of the environment while they load was read once: a call with other variables of that kind
gets a process of its own.
"""

import atexit
import json
import os
import runpy
import select
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, NamedTuple, NoReturn

OWN = ("DSCHED_", "CELERY_", "PYTEST_CURRENT_TEST", "TMPDIR")
"""Variables that begin so are read when a command runs."""
NOT_LOADED = {"leader", "ui", "bench"}
"""Commands that are started once and run on, and load what no other does."""
LONGEST = 200_000
"""Bytes of a call: arguments, environment and folder."""


def run(
    *words: str, environment: Mapping[str, str], folder: Path, stdin: str | None = None, timeout_s: float
) -> "subprocess.CompletedProcess[str]":
    """Run a command as it is typed, with nothing to read unless it is given; what it printed, and its exit code.

    Raises:
        subprocess.TimeoutExpired: it was killed.
    """
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write((stdin or "").encode())
        given.seek(0)
        if _loading(environment) == _loading(os.environ):
            code = _server().run(words, environment, folder, (given, out, err), timeout_s)
        else:
            command = [sys.executable, "-m", "dsched", *words]
            streams = {"stdin": given, "stdout": out, "stderr": err}
            code = subprocess.run(
                command, env=environment, cwd=folder, check=False, timeout=timeout_s, **streams
            ).returncode
        return subprocess.CompletedProcess(["dsched", *words], code, _text(out), _text(err))


def close() -> None:
    """End the server of this process, if there is one."""
    global _running
    with _starting:
        if _running is not None:
            _running.close()
            _running = None


def _loading(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith(OWN)}


def _text(written: IO[bytes]) -> str:
    written.seek(0)
    with os.fdopen(os.dup(written.fileno())) as text:
        return text.read()


class _Server:
    """The process that is forked, as those see it that ask; any thread may."""

    def __init__(self) -> None:
        self.environment = _loading(os.environ)
        self._asking, answering = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with answering:
            self._asking.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * LONGEST)
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.command_server", str(answering.fileno())],
                env=self.environment,
                cwd=Path(__file__).parents[1],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[answering.fileno()],
            )

    def run(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        streams: Sequence[IO[bytes]],
        timeout_s: float,
    ) -> int:
        """A command's exit code; negative, the signal that ended it."""
        call = json.dumps([words, dict(environment), str(folder)]).encode()
        told, telling = socket.socketpair()
        with told, telling:
            descriptors = [*(stream.fileno() for stream in streams), telling.fileno()]
            socket.send_fds(self._asking, [call], descriptors)
            telling.close()
            with told.makefile() as answer:
                pid = int(answer.readline())
                try:
                    told.settimeout(timeout_s)
                    return int(answer.readline())
                except BaseException as error:
                    with suppress(ProcessLookupError):
                        os.kill(pid, 9)
                    if isinstance(error, TimeoutError):
                        raise subprocess.TimeoutExpired(["dsched", *words], timeout_s) from error
                    raise

    def close(self) -> None:
        """It ends when nobody can ask any more."""
        self._asking.close()
        self._process.wait()


_starting = threading.Lock()
_running: _Server | None = None


def _server() -> _Server:
    """This process's server, begun when it is first needed; anew where the test's environment has changed."""
    global _running
    with _starting:
        if _running is not None and _running.environment != _loading(os.environ):
            _running.close()
            _running = None
        if _running is None:
            _running = _Server()
        return _running


# -- the process that is forked ----------------------------------------------------------------------------------------


class _Call(NamedTuple):
    words: list[str]
    environment: dict[str, str]
    folder: str
    streams: list[int]


def _load() -> None:
    from dsched import garbage
    from dsched.cli.main import COMMANDS

    with garbage.not_looked_for():
        for name, source in COMMANDS.items():
            if name not in NOT_LOADED:
                import_module(source.module)


def _serve(asked: socket.socket) -> _Call | None:
    """Fork a process for each call, and tell how it ended; None when nobody can ask any more and nothing runs. Returns
    in the forked process as well: the call that it is to be."""
    running: dict[int, tuple[int, socket.socket]] = {}
    wait = select.poll()
    wait.register(asked, select.POLLIN)
    wanted = True
    while wanted or running:
        for ready, _ in wait.poll():
            if ready != asked.fileno():
                pid, telling = running.pop(ready)
                _, status = os.waitpid(pid, 0)
                wait.unregister(ready)
                os.close(ready)
                with telling:
                    _tell(telling, os.waitstatus_to_exitcode(status))
                continue
            call, given, _, _ = socket.recv_fds(asked, LONGEST, 4)
            if not call:
                wanted = False
                wait.unregister(asked)
                continue
            *streams, told = given
            if (pid := os.fork()) == 0:
                for each in (asked, *(telling for _, telling in running.values())):
                    each.detach()
                return _Call(*json.loads(call), streams)
            for stream in streams:
                os.close(stream)
            telling = socket.socket(fileno=told)
            _tell(telling, pid)
            running[handle := os.pidfd_open(pid)] = (pid, telling)
            wait.register(handle, select.POLLIN)
    return None


def _tell(telling: socket.socket, number: int) -> None:
    with suppress(BrokenPipeError):  # nobody waits any more
        telling.sendall(f"{number}\n".encode())


def _become(call: _Call) -> NoReturn:
    """Be ``python -m dsched`` with its streams and no other file, to the end."""
    for number, stream in enumerate(call.streams):
        os.dup2(stream, number)
    os.closerange(3, max(int(each.name) for each in Path("/proc/self/fd").iterdir()) + 1)
    os.chdir(call.folder)
    os.environ.clear()
    os.environ.update(call.environment)
    tempfile.tempdir = None
    sys.argv = ["dsched", *call.words]
    code: object = 1
    try:
        runpy.run_module("dsched", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001
        sys.excepthook(*sys.exc_info())
    _end(code)


def _end(code: object) -> NoReturn:
    """As the interpreter does, but for taking down all modules, which takes ten times as long as most commands."""
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # tells pools of threads to end, and waits for all threads
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit((code or 0) & 0xFF)


def _main() -> None:
    _load()
    with socket.socket(fileno=int(sys.argv[1])) as asked:
        if (call := _serve(asked)) is not None:
            _become(call)


if __name__ == "__main__":
    _main()
