import os
import signal
from pathlib import Path

import pytest

from dsched.state import address, client
from dsched.supervisor import embedded, lock, record
from tests.integration.supervisor.support import runs, wait_until


def wait_until_up(started):
    return wait_until("its address", lambda: address.read(started.data_dir))


def answers(url):
    store = client.connect(url)
    try:
        return store.redis.ping()
    except client.UNAVAILABLE:
        return False
    finally:
        store.close()


def test_a_system_runs_until_it_is_asked_to_stop(supervisor):
    system = supervisor()
    system.add("leader-1")
    system.start()
    found = wait_until_up(system)
    assert answers(found.redis_url)
    assert found.supervisor_pid == system.pid
    child = system.wait_for("began", "leader-1")
    system.send(signal.SIGTERM)
    assert system.wait() == 0
    assert not runs(child)
    assert not answers(found.redis_url)
    assert address.read(system.data_dir) is None
    assert record.read(system.data_dir) == []
    assert lock.holder(system.data_dir) is None


def test_what_killed_children_left_behind_is_cleared_away(supervisor):
    """A worker that is killed leaves its temporary folder; the next start of the system empties all of them."""
    system = supervisor()
    left = system.data_dir / "tmp" / "pymp-old"
    left.mkdir(parents=True)
    (left / "segment").write_text("x")
    system.add("leader-1")
    system.start()
    child = system.wait_for("began", "leader-1")
    assert not left.exists()
    environ = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
    assert f"TMPDIR={system.data_dir / 'tmp'}".encode() in environ
    assert (system.data_dir / "tmp").stat().st_mode & 0o777 == 0o700
    system.send(signal.SIGTERM)
    assert system.wait() == 0


def test_children_stop_in_order_and_redis_last(supervisor):
    system = supervisor()
    system.add("binder-1", order=1)
    system.add("leader-1", order=0)
    system.start()
    system.wait_for("began", "binder-1")
    system.wait_for("began", "leader-1")
    system.send(signal.SIGINT)
    assert system.wait() == 0
    assert [name for word, name, _ in system.noted() if word == "asked"] == ["leader-1", "binder-1"]
    stopped = [line for line in system.output.splitlines() if line.endswith(" stopped")]
    assert stopped == ["leader-1 stopped", "binder-1 stopped", "redis stopped"]


def test_a_child_that_dies_is_started_again(supervisor):
    system = supervisor()
    system.add("leader-1")
    system.start()
    first = system.wait_for("began", "leader-1")
    os.kill(first, signal.SIGKILL)
    second = system.wait_for("began", "leader-1", times=2)
    assert second != first
    now = wait_until("the record", lambda: [child for child in record.read(system.data_dir) if child.pid == second])
    assert [(child.name, child.state, child.restarts) for child in now] == [("leader-1", "running", 1)]
    assert "leader-1 ended (killed by SIGKILL)" in system.output


def test_redis_is_started_again_with_its_data_at_the_same_address(supervisor):
    system = supervisor()
    system.start()
    found = wait_until_up(system)
    store = client.connect(found.redis_url)
    store.redis.set("kept", "yes")
    # Written to the append-only file at once; synced to the disk within a second, which only matters for power cuts.
    redis_pid = next(child.pid for child in record.read(system.data_dir) if child.name == "redis")
    os.kill(redis_pid, signal.SIGKILL)
    wait_until("redis is up again", lambda: "redis started" in system.output.partition("redis ended")[2])
    wait_until("redis answers", lambda: answers(found.redis_url))
    assert store.redis.get("kept") == b"yes"
    store.close()


def test_what_a_dead_child_had_forked_is_killed_before_it_is_started_again(supervisor):
    system = supervisor()
    system.add("evaluator-1", "parent")
    system.start()
    parent = system.wait_for("began", "evaluator-1")
    forked = system.wait_for("began", "evaluator-1-forked")
    os.kill(parent, signal.SIGKILL)
    system.wait_for("began", "evaluator-1", times=2)
    assert not runs(forked)


def test_a_child_that_does_not_stop_is_killed(supervisor):
    system = supervisor()
    system.add("leader-1", "stubborn", grace_s=0.2)
    system.start()
    child = system.wait_for("began", "leader-1")
    system.send(signal.SIGTERM)
    assert system.wait() == 0
    assert not runs(child)
    assert "leader-1 is killed" in system.output


