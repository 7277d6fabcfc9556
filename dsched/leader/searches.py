"""Searches that would hold up all other pods, each in a process forked from the leader's.

A fork has all that the search is about as it is at that moment, without a copy, and nothing that it does reaches
anybody but by its answer. It has no thread but the one that searches, and ends with the leader.

Killed while a search runs, the leader leaves its pods in flight, and the next one puts them back into the queue. A
process that is killed counts as an error of the attempt.
"""

import contextlib
import gc
import os
import signal
import threading
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue

from dsched.framework.long_search import LongSearch
from dsched.log import logger
from dsched.lru import LRU
from dsched.model.meta import PodUid
from dsched.scheduler.decision import Candidate, Decision

_log = logger(__name__)

MOST = 4
"""At once; others wait until one has ended."""
MOST_PODS = 65_536
MOST_FREE = 16
"""Pods that are put back at a time: of many of one class the first is likely to make the others wait again."""
LOOK_EVERY_S = 1.0
"""How often a process looks whether its leader is still there."""
LESS_URGENT = 10
"""Niceness above the leader's, which decides about all other pods meanwhile."""


class Searches:
    """The searches of one term; for the loop alone, but for the threads that wait for answers."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """
        Args:
            wake: called from another thread when an answer has come.
        """
        self._wake = wake
        self._awaited: LRU[PodUid, LongSearch] = LRU(MOST_PODS)
        self._held: dict[LongSearch, list[Candidate]] = {}
        self._free: list[Candidate] = []
        self._asked: list[LongSearch] = []
        self._running: dict[int, LongSearch] = {}
        self._answers: SimpleQueue[tuple[int, bytes | None]] = SimpleQueue()

    def ask(self, search: LongSearch, uid: PodUid) -> None:
        """Have a search done that a pod waits for; it may have been asked for before."""
        self._awaited[uid] = search
        if search not in self._asked and search not in self._running.values():
            self._asked.append(search)

    def hold(self, decisions: Sequence[Decision]) -> None:
        """Keep pods, all in flight, until what they wait for is found; those of a class wait for the same."""
        by_class: dict[tuple[str, bytes], LongSearch] = {}
        for decision in decisions:
            candidate = decision.candidate
            key = decision.framework.profile_name, candidate.info.class_key
            search = self._awaited.pop(candidate.info.uid, None) or by_class.get(key)
            if search is None:
                self._free.append(candidate)
            else:
                by_class[key] = search
                self._held.setdefault(search, []).append(candidate)

    @property
    def any_free(self) -> bool:
        """Whether there are pods to be taken that wait no more."""
        return bool(self._free)

    @property
    def busy(self) -> bool:
        """Whether there are pods that wait, or that wait no more and are to be taken."""
        return bool(self._held or self._free)

    def free(self, most: int = MOST_FREE) -> list[Candidate]:
        """Pods for which what they waited for was found, or not; those that stay are for the next time."""
        for search in self._ended():
            self._free += self._held.pop(search, ())
        found, self._free = self._free[:most], self._free[most:]
        return found

    def all(self) -> list[Candidate]:
        """All pods that are kept, because the term ends; they are kept no more."""
        self._free += [candidate for of_search in self._held.values() for candidate in of_search]
        self._held.clear()
        return self.free(len(self._free))

    def begin(self) -> None:
        """Start processes for what was asked for."""
        while self._asked and len(self._running) < MOST:
            search = self._asked.pop(0)
            search.begin()
            pid, answer = _fork(search)
            self._running[pid] = search
            _log.info("a search goes on in a process of its own", extra={"action": "search", "pid": pid})
            threading.Thread(target=self._wait, args=(pid, answer), name="search", daemon=True).start()

    def _ended(self) -> list[LongSearch]:
        """Those that have ended since; their answers are taken."""
        found: list[LongSearch] = []
        with contextlib.suppress(Empty):
            while True:
                pid, answer = self._answers.get_nowait()
                search = self._running.pop(pid)
                if answer is None:
                    _log.error("a search ended without an answer", extra={"action": "search_lost", "pid": pid})
                search.done(answer)
                found.append(search)
        return found

    def close(self) -> None:
        """End all of them."""
        for pid in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _wait(self, pid: int, answer: int) -> None:
        with open(answer, "rb") as reader:
            read = reader.read()
        _, status = os.waitpid(pid, 0)
        self._answers.put((pid, read if os.waitstatus_to_exitcode(status) == 0 else None))
        self._wake()


def _fork(search: LongSearch) -> tuple[int, int]:
    """The process, and where its answer comes from."""
    reader, writer = os.pipe()
    leader = os.getpid()
    with warnings.catch_warnings():
        # Python warns because another thread may hold a lock: the search takes none.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    code = 1
    try:  # whatever happens, this process must not come back into the leader's loop
        _look_after(leader)
        _write(writer, search.work())
        code = 0
    finally:
        os._exit(code)


def _look_after(leader: int) -> None:
    """Begin as a process that ends when the leader has ended, and before it where memory is short."""

    def look(*_: object) -> None:
        if os.getppid() != leader:
            os._exit(1)

    gc.disable()  # which would touch, and so copy, all of the leader's memory
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, look)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    signal.setitimer(signal.ITIMER_REAL, LOOK_EVERY_S, LOOK_EVERY_S)
    os.nice(LESS_URGENT)
    with contextlib.suppress(OSError):  # not on Linux
        Path("/proc/self/oom_score_adj").write_text("1000")


def _write(writer: int, answer: bytes) -> None:
    left = memoryview(answer)
    while left:
        left = left[os.write(writer, left) :]
