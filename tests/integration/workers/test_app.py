"""Workers that are started: by Celery's command and by this package, and one that is asked to stop meanwhile."""

import json
import os
import subprocess
import sys

import pytest

from dsched.state import workers
from dsched.supervisor import commands

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


WHAT_IS_MADE = """
import json, sys
from celery.bin import worker
given = {{}}
def start(**options):
    given.update(options)
    raise SystemExit(0)
from workers.{kind} import app
app.Worker = start
sys.argv = {words!r}
try:
    {run}
finally:
    print(json.dumps([given, "prompt_toolkit" in sys.modules], default=str))
"""


@pytest.mark.parametrize("kind", ["evaluator", "binder"])
def test_the_package_starts_what_celerys_command_starts_and_imports_no_prompt(store, kind):
    options = ("--hostname", f"{kind}-1@here", *commands.WORKER_OPTIONS)
    own = "from workers.__main__ import main; main()"
    celerys = "from celery.__main__ import main; main()"
    made = {}
    for run, words in ((own, [kind]), (celerys, ["-A", f"workers.{kind}", "worker"])):
        script = WHAT_IS_MADE.format(kind=kind, run=run, words=["-", *words, *options])
        system = {"DSCHED_REDIS_URL": store.url, "DSCHED_NAME": store.name, "NO_COLOR": "1"}
        done = subprocess.run(
            [sys.executable, "-c", script], env={**os.environ, **system}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        made[run] = json.loads(done.stdout)
    assert made[own] == [made[celerys][0], False]
    assert made[celerys][1], "there is nothing to spare any more"


def test_the_package_names_the_kinds_there_are():
    done = subprocess.run([sys.executable, "-m", "workers", "leader"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "error: name a kind of worker: evaluator or binder\n")
