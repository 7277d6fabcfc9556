"""Waiting for signals: a signal wakes the wait, nothing else happens in a handler."""

import select
import signal
import socket
from types import FrameType, TracebackType

CAUGHT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
STOP = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


class Signals:
    """Catches signals of the main thread for as long as the block lasts."""

    def __enter__(self) -> "Signals":
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._wakeup_before = signal.set_wakeup_fd(self._writer.fileno())
        # What the caller has us ignore (nohup, a shell's background job) stays ignored.
        caught = [number for number in CAUGHT if signal.getsignal(number) is not signal.SIG_IGN]
        self._handlers_before = {number: signal.signal(number, _nothing) for number in caught}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._handlers_before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        self._reader.close()
        self._writer.close()

    def wait(self, timeout_s: float | None) -> list[signal.Signals]:
        """The signals that came since the last call; waits for the first one, at most so long (None: for ever)."""
        ready, _, _ = select.select([self._reader], [], [], timeout_s)
        return [signal.Signals(number) for number in self._reader.recv(4096)] if ready else []


def _nothing(number: int, frame: FrameType | None) -> None:
    """A handler has to be there for the signal to reach the wakeup descriptor."""
