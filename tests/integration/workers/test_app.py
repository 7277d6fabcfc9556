"""A worker that is asked to stop while it starts."""

import os
import subprocess
import sys

import pytest

from dsched.state import workers

ASKED_ONCE_KNOWN = """
import os, signal
from celery.signals import celeryd_after_setup
from workers.{kind} import app

@celeryd_after_setup.connect
def ask(**_):
    os.kill(os.getpid(), signal.SIGTERM)
"""
"""A worker whose SIGTERM comes after it is known to the leader and before Celery listens to signals."""


@pytest.mark.parametrize("kind", ["evaluator", "binder"])
def test_one_that_is_asked_to_stop_once_it_is_known_leaves_the_list(store, tmp_path, kind):
    (tmp_path / "asked.py").write_text(ASKED_ONCE_KNOWN.format(kind=kind))
    system = {"DSCHED_REDIS_URL": store.url, "DSCHED_NAME": store.name, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "celery", "-A", "asked", "worker", "--concurrency", "1"],
        env={**os.environ, **system},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert workers.read(store) == []
