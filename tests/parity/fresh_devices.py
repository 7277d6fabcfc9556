"""Devices by chance, and pods that ask for them: by claims of their own, by shared ones, as extended resources."""

import random
from typing import Any

from tests.devices import (
    alternative,
    asking,
    capacity,
    make_claim,
    make_class,
    make_device,
    make_slice,
    one_of,
    taint_rule,
    uses,
)

Json = dict[str, Any]
Other = tuple[str, str, Json]

EXTENDED = "gpu.example.com/gpu"
NUMA, MODEL = "gpu.example.com/numa", "gpu.example.com/model"
_BIG = 'device.attributes["gpu.example.com"].model == "big"'
_DRIVER = 'device.driver == "gpu.example.com"'
_BROKEN = {"key": "broken", "effect": "NoSchedule"}


def offered(chance: random.Random, nodes: list[str], *, network: bool) -> list[Other]:
    """Device classes, slices of most nodes, rules that taint devices.

    Args:
        network: devices that all nodes reach, too. Of a node's pools kube-scheduler took any first until 1.35.
    """
    classes = [make_class("gpu", _DRIVER, extendedResourceName=EXTENDED), make_class("big", _DRIVER, _BIG)]
    slices = [each for node in nodes if chance.random() < 0.8 for each in _of_node(chance, node)]
    if network and chance.random() < 0.3:
        slices.append(make_slice("", ["fabric-0", "fabric-1"], name="fabric", pool="fabric", allNodes=True))
    rules = [taint_rule("rule", device="d0")] if chance.random() < 0.1 else []
    found = [("DeviceClass", each) for each in classes] + [("ResourceSlice", each) for each in slices]
    return [
        (kind, each["metadata"]["name"], each)
        for kind, each in [*found, *(("DeviceTaintRule", rule) for rule in rules)]
    ]


def _of_node(chance: random.Random, node: str) -> list[Json]:
    counted = chance.random() < 0.3
    devices = [_device(chance, f"d{number}", counted) for number in range(chance.randint(1, 5))]
    slices = [make_slice(node, devices, slices=1 + counted)]
    if counted:
        total = {"set": {"memory": str(chance.randint(2, 6))}}
        slices.append(make_slice(node, [], name=f"{node}-counters", slices=2, counters=total))
    return slices


def _device(chance: random.Random, name: str, counted: bool) -> Json:
    fields: Json = {"attributes": {"model": chance.choice(["big", "small"]), "numa": chance.randint(0, 1)}}
    if chance.random() < 0.1:
        fields["taints"] = [_BROKEN]
    if chance.random() < 0.2:
        fields |= {"allowMultipleAllocations": True, "capacity": {"memory": capacity("4", default="2")}}
    if counted and chance.random() < 0.6:
        fields["consumesCounters"] = [uses({"memory": str(chance.randint(1, 3))})]
    return make_device(name, **fields)


def claim(chance: random.Random, key: str) -> Json:
    """A claim of one or two requests."""
    requests = [_request(chance, f"r{number}") for number in range(chance.choice([1, 1, 2]))]
    constraints = [{"matchAttribute": chance.choice([NUMA, MODEL])}] if chance.random() < 0.2 else []
    return make_claim(key, *requests, constraints=constraints)


def _request(chance: random.Random, name: str) -> Json:
    if chance.random() < 0.15:
        return one_of(name, alternative("first", 2, of="big"), alternative("second", of="gpu"))
    fields: Json = {"tolerations": [{"operator": "Exists"}]} if chance.random() < 0.2 else {}
    if chance.random() < 0.1:
        fields["capacity"] = {"requests": {"memory": chance.choice(["1", "3"])}}
    count = chance.choice([1, 1, 1, 2, None])
    return asking(name, count, of=chance.choice(["gpu", "gpu", "big"]), **fields)
