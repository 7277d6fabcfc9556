"""Measured stretches of a workload: begun, and ended with the figures of the pods that were bound in between."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dsched.bench import measuring
from dsched.bench.following import Counter, Follower
from dsched.bench.measuring import Throughput
from dsched.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Stretch:
    """What was measured from one start of counting to its end.

    Attributes:
        name: of the operation in the file, ``""`` for createPods with collectMetrics.
        began, ended: monotonic times; seen: (monotonic time, pods bound since the last).
        written: when the first measured pod was written.
        writing_s: how long writing the pods took.
    """

    name: str
    throughput: Throughput
    began: float
    written: float
    ended: float
    seen: Sequence[tuple[float, int]]
    writing_s: float


@dataclass(frozen=True, slots=True)
class Hooks:
    """Told about the course of a workload.

    Attributes:
        goal: what is waited for, and how many pods of it; progress: how many there are.
        measuring: a stretch begins; measured: it has ended.
        check: called while waiting; raises when the system is no longer well.
    """

    goal: Callable[[str, int], None] = lambda what, total: None
    progress: Callable[[int], None] = lambda count: None
    measuring: Callable[[], None] = lambda: None
    measured: Callable[[], None] = lambda: None
    check: Callable[[], None] = lambda: None


@dataclass(slots=True)
class _Counting:
    """Counting that is under way."""

    name: str
    counter: Counter
    began: float
    written: float = 0.0
    writing_s: float = 0.0


class Meter:
    """Measures one stretch at a time.

    Attributes:
        stretches: those that have ended.
    """

    def __init__(self, follower: Follower, hooks: Hooks) -> None:
        self._follower = follower
        self._hooks = hooks
        self._counting: _Counting | None = None
        self.stretches: list[Stretch] = []

    def begin(self, name: str, namespaces: Sequence[str], selector: Mapping[str, str]) -> None:
        """Count binds from here on.

        Raises:
            ConfigError: something is counted already.
        """
        if self._counting is not None:
            raise ConfigError("metrics are collected already; stopCollectingMetrics comes first")
        self._hooks.measuring()
        counter = self._follower.count(frozenset(namespaces), selector)
        self._counting = _Counting(name, counter, time.monotonic())

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Pods are written in this block."""
        began = time.monotonic()
        counting = self._counting
        if counting is not None and not counting.written:
            counting.written = began
        yield
        if counting is not None:
            counting.writing_s += time.monotonic() - began

    def end(self) -> None:
        """Stop counting.

        Raises:
            ConfigError: nothing is counted.
        """
        counting, self._counting = self._counting, None
        if counting is None:
            raise ConfigError("stopCollectingMetrics without startCollectingMetrics")
        ended = time.monotonic()
        self._follower.end(counting.counter)
        self._hooks.measured()
        seen, written = counting.counter.seen, counting.written or counting.began
        found = measuring.throughput(counting.began, written, ended, seen)
        self.stretches.append(Stretch(counting.name, found, counting.began, written, ended, seen, counting.writing_s))
