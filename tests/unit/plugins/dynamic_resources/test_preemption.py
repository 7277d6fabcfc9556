"""Preemption that frees devices: gate ``DschedDevicePreemption``."""

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.framework.interface import Action, Code, PostFilterResult, Resource
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.claim_requests import FINALIZER
from dsched.model.meta import NodeName
from dsched.model.pod import Pod
from dsched.model.resource_claims import RESOURCE_CLAIM
from dsched.plugins.dynamic_resources import inventory
from dsched.plugins.dynamic_resources.plugin import WAITS
from tests.devices import (
    asking,
    capacity,
    make_claim,
    make_class,
    make_device,
    make_slice,
    result,
    uses,
)
from tests.unit.plugins.dynamic_resources.judging import (
    claiming,
    cluster,
    features,
    framework,
    judged,
    plugin,
    post_filtered,
    put,
    reasons,
    reserve,
)
from tests.unit.plugins.hints import queues

Json = dict[str, Any]
ON = {"DschedDevicePreemption": True}
NOT_HELPFUL = "Preemption is not helpful for scheduling"


def pod(name: str, *claims: str, priority: int = 0, **fields: Any) -> Pod:
    return claiming(*claims, name=name, priority=priority, **fields)


def holding(name: str, device: str, *users: Pod, pool: str = "n1", **of_result: Any) -> Json:
    """A claim that has a device and is reserved for pods."""
    consumers = [{"resource": "pods", "name": each.metadata.name, "uid": each.uid} for each in users]
    given = result(device, pool=pool, **of_result)
    claim = make_claim(f"default/{name}", asking(), allocated=[given], reservedFor=consumers)
    claim["metadata"]["finalizers"] = [FINALIZER]
    return claim


def place(snapshot: Snapshot, *pods: Pod, node: str = "n1") -> None:
    for each in pods:
        snapshot.table.add_pod(PodInfo(each), NodeName(node))


def tried(snapshot: Snapshot, wanting: Pod, minor: int = 37, **gates: bool) -> PostFilterResult:
    return post_filtered(framework(snapshot, minor, gates or ON), wanting, snapshot)


def victims(found: PostFilterResult) -> list[str]:
    return sorted(each.pod.metadata.name for each in found.victims)


NEW = pod("new", "new", priority=10)
WANTED = make_claim("default/new", asking())


def full(*more: Json, nodes: tuple[str, ...] = ("n1",)) -> tuple[Snapshot, Pod]:
    """A node with one device, which a pod of lower priority has."""
    low = pod("low", "held")
    snapshot = cluster(make_class(), make_slice("n1", ["d1"]), holding("held", "d1", low), WANTED, *more, nodes=nodes)
    place(snapshot, low)
    return snapshot, low


@pytest.mark.parametrize("minor", [34, 35, 36, 37])
def test_a_pod_of_higher_priority_gets_the_device_of_a_lower_one(minor: int) -> None:
    snapshot, _ = full()
    found = tried(snapshot, NEW, minor)
    assert (found.nominated, victims(found)) == ("n1", ["low"])


def test_without_the_gate_nobody_goes() -> None:
    snapshot, _ = full()
    found = post_filtered(framework(snapshot), NEW, snapshot)
    assert (victims(found), found.status.message) == (
        [],
        f"preemption: 0/1 nodes are available: 1 {NOT_HELPFUL}.",
    )
    assert not hasattr(plugin(framework(snapshot)), "add_pod")


def test_nodes_that_never_had_such_devices_stay_unresolvable() -> None:
    snapshot, _ = full(make_slice("n2"), nodes=("n1", "n2"))
    evaluation = judged(framework(snapshot, 37, ON), NEW, snapshot)
    codes = [status.code for row in range(2) if (status := evaluation.status_of(row)) is not None]
    assert codes == [Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE]
    assert reasons(evaluation, snapshot) == {"n1": "cannot allocate all claims", "n2": "cannot allocate all claims"}


def test_equals_keep_their_devices() -> None:
    snapshot, _ = full()
    found = tried(snapshot, pod("new", "new", priority=0))
    assert (victims(found), found.nominated) == ([], "")


