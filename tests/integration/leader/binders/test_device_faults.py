"""Devices under faults, many times over: leaders die with devices in flight, binders between claim and bind, drivers
withdraw devices, pods and claims go at any moment. No device is ever given twice, and in the end none is lost."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from dsched.cluster.standalone.objects import Objects
from dsched.errors import StaleEpoch
from dsched.manifests import kinds
from dsched.model.messages import BindRequest
from tests.devices import make_slice
from tests.integration.leader.binders.test_device_claims import Working, pod, refused, rig, shared, sharing, working
from tests.integration.leader.rig import Rig
from tests.manifests import node_manifest

__all__ = ["rig", "working"]

STEPS, DEVICES = 60, 3
NODES = ("n1", "n2")


class Chance:
    """What may happen, drawn by one seed."""

    def __init__(self, rig: Rig, working: Working, seed: int) -> None:
        self.rig, self.working, self.rng = rig, working, random.Random(seed)
        self.made = 0
        self.generation = 1
        self.requests: list[BindRequest] = []
        self.steps: list[Callable[[], object]] = [
            *[self.come] * 3,
            *[self.decide] * 5,
            *[self.bind] * 4,
            self.bind_late,
            self.die_between,
            self.refuse,
            self.go,
            self.finish,
            self.take_over,
            self.withdraw,
            self.claim_goes,
            self.working.later,
        ]

    def pods(self) -> list[str]:
        return [str(each.key) for each in self.rig.cluster.list().pods]

    def come(self) -> None:
        self.made += 1
        make = sharing if self.rng.random() < 0.3 else pod
        self.rig.apply(make(f"default/p{self.made}"))

    def decide(self) -> None:
        self.requests += self.working.decide()

    def bind(self) -> None:
        if self.requests:
            self._carry_out(self.requests.pop(0))

    def bind_late(self) -> None:
        """A message that comes twice, the second time at any moment later."""
        if self.requests:
            request = self.rng.choice(self.requests)
            self._carry_out(request)

    def die_between(self) -> None:
        """A binder is killed between claim and bind."""

        def dies(bindings: Any) -> Any:
            raise KeyboardInterrupt

        self._with_bind(dies)

    def refuse(self) -> None:
        self._with_bind(lambda bindings: [refused(each) for each in bindings])

    def go(self) -> None:
        if pods := self.pods():
            self.rig.delete_pod(self.rng.choice(pods))

    def finish(self) -> None:
        bound = [str(each.key) for each in self.rig.cluster.list().pods if each.node_name and not each.finished]
        if bound:
            key = self.rng.choice(bound)
            (value,) = Objects(self.working.store).get(kinds.POD, [key])
            assert value is not None
            value["status"]["phase"] = "Succeeded"
            self.rig.apply(value)

    def take_over(self) -> None:
        self.working.lead()

    def withdraw(self) -> None:
        """The driver publishes other devices."""
        self.generation += 1
        devices = [f"gpu-{number}" for number in range(self.rng.randint(0, DEVICES))]
        node = self.rng.choice(NODES)
        self.rig.apply(make_slice(node, devices, generation=self.generation))

    def claim_goes(self) -> None:
        self.rig._applier.delete(kinds.RESOURCE_CLAIM, ["default/shared"])
        if self.rng.random() < 0.7:
            self.working.led.turns()
            self.requests += self.working.led.requests()
            (there,) = Objects(self.working.store).get(kinds.RESOURCE_CLAIM, ["default/shared"])
            if there is None:
                self.rig.apply(shared())

    def _carry_out(self, request: BindRequest) -> None:
        try:
            self.working.bind([request])
        except StaleEpoch:
            return
        if self.rng.random() < 0.7:
            self.working.led.settle()

    def _with_bind(self, bind: Callable[[Any], Any]) -> None:
        if not self.requests:
            return
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.working.binder._cluster, "bind", bind)
            try:
                self.working.bind([self.requests.pop(0)])
            except (KeyboardInterrupt, StaleEpoch):
                return
        self.working.led.settle()


def given_twice(working: Working) -> list[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for claim in Objects(working.store).all_of(kinds.RESOURCE_CLAIM):
        allocation = (claim.get("status") or {}).get("allocation") or {"devices": {"results": []}}
        found.update((each["pool"], each["device"]) for each in allocation["devices"]["results"])
    return [device for device, count in found.items() if count > 1]


@pytest.mark.parametrize("seed", range(20))
def test_no_device_is_given_twice_and_none_is_lost(rig: Rig, working: Working, seed: int) -> None:
    devices = [f"gpu-{number}" for number in range(DEVICES)]
    rig.apply(node_manifest("n2"), shared(), *(make_slice(node, devices) for node in NODES))
    chance = Chance(rig, working, seed)
    done = []
    for _ in range(STEPS):
        step = chance.rng.choice(chance.steps)
        done.append(step.__name__)
        step()
        assert given_twice(working) == [], done
    working.lead()
    for _ in range(5):
        working.later()
    working.healthy()
    for key in chance.pods():
        rig.delete_pod(key)
    for _ in range(3):
        working.later()
    working.healthy()
    left = Objects(working.store).all_of(kinds.RESOURCE_CLAIM)
    assert [each["metadata"]["name"] for each in left if each.get("status")] == [], done
    assert {each["metadata"]["name"] for each in left} <= {"shared"}
