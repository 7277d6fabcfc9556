"""The faults themselves: each does one thing to an arena, and notes it."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from tests.acceptance import processes
from tests.faults.proxy import When
from tests.faults.scenario import Run

PARTS = ("leader", "standby", "binder", "binder's child", "evaluator", "evaluator's child")


def victims(run: Run, part: str) -> list[int]:
    """The processes that play a part."""
    arena = run.arena
    if part == "leader":
        return arena.leading()
    if part == "standby":
        return arena.standing_by()
    kind, _, child = part.partition("'s ")
    return arena.forked(kind) if child else arena.running(kind)


def send(run: Run, part: str, number: signal.Signals = signal.SIGKILL) -> int:
    """Send a signal to one process of a part, chosen at random; its pid."""

    def sent() -> int:
        found = victims(run, part)
        pid = run.rng.choice(found) if found else 0
        with suppress(ProcessLookupError):
            if pid:
                os.kill(pid, number)
                return pid
        return 0

    pid = processes.wait_until(f"there is a {part}", sent)
    run.note(f"{'kill -9' if number is signal.SIGKILL else number.name} {part}")
    return pid


@dataclass(frozen=True)
class Point:
    """A moment between two steps of the leader: before or after Redis has carried out a command of it."""

    name: str
    marker: bytes
    when: When


class LeaderKill:
    """kill -9 of whoever leads now, as soon as it comes to a point.

    Args:
        wanted: asked with the answer to the command (empty for requests) whether this is the one.
    """

    def __init__(self, run: Run, point: Point, wanted: Callable[[bytes], bool] = lambda answer: True) -> None:
        self._run, self._point = run, point
        self._killed: list[int] = []
        leading = run.arena.leading()
        self._tap = run.arena.proxy.tap(
            point.marker,
            point.when,
            self._kill,
            cut=point.when is When.REQUEST,
            wanted=lambda pid, answer: pid in leading and wanted(answer),
        )

    def _kill(self, pid: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self._killed.append(pid)

    def wait(self, deadline_s: float) -> None:
        """Until it has happened; that it never does is a breach."""
        self._run.require(self._tap.fired.wait(deadline_s), f"the point was never reached: {self._point.name}")
        self._run.measure("leader killed")
        self._run.note(f"kill -9 leader {self._point.name}")

    def wait_for_next(self) -> None:
        """Until somebody else leads."""
        for pid in self._killed:
            wait_for_new_leader(self._run, pid)


def kill_leader(run: Run) -> int:
    """kill -9 whoever leads, and measure how long nobody decides."""
    pid = send(run, "leader")
    run.measure("leader killed")
    return pid


def wait_for_new_leader(run: Run, old: int, deadline_s: float = 60.0) -> None:
    """Until somebody else leads."""
    processes.wait_until("somebody else leads", lambda: run.arena.leading() not in ([], [old]), deadline_s)


def wait_for_standby(run: Run, deadline_s: float = 60.0) -> None:
    """Until one leads and another one asks for the lease."""

    def both() -> bool:
        standing_by = run.arena.standing_by()
        return bool(run.arena.leading()) and any(run.arena.proxy.connected(pid) for pid in standing_by)

    processes.wait_until("one leads and one stands by", both, deadline_s)


def wait_until_gone(pid: int, deadline_s: float = 60.0) -> None:
    """Until a process has ended."""
    processes.wait_until(f"process {pid} has ended", lambda: not processes.runs(pid), deadline_s)


def sleep_until(moment: float) -> None:
    """Until a monotonic moment."""
    time.sleep(max(0.0, moment - time.monotonic()))
