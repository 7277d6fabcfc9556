"""A supervisor without a terminal: starts one and waits until its system is ready; stops one by its data folder."""

import os
import signal
import sys
from pathlib import Path

from dsched.clock import Clock
from dsched.errors import DschedError
from dsched.state import address, client, keys, lease
from dsched.supervisor import commands, embedded, lock, processes, record
from dsched.supervisor.children import State

LOG = "supervisor.log"
READY_S = 60.0
GIVE_UP_S = 30.0
POLL_S = 0.1
STEADY_MS = 1000
"""A child that has run this long has got past what commonly ends one at its start."""
RENEWED_MS = 500
"""A lease that runs out so much later than before was renewed; less is the imprecision of reading clocks."""
HOPELESS_RESTARTS = 4
"""A child that was started again so often while its system began will not come up by waiting."""


def start(system: commands.System, clock: Clock, *, survives: bool = True) -> address.Address:
    """Start the system in the background and wait until it is ready: all children run and a leader leads.

    Args:
        survives: it runs on when this process ends; else it stops then.

    Raises:
        DschedError: it is not ready in 60 s, it ends, a child keeps dying, or the data folder is in use; nothing is
            left running.
        RedisUnavailable, UnfitRedis: there is no Redis program, or only old ones.
    """
    if system.redis_url is None:
        embedded.find_program()
    log = system.data_dir / "logs" / LOG
    with lock.usable(system.data_dir, made=True):
        system.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        log.parent.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "dsched", *arguments(system)]
    environment = commands.environment(system, system.redis_url or "")
    with lock.taken(system.data_dir, clock) as lock_fd:
        with lock.usable(system.data_dir, made=True):
            processes.rotate(log)
        told_before = log.stat().st_size if log.exists() else 0
        process = processes.spawn(command, environment, system.data_dir, log, stdin=lock_fd, survives=survives)
    try:
        found = _wait_until_ready(system, process, clock, log, told_before)
    except BaseException:
        _end(process, clock)
        raise
    process.hand_over()
    return found


def stop(data_dir: Path, timeout_s: float, clock: Clock) -> list[str] | None:
    """Stop the system with this data folder; the names of the children that ran, None where nothing runs.

    A supervisor that has only just been started is stopped as soon as it has written down who it is.

    Raises:
        DschedError: it has not stopped in time.
    """
    found = lock.holder(data_dir)
    if found is None:
        return None
    names = [child.name for child in record.read(data_dir)]
    told: lock.Holder | None = None
    deadline = clock.monotonic() + timeout_s
    while (now := lock.holder(data_dir)) is not None or (told is not None and told.alive):
        if told is None and now is not None and now.alive:
            told = now
            os.kill(told.pid, signal.SIGTERM)
        if clock.monotonic() >= deadline:
            raise DschedError(_still_there(data_dir, told, timeout_s))
        clock.sleep(POLL_S)
    return names


def check(data_dir: Path) -> None:
    """See whether all children of a young system have come up.

    Raises:
        DschedError: one keeps dying; the message ends with the last lines of its log.
    """
    for child in record.read(data_dir):
        if child.restarts >= HOPELESS_RESTARTS:
            log = data_dir / "logs" / f"{child.name}.log"
            raise DschedError(f"{child.name} keeps ending; the last lines of its log:\n{processes.tail(log)}")


def arguments(system: commands.System) -> list[str]:
    """The arguments of a `dsched up` that starts this system; without the Redis URL, which may hold a password."""
    words = ["up", "--data-dir", str(system.data_dir), "--name", system.name, "--mode", system.mode]
    for option, count in (
        ("--leaders", system.leaders),
        ("--evaluators", system.evaluators),
        ("--binders", system.binders),
    ):
        words += [option, str(count)]
    for option, path in (("--config", system.config), ("--decisions", system.decisions)):
        words += [option, str(path)] if path is not None else []
    if system.metrics_port is not None:
        words += ["--metrics-port", str(system.metrics_port), "--metrics-host", system.metrics_host]
    return words


def _still_there(data_dir: Path, told: lock.Holder | None, timeout_s: float) -> str:
    """Why `stop` gives up, and what to do."""
    logs = data_dir / "logs"
    if told is None:
        return (
            f"what holds the lock of the data folder {data_dir} has not said yet, in {timeout_s:g} s, who it is: a "
            f"system that has only just been started, or what is left of one; try again; its logs are in {logs}"
        )
    return (
        f"the system with the data folder {data_dir} (supervisor pid {told.pid}) is still stopping after "
        f"{timeout_s:g} s; 'dsched down' again makes it hurry; its logs are in {logs}"
    )


def _wait_until_ready(
    system: commands.System, process: processes.Process, clock: Clock, log: Path, told_before: int
) -> address.Address:
    deadline = clock.monotonic() + READY_S
    leadership: _Leadership | None = None
    missing = ["Redis"]
    while clock.monotonic() < deadline:
        if process.ended() is not None:
            raise DschedError(f"the system did not start:\n{processes.tail(log, after_byte=told_before)}")
        found = address.read(system.data_dir)
        if found is not None and found.supervisor_pid == process.pid:
            check(system.data_dir)
            leadership = leadership or _Leadership(found, clock)
            missing = _unsteady(system.data_dir, clock)
            if not leadership.is_new():
                missing.append("a leader with the lease")
            if not missing:
                return found
        clock.sleep(POLL_S)
    raise DschedError(
        f"the system is not ready after {READY_S:g} s (missing: {', '.join(missing)}) and was stopped; "
        f"see the logs in {system.data_dir / 'logs'}"
    )


def _unsteady(data_dir: Path, clock: Clock) -> list[str]:
    """The children that do not run, or have only just been started."""
    steady_since = clock.now_ms() - STEADY_MS
    return [
        child.name
        for child in record.read(data_dir)
        if child.state != State.RUNNING.value or child.started_at > steady_since
    ]


class _Leadership:
    """Tells a lease that is held from one that a leader left behind when the system was killed."""

    def __init__(self, found: address.Address, clock: Clock) -> None:
        self._found = found
        self._clock = clock
        self._first = self._ask()

    def is_new(self) -> bool:
        """Whether somebody has taken or renewed the lease since the first look."""
        holder, until_ms = self._ask()
        return holder is not None and (holder != self._first[0] or until_ms > self._first[1] + RENEWED_MS)

    def _ask(self) -> tuple[tuple[str, int] | None, int]:
        """Who holds the lease, and until when in ms since the epoch."""
        store = client.connect(self._found.redis_url, self._found.name)
        try:
            left_ms = int(store.redis.pttl(store.key(keys.LEADER.name)))
            return lease.holder(store), self._clock.now_ms() + left_ms
        except client.UNAVAILABLE:
            return None, 0
        finally:
            store.close()


def _end(process: processes.Process, clock: Clock) -> None:
    """Stop what was started; in a hurry when it takes long."""
    for _ in range(2):
        process.terminate()
        deadline = clock.monotonic() + GIVE_UP_S
        while clock.monotonic() < deadline:
            if process.ended() is not None:
                return
            clock.sleep(POLL_S)
    # The keeper takes down the rest.
    process.kill()
    process.wait()
