"""What reaches the leader from outside: two threads that wait on Redis, a queue of each that the loop reads.

The threads only read and decode; everything they bring is acted on by the loop, one thing after the other.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Protocol

from dsched.cluster.interface import Cluster, Event
from dsched.errors import ClusterError, StateError
from dsched.state.client import UNAVAILABLE
from dsched.state.results import Result, Results

log = logging.getLogger(__name__)

WAIT_S = 1.0
"""How long a thread waits before it looks whether it should stop."""


HEARD_AT_ONCE = 1000
"""After so many changes the loop goes on with what else it has to do."""


@dataclass(frozen=True, slots=True)
class Heard:
    """Changes of the cluster, up to ``version``."""

    events: Sequence[Event]
    version: int


@dataclass(frozen=True, slots=True)
class Answered:
    """Results of bind jobs."""

    results: Sequence[Result]


@dataclass(frozen=True, slots=True)
class Broken:
    """A thread cannot go on; the leader has to start over."""

    error: Exception


Letter = Heard | Answered | Broken


class Listens(Protocol):
    """Where the loop gets its letters from."""

    def letters(self, timeout_s: float) -> list[Letter]:
        """What has come in, waiting up to ``timeout_s`` for the first."""
        ...

    def wake(self) -> None:
        """Let `letters` return; from any thread or a signal handler."""
        ...

    def close(self) -> None:
        """Nothing is wanted any more."""
        ...


class Silence:
    """Nothing comes in."""

    def letters(self, timeout_s: float) -> list[Letter]:
        """Nothing."""
        return []

    def wake(self) -> None:
        """Nobody waits."""

    def close(self) -> None:
        """There is nothing to close."""


class Sources:
    """The leader's ears for one epoch."""

    def __init__(self, cluster: Cluster, results: Results, version: int) -> None:
        self._cluster = cluster
        self._results = results
        self._version = version
        self._letters: SimpleQueue[Letter | None] = SimpleQueue()
        self._answers: SimpleQueue[Answered] = SimpleQueue()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._listen, args=(listener,), name=name, daemon=True)
            for name, listener in (("watch", self._watch), ("results", self._read_results))
        ]

    def open(self) -> None:
        """Begin to listen."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop listening; the threads end when what they wait for comes or its time is over."""
        self._stop.set()

    def wake(self) -> None:
        """Let `letters` return."""
        self._letters.put(None)

    def letters(self, timeout_s: float) -> list[Letter]:
        """What has come in, waiting up to ``timeout_s`` for the first; what is left of a storm waits, but for results:
        binders that are done are not to be without work for it. Changes that came one after the other come as one, so
        that what they come to is written once."""
        found = self._changes(timeout_s)
        while not self._answers.empty():
            found.append(self._answers.get_nowait())
        return found

    def _changes(self, timeout_s: float) -> list[Letter]:
        found: list[Letter] = []
        heard = 0
        try:
            letter = self._letters.get(timeout=timeout_s) if timeout_s > 0 else self._letters.get_nowait()
            while True:
                if isinstance(letter, Heard) and found and isinstance(before := found[-1], Heard):
                    found[-1] = Heard([*before.events, *letter.events], letter.version)
                elif letter is not None:
                    found.append(letter)
                if isinstance(letter, Heard):
                    heard += len(letter.events)
                    if heard >= HEARD_AT_ONCE:
                        return found
                letter = self._letters.get_nowait()
        except Empty:
            return found

    def _listen(self, listener: Callable[[], None]) -> None:
        """Whatever ends a thread, the loop learns of it: a leader that hears nothing must not go on."""
        try:
            listener()
        except (*UNAVAILABLE, ClusterError, StateError) as error:
            self._break(error)
        except Exception as error:
            name = threading.current_thread().name
            log.exception("the thread %s has failed", name)
            self._break(StateError(f"{name}: the thread has failed: {error!r}"))

    def _break(self, error: Exception) -> None:
        if not self._stop.is_set():
            self._letters.put(Broken(error))

    def _watch(self) -> None:
        version = self._version
        while not self._stop.is_set():
            before = version
            events, version = self._cluster.watch(version, WAIT_S)
            if events or version != before:
                self._letters.put(Heard(events, version))

    def _read_results(self) -> None:
        last = "0"
        while not self._stop.is_set():
            results = self._results.read(last, WAIT_S)
            if results:
                last = results[-1].entry
                self._answers.put(Answered(results))
                self.wake()
