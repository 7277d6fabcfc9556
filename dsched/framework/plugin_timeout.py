"""How long a plugin may take, watched from outside of it.

While a process is `watched`, a timer signal comes a few times within the limit and looks which plugin runs. One that
was seen for longer gets `Overrun` raised inside it. One that goes on all the same, or sits in C code where no signal is
heard, ends the process some time later: a thread of ``faulthandler``, which needs no interpreter and which each signal
puts off, writes to stderr where it hangs, and exits.

A call of a plugin by another counts as progress of the caller: who has its work done by others, as preemption has by
filters, is not told. Outside of the main thread, where signals are not heard, nothing is limited.
"""

import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from dsched.errors import ConfigError
from dsched.metrics import PLUGIN_OVERRUNS

VARIABLE = "DSCHED_PLUGIN_TIMEOUT"
DEFAULT_S = 10.0
SIGNALS = 8
"""How often the signal comes within the limit: a plugin is told after the limit and at most two signals more."""
HARD = 3.0
"""A process ends after so many times the limit."""
SHORTEST_HARD_S = 1.0


class Overrun(BaseException):
    """Raised inside a plugin that has run for too long. No Exception, so that hardly anything catches it."""


class Watch:
    """Which plugin runs, in the thread that decides.

    Attributes:
        plugin: its name, ``""`` while none runs.
        turns: grows whenever a plugin begins, or goes on after another one that it has called.
        on: whether anybody watches.
        limit_s: how long a plugin may take.
        told: plugins that were told to end, since this was emptied last.
        show: is given the plugin that runs, whenever it is another one.
    """

    __slots__ = ("_at", "_reminded", "_since", "limit_s", "on", "plugin", "show", "told", "turns")

    def __init__(self) -> None:
        self.plugin = ""
        self.turns = 0
        self.on = False
        self.limit_s = 0.0
        self.told: list[str] = []
        self.show: Callable[[str], None] | None = None
        self._at = -1
        """The turn that was seen last, and since when, on the monotonic clock. Who calls a plugin looks at no clock:
        each pod pays for ten of these calls."""
        self._since = 0.0
        self._reminded = False

    def run(self, plugin: str) -> None:
        """This plugin runs from now on, or goes on; ``""`` for none."""
        self.turns += 1  # before the name: a signal that comes in between finds that the one before gets on
        self.plugin = plugin
        if self.show is not None:
            self.show(plugin)

    def look(self) -> bool:
        """Tell the plugin that runs to end if it has run for too long; whether all is well.

        Raises:
            Overrun: in place of what the plugin was about to do; once a call.
        """
        if not self.plugin:
            return True
        now = time.monotonic()
        if self._at != self.turns:
            self._at, self._since, self._reminded = self.turns, now, False
        if now - self._since <= self.limit_s:
            return True
        if not self._reminded:
            self._reminded = True
            self.told.append(self.plugin)
            PLUGIN_OVERRUNS.labels(self.plugin, "told").inc()
            raise Overrun
        return False


WATCH = Watch()
"""Of this process."""


def from_environment() -> float:
    """Seconds that a call of a plugin may take; 0 for no limit.

    Raises:
        ConfigError: the variable has no number of seconds.
    """
    text = os.environ.get(VARIABLE, "")
    try:
        limit_s = float(text) if text else DEFAULT_S
    except ValueError:
        limit_s = -1.0
    if not 0 <= limit_s <= 86_400:
        raise ConfigError(f"{VARIABLE}={text}: a number of seconds is wanted, at most 86400; 0 is no limit")
    return limit_s


def hard_s(limit_s: float) -> float:
    """After how long a process ends in which a plugin does not end."""
    return max(HARD * limit_s, limit_s + SHORTEST_HARD_S)


def task_limits(limit_s: float) -> tuple[float, float]:
    """After how long a worker's task, in which many calls are made, is told to end, and when its process is killed."""
    return max(60.0, 6 * limit_s), max(90.0, 9 * limit_s)


@contextmanager
def watched(limit_s: float) -> Iterator[None]:
    """Limit every call of a plugin in this block to so many seconds; 0 does not, nor does any thread but the main."""
    if not limit_s or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _signalled)
    WATCH.on, WATCH.limit_s, WATCH.plugin = True, limit_s, ""
    _put_off(limit_s)
    signal.setitimer(signal.ITIMER_REAL, limit_s / SIGNALS, limit_s / SIGNALS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        WATCH.on, WATCH.plugin = False, ""
        signal.signal(signal.SIGALRM, before)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Where the watching thread waits for something to do, the signal goes to another thread, and is looked at later.

    ``SimpleQueue.get`` of Python 3.11 waits for ever when a signal comes at the very moment its time is over.
    """
    if not WATCH.on:
        yield
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})


def unheard() -> None:
    """From now on the signal goes to other threads than this one, which waits with ``SimpleQueue.get`` as well."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})


def _signalled(_signal: int, _frame: FrameType | None) -> None:
    if WATCH.look():
        _put_off(WATCH.limit_s)


def _put_off(limit_s: float) -> None:
    faulthandler.dump_traceback_later(hard_s(limit_s), exit=True, file=sys.__stderr__ or sys.stderr)
