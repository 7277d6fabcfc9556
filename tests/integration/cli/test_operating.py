"""`dsched pause`, `resume`, `drain`, `queue requeue` and `position`, `top`, `explain pod --history`."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dsched import config
from dsched.cli.commands import pause
from dsched.cli.main import app
from dsched.clock import SystemClock
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.errors import DschedError, NotFound, StateError
from dsched.leader import term as term_module
from dsched.leader.main import Leader
from dsched.leader.settings import Settings
from dsched.leader.sources import Sources
from dsched.model.meta import PodKey, PodUid
from dsched.plugins import registry
from dsched.scheduler.ports import QueueName
from dsched.state import attempt_history, client, keys, pauses
from dsched.state.client import Store
from dsched.state.pauses import EVERYTHING
from dsched.state.places import Places
from tests.integration.leader.rig import RecordingDispatcher, Rig
from tests.integration.workers.processes import wait_until
from tests.manifests import apply, node_manifest, pod_manifest
from tests.schemas import checked

Run = Callable[..., Result]
SSD = {"disk": "ssd"}


@pytest.fixture
def dsched(store: Store, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command against the test's own system; errors that are no usage errors come out as they are."""
    monkeypatch.setenv("DSCHED_REDIS_URL", store.url)
    monkeypatch.setenv("DSCHED_NAME", store.name)

    def run(*words: str, code: int = 0) -> Result:
        result = CliRunner().invoke(app, list(words))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return run


def told(result: Result) -> Any:
    return json.loads(result.stdout)