def test_a_second_request_hurries(supervisor):
    system = supervisor()
    system.add("leader-1", "stubborn", grace_s=3600)
    system.start()
    system.wait_for("began", "leader-1")
    system.send(signal.SIGINT)
    system.wait_for("asked", "leader-1")
    system.send(signal.SIGINT)
    assert system.wait() == 0
    assert "stopping at once" in system.output


@pytest.mark.faults
def test_nothing_is_left_when_the_supervisor_is_killed(supervisor):
    system = supervisor()
    system.add("leader-1")
    system.add("evaluator-1", "parent")
    system.add("binder-1", "stubborn")
    system.start()
    found = wait_until_up(system)
    pids = [system.wait_for("began", name) for name in ("leader-1", "evaluator-1", "evaluator-1-forked", "binder-1")]
    system.send(signal.SIGKILL)
    system.wait()
    wait_until("the lock is free", lambda: lock.holder(system.data_dir) is None)
    assert [pid for pid in pids if runs(pid)] == []
    assert not answers(found.redis_url)
    assert address.read(system.data_dir) is None


def test_a_killed_supervisor_can_be_followed_at_once_by_another(supervisor):
    first = supervisor()
    first.add("leader-1", "stubborn")
    first.start()
    old = first.wait_for("began", "leader-1")
    before = wait_until_up(first)
    store = client.connect(before.redis_url)
    store.redis.set("kept", "yes")
    store.close()
    first.send(signal.SIGKILL)
    second = supervisor()
    second.add("leader-2")
    second.start()
    second.wait_for("began", "leader-2")
    assert not runs(old)
    found = wait_until("the new address", lambda: address.read(second.data_dir))
    assert found.supervisor_pid == second.pid
    store = client.connect(found.redis_url)
    assert store.redis.get("kept") == b"yes"
    store.close()


def test_a_second_system_in_the_folder_is_refused_and_harms_nothing(supervisor):
    first = supervisor()
    first.add("leader-1")
    first.start()
    found = wait_until_up(first)
    second = supervisor()
    second.add("leader-2")
    second.start()
    assert second.wait() == 1
    assert f"supervisor pid {first.pid}" in second.output
    assert address.read(first.data_dir) == found
    assert answers(found.redis_url)
    assert [name for word, name, _ in first.noted()] == ["leader-1"]


def test_another_redis_is_used_and_left_alone(supervisor, tmp_path):
    with embedded.running(tmp_path / "elsewhere") as url:
        system = supervisor(redis_url=url)
        system.add("leader-1")
        system.start()
        assert wait_until_up(system).redis_url == url
        assert [child.name for child in record.read(system.data_dir)] == ["leader-1"]
        system.send(signal.SIGTERM)
        assert system.wait() == 0
        assert answers(url)


def test_a_redis_that_does_not_answer_is_reported_and_nothing_is_started(supervisor):
    system = supervisor(redis_url="redis://127.0.0.1:1/0")
    system.add("leader-1")
    system.start()
    assert system.wait() == 1
    assert "Redis at redis://127.0.0.1:1/0 does not answer" in system.output
    assert system.noted() == []
    assert lock.holder(system.data_dir) is None


def test_logs_of_children_are_kept_apart(supervisor):
    system = supervisor()
    system.add("leader-1")
    system.add("binder-1")
    system.start()
    system.wait_for("began", "leader-1")
    system.wait_for("began", "binder-1")
    logs = sorted(path.name for path in (system.data_dir / "logs").iterdir())
    assert logs == ["binder-1.log", "leader-1.log", "redis.log"]


@pytest.mark.faults
def test_a_keeper_that_was_killed_is_replaced(supervisor):
    system = supervisor()
    system.add("leader-1", "stubborn")
    system.start()
    child = system.wait_for("began", "leader-1")
    os.kill(keeper_of(system.pid), signal.SIGKILL)
    # Any event makes the supervisor look after its keeper.
    os.kill(child, signal.SIGKILL)
    second = system.wait_for("began", "leader-1", times=2)
    wait_until("a new keeper", lambda: keeper_of(system.pid))
    system.send(signal.SIGKILL)
    system.wait()
    wait_until("the lock is free", lambda: lock.holder(system.data_dir) is None)
    assert not runs(second)


def keeper_of(supervisor_pid):
    """Pid of the supervisor's keeper; 0 where there is none."""
    pids = Path(f"/proc/{supervisor_pid}/task/{supervisor_pid}/children").read_text().split()
    return next((int(pid) for pid in pids if "keeper.py" in Path(f"/proc/{pid}/cmdline").read_text()), 0)
