"""Searches in processes that are forked, by themselves."""

import os
import queue
import signal
import subprocess
import sys

import pytest

from dsched.framework.cycle_state import CycleState
from dsched.framework.pod_info import PodInfo
from dsched.framework.status import Code, Status
from dsched.leader import searches
from dsched.leader.searches import Searches
from dsched.model.meta import PodUid
from dsched.scheduler.decision import Candidate, Decision
from tests.builders import make_pod
from tests.unit.framework.frameworks import default_framework

ORPHAN = """
import os, signal, time
from dsched.leader import searches
searches.LOOK_EVERY_S = 0.01

class Endless:
    def begin(self): pass
    def done(self, answer): pass
    def work(self):
        os.write(1, b"began ")
        while True:
            time.sleep(0.01)

found = searches.Searches(lambda: None)
found.ask(Endless(), "uid")
found.begin()
time.sleep(3600)
"""


class Told:
    """Answers with what it is to say, or as it is told to end; it notes what happens in this process."""

    def __init__(self, says: bytes = b"", ends: str = "") -> None:
        self.says, self.ends = says, ends
        self.began = 0
        self.answers: list[bytes | None] = []

    def begin(self) -> None:
        self.began += 1

    def work(self) -> bytes:
        if self.ends == "raises":
            raise ValueError
        if self.ends == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.ends == "never":
            signal.pause()
        self.began += 100  # which nobody sees
        return self.says

    def done(self, answer: bytes | None) -> None:
        self.answers.append(answer)


class Woken:
    """Searches, and how to wait for one to end."""

    def __init__(self) -> None:
        self._woken: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.of = Searches(lambda: self._woken.put(None))

    def wait(self, ends: int = 1) -> list[Candidate]:
        for _ in range(ends):
            self._woken.get(timeout=120)
        return self.of.free()


def held(key: str) -> Decision:
    info = PodInfo(make_pod(key))
    error = Status(Code.WAIT, ("not yet",), "Plugin")
    return Decision(Candidate(info, 1), default_framework(), CycleState(), error=error)


def test_an_answer_comes_back_and_nothing_else() -> None:
    woken, search = Woken(), Told(b"x" * 1_000_000)
    woken.of.ask(search, PodUid("one"))
    woken.of.ask(search, PodUid("two"))
    woken.of.begin()
    woken.of.begin()
    woken.wait()
    assert search.answers == [b"x" * 1_000_000]
    assert search.began == 1


@pytest.mark.parametrize("ends", ["raises", "killed"])
def test_a_process_that_ends_otherwise_has_no_answer(ends: str) -> None:
    woken, search = Woken(), Told(ends=ends)
    woken.of.ask(search, PodUid("one"))
    woken.of.begin()
    woken.wait()
    assert search.answers == [None]


def test_so_many_at_once() -> None:
    woken = Woken()
    asked = [Told(str(number).encode()) for number in range(searches.MOST + 2)]
    for number, search in enumerate(asked):
        woken.of.ask(search, PodUid(str(number)))
    woken.of.begin()
    assert sum(search.began for search in asked) == searches.MOST
    woken.wait(searches.MOST)
    woken.of.begin()
    woken.wait(2)
    assert [search.answers for search in asked] == [[str(number).encode()] for number in range(len(asked))]


def test_those_that_run_end_with_the_term() -> None:
    woken, search = Woken(), Told(ends="never")
    woken.of.ask(search, PodUid("one"))
    woken.of.begin()
    woken.of.close()
    woken.wait()
    assert search.answers == [None]


def test_those_that_run_end_with_the_leader() -> None:
    """Its end of the pipe to this test is closed when both have ended."""
    with subprocess.Popen([sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE) as leader:
        assert leader.stdout is not None
        assert leader.stdout.read(6) == b"began "
        leader.kill()
        assert leader.stdout.read() == b""


def test_pods_wait_for_what_they_asked_for() -> None:
    woken, search, other = Woken(), Told(), Told(ends="never")
    first, second, third = (held(f"default/{name}") for name in ("first", "second", "third"))
    woken.of.ask(search, first.candidate.info.uid)
    woken.of.ask(other, third.candidate.info.uid)
    woken.of.hold([first])
    woken.of.hold([third])
    woken.of.begin()
    assert [each.info.key for each in woken.wait()] == ["default/first"]
    woken.of.hold([second])  # of whom nobody knows what it waits for
    assert woken.of.any_free
    assert [each.info.key for each in woken.of.all()] == ["default/second", "default/third"]
    assert not woken.of.any_free
    woken.of.close()
    woken.wait()
