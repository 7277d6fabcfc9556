"""Counts of several processes, added up by their parent: real processes, in an interpreter of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dsched.observe import prefork

WORKER = """
import os, signal, sys, time
from dsched.observe import prefork
folder = prefork.prepare()
from dsched import metrics
from dsched.observe.exposition import Exposition

pids = []
for number in (1, 2, 3):
    pid = os.fork()
    if pid == 0:
        metrics.TASKS.labels("dsched.bind", "done").inc(number)
        metrics.TASK_DURATION.labels("dsched.bind").observe(0.5 * number)
        metrics.REPLICA_LAG.set(10 * number)
        if number == 1:
            sys.stdin.read()
        if number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(0)
    pids.append(pid)
for pid in pids[1:]:
    os.waitpid(pid, 0)
exposition = Exposition("evaluator", [prefork.Pool()])
deadline = time.monotonic() + 60
while b"dsched_replica_lag_versions 10.0" not in exposition.encode("")[1] and time.monotonic() < deadline:
    time.sleep(0.01)
sys.stdout.write(exposition.encode("")[1].decode())
sys.stdout.write(f"folder {folder}\\n")
sys.stdout.flush()
os.kill(pids[0], signal.SIGKILL)
os.waitpid(pids[0], 0)
"""


@pytest.fixture
def told(tmp_path):
    """What an evaluator exports whose pool has three processes: one runs, one has ended, one was killed."""
    environment = {**os.environ, "DSCHED_METRICS_PORT": "1", "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", WORKER],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as worker:
        assert worker.stdout is not None
        assert worker.stderr is not None
        text, errors = worker.stdout.read(), worker.stderr.read()
    assert worker.returncode == 0, errors
    return text


def test_counts_of_all_processes_are_added_up_those_of_the_gone_too(told):
    assert 'dsched_tasks_total{result="done",task="dsched.bind"} 6.0' in told
    assert 'dsched_task_duration_seconds_count{task="dsched.bind"} 3.0' in told
    assert 'dsched_task_duration_seconds_sum{task="dsched.bind"} 3.0' in told


def test_gauges_are_those_of_processes_that_run(told):
    assert "dsched_replica_lag_versions 10.0\n" in told


def test_the_folder_is_under_the_temporary_one_and_removed_at_the_end(told, tmp_path):
    folder = Path(told.splitlines()[-1].removeprefix("folder "))
    assert folder.parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_folders_of_workers_that_were_killed_are_removed_and_no_others(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for name in (f"dsched-metrics-{gone.pid}-x", f"dsched-metrics-{os.getpid()}-y", "dsched-metrics-notes"):
        (tmp_path / name).mkdir()
    prefork._sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"dsched-metrics-{os.getpid()}-y",
        "dsched-metrics-notes",
    ]


def test_without_a_port_nothing_is_made(monkeypatch):
    monkeypatch.setenv("DSCHED_METRICS_PORT", "")
    assert prefork.prepare() is None


def test_too_late_is_told(monkeypatch):
    import prometheus_client

    assert prometheus_client.REGISTRY
    monkeypatch.setenv("DSCHED_METRICS_PORT", "9100")
    with pytest.raises(RuntimeError, match="import workers first"):
        prefork.prepare()
