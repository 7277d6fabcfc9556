"""What goes on beside a workload's operations: threads that do something at a steady pace until the workload ends."""

import threading
import time
from collections.abc import Callable

from dsched.errors import DschedError


class Pace:
    """Steady steps. A step that is late does not make the next ones come faster, as with Go's ticker."""

    def __init__(self, interval_s: float, over: threading.Event) -> None:
        self._interval_s = interval_s
        self._over = over
        self._next = time.monotonic() + interval_s

    def next(self) -> bool:
        """Wait for the next step; False when there is none because the workload has ended."""
        if self._over.wait(max(0.0, self._next - time.monotonic())):
            return False
        self._next = max(self._next + self._interval_s, time.monotonic())
        return True


class Background:
    """The threads of one workload."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._failed: list[str] = []

    def pace(self, interval_s: float) -> Pace:
        """Steps for the foreground."""
        return Pace(interval_s, self._over)

    def start(self, name: str, job: Callable[[Pace], None], interval_s: float) -> None:
        """Run a job until it returns or the workload ends."""

        def run() -> None:
            try:
                job(Pace(interval_s, self._over))
            except DschedError as error:
                self._failed.append(f"{name}: {error}")

        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        """End all of them."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def check(self) -> None:
        """
        Raises:
            DschedError: a job has failed.
        """
        if self._failed:
            raise DschedError("; ".join(self._failed))
