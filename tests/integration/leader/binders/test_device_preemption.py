"""A pod of higher priority gets the device of a lower one, in a standalone system: gate ``DschedDevicePreemption``."""

from pathlib import Path

import pytest

from dsched import config
from dsched.config import feature_gates
from dsched.model.meta import PodKey
from dsched.state.client import Store
from tests.devices import make_slice
from tests.integration.leader.binders.working import Working, device_class, pod, template
from tests.integration.leader.rig import Rig
from tests.manifests import node_manifest

LOW, OTHER, HIGH, LATE = "default/low", "default/other", "default/high", "default/late"


def started(store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch, *, gate: bool) -> tuple[Rig, Working]:
    monkeypatch.setenv("DSCHED_REDIS_URL", store.url)
    rig = Rig(store, folder, monkeypatch)
    rig.configuration = config.default(feature_gates.features(feature_gates.NEWEST, {"DschedDevicePreemption": gate}))
    rig.apply(node_manifest("n1"), device_class(), template(), make_slice("n1", ["gpu-0", "gpu-1"]))
    return rig, Working(rig)


@pytest.fixture
def system(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Rig, Working]:
    return started(store, tmp_path, monkeypatch, gate=True)


def nominated(rig: Rig, key: str) -> str:
    (found,) = rig.cluster.get_pods([PodKey(key)])
    assert found is not None
    return str(found.status.nominated_node_name)


def test_the_least_important_pod_goes_and_its_device_is_given_on(system: tuple[Rig, Working]) -> None:
    rig, working = system
    rig.apply(pod(LOW, priority=1), pod(OTHER, priority=2))
    working.rest()
    rig.apply(pod(HIGH, priority=10))
    working.rest()
    working.later()
    assert (rig.node_of(HIGH), rig.node_of(OTHER), rig.node_of(LOW)) == ("n1", "n1", None)
    assert sorted(working.devices()) == ["high", "other"]
    assert sorted(each for devices in working.devices().values() for each in devices) == ["gpu-0", "gpu-1"]
    working.healthy()


def test_a_pod_that_is_not_bound_yet_gives_its_device_as_well(system: tuple[Rig, Working]) -> None:
    """It is reserved, and its binder has not begun: nothing but the reservation holds the device. It waits again."""
    rig, working = system
    rig.apply(pod(OTHER, priority=20))
    working.rest()
    rig.apply(pod(LOW, priority=1))
    held = working.decide()
    rig.apply(pod(HIGH, priority=10))
    working.led.turns()
    assert nominated(rig, HIGH) == "n1"
    assert working.bind(held) == {LOW: "reservation-lost"}
    working.led.settle()
    working.rest()
    working.later()
    assert (rig.node_of(HIGH), rig.node_of(LOW)) == ("n1", "")
    working.healthy()


def test_nobody_takes_what_was_promised(system: tuple[Rig, Working]) -> None:
    """The victim is gone, the device free; a pod that comes then must not have it, whoever is tried first."""
    rig, working = system
    rig.apply(pod(LOW, priority=1), pod(OTHER, priority=20))
    working.rest()
    rig.apply(pod(HIGH, priority=10))
    working.led.turns()
    assert nominated(rig, HIGH) == "n1"
    rig.apply(pod(LATE, priority=5))
    working.rest()
    working.later()
    assert (rig.node_of(HIGH), rig.node_of(LATE)) == ("n1", "")
    working.healthy()


def test_another_leader_goes_on_with_the_promise(system: tuple[Rig, Working]) -> None:
    rig, working = system
    rig.apply(pod(LOW, priority=1), pod(OTHER, priority=20))
    working.rest()
    rig.apply(pod(HIGH, priority=10))
    working.led.turns()
    working.lead()
    working.rest()
    working.later()
    assert (rig.node_of(HIGH), rig.node_of(OTHER)) == ("n1", "n1")
    working.healthy()


def test_without_the_gate_nobody_goes(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rig, working = started(store, tmp_path, monkeypatch, gate=False)
    rig.apply(pod(LOW, priority=1), pod(OTHER, priority=2))
    working.rest()
    rig.apply(pod(HIGH, priority=10))
    working.rest()
    working.later()
    assert (rig.node_of(HIGH), nominated(rig, HIGH)) == ("", "")
    assert {rig.node_of(LOW), rig.node_of(OTHER)} == {"n1"}
