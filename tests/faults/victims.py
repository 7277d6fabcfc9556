"""Whom to kill: the processes of a running system by the part they play."""

import random
from collections.abc import Callable

from tests.acceptance import processes
from tests.acceptance.history import History
from tests.acceptance.system import System

WEIGHTS = {"leader": 6, "standby": 1, "binder": 4, "binder's child": 3, "evaluator": 4, "evaluator's child": 2}
"""How often each part is chosen."""


class Victims:
    """Finds processes of a system and kills them."""

    def __init__(self, system: System, history: History, rng: random.Random) -> None:
        self._system = system
        self._history = history
        self._rng = rng
        self._found: dict[str, Callable[[], list[int]]] = {
            "leader": self.leading,
            "standby": self.standing_by,
            "binder": lambda: self._running("binder"),
            "binder's child": lambda: self._forked("binder"),
            "evaluator": lambda: self._running("evaluator"),
            "evaluator's child": lambda: self._forked("evaluator"),
        }

    def kill(self) -> str:
        """Kill -9 a process chosen at random; waits until there is one of the part that is chosen. Returns the part."""
        part = self._rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]

        def killed() -> bool:
            found = self._found[part]()
            return bool(found) and processes.kill(self._rng.choice(found))

        processes.wait_until(f"a {part} to kill", killed)
        return part

    def leading(self) -> list[int]:
        """The leader that holds the lease, when it runs."""
        held = self._history.leader()
        return [pid for pid in self._running("leader") if held is not None and f"-{pid}-" in held[0]]

    def standing_by(self) -> list[int]:
        """Leaders that do not hold the lease."""
        leading = self.leading()
        return [pid for pid in self._running("leader") if pid not in leading]

    def _forked(self, kind: str) -> list[int]:
        return [child for pid in self._running(kind) for child in processes.children(pid)]

    def _running(self, kind: str) -> list[int]:
        pids = self._system.pids()
        return [pid for name, pid in sorted(pids.items()) if name.startswith(f"{kind}-") and processes.runs(pid)]
