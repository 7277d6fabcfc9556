"""Whole systems on this machine: started, looked at, stopped; nothing is left of them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dsched.supervisor import lock
from tests import command_server

ROOT = Path(__file__).parents[3]
DEADLINE_S = 60


def environment(folder, given=None):
    """Without the caller's settings; the data folder and temporary files go to the folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DSCHED_")}
    return {**kept, "DSCHED_DATA_DIR": str(folder / "data"), "TMPDIR": str(folder), **(given or {})}


@pytest.fixture
def dsched(tmp_path, redis_server):
    """Runs a command over an empty data folder. Skipped or failed without a Redis program, as `redis_server` is."""

    def run(*words, given=None):
        return command_server.run(
            *words, environment=environment(tmp_path, given), folder=tmp_path, timeout_s=DEADLINE_S
        )

    yield run
    run("down")


def processes_of(folder):
    """Pids of all processes whose command line or environment names the folder, the one that asks left out."""
    word = str(folder).encode()
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and names(pid, word)]


def names(pid, word):
    try:
        process = Path(f"/proc/{pid}")
        return word in (process / "cmdline").read_bytes() or word in (process / "environ").read_bytes()
    except OSError:
        return False


def test_a_system_from_up_to_down(dsched, tmp_path):
    started = dsched("up", "--detach", "--evaluators", "1", "--binders", "1")
    assert started.returncode == 0, started.stderr
    assert "dsched apply -f FILE" in started.stdout

    status = dsched("status", "-o", "json")
    assert status.returncode == 0, status.stdout
    answer = json.loads(status.stdout)
    assert answer["state"]["leader"].startswith("leader-1")
    assert [(child["name"], child["state"], child["restarts"]) for child in answer["children"]] == [
        (name, "running", 0) for name in ("redis", "leader-1", "evaluator-1", "binder-1")
    ]
    assert dsched("healthcheck", "leader").returncode == 0

    again = dsched("up", "--detach")
    assert again.returncode == 1
    assert "already runs" in again.stderr

    stopped = dsched("down")
    assert stopped.returncode == 0
    assert stopped.stdout == "stopped: redis, leader-1, evaluator-1, binder-1\n"
    assert lock.holder(tmp_path / "data") is None
    assert processes_of(tmp_path) == []


def supervisors_of(starter):
    """The process that `up --detach` has started to stay; it also asks a Redis program for its version."""
    children = Path(f"/proc/{starter}/task/{starter}/children").read_text().split()
    return [int(child) for child in children if names(child, b"--data-dir")]


@pytest.mark.faults
def test_a_system_whose_starter_was_killed_at_its_first_moment_is_found_and_stopped(dsched, tmp_path):
    command = [sys.executable, "-m", "dsched", "up", "--detach", "--evaluators", "0", "--binders", "0"]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=environment(tmp_path), cwd=tmp_path, **quiet) as starter:
        wait_until(lambda: supervisors_of(starter.pid))
        (supervisor,) = supervisors_of(starter.pid)
        os.kill(supervisor, signal.SIGSTOP)
        starter.kill()
    try:
        assert not lock.holder(tmp_path / "data").alive, "it has come too far for this test"
        early = dsched("down", "--timeout", "0.5")
        assert early.returncode == 1
        assert "not said yet" in early.stderr
    finally:
        os.kill(supervisor, signal.SIGCONT)
    assert dsched("down").stdout.startswith("stopped: ")
    assert processes_of(tmp_path) == []


def test_what_runs_and_what_was_stopped_for_programs(dsched, tmp_path):
    started = dsched("up", "--detach", "--evaluators", "0", "--binders", "0", "-o", "json")
    assert started.returncode == 0, started.stderr
    answer = json.loads(started.stdout)
    assert answer["supervisor_pid"] == lock.holder(tmp_path / "data").pid
    assert (answer["name"], answer["data_dir"]) == ("default", str(tmp_path / "data"))
    assert (Path(answer["logs"]) / "leader-1.log").exists()
    assert answer["redis"] == dsched("redis-url").stdout.strip()  # there is no password to hide
    assert json.loads(dsched("down", "-o", "json").stdout) == {"ran": True, "stopped": ["redis", "leader-1"]}


