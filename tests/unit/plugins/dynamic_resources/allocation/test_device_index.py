"""Pools of nodes, step by step and from scratch."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.model.devices import DeviceTaintRule, PoolId, ResourceSlice
from dsched.model.meta import from_builtins
from dsched.plugins.dynamic_resources.allocation.device_index import DeviceIndex
from dsched.plugins.dynamic_resources.allocation.features import AllocatorFeatures
from dsched.plugins.dynamic_resources.allocation.pools import Pool
from tests.devices import DRIVER, make_device, make_slice, taint_rule
from tests.unit.plugins.dynamic_resources.allocation import random_devices
from tests.unit.plugins.dynamic_resources.allocation.finding import node
from tests.unit.plugins.dynamic_resources.allocation.random_devices import NODES

Json = dict[str, Any]


def record(slice: Json) -> ResourceSlice:
    return from_builtins(slice, ResourceSlice)


def described(pool: Pool) -> object:
    offered = [(device.id, device.taints, device.record) for device in pool.devices]
    others = sorted(str(device.id) for device in pool.others)
    return pool.id, pool.incomplete, pool.invalid, pool.reachable, pool.counters, offered, others


def seen(index: DeviceIndex) -> object:
    return [[described(pool) for pool in index.pools(node(name))] for name in NODES]


@given(st.data(), st.booleans())
def test_step_by_step_is_from_scratch(data: st.DataObject, counters_everywhere: bool) -> None:
    features = AllocatorFeatures(counters_everywhere=counters_everywhere)
    index = DeviceIndex(features)
    held: dict[str, ResourceSlice] = {}
    for _ in range(3):
        for each in data.draw(random_devices.clusters()):
            held[each["metadata"]["name"]] = record(each)
        for name in data.draw(st.lists(st.sampled_from(sorted(held)), max_size=2)):
            held.pop(name, None)
        rules = [from_builtins(each, DeviceTaintRule) for each in data.draw(random_devices.RULES)]
        index.update(held.values(), rules)
        fresh = DeviceIndex(features)
        fresh.update(held.values(), rules)
        assert seen(index) == seen(fresh)


def test_what_has_not_changed_is_kept() -> None:
    index = DeviceIndex(AllocatorFeatures())
    slices = [record(make_slice("n1", ["d0"])), record(make_slice("n2", ["d0"]))]
    index.update(slices)
    version, first, second = index.version, index.pools(node("n1")), index.pools(node("n2"))
    index.update(slices)
    assert (index.version, index.pools(node("n1"))) == (version, first)
    index.update([slices[0], record(make_slice("n2", ["d0", "d1"]))])
    assert index.version > version
    assert index.pools(node("n1")) is first
    assert index.pools(node("n2")) is not second


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("unknown", [False, True], ids=["incomplete", "invalid"])
def test_a_pool_with_counters_that_cannot_be_used_is_met_on_every_node(everywhere: bool, unknown: bool) -> None:
    """Until 1.36. It counts again what nodes are told once the pool can be used."""
    index = DeviceIndex(AllocatorFeatures(counters_everywhere=everywhere))
    count = 2 if unknown else 3
    shared = record(make_slice("n1", name="a", slices=count, counters={"board": {"slots": "7"}}))
    uses = {"counterSet": "other" if unknown else "board", "counters": {"slots": {"value": "1"}}}
    broken = record(make_slice("n1", [make_device("d0", consumesCounters=[uses])], name="b", slices=count))
    other = record(make_slice("n2", ["d0"]))
    index.update([shared, broken, other])
    (own,) = index.pools(node("n1"))
    assert (own.incomplete, bool(own.invalid)) == (not unknown, unknown)
    met = [(pool.id.pool, pool.incomplete, bool(pool.invalid)) for pool in index.pools(node("n2"))]
    assert met == [("n1", not unknown, unknown)] * everywhere + [("n2", False, False)]
    index.update([other, record(make_slice("n1", ["d0"], generation=2))])
    assert [pool.id.pool for pool in index.pools(node("n2"))] == ["n2"]


def test_nodes_that_see_the_same_share_it() -> None:
    index = DeviceIndex(AllocatorFeatures())
    index.update([record(make_slice("", ["d0"], pool="p", allNodes=True))])
    assert index.pools(node("n1"))[0] is index.pools(node("n2"))[0]
    assert index.node_of(PoolId(DRIVER, "p")) is None


def test_a_node_that_is_labelled_otherwise_sees_other_slices() -> None:
    index = DeviceIndex(AllocatorFeatures())
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}]
    index.update([record(make_slice("", ["d0"], pool="p", nodeSelector={"nodeSelectorTerms": terms}))])
    assert index.pools(node("n1", zone="z2")) == []
    assert [pool.id.pool for pool in index.pools(node("n1", zone="z1"))] == ["p"]


def test_rules_taint_devices_until_they_go() -> None:
    index = DeviceIndex(AllocatorFeatures())
    slices = [record(make_slice("n1", [make_device("d0"), make_device("d1")]))]
    rules = [from_builtins(taint_rule("r", device="d1"), DeviceTaintRule)]
    index.update(slices, rules)
    assert [len(device.taints) for device in index.pools(node())[0].devices] == [0, 1]
    index.update(slices)
    assert [len(device.taints) for device in index.pools(node())[0].devices] == [0, 0]


def test_the_one_node_of_a_pool() -> None:
    index = DeviceIndex(AllocatorFeatures())
    index.update([record(make_slice("n1", ["d0"])), record(make_slice("n2", ["d0"], pool="n1", name="other"))])
    assert index.node_of(PoolId(DRIVER, "n1")) is None
    index.update([record(make_slice("n1", ["d0"]))])
    assert index.node_of(PoolId(DRIVER, "n1")) == "n1"
    assert [str(device.id) for device in index.devices_of(PoolId(DRIVER, "n1"))] == [f"{DRIVER}/n1/d0"]
    assert list(index.pool_ids) == [PoolId(DRIVER, "n1")]


def test_a_slice_of_counters_belongs_to_its_pool_also_before_partitionable_devices() -> None:
    """Else the pool would never be complete, and nobody could have all of its devices."""
    index = DeviceIndex(AllocatorFeatures(partitionable_devices=False, partial_pools=True))
    counters = make_slice("n1", [], name="counters", slices=2, counters={"set": {"memory": "4"}})
    index.update([record(make_slice("n1", ["d0"], slices=2)), record(counters)])
    (pool,) = index.pools(node("n1"))
    assert (pool.incomplete, [device.id.device for device in pool.devices]) == (False, ["d0"])
