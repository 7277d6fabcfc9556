"""Waiting for pods, against a real Redis; the scheduler's queues are written by hand."""

import json
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dsched.cli.commands.wait import Goal, Waiting, Wish
from dsched.cli.main import app
from dsched.clock import SystemClock
from dsched.cluster.standalone.applying import Applier
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.manifests import kinds, selector
from dsched.state import pauses
from dsched.state.client import Store
from tests.manifests import apply, node_manifest, pod_manifest


def waiting(store: Store, namespace: str | None = None, text: str = "") -> Waiting:
    return Waiting(store, Wish(namespace, selector.parse(text)), SystemClock())


def set_aside(store: Store, **queues: list[str]) -> None:
    """Put pods into queues, and say that the leader has taken everything in and has nothing left to try."""
    for queue, members in queues.items():
        store.redis.zadd(store.key(f"queue:{queue}"), dict.fromkeys(members, 1))
    version = StandaloneCluster(store).newest_version()
    store.redis.set(store.key("leader:epoch"), 3)
    store.redis.hset(store.key("intake"), mapping={"version": version, "settled": 3})


def test_scheduled_when_every_pod_is_bound_or_finished(store: Store, tmp_path: Path):
    apply(store, tmp_path, pod_manifest("a/a", nodeName="n1"), {**pod_manifest("a/b"), "status": {"phase": "Failed"}})
    assert waiting(store).run(Goal.SCHEDULED, 0)
    apply(store, tmp_path, pod_manifest("a/c"))
    late = waiting(store)
    assert not late.run(Goal.SCHEDULED, 0)
    assert late.left().startswith("3 pods, 2 bound or finished, 1 not bound (a/c); queues: 0 active, ")
    assert waiting(store, "b").run(Goal.SCHEDULED, 0)


def test_a_change_ends_the_wait(store: Store, connect, tmp_path: Path):
    apply(store, tmp_path, node_manifest(), pod_manifest("a/a"))
    other = Applier(connect(store.name))
    timer = threading.Timer(0.3, lambda: other.delete(kinds.POD, ["a/a"]))
    timer.start()
    assert waiting(store).run(Goal.SCHEDULED, 60)
    timer.join()


def test_settled_when_all_the_rest_is_set_aside(store: Store, tmp_path: Path):
    apply(store, tmp_path, pod_manifest("a/a", nodeName="n1"), pod_manifest("a/b"), pod_manifest("a/c"))
    assert not waiting(store).run(Goal.SETTLED, 0)
    set_aside(store, unschedulable=["a/b"])
    assert not waiting(store).run(Goal.SETTLED, 0)
    set_aside(store, gated=["a/c"])
    assert waiting(store).run(Goal.SETTLED, 0)
    assert not waiting(store).run(Goal.SCHEDULED, 0)


def test_settled_when_limits_hold_back_what_is_active(store: Store, tmp_path: Path):
    apply(store, tmp_path, pod_manifest("a/b"), pod_manifest("a/c"))
    set_aside(store, unschedulable=["a/b"], active=["a/c"])
    assert not waiting(store).run(Goal.SETTLED, 0.2)
    store.redis.hset(store.key("intake"), "held_back", 1)
    assert waiting(store).run(Goal.SETTLED, 0)


def test_not_settled_before_the_leader_says_that_nothing_is_left_to_try(store: Store, tmp_path: Path):
    apply(store, tmp_path, pod_manifest("a/b"))
    set_aside(store, unschedulable=["a/b"])
    store.redis.hdel(store.key("intake"), "settled")
    late = waiting(store)
    assert not late.run(Goal.SETTLED, 0)
    assert late.left().endswith("; the leader has not said that nothing is left to try")
    set_aside(store)
    assert waiting(store).run(Goal.SETTLED, 0)
    store.redis.incr(store.key("leader:epoch"))
    assert not waiting(store).run(Goal.SETTLED, 0), "another one leads, and has not said so"


