"""`dsched queue`: counts, order, times and reasons of the pods in each place."""

import json
import time

import pytest
from typer.testing import CliRunner

from dsched.cli import watching
from dsched.cli.commands import queue
from dsched.cli.main import app
from dsched.model.meta import PodUid
from dsched.scheduler.ports import Move, QueueName, entity_key
from dsched.state import keys
from dsched.state.places import PAGE, Places
from tests.integration.fsck.by_hand import ByHand
from tests.manifests import pod_manifest

GROUP = "default/train"
PLACES = ("active", "backoff", "unschedulable", "gated", "group", "inflight", "waiting", "reserved")


@pytest.fixture
def system(store, tmp_path):
    return ByHand(store, tmp_path)


@pytest.fixture
def dsched(store):
    """Runs ``dsched queue``."""

    def run(*words):
        return CliRunner().invoke(app, ["queue", *words, "--redis-url", store.url, "--name", store.name])

    return run


@pytest.fixture
def asked(dsched):
    """Runs ``dsched queue -o json`` and reads the answer."""

    def run(*words):
        done = dsched("-o", "json", *words)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    return run


def everywhere(system):
    """A pod called after its place in each place."""
    for name in ("inflight", "reserved", "binding", "waiting", "backoff", "unschedulable", "gated", "active"):
        system.cluster_with(name)
        if name in ("gated", "active"):
            if name == "gated":
                system.put(
                    name, QueueName.GATED, source=QueueName.ACTIVE, plugins="SchedulingGates", message="has gates"
                )
            continue
        system.pop()
        if name in ("reserved", "binding"):
            system.reserve(name)
        elif name == "waiting":
            system.reserve(name, deadline_ms=system.clock.now_ms() + 5000)
        elif name in ("backoff", "unschedulable"):
            system.put(name, QueueName(name))
    pod = system.pod("binding")
    system.begin(pod, "n1")


def names(pods):
    return [pod["key"].removeprefix("default/") for pod in pods]


def test_an_empty_system(asked, dsched):
    assert asked() == {"counts": dict.fromkeys(PLACES, 0), "pods": {place: [] for place in PLACES}, "paused": []}
    assert dsched().stdout.splitlines() == [
        "PLACE           PODS",
        *(f"{place.ljust(16)}0" for place in PLACES if place != "group"),
    ]
    assert dsched("group").stdout.splitlines() == ["PLACE   PODS", "group   0"]


def test_a_pod_in_each_place(system, asked):
    everywhere(system)
    found = asked()
    assert found["counts"] == dict.fromkeys(PLACES, 1) | {"reserved": 2, "group": 0}
    assert {place: names(pods) for place, pods in found["pods"].items()} == {place: [place] for place in PLACES} | {
        "reserved": ["binding", "reserved"],
        "group": [],
    }


def with_a_group(system):
    """A pod group in backoff with two pods beside it, and another pod."""
    system.cluster_with("web", "train-0", "train-1")
    now_ms = system.clock.now_ms()
    for number in range(2):
        pod = system.pod(f"train-{number}")
        fields = {"group": GROUP, "queued_us": now_ms * 1000 + number, "plugins": "GangScheduling", "message": "why"}
        stands = now_ms * 1000 + number
        move = Move(pod.key, pod.uid, QueueName.ACTIVE, QueueName.GROUP, stands, GROUP, stands, fields)
        assert system.queue.move([move]) == []
    group = Move(entity_key(GROUP), PodUid("uid"), QueueName.NOWHERE, QueueName.BACKOFF, now_ms + 9000, "turn", 0)
    assert system.queue.move([group]) == []


def test_pods_stand_beside_their_group(system, asked, dsched):
    with_a_group(system)
    found = asked()
    assert {place: count for place, count in found["counts"].items() if count} == {
        "active": 1,
        "backoff": 1,
        "group": 2,
    }
    assert [(pod["key"], pod["group"]) for pod in found["pods"]["group"]] == [
        ("default/train-0", GROUP),
        ("default/train-1", GROUP),
    ]
    assert [pod["key"] for pod in found["pods"]["backoff"]] == ["podgroup/default/train"]
    lines = dsched("group", "--limit", "1").stdout.splitlines()
    assert lines[3].split() == ["group:"]
    assert lines[4].split()[:3] == ["POD", "GROUP", "ATTEMPTS"]
    assert lines[5].split()[:2] == ["default/train-0", GROUP] and lines[5].split()[-2:] == ["GangScheduling", "why"]
    assert lines[6] == "  (1 more; --limit 0 shows all)"


