"""Every process started by hand, with a Redis of one's own and no supervisor."""

import uuid

import pytest

from tests.acceptance.fixtures import MakeSystem
from tests.acceptance.processes import wait_until
from tests.acceptance.system import System
from tests.manifests import node_manifest, pod_manifest
from tests.redis_server import RedisServer


@pytest.fixture
def by_hand(redis_server: RedisServer, make_system: MakeSystem) -> System:
    """A system of which nothing runs yet, on the test Redis."""
    return make_system("by-hand", redis_server.url, f"by-hand-{uuid.uuid4().hex}")


def test_one_process_after_the_other(by_hand: System):
    by_hand.apply(node_manifest(), pod_manifest())
    told = by_hand.ask("wait", "--timeout", "0.5", exit_code=1)
    assert "is one running?" in told
    by_hand.leader("--identity", "first")
    wait_until("somebody leads", lambda: by_hand.status()["state"]["leader"])
    by_hand.worker("binder")
    by_hand.ask("wait", "--timeout", "60")
    by_hand.worker("evaluator")
    state = by_hand.status()
    assert state["supervisor_pid"] is None
    assert {worker["kind"] for worker in state["state"]["workers"]} == {"evaluator", "binder"}
    by_hand.ask("healthcheck", "evaluator")
    by_hand.ask("healthcheck", "binder")
    by_hand.stop("evaluator", "binder")
    assert by_hand.status()["state"]["workers"] == []


def test_the_next_leader_takes_over_from_one_that_is_asked_to_stop(by_hand: System):
    by_hand.worker("binder")
    by_hand.leader("--identity", "first", "--lease", "30")
    by_hand.apply(node_manifest(), pod_manifest("default/one"))
    by_hand.ask("wait", "--timeout", "60")
    assert by_hand.status()["state"]["epoch"] == 1
    by_hand.stop("leader")
    assert by_hand.status()["state"]["leader"] is None
    by_hand.leader("--identity", "second")
    by_hand.apply(pod_manifest("default/two"))
    # Sooner than the first leader's lease would have ended.
    by_hand.ask("wait", "--timeout", "20")
    state = by_hand.status()["state"]
    assert state["leader"].startswith("second-")
    assert state["epoch"] == 2


@pytest.mark.parametrize("words", [("leader",), ("leader", "--redis-url", "redis://127.0.0.1:1/0", "--lease", "0.1")])
def test_a_leader_without_a_system_says_what_is_missing(make_system: MakeSystem, words: tuple[str, ...]):
    nowhere = make_system(DSCHED_DATA_DIR="/nowhere")
    told = nowhere.run(*words)
    assert told.returncode in (1, 2)
    assert "Traceback" not in told.stderr
    assert "dsched up" in told.stderr or "--lease" in told.stderr
