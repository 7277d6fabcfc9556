"""Devices in use, as claims get and lose them."""

from hypothesis import given
from hypothesis import strategies as st

from dsched.model.devices import DeviceId, PoolId
from dsched.model.resource_claims import AllocatedDevice, AllocatedDevices, Allocation
from dsched.plugins.dynamic_resources.allocation.allocated import AllocatedState

POOL = PoolId("d", "p")

DEVICES = st.builds(
    AllocatedDevice,
    driver=st.just("d"),
    pool=st.sampled_from(["p", "q"]),
    device=st.sampled_from(["d0", "d1"]),
    admin_access=st.sampled_from([None, None, True]),
    share_id=st.sampled_from([None, "s"]),
    consumed_capacity=st.sampled_from([None, {"m": "1Gi"}, {"m": "0", "n": "2"}]),
)
ALLOCATIONS = st.none() | st.lists(DEVICES, max_size=3).map(lambda found: Allocation(AllocatedDevices(found)))


def seen(state: AllocatedState, *, counts: bool = True) -> object:
    """What is in use, with how many have each device as a whole or without that."""
    pools = [PoolId("d", "p"), PoolId("d", "q")]
    devices = [DeviceId(*pool, name) for pool in pools for name in ("d0", "d1")]
    consumed = [{name: amount for name, amount in state.consumed(each).items() if amount} for each in devices]
    whole = [dict(state.whole(each)) if counts else set(state.whole(each)) for each in pools]
    return whole, [dict(state.shared(each)) for each in pools], consumed


@given(st.lists(st.tuples(st.sampled_from("abc"), ALLOCATIONS)), st.booleans())
def test_step_by_step_is_from_scratch(steps: list[tuple[str, Allocation | None]], shares: bool) -> None:
    state, fresh = AllocatedState(consumable_capacity=shares), AllocatedState(consumable_capacity=shares)
    for claim, allocation in steps:
        before, version = seen(state, counts=False), state.version
        state.put(claim, allocation)
        assert state.version > version or seen(state, counts=False) == before
    for claim, allocation in dict(steps).items():
        fresh.put(claim, allocation)
    assert seen(state) == seen(fresh)


def test_whole_devices_and_shares() -> None:
    state = AllocatedState()
    shares = [AllocatedDevice("r", *POOL, "d0", share_id=name, consumed_capacity={"m": "1Ki"}) for name in "xy"]
    state.put("a", Allocation(AllocatedDevices([*shares, AllocatedDevice("r", *POOL, "d1")])))
    assert (state.whole(POOL), state.shared(POOL)) == ({"d1": 1}, {"d0": 2})
    assert state.consumed(DeviceId(*POOL, "d0")) == {"m": 2048 * 10**9}
    state.put("a", None)
    assert (state.whole(POOL), state.shared(POOL), state.consumed(DeviceId(*POOL, "d0"))) == ({}, {}, {})


def test_without_consumable_capacity_a_share_is_the_whole_device() -> None:
    state = AllocatedState(consumable_capacity=False)
    state.put("a", Allocation(AllocatedDevices([AllocatedDevice("r", *POOL, "d0", share_id="x")])))
    assert (state.whole(POOL), state.shared(POOL)) == ({"d0": 1}, {})


def test_the_version_of_a_pool_tells_of_its_own_devices() -> None:
    state = AllocatedState()
    state.put("a", Allocation(AllocatedDevices([AllocatedDevice("r", *POOL, "d0")])))
    version = state.version_of(POOL)
    state.put("b", Allocation(AllocatedDevices([AllocatedDevice("r", "d", "q", "d0")])))
    assert state.version_of(POOL) == version
    state.put("a", None)
    assert state.version_of(POOL) > version


def test_who_takes_a_device_over_changes_nothing() -> None:
    """As a claim does that comes to show what it was promised; touched, it is said to have changed all the same."""
    state, device = AllocatedState(), Allocation(AllocatedDevices([AllocatedDevice("r", *POOL, "d0")]))
    state.put("promise", device)
    version = state.version
    state.put("claim", device)
    state.put("promise", None)
    assert (state.version, state.changed_since(version), state.whole(POOL)) == (version, set(), {"d0": 1})
    state.touch("claim")
    assert state.changed_since(version) == {POOL}