@pytest.mark.parametrize(("namespace", "keys"), [("default", ["podgroup/default/train"]), ("podgroup", [])])
def test_a_group_is_of_its_namespace(system, asked, namespace, keys):
    with_a_group(system)
    assert [pod["key"] for pod in asked("backoff", "-n", namespace)["pods"]["backoff"]] == keys


def test_where_a_pod_stands_beside_its_group(system, dsched):
    with_a_group(system)
    said = dsched("position", "default/train-1").stdout
    backoff = "is in backoff for 0s; 1 pods stand before it"
    assert " ".join(said.split()) == (
        f"default/train-1 waits with its pod group {GROUP}, which {backoff} (tried 0 times) last: why"
    )
    system.queue.remove([(entity_key(GROUP), PodUid("uid"))])
    assert "which is not in the queue (tried 0 times)" in " ".join(dsched("position", "default/train-1").stdout.split())


def test_what_is_told_of_a_pod(system, asked):
    everywhere(system)
    now_ms = system.clock.now_ms()
    pods = {pod["key"].removeprefix("default/"): pod for place in asked()["pods"].values() for pod in place}
    assert pods["unschedulable"] == {
        "key": "default/unschedulable",
        "place": "unschedulable",
        "uid": system.pod("unschedulable").uid,
        "attempts": 1,
        "queued_ms": now_ms,
        "first_ms": now_ms,
        "last_ms": now_ms,
        "until_ms": None,
        "node": "",
        "state": "",
        "epoch": None,
        "profile": "default-scheduler",
        "plugins": ["NodeResourcesFit"],
        "message": "0/2 nodes are available",
        "group": "",
    }
    assert (pods["active"]["attempts"], pods["active"]["first_ms"]) == (0, None)
    assert pods["backoff"]["until_ms"] == now_ms
    assert (pods["waiting"]["until_ms"], pods["waiting"]["node"]) == (now_ms + 5000, "n1")
    assert [(pods[name]["node"], pods[name]["state"], pods[name]["epoch"]) for name in ("reserved", "binding")] == [
        ("n1", "reserved", system.epoch),
        ("n1", "binding", system.epoch),
    ]
    assert (pods["inflight"]["epoch"], pods["inflight"]["attempts"]) == (system.epoch, 1)


def test_words_narrow_the_answer(system, asked):
    everywhere(system)
    assert list(asked("unschedulable", "in-flight")["pods"]) == ["unschedulable", "inflight"]
    assert list(asked("Gated")["counts"]) == ["gated"]


def test_a_word_that_is_no_place(dsched):
    done = dsched("nowhere")
    assert done.exit_code == 2
    assert "there is no place 'nowhere'" in done.stderr


def test_limit_and_order(system, asked):
    system.cluster_with(*(f"web-{number:02}" for number in range(25)))
    ordered = [f"web-{number:02}" for number in range(25)]
    assert names(asked("active")["pods"]["active"]) == ordered[: queue.SHOWN]
    assert names(asked("active", "--limit", "3")["pods"]["active"]) == ordered[:3]
    assert names(asked("active", "--limit", "0")["pods"]["active"]) == ordered
    assert asked("active", "--limit", "3")["counts"] == {"active": 25}


def test_namespaces(system, asked):
    system.cluster_with("web")
    system.apply(pod_manifest("shop/db"), pod_manifest("shop/cart"))
    system.take_in()
    assert names(asked("active", "-n", "shop", "--limit", "1")["pods"]["active"]) == ["shop/cart"]
    assert names(asked("active", "-n", "shop")["pods"]["active"]) == ["shop/cart", "shop/db"]
    assert names(asked("active", "-n", "none")["pods"]["active"]) == []
    assert len(asked("active", "-n", "shop", "-A")["pods"]["active"]) == 3