def test_a_claim_that_others_use_too_is_not_freed() -> None:
    """Shared with a pod of high priority here, or with one on another node; with both gone, or where all users are of
    lower priority and there, it is."""
    one, two, high, elsewhere = (
        pod("one", "held"),
        pod("two", "held"),
        pod("high", "held", priority=20),
        pod("far", "held"),
    )
    for users, far, expected in (
        ([one, two], [], ["one", "two"]),
        ([one, high], [], []),
        ([one], [elsewhere], []),
    ):
        shared = holding("held", "d1", *users, *far)
        snapshot = cluster(make_class(), make_slice("n1", ["d1"]), shared, WANTED, nodes=("n1", "n2"))
        place(snapshot, *users)
        place(snapshot, *far, node="n2")
        assert victims(tried(snapshot, NEW)) == expected


def test_a_pod_that_is_placed_and_not_bound_yet_uses_its_claim() -> None:
    """``reservedFor`` does not name it before it is bound."""
    low, high = pod("low", "held"), pod("high", "held", priority=20)
    snapshot = cluster(make_class(), make_slice("n1", ["d1"]), holding("held", "d1", low), WANTED, nodes=("n1",))
    place(snapshot, low, high)
    assert victims(tried(snapshot, NEW)) == []
    snapshot.table.remove_pod(high.uid)
    assert victims(tried(snapshot, NEW)) == ["low"]


def test_devices_that_a_pod_was_promised_are_freed_with_it() -> None:
    low = pod("low", "waiting")
    snapshot = cluster(
        make_class(), make_slice("n1", ["d1"]), make_claim("default/waiting", asking()), WANTED, nodes=("n1",)
    )
    of = framework(snapshot, 37, ON)
    assert reserve(of, low, "n1")[1] is None
    place(snapshot, low)
    assert victims(post_filtered(of, NEW, snapshot)) == ["low"]


def test_admin_access_frees_nothing() -> None:
    watching, low = pod("watching", "watch"), pod("low", "held", priority=5)
    snapshot = cluster(
        make_class(),
        make_slice("n1", ["d1"]),
        holding("watch", "d1", watching, adminAccess=True),
        holding("held", "d1", low),
        WANTED,
        nodes=("n1",),
    )
    place(snapshot, watching, low)
    assert victims(tried(snapshot, NEW)) == ["low"]


def test_a_claim_that_nobody_will_give_back_is_not_freed() -> None:
    """It has no finalizer, so that evicting pods for it would go on and on; one that goes with its pod is freed."""
    snapshot, low = full()
    held = holding("held", "d1", low)
    del held["metadata"]["finalizers"]
    put(snapshot, held)
    of = framework(snapshot, 37, ON)
    assert victims(post_filtered(of, NEW, snapshot)) == []
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "low", "uid": low.uid, "controller": True}
    put(snapshot, {**held, "metadata": {**held["metadata"], "ownerReferences": [owner]}})
    assert victims(post_filtered(of, NEW, snapshot)) == ["low"]


def test_those_are_spared_whose_devices_are_not_needed() -> None:
    """Two devices; the more important pod keeps its own."""
    one, two = pod("one", "a", priority=1), pod("two", "b", priority=2)
    snapshot = cluster(
        make_class(),
        make_slice("n1", ["d1", "d2"]),
        holding("a", "d1", one),
        holding("b", "d2", two),
        WANTED,
        nodes=("n1",),
    )
    place(snapshot, one, two)
    assert victims(tried(snapshot, NEW)) == ["one"]


def test_only_devices_that_match_are_taken_away() -> None:
    one, two = pod("one", "a", priority=1), pod("two", "b", priority=2)
    devices = [make_device("d1", attributes={"size": "small"}), make_device("d2", attributes={"size": "big"})]
    picky = make_claim("default/new", asking(where=['device.attributes["gpu.example.com"].size == "big"']))
    snapshot = cluster(
        make_class(), make_slice("n1", devices), holding("a", "d1", one), holding("b", "d2", two), picky, nodes=("n1",)
    )
    place(snapshot, one, two)
    assert victims(tried(snapshot, NEW)) == ["two"]


