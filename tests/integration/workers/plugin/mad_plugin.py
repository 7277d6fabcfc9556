"""A plugin of another package that does in a worker what a pod's label ``mad`` says; it writes down where it ran."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

from dsched.framework.interface import Scope


def act(what: str) -> None:
    """Hang, or take the process along."""
    if what == "loops":
        while True:
            pass
    if what == "sleeps":
        time.sleep(3600)
    if what == "deaf":
        while True:
            try:
                time.sleep(3600)
            except BaseException:  # noqa: BLE001  # as careless plugins do
                continue
    if what == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "exits":
        sys.exit(3)
    if what == "raises":
        raise LookupError("mad")


class Mad:
    name = "Mad"
    filter_scope = Scope.NODE
    journal: ClassVar[Path] = Path(os.environ.get("MAD_JOURNAL", "."))

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def _act(self, pod: Any, point: str) -> None:
        asked, _, what = pod.pod.metadata.labels.get("mad", "").partition("-")
        if asked == point:
            with (self.journal / f"{point}-{os.getpid()}").open("a") as journal:
                journal.write(f"{pod.key}\n")
            if what != "raises" and os.environ.get("MAD_LEADER") == str(os.getpid()):
                return  # the test process must live, and sees by the journal that it was asked
            act(what)

    def filter(self, state: Any, pod: Any, node: Any) -> None:
        self._act(pod, "filter")

    def pre_bind(self, state: Any, pod: Any, node: Any) -> None:
        self._act(pod, "prebind")