@pytest.mark.parametrize("limit", [0, PAGE - 1, PAGE, PAGE + 1])
def test_places_of_more_than_a_page(store, limit):
    keyed = {f"default/web-{number:04}": number for number in range(PAGE + 3)}
    store.redis.zadd(store.key(keys.UNSCHEDULABLE.name), keyed)
    found = [pod.key for pod in Places(store).pods(QueueName.UNSCHEDULABLE, limit)]
    assert found == list(keyed)[: limit or None]
    assert len(list(Places(store).pods(QueueName.UNSCHEDULABLE, limit, "default"))) == len(found)


def test_a_table(system, dsched):
    everywhere(system)
    lines = [line.split() for line in dsched("unschedulable", "reserved").stdout.splitlines()]
    assert lines[:3] == [["PLACE", "PODS"], ["unschedulable", "1"], ["reserved", "2"]]
    start = lines.index(["unschedulable:"])
    assert lines[start + 1] == ["POD", "ATTEMPTS", "FIRST", "TRIED", "QUEUED", "REJECTED", "BY", "WHY"]
    row = lines[start + 2]
    assert row[:2] == ["default/unschedulable", "1"]
    assert row[4:] == ["NodeResourcesFit", "0/2", "nodes", "are", "available"]
    start = lines.index(["reserved:"])
    assert lines[start + 1] == ["POD", "ATTEMPTS", "FIRST", "TRIED", "QUEUED", "NODE", "STATE"]
    assert [row[-2:] for row in lines[start + 2 : start + 4]] == [["n1", "binding"], ["n1", "reserved"]]


def test_a_table_tells_how_many_more_there_are(system, dsched):
    system.cluster_with("a", "b", "c")
    assert "(2 more; --limit 0 shows all)" in dsched("--limit", "1").stdout
    assert "more" not in dsched("--limit", "3").stdout


def test_long_reasons_are_cut_unless_everything_is_asked_for(system, dsched):
    system.cluster_with("web")
    system.pop()
    reason = "no node\nwill do, " * 30
    system.put("web", QueueName.UNSCHEDULABLE, message=reason)
    shown = dsched().stdout
    assert "no node will do, no node" in shown
    assert "…" in shown
    wide = dsched("-o", "wide").stdout
    assert " ".join(reason.split()) in wide
    assert system.pod("web").uid in wide


def test_times_are_told_as_how_long_ago(system, dsched):
    now_ms = time.time_ns() // 1_000_000
    system.clock.advance((now_ms - system.clock.now_ms()) / 1000 - 7200)
    system.cluster_with("web")
    system.pop()
    system.put("web", QueueName.BACKOFF)
    row = next(line.split() for line in dsched("backoff").stdout.splitlines() if "default/web" in line)
    assert [row[2][:2], row[3][:2], row[4]] == ["2h", "2h", "now"]


def test_an_entry_that_cannot_be_read_is_an_error_that_says_so(store, dsched):
    store.redis.hset(store.key(keys.INFLIGHT.name), "default/web", "soon")
    done = dsched()
    assert done.exit_code == 1
    assert "pod default/web in flight: 'soon' is not 'EPOCH BATCH'" in str(done.exception)


def test_watching_looks_again_until_interrupted(system, dsched, monkeypatch):
    system.cluster_with("web")

    class Twice:
        looks = 0

        def now_ms(self):
            return system.clock.now_ms()

        def sleep(self, seconds):
            system.pop()
            Twice.looks += 1
            if Twice.looks == 2:
                raise KeyboardInterrupt

    monkeypatch.setattr(queue, "SystemClock", Twice)
    monkeypatch.setattr(watching, "SystemClock", Twice)
    done = dsched("--watch", "-o", "json")
    assert done.exit_code == 0
    assert [json.loads(line)["counts"]["inflight"] for line in done.stdout.splitlines()] == [0, 1]
    Twice.looks = 0
    assert dsched("-w").stdout.count("PLACE ") == 2
