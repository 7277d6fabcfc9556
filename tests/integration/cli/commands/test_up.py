"""`dsched up`, `down` and `status` as far as no leader is needed; whole systems are run by the acceptance tests."""

import json
import os

import pytest

from dsched.clock import ManualClock
from dsched.state import address
from dsched.supervisor import lock
from tests import command_server


@pytest.fixture
def dsched(tmp_path):
    """Runs a command with an empty data folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DSCHED_")}
    environment["DSCHED_DATA_DIR"] = str(tmp_path / "data")

    def run(*words):
        return command_server.run(*words, environment=environment, folder=tmp_path, timeout_s=60)

    return run


def test_down_where_nothing_runs_is_no_error(dsched, tmp_path):
    done = dsched("down")
    assert done.returncode == 0
    assert f"nothing runs with the data folder {tmp_path / 'data'}" in done.stdout


def test_down_for_programs(dsched):
    assert json.loads(dsched("down", "-o", "json").stdout) == {"ran": False, "stopped": []}


def test_status_where_nothing_runs(dsched):
    done = dsched("status")
    assert done.returncode == 1
    assert "start one with 'dsched up --detach'" in done.stderr


def test_up_refuses_a_configuration_before_anything_is_started(dsched, tmp_path):
    (tmp_path / "scheduler.yaml").write_text("kind: Pod\n")
    done = dsched("up", "--config", "scheduler.yaml")
    assert done.returncode == 1
    assert "scheduler.yaml" in done.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    "words",
    [("--config", "missing.yaml"), ("--leaders", "0"), ("--mode", "magic"), ("--decisions", "."), ("--output", "json")],
)
def test_wrong_usage_has_its_own_exit_code(dsched, words):
    done = dsched("up", *words)
    assert done.returncode == 2
    assert words[0] in done.stderr


@pytest.mark.parametrize("words", [(), ("--detach",)])
def test_up_refuses_a_folder_that_is_in_use(dsched, tmp_path, words):
    (tmp_path / "data").mkdir()
    with lock.held(tmp_path / "data", ManualClock()):
        done = dsched("up", *words)
    assert done.returncode == 1
    assert f"supervisor pid {os.getpid()}" in done.stderr


def test_status_of_a_redis_without_a_leader(dsched, redis_server, store):
    done = dsched("status", "--redis-url", redis_server.url, "--name", store.name, "-o", "json")
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert answer["reachable"] is True
    assert answer["name"] == store.name
    assert answer["supervisor_pid"] is None
    assert answer["state"]["leader"] is None


def test_status_of_a_working_system(dsched, redis_server, store):
    store.redis.set(store.key("leader"), "leader-1 7")
    store.redis.set(store.key("leader:epoch"), "7")
    store.redis.zadd(store.key("queue:active"), {"a": 0, "b": 0})
    store.redis.zadd(store.key("queue:gated"), {"c": 0})
    store.redis.hset(store.key("queue:inflight"), "d", "7 1")
    store.redis.hset(store.key("reservations"), "uid", "default/d node-1 7 reserved 1 0")
    store.redis.hset(store.key("cluster:nodes"), "node-1", "{}")
    store.redis.hset(store.key("cluster:pods"), mapping={f"default/{name}": "{}" for name in "abcd"})
    store.redis.hset(store.key("workers"), "binder-1@host", "binder 1700000000000 3f2a")
    store.redis.hset(store.key("workers"), "evaluator-1@host", "evaluator 1700000000001 3f2a standalone 40")
    store.redis.xadd(store.key("nodes:log"), {"first": "1", "deltas": ""}, id="42-0")
    store.redis.hset(store.key("leader:time"), mapping={"phase:evaluate": "1.5", "phase:hand out": "0.25"})
    done = dsched("status", "--redis-url", redis_server.url, "--name", store.name, "-o", "json")
    assert done.returncode == 0
    state = json.loads(done.stdout)["state"]
    assert state.pop("version")
    assert any("keeps nothing on disk" in warning for warning in state.pop("redis_warnings"))
    assert state == {
        "beyond": [],
        "leader": "leader-1",
        "epoch": 7,
        "queues": {"active": 2, "backoff": 0, "unschedulable": 0, "gated": 1, "waiting": 0, "inflight": 1},
        "reservations": 1,
        "nodes": 1,
        "pods": 4,
        "workers": [
            {"name": "binder-1@host", "kind": "binder", "seen_ms": 1_700_000_000_000, "behind": None},
            {"name": "evaluator-1@host", "kind": "evaluator", "seen_ms": 1_700_000_000_001, "behind": 2},
        ],
        "cluster": "",
        "paused": [],
        "leader_seconds": {"evaluate": 1.5, "hand out": 0.25},
        "config": None,
        "processes": [],
        "emulated": None,
    }


def test_status_hides_the_password_and_says_that_redis_is_away(dsched, tmp_path):
    (tmp_path / "data").mkdir()
    address.write(tmp_path / "data", address.Address("redis://:secret@127.0.0.1:1/0", "default", 1))
    done = dsched("status")
    assert done.returncode == 1
    assert "redis://:***@127.0.0.1:1/0, does not answer" in done.stdout
    assert "secret" not in done.stdout + done.stderr


def test_status_for_people(dsched, redis_server, store):
    store.redis.set(store.key("leader"), "leader-1 7")
    done = dsched("status", "--redis-url", redis_server.url, "--name", store.name)
    assert done.returncode == 0
    assert "leader-1, epoch 0" in done.stdout
    assert "active 0, backoff 0, unschedulable 0, gated 0, waiting 0, inflight 0" in done.stdout


@pytest.mark.parametrize(("kind", "code"), [("leader", 0), ("evaluator", 1), ("binder", 1)])
def test_healthcheck_answers_by_exit_code(dsched, redis_server, store, kind, code):
    store.redis.set(store.key("leader"), "leader-1 7")
    done = dsched("healthcheck", kind, "--redis-url", redis_server.url, "--name", store.name)
    assert done.returncode == code


def test_healthcheck_fails_when_redis_is_away(dsched):
    done = dsched("healthcheck", "leader", "--redis-url", "redis://127.0.0.1:1/0")
    assert done.returncode == 1
    assert "does not answer" in done.stderr