@pytest.fixture
def rig(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """A leader that is driven step by step."""
    return Rig(store, tmp_path, monkeypatch)


@pytest.fixture
def leader(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Leader]:
    """A leader in a thread, whose pods no binder binds."""
    monkeypatch.setattr(term_module, "Dispatcher", RecordingDispatcher)
    own = client.connect(store.url, store.name)
    process = Leader(
        Settings(identity="one"), own, StandaloneCluster(own), config.default(), registry.intree(), SystemClock()
    )
    thread = threading.Thread(target=process.run, daemon=True)
    thread.start()
    wait_until("it leads", lambda: process.term is not None and isinstance(process.term.sources, Sources))
    yield process
    process.stop()
    thread.join(30)
    assert not thread.is_alive()
    own.close()


def stand(store: Store, place: QueueName, count: int) -> None:
    """Wait until so many pods stand in a place."""
    wait_until(f"{count} pods are {place}", lambda: Places(store).counts()[place] == count)


# -- pause, resume -------------------------------------------------------------------------------------------------


def test_pausing_and_going_on(store: Store, dsched: Run, leader: Leader, tmp_path: Path) -> None:
    answer = told(dsched("pause", "--reason", "a try", "-o", "json"))
    assert answer["changed"] is True
    assert [(each["profile"], each["reason"]) for each in answer["paused"]] == [("*", "a try")]
    apply(store, tmp_path, node_manifest("n1"), pod_manifest("shop/web"))
    stand(store, QueueName.ACTIVE, 1)
    assert "paused already" in dsched("pause").stdout
    assert "all profiles for" in dsched("status").stdout
    assert told(dsched("status", "-o", "json"))["state"]["paused"][0]["profile"] == "*"
    assert "paused: all profiles" in dsched("queue").stdout
    assert told(dsched("queue", "-o", "json"))["paused"][0]["reason"] == "a try"
    position = dsched("queue", "position", "shop/web").stdout
    assert "shop/web is number 1 of 1 in the active queue (tried 0 times)" in position
    assert "paused: all profiles" in position
    assert dsched("resume").stdout == "resumed: all profiles\n"
    stand(store, QueueName.RESERVED, 1)
    assert dsched("resume").stdout == "nothing to resume\n"


def test_a_profile_that_there_is_not(store: Store, dsched: Run, leader: Leader) -> None:
    for command in ("pause", "resume"):
        with pytest.raises(NotFound, match="there is no profile 'batch'; profiles are default-scheduler"):
            dsched(command, "--profile", "batch")
        with pytest.raises(NotFound, match="there is no profile ''"):
            dsched(command, "--profile", "")
    pauses.pause(store, "batch", 0)  # while there was one
    assert told(dsched("resume", "--profile", "batch", "-o", "json"))["changed"] is True
    assert dsched("resume", "--profile", "default-scheduler").stdout == "nothing to resume\n"
    dsched("pause", "--profile", "default-scheduler")
    assert told(dsched("resume", "--profile", "default-scheduler", "-o", "json"))["paused"] == []


# -- drain ---------------------------------------------------------------------------------------------------------


def test_draining_an_idle_system(store: Store, dsched: Run, leader: Leader) -> None:
    assert told(dsched("drain", "-o", "json")) == {
        "drained": True,
        "moving": {"inflight": 0, "waiting": 0, "reserved": 0},
    }
    assert [each.profile for each in pauses.read(store)] == [EVERYTHING]


def test_draining_takes_longer_than_there_is_time(store: Store, dsched: Run, leader: Leader, tmp_path: Path) -> None:
    apply(store, tmp_path, node_manifest("n1"), pod_manifest("shop/web"))
    stand(store, QueueName.RESERVED, 1)
    done = dsched("drain", "--timeout", "0", code=1)
    assert "not drained after 0s: 0 inflight, 0 waiting, 1 reserved; scheduling stays paused" in done.stderr
    assert pauses.read(store)


def test_draining_where_nobody_leads_says_so(store: Store, dsched: Run) -> None:
    store.redis.hset(store.key(keys.INFLIGHT.name), "shop/web", "1 1")
    assert "nobody leads" in dsched("drain", "--timeout", "0", code=1).stderr


def test_a_drain_waits_for_what_is_on_its_way_and_nothing_else_comes(rig: Rig) -> None:
    rig.apply(node_manifest("n1"), *(pod_manifest(f"shop/web-{number}") for number in range(3)))
    led = rig.lead()
    led.turn()
    pauses.pause(rig.store, EVERYTHING, 5)
    rig.apply(pod_manifest("shop/late"))
    looks: list[Mapping[str, int]] = []

    def work(left: Mapping[str, int]) -> None:
        looks.append(dict(left))
        led.turns()
        if len(looks) == 2:
            for request in led.requests():
                rig.binder.work(request)

    left = pause.wait(rig.store, rig.clock, 60.0, work)
    assert not any(left.values())
    assert [look["reserved"] for look in looks[:2]] == [3, 3]
    assert (rig.queue("shop/late"), rig.node_of("shop/web-0")) == ("active", "n1")
    led.agree()


def test_a_drain_that_somebody_ends(rig: Rig) -> None:
    rig.apply(node_manifest("n1"), pod_manifest("shop/web"))
    rig.lead().turn()
    with pytest.raises(DschedError, match="somebody has resumed"):
        pause.wait(rig.store, rig.clock, 60.0)


# -- queue requeue, queue position -----------------------------------------------------------------------------------


def test_requeue(store: Store, dsched: Run, leader: Leader, tmp_path: Path) -> None:
    apply(store, tmp_path, node_manifest("n1"), *(pod_manifest(f"shop/{name}", nodeSelector=SSD) for name in "ab"))
    stand(store, QueueName.UNSCHEDULABLE, 2)
    dsched("pause")
    done = dsched("queue", "requeue", "-n", "shop", "a")
    assert done.stdout == "shop/a: put from unschedulable to the active queue\n"
    assert "paused: all profiles" in done.stderr
    assert told(dsched("queue", "requeue", "--all-unschedulable", "-n", "bank", "-o", "json"))["done"] == 0
    assert dsched("queue", "requeue", "--all-unschedulable").stdout == "1 pods put back into the active queue\n"
    answer = told(dsched("queue", "requeue", "shop/a", "shop/none", "-o", "json", code=1))
    assert [(pod["pod"], pod["done"], pod["place"]) for pod in answer["pods"]] == [
        ("shop/a", False, "active"),
        ("shop/none", False, ""),
    ]
    assert dsched("queue", "requeue", "shop/a").exit_code == 0
    dsched("resume")
    wait_until(
        "both were tried again", lambda: [pod.attempts for pod in Places(store).pods(QueueName.UNSCHEDULABLE)] == [2, 2]
    )


def test_requeue_where_nobody_leads(dsched: Run) -> None:
    with pytest.raises(StateError, match="nobody leads"):
        dsched("queue", "requeue", "shop/web")


@pytest.mark.parametrize("words", [(), ("shop/web", "--all-unschedulable")])
def test_requeue_wants_pods_or_all(dsched: Run, words: tuple[str, ...]) -> None:
    assert "name pods, or use --all-unschedulable" in dsched("queue", "requeue", *words, code=2).stderr


def position(dsched: Run, name: str) -> tuple[str, int | None, int | None]:
    found = told(dsched("queue", "position", name, "-o", "json"))["position"]
    return found["place"], found["before"], found["pods"]


def test_positions(rig: Rig, dsched: Run) -> None:
    rig.apply(node_manifest("n1", cpu="1"), pod_manifest("shop/ssd", nodeSelector=SSD))
    led = rig.lead()
    led.turns()
    rig.apply(pod_manifest("shop/gated", schedulingGates=[{"name": "quota"}]), pod_manifest("shop/reserved"))
    led.turns()
    rig.apply(*(pod_manifest(f"shop/web-{number}", priority=-number) for number in range(3)))
    led.hear()
    assert [position(dsched, f"shop/web-{number}") for number in range(3)] == [
        ("active", 0, 3),
        ("active", 1, 3),
        ("active", 2, 3),
    ]
    assert position(dsched, "shop/ssd") == ("unschedulable", None, 1)
    assert position(dsched, "shop/gated") == ("gated", None, 1)
    assert position(dsched, "shop/reserved") == ("reserved", None, None)
    rig.apply(node_manifest("n2", labels=SSD))
    led.hear()
    led.term.memory.events.apply()
    assert position(dsched, "shop/ssd") == ("backoff", 3, 1)
    assert "in backoff" in dsched("queue", "position", "shop/ssd").stdout
    assert "gated by SchedulingGates" in dsched("queue", "position", "shop/gated").stdout
    with pytest.raises(NotFound, match="pod shop/none is not pending"):
        dsched("queue", "position", "shop/none")


def test_a_pod_that_stands_nowhere_is_an_error(rig: Rig, dsched: Run) -> None:
    rig.apply(pod_manifest("shop/web"))
    rig.lead().hear()
    rig.store.redis.delete(rig.store.key(keys.ACTIVE.name))
    with pytest.raises(StateError, match="does not stand where its record says"):
        dsched("queue", "position", "shop/web")


# -- explain pod --history, top --------------------------------------------------------------------------------------


def test_history(store: Store, dsched: Run, leader: Leader, tmp_path: Path) -> None:
    apply(store, tmp_path, node_manifest("n1"), pod_manifest("shop/web", nodeSelector=SSD))
    stand(store, QueueName.UNSCHEDULABLE, 1)
    wait_until("it is kept", lambda: attempt_history.read(store, PodKey("shop/web")))
    found = checked(dsched("explain", "pod", "shop/web", "--history", "-o", "json").stdout, "history-v1")["attempts"]
    assert [(each["attempt"], each["result"]) for each in found] == [(1, "unschedulable")]
    assert found[0]["groups"][0]["plugin"] == "NodeAffinity"
    text = dsched("explain", "pod", "shop/web", "--history").stdout
    assert "Attempt 1, " in text
    assert "n1" in text


def test_no_history(store: Store, dsched: Run, tmp_path: Path) -> None:
    apply(store, tmp_path, pod_manifest("shop/other"))
    assert "Nothing is kept" in dsched("explain", "pod", "shop/other", "--history", code=1).stdout
    answer = told(dsched("explain", "pod", "shop/other", "--history", "-o", "json", code=1))
    assert answer == {"version": 1, "pod": "shop/other", "attempts": []}
    with pytest.raises(NotFound, match="there is no pod shop/none, and nothing is kept"):
        dsched("explain", "pod", "shop/none", "--history")


def test_a_pod_that_is_gone_keeps_its_history(store: Store, dsched: Run) -> None:
    store.redis.set(store.key(keys.EPOCH.name), 1)
    attempt = attempt_history.Attempt(1, 0, 1, PodUid("u1"), "default-scheduler", attempt_history.UNSCHEDULABLE, 3)
    attempt_history.AttemptHistory(store, 1).keep([(PodKey("shop/gone"), attempt)], 0)
    assert "attempts kept: 1" in dsched("explain", "pod", "shop/gone", "--history").stdout


def test_top(store: Store, dsched: Run, leader: Leader, tmp_path: Path) -> None:
    apply(store, tmp_path, node_manifest("n1"), node_manifest("n2", cpu="1"), pod_manifest("shop/web", nodeName=None))
    stand(store, QueueName.RESERVED, 1)
    dsched("pause")

    def look() -> Any:
        return told(dsched("top", "--once", "--interval", "0.3", "-o", "json"))

    answer = wait_until("it has rates", lambda: (found := look())["rates"] and found)
    assert (answer["leader"].partition("-")[0], answer["queues"]["reserved"]) == ("one", 1)
    assert answer["paused"][0]["profile"] == "*"
    assert sum(answer["phases"].values()) == pytest.approx(1, abs=0.01)
    assert [node["full"] >= 0 for node in answer["nodes"]] == [True, True]
    assert answer["nodes"][0]["full"] >= answer["nodes"][1]["full"]
    assert sum(node["used"].get("pods", 0) for node in answer["nodes"]) == 1
    text = dsched("top", "--once", "--interval", "0.05", "--nodes", "1").stdout
    assert "(1 more nodes; --nodes 0 shows all)" in text


def test_watching_ends_when_it_is_interrupted(dsched: Run, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    class Twice(SystemClock):
        looks = 0

        def sleep(self, seconds: float) -> None:
            Twice.looks += 1
            if Twice.looks % 2 == 0:
                raise KeyboardInterrupt

    monkeypatch.setattr("dsched.cli.watching.SystemClock", Twice)
    assert [json.loads(line)["leader"] for line in dsched("top", "-o", "json").stdout.splitlines()] == [None, None]
    assert dsched("top").stdout.count("nobody leads") == 2
    assert [json.loads(line)["reachable"] for line in dsched("status", "-w", "-o", "json").stdout.splitlines()] == [
        True
    ] * 2
    assert dsched("status", "--watch").stdout.count("nobody leads") == 2
