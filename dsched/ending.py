"""How a process ends when a signal asks it to: while it loads, and as a command that has something to take down.

It imports nothing of dsched, for it is what a process does first. Leaders, workers and supervisors have handlers of
their own once they run.
"""

import os
import signal
import sys
import threading
from types import FrameType

AGAIN_S = 0.05


def at_once_while_loading() -> None:
    """From now on SIGINT and SIGTERM end the process without a word: it has done nothing yet that would have to be
    taken back."""
    for before in (signal.default_int_handler, signal.SIG_DFL):
        _instead_of(before, signal.SIGINT, by)
    _instead_of(signal.SIG_DFL, signal.SIGTERM, by)


def with_interrupts() -> None:
    """It is loaded: Ctrl-C is an exception again, for those that tidy up; one that came while an object was finalized,
    where Python drops exceptions, comes once more."""
    _instead_of(by, signal.SIGINT, signal.default_int_handler)
    before = sys.unraisablehook

    def dropped(told: "sys.UnraisableHookArgs") -> None:
        if issubclass(told.exc_type, KeyboardInterrupt):
            threading.Timer(AGAIN_S, os.kill, (os.getpid(), signal.SIGINT)).start()
        else:
            before(told)

    sys.unraisablehook = dropped


def deaf_to_requests() -> None:
    """For a process to which SIGHUP says that it is to read its file again, and SIGUSR2 that it is to tell what it
    holds, and that has nothing yet."""
    _instead_of(signal.SIG_DFL, signal.SIGHUP, signal.SIG_IGN)
    _instead_of(signal.SIG_DFL, signal.SIGUSR2, signal.SIG_IGN)


def in_order() -> None:
    """From now on SIGTERM and SIGHUP end the command as Ctrl-C does: what it has started is taken down. The exit code
    is 128 and the signal's number."""
    signal.signal(signal.SIGTERM, _leave)
    _instead_of(signal.SIG_DFL, signal.SIGHUP, _leave)


def by(number: int, _frame: FrameType | None = None) -> None:
    """End by a signal, as without a handler. The first process of a container cannot: Linux keeps from it every signal
    for which it has no handler."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)


def _leave(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def _instead_of(before: object, number: signal.Signals, after: object) -> None:
    """What the caller has us ignore (nohup, a shell's background job) stays ignored."""
    if signal.getsignal(number) is before:
        signal.signal(number, after)  # type: ignore[arg-type]