@pytest.mark.parametrize("queue", ["active", "unschedulable"])
def test_settled_when_pods_stand_beside_a_group_that_is_not_tried(store: Store, tmp_path: Path, queue: str):
    apply(store, tmp_path, pod_manifest("a/b"), pod_manifest("a/c"), pod_manifest("a/d"))
    set_aside(store, unschedulable=["a/b"], group=["a/train a/c"])
    set_aside(store, **{queue: ["podgroup/a/train"]})
    assert not waiting(store).run(Goal.SETTLED, 0)
    set_aside(store, group=["a/train a/d"])
    assert waiting(store).run(Goal.SETTLED, 0) is (queue == "unschedulable")


@pytest.mark.parametrize("queue", ["active", "backoff"])
def test_not_settled_while_pods_wait_to_be_tried(store: Store, tmp_path: Path, queue: str):
    apply(store, tmp_path, pod_manifest("a/b"))
    set_aside(store, unschedulable=["a/b"], **{queue: ["x"]})
    assert not waiting(store).run(Goal.SETTLED, 0)


@pytest.mark.parametrize("name", ["queue:inflight", "reservations"])
def test_not_settled_while_pods_are_on_their_way(store: Store, name: str):
    set_aside(store)
    store.redis.hset(store.key(name), "x", "y")
    late = waiting(store)
    assert not late.run(Goal.SETTLED, 0)
    store.redis.delete(store.key(name))
    assert late.run(Goal.SETTLED, 0)


def test_not_settled_before_the_leader_has_seen_everything(store: Store, tmp_path: Path):
    set_aside(store)
    apply(store, tmp_path, node_manifest())
    late = waiting(store)
    assert not late.run(Goal.SETTLED, 0)
    assert late.left().endswith("; the leader has taken in version 0 of version 1 (is one running?)")


def test_with_a_selector_each_pod_is_looked_up(store: Store, tmp_path: Path):
    apply(store, tmp_path, pod_manifest("a/b", labels={"app": "web"}), pod_manifest("a/c"))
    set_aside(store, unschedulable=["a/c"])
    assert not waiting(store, "a", "app=web").run(Goal.SETTLED, 0)
    set_aside(store, unschedulable=["a/b"])
    assert waiting(store, "a", "app=web").run(Goal.SETTLED, 0)


def test_pods_of_other_schedulers_are_not_waited_for(store: Store, tmp_path: Path):
    apply(store, tmp_path, pod_manifest("a/b", schedulerName="other"))
    set_aside(store)
    assert not waiting(store).run(Goal.SETTLED, 0)
    store.redis.hset(store.key("intake"), "schedulers", "default-scheduler mine")
    assert waiting(store).run(Goal.SETTLED, 0)


def test_the_command_says_what_is_open_and_exits_1(store: Store, tmp_path: Path):
    apply(store, tmp_path, pod_manifest())
    words = ["wait", "--redis-url", store.url, "--name", store.name]
    late = CliRunner().invoke(app, [*words, "--timeout", "0"])
    assert late.exit_code == 1
    assert late.stderr.startswith("not scheduled after 0s: 1 pods, 0 bound or finished, 1 not bound (default/web); ")
    Applier(store).delete(kinds.POD, ["default/web"])
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stdout) == (0, "scheduled: 0 pods, 0 bound or finished, 0 not bound\n")


def test_the_command_answers_programs_and_says_what_is_paused(store: Store, tmp_path: Path):
    apply(store, tmp_path, pod_manifest("a/a", nodeName="n1"), pod_manifest("a/b"))
    pauses.pause(store, pauses.EVERYTHING, 5, "upgrade")
    where = ("--redis-url", store.url, "--name", store.name, "-n", "a", "-o", "json")
    done = CliRunner().invoke(app, ["wait", "--timeout", "0", *where])
    assert done.exit_code == 1
    assert "paused: all profiles" in done.stderr
    answer = json.loads(done.stdout)
    assert (answer["goal"], answer["reached"], answer["done"], answer["open"]) == ("scheduled", False, 1, ["a/b"])
    Applier(store).delete(kinds.POD, ["a/b"])
    done = CliRunner().invoke(app, ["wait", "--timeout", "0", *where])
    assert (done.exit_code, json.loads(done.stdout)["reached"]) == (0, True)