def test_disruption_budgets_are_kept_where_they_can_be() -> None:
    one, two = pod("one", "a", priority=1, labels={"app": "web"}), pod("two", "b", priority=2)
    snapshot = cluster(
        make_class(),
        make_slice("n1", ["d1", "d2"]),
        holding("a", "d1", one),
        holding("b", "d2", two),
        WANTED,
        nodes=("n1",),
    )
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 0},
    }
    put(snapshot, budget)
    place(snapshot, one, two)
    assert victims(tried(snapshot, NEW)) == ["two"]


def test_shared_counters_are_given_back() -> None:
    parts = [make_device(f"d{each}", consumesCounters=[uses({"memory": "4"})]) for each in range(3)]
    offered = make_slice("n1", parts, name="parts", slices=2)
    counters = make_slice("n1", counters={"set": {"memory": "8"}}, name="counters", slices=2)
    one, two = pod("one", "a", priority=1), pod("two", "b", priority=2)
    snapshot = cluster(
        make_class(), offered, counters, holding("a", "d0", one), holding("b", "d1", two), WANTED, nodes=("n1",)
    )
    place(snapshot, one, two)
    assert victims(tried(snapshot, NEW)) == ["one"]


def test_shares_are_given_back() -> None:
    device = make_device("d1", allowMultipleAllocations=True, capacity={"memory": capacity("8Gi")})
    wanted = make_claim("default/new", asking(capacity={"requests": {"memory": "4Gi"}}))
    one, two = pod("one", "a", priority=1), pod("two", "b", priority=2)
    shares = [
        holding(name, "d1", user, shareID=f"share-{name}", consumedCapacity={"memory": "4Gi"})
        for name, user in (("a", one), ("b", two))
    ]
    snapshot = cluster(make_class(), make_slice("n1", [device]), *shares, wanted, nodes=("n1",))
    place(snapshot, one, two)
    assert victims(tried(snapshot, NEW)) == ["one"]


def test_extended_resources_that_are_devices_are_freed() -> None:
    low = pod("low", "held")
    snapshot = cluster(
        make_class(extendedResourceName="example.com/gpu"),
        make_slice("n1", ["d1"]),
        holding("held", "d1", low),
        nodes=("n1",),
    )
    place(snapshot, low)
    wanting = pod("new", priority=10, requests={"example.com/gpu": "1"})
    found = tried(snapshot, wanting)
    assert (found.nominated, victims(found)) == ("n1", ["low"])


def test_what_is_kept_of_a_class_follows_who_uses_a_claim() -> None:
    """The same plugin, asked again after the claim has other users, or its users another place."""
    snapshot, low = full()
    of = framework(snapshot, 37, ON)
    high = pod("high", "held", priority=20)

    def code() -> Code:
        status = judged(of, NEW, snapshot).status_of(0)
        assert status is not None
        return status.code

    assert code() is Code.UNSCHEDULABLE
    put(snapshot, holding("held", "d1", low, high))
    assert code() is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    put(snapshot, holding("held", "d1", low))
    assert code() is Code.UNSCHEDULABLE
    snapshot.table.remove_pod(low.uid)
    assert code() is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    place(snapshot, low)
    assert code() is Code.UNSCHEDULABLE
    place(snapshot, high)
    assert code() is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_a_trial_leaves_nothing_behind() -> None:
    snapshot, _ = full()
    of = framework(snapshot, 37, ON)
    known = inventory.of(snapshot, features(37, **ON))
    before = known.allocated.version
    post_filtered(of, NEW, snapshot)
    between = known.allocated.version
    assert victims(post_filtered(of, NEW, snapshot)) == ["low"]
    assert known.allocated.version == between >= before