def test_every_process_writes_json_lines_where_that_is_asked_for(dsched, tmp_path):
    asked = {"DSCHED_LOG": "json"}
    started = dsched("up", "--detach", "--evaluators", "1", "--binders", "1", "--mode", "distributed", given=asked)
    assert started.returncode == 0, started.stderr
    manifests = ROOT / "examples" / "01-first-cluster"
    assert dsched("apply", "-f", str(manifests)).returncode == 0
    assert dsched("wait", "--for", "settled").returncode == 0
    folder = tmp_path / "data" / "logs"
    # What runs may be settled before a worker has said anything.
    wait_until(lambda: all("ready" in (folder / f"{name}-1.log").read_text() for name in ("evaluator", "binder")))
    assert dsched("down").returncode == 0
    logs = {path.stem: path.read_text().splitlines() for path in folder.glob("*.log")}
    assert logs.pop("redis")  # Redis' own, which knows one form only
    assert logs.keys() == {"supervisor", "leader-1", "evaluator-1", "binder-1"}
    told = {name: [json.loads(line) for line in lines] for name, lines in logs.items()}
    for name, lines in told.items():
        assert lines, name
        assert [line for line in lines if not line.keys() >= {"time", "level", "logger", "message"}] == []
    assert "leader-1 stopped" in [line["message"] for line in told["supervisor"]]
    assert any("ready" in line["message"] for line in told["binder-1"])
    assert any("Warm shutdown" in line["message"] for line in told["evaluator-1"])


@pytest.mark.faults
def test_a_system_that_was_killed_is_started_again_and_waits_for_its_own_leader(dsched, tmp_path):
    for epoch in (1, 2):
        started = dsched("up", "--detach", "--evaluators", "0", "--binders", "0")
        assert started.returncode == 0, started.stderr
        # Not the lease that the killed leader has left behind.
        assert json.loads(dsched("status", "-o", "json").stdout)["state"]["epoch"] == epoch
        os.kill(lock.holder(tmp_path / "data").pid, signal.SIGKILL)
    wait_until(lambda: lock.holder(tmp_path / "data") is None)
    assert processes_of(tmp_path) == []


def test_a_system_that_does_not_come_up_is_taken_down_and_explained(dsched, tmp_path):
    # Something else than a Redis stands where the program is looked for.
    (tmp_path / "data" / "redis").mkdir(parents=True)
    (tmp_path / "data" / "redis" / "appendonly.aof").write_text("this is no append-only file\n" * 10)
    (tmp_path / "data" / "redis" / "appendonlydir").write_text("nor is this a folder")
    started = dsched("up", "--detach")
    assert started.returncode == 1
    assert "the system did not start" in started.stderr
    assert lock.holder(tmp_path / "data") is None
    assert processes_of(tmp_path) == []


def test_the_demo_places_what_fits_and_leaves_nothing(dsched, tmp_path):
    done = dsched("demo")
    assert done.returncode == 0, done.stderr
    assert "55 of 60 pods bound" in done.stdout
    assert "10 Insufficient nvidia.com/gpu" in done.stdout
    assert "example.com/approval" in done.stdout
    assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_the_demo_takes_other_manifests(dsched, tmp_path):
    done = dsched("demo", "--filename", str(ROOT / "examples" / "01-first-cluster" / "nodes.yaml"))
    assert done.returncode == 0, done.stderr
    assert "none of 0 pods found a node" in done.stdout


def test_the_demo_refuses_bad_manifests_before_anything_is_started(dsched, tmp_path):
    (tmp_path / "pods.yaml").write_text("kind: Pod\n")
    done = dsched("demo", "--filename", "pods.yaml")
    assert done.returncode == 1
    assert "pods.yaml: apiVersion" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["pods.yaml"]


@pytest.mark.faults
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_demo_that_is_interrupted_leaves_nothing_running(tmp_path, redis_server, number):
    with subprocess.Popen(
        [sys.executable, "-m", "dsched", "demo"],
        env=environment(tmp_path),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as demo:
        wait_until(lambda: list(tmp_path.glob("dsched-demo-*/children.json")) or demo.poll() is not None)
        demo.send_signal(number)
        assert demo.wait(DEADLINE_S) != 0
    wait_until(lambda: processes_of(tmp_path) == [])


def wait_until(condition):
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
