"""Tests side by side, in several processes (pytest-xdist): which share a process, which come first, and which have the
machine for themselves. Nothing here acts where tests run in one process, as they do without ``-n``.

Each process has a Redis of its own, and whatever else is made once a session."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

SHARING = ("tests/compose/", "tests/e2e/", "tests/integration/workers/")
"""Folders whose tests share what takes long to start: an engine, an API server, workers. Each keeps to one process."""
APART = ("tests/attacks/test_attacks.py", "tests/docs/test_commands.py", "tests/fuzz/", "tests/upgrade/")
"""Long tests that share nothing: each may go to another process than its neighbours do."""
FIRST = (
    "tests/compose/",
    "tests/e2e/",
    "tests/faults/",
    "tests/upgrade/",
    "tests/integration/workers/",
    "tests/acceptance/",
    "tests/attacks/",
    "tests/docs/",
    "tests/integration/",
)
"""Tests of whole systems, which wait a good part of their time, the longest first. The others, which do not, go beside
them, and the last of these are left for the end, when processes run out of tests one by one."""
LEFT_FOR_THE_END = 0.1

ENDING_S = 60.0
"""A process that has not ended this long after an interrupt is killed."""


def group(test: str) -> str:
    """What of a test's id is the same for all that have to run in the same process, one after the other."""
    for folder in SHARING:
        if test.startswith(folder):
            return folder
    return test if test.startswith(APART) else test.partition("::")[0]


def places(tests: Sequence[str]) -> dict[str, float]:
    """Where in the order of all tests each group of tests comes."""
    kinds = {group(test): _kind(test) for test in tests}
    waiting = sorted((name for name in kinds if kinds[name] < len(FIRST)), key=kinds.__getitem__)
    others = [name for name in kinds if kinds[name] == len(FIRST)]
    found = {name: number / len(waiting) for number, name in enumerate(waiting)}
    return found | {name: LEFT_FOR_THE_END + number / len(others) for number, name in enumerate(others)}


def _kind(test: str) -> int:
    return next((number for number, start in enumerate(FIRST) if test.startswith(start)), len(FIRST))


class Turns:
    """Tests that go on beside others, and tests that do not.

    Args:
        folder: where the processes of one run meet.
    """

    def __init__(self, folder: Path) -> None:
        self._gate = folder / "gate"
        self._room = folder / "room"

    @contextmanager
    def take(self, alone: bool) -> Iterator[None]:
        """Wait until nothing runs that this test must not be beside. Who waits to be alone is overtaken by nobody."""
        with ExitStack() as held:
            with _locked(self._gate, fcntl.LOCK_EX):
                held.enter_context(_locked(self._room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH))
            yield


@contextmanager
def first_alone(folder: Path) -> Iterator[None]:
    """Whoever comes first does it alone, and the others when that is done, all at once: they find what it has left.

    Args:
        folder: where the processes of one run meet.
    """
    done = folder / "done"
    with ExitStack() as held:
        held.enter_context(_locked(folder / "first", fcntl.LOCK_EX))
        if done.exists():
            held.close()
        yield
        done.touch()


@contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    # A lock of the process: whoever is forked from it does not hold it any longer than the process does.
    with path.open("ab+") as file:
        fcntl.lockf(file, how)
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """``-n auto``: two more than there are cores, since tests wait a good part of their time."""
    return len(os.sched_getaffinity(0)) + 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hands tests out by `group`."""
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    config.option.loadscopereorder = False
    return ByGroup(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells a process where all of them meet, and gives it time to stop what it has started when it is interrupted."""
    node.nodemanager.EXIT_TIMEOUT = ENDING_S
    folder = node.config.stash.get(_MEETING, None)
    if folder is None:
        folder = node.config.stash[_MEETING] = Path(tempfile.mkdtemp(prefix="dsched-tests-"))
    node.workerinput["meeting"] = str(folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    if (folder := config.stash.get(_MEETING, None)) is not None:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Tests are compiled once, which takes twice as long as all else that is done to collect them."""
    if not hasattr(session.config, "workerinput"):
        return (yield)
    with first_alone(Path(session.config.workerinput["meeting"])):
        return (yield)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        found = places([item.nodeid for item in items])
        items.sort(key=lambda item: found[group(item.nodeid)])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Before its time limit begins to count, a test waits for its turn."""
    if not hasattr(item.config, "workerinput"):
        return (yield)
    with Turns(Path(item.config.workerinput["meeting"])).take(item.get_closest_marker("alone") is not None):
        return (yield)


_MEETING = pytest.StashKey[Path]()
