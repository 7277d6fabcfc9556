"""Wall clocks that jump: Python imports this by itself where its folder is in PYTHONPATH.

DSCHED_FAULTS_CLOCKS names a folder. A file there that is named like a word of this process's command line (such as
``leader-1``, or ``binder-2`` of ``binder-2@%h``) holds the seconds by which its wall clock is ahead. Monotonic clocks
are left alone.
"""

import datetime
import os
import sys
import time
from pathlib import Path

LOOK_EVERY_S = 0.02

_FOLDER = Path(os.environ["DSCHED_FAULTS_CLOCKS"]) if os.environ.get("DSCHED_FAULTS_CLOCKS") else None
_WORDS = {word.partition("@")[0] for word in sys.orig_argv}
_real_ns, _monotonic, _datetime = time.time_ns, time.monotonic, datetime.datetime
_ahead_ns, _looked = 0, 0.0


def _ahead() -> int:
    global _ahead_ns, _looked
    now = _monotonic()
    if _FOLDER is not None and now - _looked > LOOK_EVERY_S:
        _looked, _ahead_ns = now, 0
        for path in _FOLDER.glob("*"):
            if path.name in _WORDS:
                _ahead_ns = int(float(path.read_text() or 0) * 1e9)
    return _ahead_ns


class _Kind(type):
    """Times that were made without `Skewed` are of its kind as well."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _datetime)


class Skewed(_datetime, metaclass=_Kind):
    """What Celery asks for the time."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> "Skewed":
        return cls.fromtimestamp(time.time(), tz)

    @classmethod
    def utcnow(cls) -> "Skewed":
        return cls.now(datetime.UTC).replace(tzinfo=None)


if _FOLDER is not None:
    time.time_ns = lambda: _real_ns() + _ahead()
    time.time = lambda: (_real_ns() + _ahead()) / 1e9
    datetime.datetime = Skewed
