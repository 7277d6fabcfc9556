"""The supervisor: starts a system on this machine, keeps it running, and stops all of it in order."""

import os
import select
import shutil
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType, TracebackType

from dsched.clock import Clock, SystemClock
from dsched.cluster.opening import Kind
from dsched.state import address, client, redis_check
from dsched.supervisor import commands, embedded, lock, processes, record
from dsched.supervisor.children import Action, Fleet, Spec, Step
from dsched.supervisor.keeper import Keeper

_CAUGHT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
_STOP = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
REDIS = "redis"
REDIS_GRACE_S = 20.0
LONGEST_WAIT_S = 5.0
"""The keeper is looked after this often even when nothing else happens."""

Report = Callable[[str], None]


class _Signals:
    """Catches signals of the main thread for as long as the block lasts: one wakes the wait, nothing else happens in a
    handler."""

    def __enter__(self) -> "_Signals":
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._wakeup_before = signal.set_wakeup_fd(self._writer.fileno())
        # What the caller has us ignore (nohup, a shell's background job) stays ignored.
        caught = [number for number in _CAUGHT if signal.getsignal(number) is not signal.SIG_IGN]
        self._handlers_before = {number: signal.signal(number, _nothing) for number in caught}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._handlers_before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        self._reader.close()
        self._writer.close()

    def wait(self, timeout_s: float | None) -> list[signal.Signals]:
        """The signals that came since the last call; waits for the first one, at most so long (None: for ever)."""
        ready, _, _ = select.select([self._reader], [], [], timeout_s)
        return [signal.Signals(number) for number in self._reader.recv(4096)] if ready else []


def _nothing(number: int, frame: FrameType | None) -> None:
    """A handler has to be there for the signal to reach the wakeup descriptor."""


def run(system: commands.System, specs: Sequence[Spec], report: Report) -> None:
    """Run a system until it is asked to stop (SIGINT, SIGTERM, SIGHUP); a second request hurries.

    Args:
        specs: the children besides Redis.
        report: told one line per event.

    Raises:
        DschedError: a system runs with this data folder already, or a port for metrics cannot be had.
        RedisUnavailable, UnfitRedis: Redis does not start, does not answer or must not be used.
    """
    clock = SystemClock()
    record.check_ports(specs)
    with lock.usable(system.data_dir, made=True):
        system.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with ExitStack() as stack:
        lock_fd = stack.enter_context(lock.held(system.data_dir, clock))
        _clear(system.data_dir)
        _empty(system.data_dir / commands.TEMPORARY)
        keeper = Keeper(lock_fd, [system.data_dir / address.FILE, system.data_dir / record.FILE])
        stack.callback(keeper.close)
        signals = stack.enter_context(_Signals())
        stack.callback(_clear, system.data_dir)
        Supervisor(system, keeper, signals, clock, report).run(specs)


