"""What a leader believes is written to its log when somebody asks: compared first, then all of it, a piece a turn."""

import logging
from typing import Any

import pytest

from dsched.errors import ClusterUnavailable
from dsched.leader.audit import dump as dump_module
from dsched.leader.audit.dump import Dump
from tests.integration.leader.rig import Led, Rig
from tests.integration.leader.test_nominated import told
from tests.manifests import Json, node_manifest, pod_manifest

MUCH = 10_000


def pod(name: str, cpu: str = "100m", **spec: Any) -> Json:
    container = {"name": "main", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}
    return pod_manifest(f"shop/{name}", containers=[container], **spec)


@pytest.fixture
def led(rig: Rig) -> Led:
    """Two nodes; a pod bound, one that fits nowhere, one that is gated."""
    gated = pod("gated", schedulingGates=[{"name": "example.com/wait"}])
    rig.apply(node_manifest("n1"), node_manifest("n2"), pod("bound"), pod("big", cpu="1000"), gated)
    led = rig.lead()
    led.run()
    return led


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """As with ``--log-level ERROR``."""
    caplog.set_level(logging.ERROR)
    caplog.handler.setLevel(logging.NOTSET)


def steps(led: Led) -> int:
    """Let the dump be written; how many turns it took."""
    made: Dump = led.term.dumping
    for number in range(MUCH):
        if not made.due:
            return number
        made.step()
    raise AssertionError("the dump does not end")


def written(caplog: pytest.LogCaptureFixture, sentence: str) -> list[dict[str, Any]]:
    """The fields of lines with this sentence, in order."""
    return [vars(record) for record in caplog.records if record.getMessage() == sentence]


def asked(led: Led) -> int:
    led.term.dump()
    return steps(led)


def test_nothing_is_written_unless_somebody_asks(led: Led, caplog: pytest.LogCaptureFixture) -> None:
    led.turns()
    assert not led.term.dumping.due
    assert not written(caplog, "dump begins")


def test_queue_nodes_and_pods_are_written_whatever_the_level(led: Led, caplog: pytest.LogCaptureFixture) -> None:
    asked(led)
    queued = {each["pod"]: each for each in written(caplog, "pod in the queue")}
    assert {key: each["queue"] for key, each in queued.items()} == {"shop/big": "unschedulable", "shop/gated": "gated"}
    assert (queued["shop/big"]["plugins"], queued["shop/big"]["attempts"]) == ("NodeResourcesFit", 1)
    nodes = {each["node"]: each for each in written(caplog, "node in the cache")}
    assert set(nodes) == {"n1", "n2"}
    (bound,) = written(caplog, "pod on a node")
    assert (bound["pod"], bound["assumed"]) == ("shop/bound", False)
    assert bound["uid"]
    home = nodes[bound["node"]]
    assert (home["pods"], home["requested"]["cpu"]) == (1, 100)
    assert home["allocatable"]["cpu"] > 0
    (end,) = written(caplog, "dump ends")
    assert [end[name] for name in ("active", "backoff", "unschedulable", "gated")] == [0, 0, 1, 1]
    assert [end[name] for name in ("nodes", "pods", "nominated", "differences")] == [2, 1, 0, 0]


def test_pods_that_are_reserved_stand_in_the_queue_and_on_their_nodes(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.apply(node_manifest("n1"), pod("web"))
    led = rig.lead()
    led.turns()
    asked(led)
    (queued,) = written(caplog, "pod in the queue")
    (placed,) = written(caplog, "pod on a node")
    assert (queued["pod"], queued["queue"]) == ("shop/web", "reserved")
    assert (placed["pod"], placed["node"], placed["assumed"]) == ("shop/web", "n1", True)


def test_promises_are_written(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    rig.apply(node_manifest("n1"), pod("picky", nodeSelector={"there-is": "no-such-node"}))
    led = rig.lead()
    led.run()
    told(rig, led, "shop/picky", nominated="n1")
    asked(led)
    (promised,) = written(caplog, "pod with a nominated node")
    assert (promised["pod"], promised["node"]) == ("shop/picky", "n1")
    (queued,) = written(caplog, "pod in the queue")
    assert queued["nominated_node"] == "n1"
    (node,) = written(caplog, "node in the cache")
    assert node["nominated"] == 1
    (end,) = written(caplog, "dump ends")
    assert end["nominated"] == 1


def test_pods_on_nodes_that_are_gone_are_told(led: Led, caplog: pytest.LogCaptureFixture) -> None:
    (home,) = {name for name, _ in led.term.memory.cache.snapshot.table.placed()}
    led.rig.delete_node(home)
    led.hear()
    asked(led)
    (placed,) = written(caplog, "pod on a node")
    assert (placed["pod"], placed["node"], placed["node_is_gone"]) == ("shop/bound", home, True)


def test_what_the_leader_has_missed_is_told_at_once_and_not_yet_repaired(
    led: Led, caplog: pytest.LogCaptureFixture
) -> None:
    led.rig.apply(node_manifest("n3"), pod("late"))
    asked(led)
    missed = [
        (each["what"], each.get("node") or each["pod"])
        for each in written(caplog, "cache differs, repaired if that lasts")
    ]
    assert sorted(missed) == [("node_missing", "n3"), ("pod_missing", "shop/late")]
    assert "n3" not in led.term.memory.cache.snapshot.table.index
    led.hear()
    caplog.clear()
    asked(led)
    (end,) = written(caplog, "dump ends")
    assert (end["differences"], end["nodes"]) == (0, 3)


def test_a_look_that_is_under_way_begins_anew(led: Led, caplog: pytest.LogCaptureFixture) -> None:
    audit = led.term.audit
    audit.begin()
    audit.step()
    asked(led)
    assert not audit.looking
    (end,) = written(caplog, "dump ends")
    assert end["differences"] == 0


def test_a_cluster_that_cannot_be_asked_keeps_nothing_back(
    led: Led, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> Any:
        raise ClusterUnavailable("away")

    monkeypatch.setattr(led.rig.cluster, "survey", away)
    asked(led)
    (end,) = written(caplog, "dump ends")
    assert (end["nodes"], end["gated"]) == (2, 1)
    assert "differences" not in end


def test_a_turn_writes_only_so_many_lines_and_scheduling_goes_on(
    rig: Rig, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dump_module, "LINES_A_TURN", 10)
    rig.apply(node_manifest("n1", cpu="100"), *(pod(f"p{number}") for number in range(60)))
    led = rig.lead()
    led.run()
    led.term.dump()
    most = before = 0
    late = False
    while led.term.dumping.due:
        led.turn()
        lines = len(written(caplog, "pod on a node"))
        most, before = max(most, lines - before), lines
        if lines > 20 and not late:
            late = True
            rig.apply(pod("late"))
        elif late and (requests := led.requests()):
            rig.binder.work(*requests)
            assert led.term.dumping.due
    assert most == 10
    assert rig.node_of("shop/late") == "n1"
    assert len({each["pod"] for each in written(caplog, "pod on a node")}) == 60


def test_who_asks_meanwhile_gets_another_one(led: Led, caplog: pytest.LogCaptureFixture) -> None:
    led.term.dump()
    led.term.dumping.step()
    led.term.dump()
    led.term.dump()
    steps(led)
    assert len(written(caplog, "dump ends")) == 2
