"""Fixtures for tests that run whole systems; a ``conftest.py`` takes those it needs from here."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.acceptance.system import System
from tests.manifests import node_manifest
from tests.redis_server import NoRedis, binary

MakeSystem = Callable[..., System]


@pytest.fixture(scope="session")
def redis_program() -> Path:
    """Skipped without a Redis program at home, failed in CI."""
    try:
        return binary()
    except NoRedis as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture
def make_system(redis_program: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[MakeSystem]:
    """Makes systems, each with a folder of its own under the test's; nothing of them runs when the test ends."""
    made: list[System] = []

    def make(name: str = "system", redis_url: str | None = None, system: str | None = None, **more: str) -> System:
        made.append(System(tmp_path / name, redis_url, system, **more))
        return made[-1]

    yield make
    end(made)


@pytest.fixture(scope="module")
def shop(redis_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A running system that the tests of a module share, each with a namespace of its own; two nodes of 4 cores."""
    system = System(tmp_path_factory.mktemp("shop"))
    try:
        system.up("--evaluators", "1", "--binders", "1")
        system.apply(node_manifest("n1", labels={"disk": "ssd"}), node_manifest("n2"))
        yield system
    finally:
        end([system])


def end(systems: Sequence[System]) -> None:
    """Stop systems.

    Raises:
        AssertionError: something was left running, or a process has logged a traceback.
    """
    wrong: list[str] = []
    for system in systems:
        if tracebacks := system.tracebacks():
            wrong += tracebacks
            print(system.logs())
    with ThreadPoolExecutor() as pool:
        ending = [pool.submit(system.end) for system in systems]
    wrong += [str(error) for each in ending if (error := each.exception()) is not None]
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def system(make_system: MakeSystem) -> System:
    """A system with a private data folder; not started yet."""
    return make_system()
