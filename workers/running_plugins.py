"""What the processes of a worker's pool are at, in memory that they share with the process they are forked from.

That one is told by Celery when a process of its pool is lost; here it sees which plugin that one ran for whom, and
answers for it. The same place tells which evaluation has been going on for a while. A slot is ``PID REQUEST SHARD AT
SINCE PLUGIN``, empty while the process runs no plugin.
"""

import contextlib
import mmap
import os
import time
from dataclasses import dataclass

from billiard.process import current_process  # type: ignore[import-untyped]

from dsched.framework.plugin_timeout import WATCH

SIZE = 256
COUNT = 128
"""More processes than one pool has; those beyond are not watched."""
_NOBODY = "-"


@dataclass(frozen=True, slots=True)
class Slot:
    """What a process is at.

    Attributes:
        request, shard: of the message it works on; ``-`` and 0 where it is not about a shard.
        at: number of the class or of the pod in that message.
        since: monotonic clock, which all processes of a machine share.
    """

    pid: int
    request: str
    shard: int
    at: int
    since: float
    plugin: str

    def seconds(self) -> float:
        """How long it has been at it."""
        return time.monotonic() - self.since


class RunningPlugins:
    """The shared memory; made before the pool is forked."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, SIZE * COUNT)
        self._place: slice | None = None
        self._head = ""

    def take(self) -> None:
        """In a process of the pool: show from now on which plugin runs."""
        number = int(getattr(current_process(), "index", COUNT))
        if 0 <= number < COUNT:
            self._place = slice(number * SIZE, (number + 1) * SIZE)
            self.at(0)
            WATCH.show = self._show

    def at(self, at: int, request: str = _NOBODY, shard: int = 0) -> None:
        """In a process of the pool: what it is at now."""
        self._head = f"{os.getpid()} {request} {shard} {at}"
        self._show("")

    def _show(self, plugin: str) -> None:
        if self._place is not None:
            line = f"{self._head} {time.monotonic():.3f} {plugin}" if plugin else ""
            self._memory[self._place] = line.encode()[:SIZE].ljust(SIZE, b"\0")

    def busy(self) -> list[Slot]:
        """The processes that run a plugin, or ran one when they were lost."""
        found: list[Slot] = []
        for start in range(0, SIZE * COUNT, SIZE):
            line = self._memory[start : start + SIZE].rstrip(b"\0").decode(errors="replace")
            if line:
                with contextlib.suppress(ValueError):  # it is being written at this very moment
                    pid, request, shard, at, since, plugin = line.split(" ", 5)
                    found.append(Slot(int(pid), request, int(shard), int(at), float(since), plugin))
        return found