class TestPromised:
    """What a pod was promised is kept from others of equal and lower priority."""

    def vacated(self, *devices: str) -> Snapshot:
        """The victim is gone, the pod that evicted it is not placed yet, and others come."""
        snapshot = cluster(
            make_class(), make_slice("n1", devices), WANTED, make_claim("default/other", asking()), nodes=("n1",)
        )
        snapshot.nominations.set(PodInfo(NEW), NodeName("n1"))
        return snapshot

    @pytest.mark.parametrize(("priority", "fits"), [(5, False), (10, False), (11, True)])
    def test_the_freed_device(self, priority: int, fits: bool) -> None:
        snapshot = self.vacated("d1")
        evaluation = judged(framework(snapshot, 37, ON), pod("other", "other", priority=priority), snapshot)
        assert bool(evaluation.feasible.any()) is fits

    def test_but_no_more_than_that(self) -> None:
        snapshot = self.vacated("d1", "d2")
        of = framework(snapshot, 37, ON)
        other = pod("other", "other")
        assert judged(of, other, snapshot).feasible.any()
        state, status = reserve(of, other, "n1")
        assert status is None
        assert [each["devices"]["results"][0]["device"] for each in _allocations(state)] == ["d2"]

    def test_the_pod_itself_gets_it(self) -> None:
        snapshot = self.vacated("d1")
        assert judged(framework(snapshot, 37, ON), NEW, snapshot).feasible.any()

    def test_who_was_promised_a_node_waits_there_for_claims_that_are_on_their_way_back(self) -> None:
        """The victim is gone and its claim is not released yet: nobody else has to go for it."""
        snapshot, low = full()
        bystander = pod("bystander", "more", priority=1)
        put(snapshot, make_slice("n1", ["d1", "d2"]), holding("more", "d2", bystander))
        place(snapshot, bystander)
        snapshot.nominations.set(PodInfo(NEW), NodeName("n1"))
        snapshot.table.remove_pod(low.uid)
        found = tried(snapshot, NEW)
        assert (victims(found), found.nominated) == ([], None)
        assert WAITS in found.status.message
        snapshot.drop(RESOURCE_CLAIM, "default/held")
        assert judged(framework(snapshot, 37, ON), NEW, snapshot).feasible.any()


def _allocations(state: Any) -> list[Json]:
    return [write["allocation"] for write in state.shared["DynamicResources"]["writes"]]


PODS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=6)


@settings(max_examples=120)
@given(PODS, st.integers(1, 3), st.integers(1, 4), st.integers(0, 2), st.booleans())
def test_as_brute_force_finds_it(
    held: list[tuple[int, int]], count: int, priority: int, free: int, shared: bool
) -> None:
    """On one node: there are victims exactly where some set of pods of lower priority frees enough, and sparing any of
    those that go leaves too few devices, whatever the others do in upstream's order.

    Args:
        held: priorities of pods, and which of four claims each uses; claims are shared where ``shared``.
    """
    pods = [pod(f"p{at}", f"c{claim if shared else at}", priority=prio) for at, (prio, claim) in enumerate(held)]
    users: dict[str, list[Pod]] = {}
    for each in pods:
        users.setdefault(str(each.spec.resource_claims[0].resource_claim_name), []).append(each)
    claims = [holding(name, f"d-{name}", *of) for name, of in users.items()]
    offered = make_slice("n1", [*(f"d-{name}" for name in users), *(f"f{at}" for at in range(free))])
    wanted = make_claim("default/new", asking(count=count))
    snapshot = cluster(make_class(), offered, *claims, wanted, nodes=("n1",))
    place(snapshot, *pods)
    new = pod("new", "new", priority=priority)
    if free >= count:
        assert judged(framework(snapshot, 37, ON), new, snapshot).feasible.any()
        return
    found = set(victims(tried(snapshot, new)))
    lower = [each for each in pods if each.spec.priority < priority]

    def enough(gone: set[str]) -> bool:
        freed = sum(all(each.metadata.name in gone for each in of) for of in users.values())
        return free + freed >= count

    names = [each.metadata.name for each in lower]
    sets = [set(some) for size in range(len(names) + 1) for some in combinations(names, size)]
    possible = [each for each in sets if enough(each)]
    assert bool(found) is bool(possible)
    if found:
        assert found in possible
        assert not any(each < found for each in possible)


def test_a_pod_that_goes_wakes_who_waits_for_what_it_was_promised() -> None:
    """Devices that a claim shows are told of by the claim, when it is given back."""
    snapshot, low = full(make_claim("default/waiting", asking()))
    found = plugin(framework(snapshot, 37, ON))
    gone = Resource.ASSIGNED_POD, Action.DELETE
    assert queues(found, NEW, *gone, pod("promised", "waiting"))
    assert not queues(found, NEW, *gone, low)
    assert not queues(found, NEW, *gone, pod("plain"))
    events = plugin(framework(snapshot)).events_to_register()
    assert Resource.ASSIGNED_POD not in [each.resource for each in events]