class Supervisor:
    """Carries out what a `Fleet` says, with real processes."""

    def __init__(
        self, system: commands.System, keeper: Keeper, signals: _Signals, clock: Clock, report: Report
    ) -> None:
        self._system = system
        self._keeper = keeper
        self._signals = signals
        self._clock = clock
        self._report = report
        self._logs = system.data_dir / "logs"
        self._running: dict[str, processes.Process] = {}
        self._environment: dict[str, str] = {}
        self._stop_asked = False

    def run(self, specs: Sequence[Spec]) -> None:
        """Start, watch, stop; returns when nothing runs any more."""
        self._logs.mkdir(exist_ok=True)
        redis = self._start_redis()
        if redis is None and self._stop_asked:
            self._report("stopped before anything ran")
            return
        url = redis.url if redis else self._system.redis_url or ""
        self._environment = commands.environment(self._system, url)
        fleet = self._fleet(redis, specs)
        record.write_targets(self._system.data_dir, specs)
        self._act(fleet)
        record.write(self._system.data_dir, fleet.children.values())
        if not fleet.stopping:
            address.write(self._system.data_dir, address.Address(url, self._system.name, os.getpid()))
            self._report(f"system {self._system.name!r} runs; Redis is {client.shown(url)}")
        while not fleet.done:
            self._wait(fleet)
            self._collect(fleet)
            self._act(fleet)
            self._keeper.check()
        self._report("stopped")

    def _start_redis(self) -> embedded.Running | None:
        """The embedded Redis, None where another one is used or a request to stop came first."""
        if self._system.redis_url is not None:
            store = client.connect(self._system.redis_url, self._system.name)
            found = redis_check.check(store, keeps_objects=self._system.cluster.kind is Kind.STANDALONE)
            store.close()
            for warning in found.warnings:
                self._report(f"warning: Redis {warning}")
            return None
        started = embedded.launch(self._system.data_dir, self._clock, wanted=self._still_wanted)
        if started is not None:
            self._keeper.watch(started.process.pid)
        return started

    def _still_wanted(self) -> bool:
        self._stop_asked |= not _STOP.isdisjoint(self._signals.wait(0))
        return not self._stop_asked

    def _fleet(self, redis: embedded.Running | None, specs: Sequence[Spec]) -> Fleet:
        own = (
            [Spec(REDIS, redis.command, commands.REDIS_LAST, REDIS_GRACE_S, unhurried=True)]
            if redis is not None
            else []
        )
        fleet = Fleet([*own, *specs], self._clock)
        if redis is not None:
            self._running[REDIS] = redis.process
            fleet.started(REDIS, redis.process.pid)
            self._report(f"{REDIS} started (pid {redis.process.pid})")
        if self._stop_asked:
            fleet.stop()
        return fleet

    def _wait(self, fleet: Fleet) -> None:
        due = fleet.wait_s()
        for number in self._signals.wait(LONGEST_WAIT_S if due is None else min(due, LONGEST_WAIT_S)):
            if number in _STOP:
                self._report("stopping at once" if fleet.stopping else f"stopping ({signal.Signals(number).name})")
                fleet.stop()

    def _collect(self, fleet: Fleet) -> None:
        """Take note of the children that have ended."""
        changed = False
        for name, process in list(self._running.items()):
            code = process.ended()
            if code is None:
                continue
            changed = True
            del self._running[name]
            self._keeper.forget(process.pid)
            pause = fleet.ended(name)
            if pause is None:
                self._report(f"{name} stopped")
            else:
                self._report(f"{name} ended ({ending(code)}), see {self._log(name)}; starting again in {pause:g} s")
        if changed:
            record.write(self._system.data_dir, fleet.children.values())

    def _act(self, fleet: Fleet) -> None:
        actions = fleet.next_actions()
        for action in actions:
            self._carry_out(action, fleet)
        if actions:
            record.write(self._system.data_dir, fleet.children.values())

    def _carry_out(self, action: Action, fleet: Fleet) -> None:
        name = action.spec.name
        if action.step is Step.START:
            self._start(action.spec, fleet)
        elif action.step is Step.TERMINATE:
            self._running[name].terminate()
        else:
            self._report(f"{name} is killed")
            self._running[name].kill()

    def _start(self, spec: Spec, fleet: Fleet) -> None:
        log = self._log(spec.name)
        processes.rotate(log)
        try:
            environment = {**self._environment, **spec.environment}
            process = processes.spawn(spec.command, environment, self._system.data_dir, log)
        except OSError as error:
            pause = fleet.ended(spec.name)
            self._report(f"{spec.name} cannot be started ({error}); trying again in {pause:g} s")
            return
        self._keeper.watch(process.pid)
        self._running[spec.name] = process
        fleet.started(spec.name, process.pid)
        self._report(f"{spec.name} started (pid {process.pid})")

    def _log(self, name: str) -> Path:
        return self._logs / f"{name}.log"


def ending(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def _empty(temporary: Path) -> None:
    """A folder with nothing in it, readable by its owner alone."""
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(exist_ok=True, mode=0o700)


def _clear(data_dir: Path) -> None:
    address.remove(data_dir)
    record.remove(data_dir)
    record.remove_targets(data_dir)
