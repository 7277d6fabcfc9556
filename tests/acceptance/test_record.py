"""A running system is recorded from outside; what was recorded is decided again, and another configuration compared."""

import json
import signal
import subprocess
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.acceptance import trace
from tests.acceptance.fixtures import MakeSystem
from tests.acceptance.processes import wait_until
from tests.acceptance.system import System
from tests.redis_server import RedisServer

Json = dict[str, Any]
Record = Callable[..., "Recorder"]
END_S = 120.0
BINPACKING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]}}
"""


@pytest.fixture
def running(make_system: MakeSystem, redis_server: RedisServer) -> System:
    """A leader and a binder, with nodes."""
    made = make_system("running", redis_server.url, f"record-{uuid.uuid4().hex}")
    found = trace.generate(made.folder / "trace", seed=5, nodes=30, pods=200)
    told = made.run("import", "openb", str(found.nodes), str(found.pods), "-o", "manifests")
    assert told.returncode == 0, told.stderr
    made.ask("apply", "-f", "manifests/nodes.json")
    made.worker("binder")
    made.leader("--seed", "7")
    return made


class Recorder:
    """``dsched record`` in a process of its own, which a leader has answered."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        assert process.stdout is not None
        self.said: list[str] = []
        while not (self.said and self.said[-1].startswith("recording into ")):
            line = process.stdout.readline()
            assert line, self.said
            self.said.append(line)  # on a slow machine it says first that nobody has answered yet

    def end(self, how: signal.Signals | None = signal.SIGINT) -> str:
        """Stop it, or wait until it stops by itself; what it printed."""
        if how is not None:
            self.process.send_signal(how)
        return self.process.communicate(timeout=END_S)[0]


@pytest.fixture
def record(running: System) -> Iterator[Callable[..., Recorder]]:
    """Begins to record; nothing records when the test ends."""
    begun: list[subprocess.Popen[str]] = []

    def begin(*options: str) -> Recorder:
        begun.append(running.begin("record", *options))
        return Recorder(begun[-1])

    yield begin
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=END_S)


def replay(system: System, *words: str) -> "subprocess.CompletedProcess[str]":
    return system.run("replay", *words)


def test_a_recording_is_replayed_and_compared(running: System, record: Record) -> None:
    recorder = record("-o", "a.jsonl.gz")
    refused = running.ask("record", "-o", "b.jsonl.gz", exit_code=1)
    assert "records already" in refused
    running.ask("apply", "-f", "manifests/pods.json")
    running.settle()
    told = recorder.end()
    assert recorder.process.returncode == 0, told
    assert told.startswith("a.jsonl.gz: ")

    same = replay(running, "a.jsonl.gz", "--exit-code", "-o", "json")
    assert same.returncode == 0, same.stdout + same.stderr
    found: Json = json.loads(same.stdout)
    assert found["equal"] is True
    assert found["decisions"]["recorded"] == found["decisions"]["same"] >= 200
    assert found["pods"]["tried"] == 200
    bound = sum(bool(pod["spec"].get("nodeName")) for pod in running.get("pods"))
    unschedulable = sum(found["unschedulable"]["recorded"].values())
    assert bound + unschedulable == 200
    assert unschedulable
    cpu = next(each for each in found["resources"] if each["resource"] == "cpu")
    assert cpu["requested"]["recorded"] == cpu["requested"]["replayed"] > 0
    assert 0 < cpu["fragmentation"]["recorded"] <= 1
    assert 0 < cpu["meanFill"]["recorded"] <= 1

    (running.folder / "packed.yaml").write_text(BINPACKING)
    other = replay(running, "a.jsonl.gz", "--config", "packed.yaml", "--exit-code", "-o", "json")
    assert other.returncode == 1, other.stderr
    found = json.loads(other.stdout)
    assert found["equal"] is False
    assert len(found["pods"]["moved"]) > 20


def test_a_recorder_that_is_killed_leaves_what_it_had_written(running: System, record: Record) -> None:
    recorder = record("-o", "a.jsonl.gz")
    running.ask("apply", "-f", "manifests/pods.json")
    running.settle()

    def written() -> bool:
        """The recorder flushes every second."""
        done = replay(running, "a.jsonl.gz", "--cut", "-o", "json")
        return done.returncode == 0 and json.loads(done.stdout)["pods"]["tried"] == 200

    wait_until("everything is in the file", written)
    recorder.end(signal.SIGKILL)
    done = replay(running, "a.jsonl.gz", "-o", "json")
    assert done.returncode == 0, done.stderr
    assert "broken off" in done.stderr
    assert json.loads(done.stdout)["equal"] is True
    assert json.loads(done.stdout)["pods"]["tried"] == 200


def test_it_ends_by_itself_or_when_it_is_told_to(running: System, record: Record) -> None:
    recorder = record("-o", "a.jsonl.gz", "--pods", "5", "--json")
    running.ask("apply", "-f", "manifests/pods.json")
    told = recorder.end(None)
    assert recorder.process.returncode == 0
    assert json.loads(told)["placed"] >= 5
    briefly = record("-o", "b.jsonl.gz", "--duration", "1s")
    assert briefly.end(None).startswith("b.jsonl.gz: ")
    recorder = record("-o", "c.jsonl.gz")
    recorder.end(signal.SIGTERM)
    assert recorder.process.returncode == 0
    assert "is there already" in running.ask("record", "-o", "a.jsonl.gz", exit_code=1)
