"""Pods that wait for devices to be searched for: in flight, while others are placed."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from dsched.plugins.dynamic_resources import device_search
from dsched.plugins.dynamic_resources.device_search import DeviceSearch
from tests.devices import asking, make_claim, make_class, make_device, make_slice
from tests.integration.leader.rig import Led, Rig
from tests.integration.workers.processes import wait_until
from tests.manifests import Json, node_manifest, pod_manifest

NUMA = "gpu.example.com/numa"


class Gate:
    """Holds searches up until it is opened."""

    def __init__(self) -> None:
        self._held, self._opens = os.pipe()

    def pass_through(self) -> None:
        os.read(self._held, 1)

    def open(self, times: int = 1) -> None:
        os.write(self._opens, b"." * times)

    def close(self) -> None:
        os.close(self._held)
        os.close(self._opens)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """What counting does not tell is searched in another process, once the gate is opened."""
    found, work = Gate(), DeviceSearch.work

    def held(self: DeviceSearch) -> bytes:
        found.pass_through()
        return work(self)

    monkeypatch.setattr(device_search, "MOST_S", -1.0)
    monkeypatch.setattr(DeviceSearch, "work", held)
    yield found
    found.close()


@pytest.fixture
def devices(rig: Rig) -> Rig:
    """Two nodes, one of them with eight devices on two NUMA nodes."""
    offered = [make_device(f"d{number}", attributes={NUMA: number % 2}) for number in range(8)]
    nodes = [node_manifest(name, labels={"kubernetes.io/hostname": name}) for name in ("n1", "n2")]
    rig.apply(*nodes, make_class("gpu"), make_slice("n1", offered))
    return rig


def claiming(name: str, **spec: Any) -> list[Json]:
    """A pod, and its claim for two devices on one NUMA node."""
    requests = (asking("r0"), asking("r1"))
    claim = make_claim(f"default/{name}", *requests, constraints=[{"matchAttribute": NUMA}])
    uses = [{"name": "c", "resourceClaimName": name}]
    return [claim, pod_manifest(f"default/{name}", resourceClaims=uses, **spec)]


def decided(led: Led, key: str) -> None:
    """Wait until a pod waits no more."""

    def turned() -> bool:
        led.turns()
        return led.place(key) != "inflight"

    wait_until(f"{key} is decided", turned)


def test_others_are_placed_meanwhile(devices: Rig, gate: Gate) -> None:
    led = devices.lead()
    devices.apply(*claiming("hard"))
    led.turns()
    assert led.place("default/hard") == "inflight"
    devices.apply(pod_manifest("default/web"))
    led.run()
    assert devices.node_of("default/web")
    assert led.place("default/hard") == "inflight"
    gate.open()
    decided(led, "default/hard")
    assert led.place("default/hard") == "reserved"
    assert [(item.node, item.attempt) for request in led.requests() for item in request.pods] == [("n1", 1)]


def test_who_waits_when_the_term_ends_is_put_back(devices: Rig, gate: Gate) -> None:
    led = devices.lead()
    devices.apply(*claiming("hard"))
    led.turns()
    led.term.batches.end()
    led.term.close()
    record = devices.record("default/hard")
    assert (record["queue"], record["attempts"]) == ("active", "0")


def test_who_waits_when_the_leader_is_killed_is_tried_by_the_next(devices: Rig, gate: Gate) -> None:
    killed = devices.lead()
    devices.apply(*claiming("hard"))
    killed.turns()
    led = devices.lead()
    led.turns()
    assert led.place("default/hard") == "inflight"
    gate.open(2)
    decided(led, "default/hard")
    assert devices.reserved() and led.place("default/hard") == "reserved"
    killed.term.searches.close()


def test_a_pod_that_goes_meanwhile_waits_for_nothing(devices: Rig, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    led, answers = devices.lead(), list[bytes | None]()
    monkeypatch.setattr(DeviceSearch, "done", lambda self, answer: answers.append(answer))
    devices.apply(*claiming("hard"))
    led.turns()
    devices.delete_pod("default/hard")
    led.turns()
    assert led.place("default/hard") == ""
    gate.open()
    wait_until("the search has ended", lambda: led.turns() is None and answers)
    led.run()
    assert not devices.record("default/hard") and not devices.reserved()


def test_pods_that_might_go_may_have_to_be_searched_for(devices: Rig, gate: Gate) -> None:
    """The node that has devices is full: whether that would help is not known when PostFilter asks."""
    led = devices.lead()
    low = pod_manifest("default/low", priority=-1, nodeSelector={"kubernetes.io/hostname": "n1"})
    low["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "4"
    devices.apply(low)
    led.run()
    assert devices.node_of("default/low") == "n1"
    devices.apply(*claiming("hard", priority=10))
    gate.open(4)
    led.turns()
    wait_until("room is made", lambda: led.turns() is None and devices.node_of("default/low") is None)
    decided(led, "default/hard")
    assert led.place("default/hard") == "reserved"
    assert "found a potential placement for pod on node n1" in devices.record("default/hard")["message"]
