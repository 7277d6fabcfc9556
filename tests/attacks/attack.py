"""What an attack is, and what it is given: see the package's docstring for how to add one."""

import importlib
import pkgutil
import random
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dsched.state import client
from dsched.state.client import Store
from tests.acceptance import fixtures
from tests.acceptance.system import System
from tests.redis_server import RedisServer

ROUNDS = 20
"""How often a generator is drawn from, unless more is asked for."""


@dataclass(frozen=True)
class Attack:
    """One attack.

    Attributes:
        name: ``MODULE.FUNCTION``.
        tries: what is tried.
        sees: what the user sees then, in one sentence.
        run: does it, and asserts that all that has to hold holds.
    """

    name: str
    tries: str
    sees: str
    run: Callable[["Stand"], None]


class Stand:
    """What an attack is given. A context manager: what was started in it is stopped at its end.

    Attributes:
        rng: of everything that is chosen at random.
        rounds: how often to draw from a generator.
        folder: for files; empty.
    """

    def __init__(self, seed: int, folder: Path, rounds: int = ROUNDS) -> None:
        self.rng = random.Random(seed)
        self.rounds = rounds
        self.folder = folder
        self._open = ExitStack()
        self._redis: RedisServer | None = None

    def __enter__(self) -> "Stand":
        self.folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *raised: object) -> None:
        self._open.close()

    def afterwards(self, call: Callable[[], object]) -> None:
        """Have something called at the end, before what was started earlier is stopped."""
        self._open.callback(call)

    def redis(self) -> RedisServer:
        """A real Redis; the same one each time."""
        if self._redis is None:
            self._redis = RedisServer(self.folder / "redis")
            self._redis.start()
            self.afterwards(self._redis.stop)
        return self._redis

    def store(self, name: str | None = None) -> Store:
        """A system's part of that Redis; without a name, one of its own, empty."""
        store = client.connect(self.redis().url, name or f"attacked-{uuid.uuid4().hex}")
        self.afterwards(store.close)
        return store

    def system(self, *options: str, **variables: str) -> System:
        """A whole system that is up, on a Redis of its own.

        Args:
            options: further words for ``dsched up``.
            variables: for the environment of its processes.

        When the stand ends, a traceback in any of its logs, or a process that is left, is an error.
        """
        system = System(self.folder / f"system-{uuid.uuid4().hex[:8]}", **variables)
        self.afterwards(lambda: fixtures.end([system]))
        system.up("--evaluators", "1", "--binders", "1", *options)
        return system


_attacks: dict[str, Attack] = {}


def attack(tries: str, sees: str) -> Callable[[Callable[[Stand], None]], Callable[[Stand], None]]:
    """Say of a function that it is an attack."""

    def known(run: Callable[[Stand], None]) -> Callable[[Stand], None]:
        name = f"{run.__module__.rpartition('.')[2]}.{run.__name__}"
        _attacks[name] = Attack(name, tries, sees, run)
        return run

    return known


@cache
def all_attacks() -> dict[str, Attack]:
    """Every attack by its name: those of all modules of this package."""
    import tests.attacks as package

    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith(("_", "test_")):
            importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_attacks.items()))


def lines() -> list[str]:
    """The table of ``docs/reliability.md``."""
    head = ["| what is tried | what the user sees |", "|---|---|"]
    return head + [f"| {each.tries} | {each.sees} |" for each in all_attacks().values()]
