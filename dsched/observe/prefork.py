"""Metrics of a Celery worker: its pool's processes count in files, the parent adds them up when it is asked.

The folder has to be named before ``prometheus_client`` is first imported, so `prepare` is called by the package that
Celery imports first. Counts of pool processes that have ended stay, so counters never go back.
"""

import atexit
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsched.observe.address import PORT_VARIABLE

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_FOLDER = re.compile(r"dsched-metrics-(\d+)-")
_LIVE = re.compile(r"gauge_live[a-z]*_(\d+)\.db")


def prepare() -> Path | None:
    """Make an empty folder for this process and those it forks, and remove those that killed workers have left; None
    where no metrics are wanted.

    Raises:
        RuntimeError: too late, ``prometheus_client`` has been imported.
    """
    if not os.environ.get(PORT_VARIABLE):
        return None
    if "prometheus_client" in sys.modules:
        raise RuntimeError(f"prometheus_client was imported before {FOLDER_VARIABLE} was set: import workers first")
    _sweep(Path(tempfile.gettempdir()))
    owner = os.getpid()
    folder = Path(tempfile.mkdtemp(prefix=f"dsched-metrics-{owner}-"))
    os.environ[FOLDER_VARIABLE] = str(folder)
    atexit.register(_remove, folder, owner)
    return folder


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(parent: Path) -> None:
    """Remove this user's folders whose process is gone."""
    for folder in parent.glob("dsched-metrics-*"):
        named = _FOLDER.match(folder.name)
        if named and not _runs(int(named[1])) and folder.stat().st_uid == os.getuid():
            shutil.rmtree(folder, ignore_errors=True)


class Pool:
    """Looks the metrics of a pool's processes up in their files.

    Gauges of processes that are gone are dropped first: Celery does not tell of a process that was killed.
    """

    def collect(self) -> Iterator["Metric"]:
        """Every family, added up over the processes."""
        from prometheus_client import multiprocess

        library: Any = multiprocess
        folder = Path(os.environ[FOLDER_VARIABLE])
        gone = {int(named[1]) for path in folder.iterdir() if (named := _LIVE.fullmatch(path.name))}
        for pid in gone:
            if not _runs(pid):
                library.mark_process_dead(pid, str(folder))
        yield from library.MultiProcessCollector(None, str(folder)).collect()


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
