"""Things the loop does now and then."""

from collections.abc import Callable
from dataclasses import dataclass

from dsched.clock import Clock


@dataclass(slots=True)
class _Timer:
    every_s: float
    action: Callable[[], object]
    aligned: bool
    share: float
    due: float = 0.0


class Timers:
    """Runs actions at intervals, from whoever calls `run`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timers: list[_Timer] = []

    def every(self, seconds: float, action: Callable[[], object], *, aligned: bool = False, share: float = 1.0) -> None:
        """Run an action every so many seconds, the first time after that long.

        Args:
            aligned: whenever the wall clock comes to a multiple of so many seconds.
            share: how much of the time it may take; one that takes longer runs less often.
        """
        timer = _Timer(seconds, action, aligned, share)
        timer.due = self._next(timer)
        self._timers.append(timer)

    def run(self) -> None:
        """Run what is due."""
        now = self._clock.monotonic()
        for timer in self._timers:
            if timer.due <= now:
                began = self._clock.monotonic()
                timer.action()
                timer.due = max(self._next(timer), began + (self._clock.monotonic() - began) / timer.share)

    def _next(self, timer: _Timer) -> float:
        past_s = self._clock.now_ms() / 1000 % timer.every_s if timer.aligned else 0.0
        return self._clock.monotonic() + timer.every_s - past_s

    def next_in_s(self) -> float:
        """Seconds until something is due."""
        now = self._clock.monotonic()
        return max(0.0, min((timer.due - now for timer in self._timers), default=1.0))
