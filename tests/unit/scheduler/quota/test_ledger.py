"""What queues have, want and are due, as pods come and go."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from dsched.model.queues import LABEL
from dsched.scheduler.ports import QueueName
from dsched.scheduler.queue import QueuedPod
from dsched.scheduler.quota.ledger import Ledger
from dsched.scheduler.quota.tree import Share
from tests.devices import asking, make_claim, make_class, make_slice
from tests.manifests import Json, queue_manifest
from tests.unit.scheduler.quota.divided import Divided, make_pod

GUARANTEED = {"cpu": {"guaranteed": "40"}}


def namespace(name: str, queue: str) -> Json:
    return {"metadata": {"name": name, "labels": {LABEL: queue} if queue else {}}}


def test_a_pod_that_waits_is_demand_and_one_that_is_placed_is_usage() -> None:
    there = Divided(queue_manifest("a"))
    pod = there.wait(make_pod("p", "a", cpu=3))
    share = there.ledger.tree.shares["a"]
    assert (share.usage, share.pending, share.waiting, share.running) == ({}, {"cpu": 3000, "pods": 1}, 1, 0)
    there.place(pod)
    assert (share.usage, share.pending, share.waiting, share.running) == ({"cpu": 3000, "pods": 1}, {}, 0, 1)
    there.snapshot.table.remove_pod(pod.uid)
    assert (share.usage, share.waiting) == ({}, 1)
    there.pending.drop(pod.key)
    assert (share.pending, share.waiting) == ({}, 0)


def test_a_gated_pod_asks_for_nothing() -> None:
    there = Divided(queue_manifest("a"))
    pod = there.wait(make_pod("p", "a"), QueueName.GATED)
    assert there.ledger.tree.shares["a"].waiting == 0
    there.pending.placed(pod, QueueName.ACTIVE)
    assert there.ledger.tree.shares["a"].waiting == 1


def test_queues_above_have_what_those_below_have() -> None:
    there = Divided(queue_manifest("all"), queue_manifest("a", "all"), queue_manifest("b", "all"))
    there.run(make_pod("p", "a", cpu=2), make_pod("q", "b", cpu=5))
    assert there.ledger.tree.shares["all"].usage["cpu"] == 7000


def test_a_namespace_says_which_queue_its_pods_are_of_that_name_none() -> None:
    there = Divided(queue_manifest("a"), queue_manifest("b"))
    there.snapshot.put("Namespace", "shop", namespace("shop", "a"))
    there.run(make_pod("p"), make_pod("q", "b"))
    there.wait(make_pod("r"))
    shares = there.ledger.tree.shares
    assert (shares["a"].running, shares["a"].waiting, shares["b"].running) == (1, 1, 1)
    there.snapshot.put("Namespace", "shop", namespace("shop", "b"))
    shares = there.ledger.tree.shares
    assert (shares["a"].running, shares["b"].running, shares["b"].waiting) == (0, 2, 1)


@pytest.mark.parametrize(("kueue", "expected"), [(True, "k"), (False, "")])
def test_kueues_label_counts_where_a_setting_says_so(kueue: bool, expected: str) -> None:
    there = Divided()
    pod = make_pod("p")
    pod.pod.metadata.labels["kueue.x-k8s.io/queue-name"] = "k"
    assert Ledger(there.snapshot, kueue=kueue).name_of(pod) == expected


def test_shares_by_weight_beyond_guarantees_and_what_is_not_wanted_is_lent() -> None:
    there = Divided(queue_manifest("a", resources=GUARANTEED), queue_manifest("b", weight=2))
    for number in range(200):
        there.wait(make_pod(f"a{number}", "a"))
        there.wait(make_pod(f"b{number}", "b"))
    assert (there.fair("a"), there.fair("b")) == (60, 40)
    for number in range(150):
        pod = there.pending.get(make_pod(f"b{number}").key)
        assert pod is not None
        there.pending.drop(pod.key)
    assert there.ledger.divide().shares["b"].waiting == 50
    assert (there.fair("a"), there.fair("b")) == (60, 40)
    for number in range(170, 200):
        there.pending.drop(make_pod(f"b{number}").key)
    assert (there.fair("a"), there.fair("b")) == (80, 20)


def test_what_a_queue_is_due_is_divided_among_those_below() -> None:
    there = Divided(queue_manifest("ml"), queue_manifest("web"), queue_manifest("x", "ml"), queue_manifest("y", "ml"))
    for name in ("web", "x", "y"):
        for number in range(100):
            there.wait(make_pod(f"{name}{number}", name))
    assert [there.fair(name) for name in ("ml", "web", "x", "y")] == [50, 50, 25, 25]


def test_a_guarantee_of_those_below_is_one_of_the_queue_above() -> None:
    there = Divided(
        queue_manifest("ml"), queue_manifest("web"), queue_manifest("x", "ml", resources={"cpu": {"guaranteed": 80}})
    )
    for name in ("web", "x"):
        for number in range(100):
            there.wait(make_pod(f"{name}{number}", name))
    assert (there.fair("x"), there.fair("web")) == (90, 10)


def test_a_limit_ends_what_a_queue_is_due() -> None:
    there = Divided(queue_manifest("a", resources={"cpu": {"limit": "10"}}), queue_manifest("b"))
    for name in ("a", "b"):
        for number in range(100):
            there.wait(make_pod(f"{name}{number}", name))
    assert (there.fair("a"), there.fair("b")) == (10, 90)


def test_queues_are_divided_anew_where_those_above_ask_for_as_much_as_before() -> None:
    there = Divided(queue_manifest("a"), queue_manifest("x", "a"), queue_manifest("y", "a"))
    pods = [there.wait(make_pod(f"x{number}", "x")) for number in range(120)]
    assert (there.fair("x"), there.fair("y")) == (100, 0)
    for number in range(60):
        there.pending.drop(pods[number].key)
        there.wait(make_pod(f"y{number}", "y"))
    assert (there.fair("x"), there.fair("y")) == (50, 50)


def test_what_pods_of_no_queue_take_is_not_divided() -> None:
    there = Divided(queue_manifest("a"))
    there.run(make_pod("outside", cpu=30), make_pod("lost", "nowhere", cpu=10))
    for number in range(100):
        there.wait(make_pod(f"a{number}", "a"))
    assert there.fair("a") == 60


def test_queues_whose_parent_is_missing_or_below_them_count_for_nothing() -> None:
    there = Divided(
        queue_manifest("a", "b"), queue_manifest("b", "a"), queue_manifest("c", "gone"), queue_manifest("d")
    )
    assert set(there.ledger.tree.shares) == {"d"}
    assert there.ledger.tree.broken["c"] == 'its parent "gone" does not exist'
    assert set(there.ledger.tree.broken) == {"a", "b", "c"}


def test_a_queue_that_says_what_is_no_amount_counts_for_nothing_and_harms_nobody() -> None:
    there = Divided(
        queue_manifest("a", resources={"cpu": {"limit": "much"}}),
        queue_manifest("b", minRuntime="soon"),
        queue_manifest("c", weight="heavy"),
        queue_manifest("d"),
        queue_manifest("e", "a"),
    )
    assert set(there.ledger.divide().shares) == {"d"}
    assert set(there.ledger.tree.broken) == {"a", "b", "c", "e"}


NAMES = ["a", "b", "c", "d", "e"]
CLAIMS = ["x", "y", "z"]
NEXT = make_pod("next", "a", claims=["x"])


def test_a_namespace_that_names_another_queue_counts_for_claims_at_once() -> None:
    there = Divided(cores=50)
    there.put(make_claim("shop/x", asking(count=1, of="gpu")))
    there.snapshot.put("Namespace", "shop", namespace("shop", "a"))
    used = make_pod("used", "", claims=["x"])
    there.run(used)
    assert there.ledger.tree.shares == {}
    there.snapshot.put("Namespace", "shop", namespace("shop", ""))
    assert there.ledger.added([NEXT])["gpu.deviceclass.resource.k8s.io/devices"] == 1
    there.snapshot.put("Namespace", "shop", namespace("shop", "a"))
    assert there.ledger.freed(used)["gpu.deviceclass.resource.k8s.io/devices"] == 1


class Followed(RuleBasedStateMachine):
    """Pods and queues that come, change and go: what was followed is what is counted from scratch."""

    def __init__(self) -> None:
        super().__init__()
        self.there = Divided(cores=50)
        self.pods: list[QueuedPod] = []
        self.number = 0
        self.told: dict[str, Any] = {}

    @rule()
    def tell(self) -> None:
        """Somebody tells how queues are."""
        tree = self.there.ledger.divide()
        self.told = {name: _told(share) for name, share in tree.shares.items()}
        for share in (tree.root, *tree.shares.values()):
            share.news = False

    @rule(name=st.sampled_from(NAMES), parent=st.sampled_from(["", *NAMES]), weight=st.integers(0, 3), data=st.data())
    def queue(self, name: str, parent: str, weight: int, data: Any) -> None:
        cpu = data.draw(
            st.fixed_dictionaries({}, optional={"guaranteed": st.integers(0, 30), "limit": st.integers(0, 60)})
        )
        self.there.put(queue_manifest(name, parent, resources={"cpu": cpu} if cpu else {}, weight=weight))

    @rule(name=st.sampled_from(NAMES))
    def no_queue(self, name: str) -> None:
        self.there.snapshot.drop("Queue", name)

    @rule(
        name=st.sampled_from(["", "nowhere", *NAMES]),
        cpu=st.integers(1, 9),
        claims=st.lists(st.sampled_from(CLAIMS), max_size=2),
        place=st.sampled_from(list(QueueName)),
    )
    def pod(self, name: str, cpu: int, claims: list[str], place: QueueName) -> None:
        self.number += 1
        self.pods.append(self.there.wait(make_pod(f"p{self.number}", name, cpu, claims=claims), place))

    @rule(name=st.sampled_from(CLAIMS), count=st.integers(0, 3), of=st.sampled_from(["gpu", "nic"]))
    def claim(self, name: str, count: int, of: str) -> None:
        """It comes, asks for something else, or goes."""
        if count:
            self.there.put(make_claim(f"shop/{name}", asking(count=count, of=of)))
        else:
            self.there.snapshot.drop("ResourceClaim", f"shop/{name}")

    @rule(devices=st.integers(0, 4), classes=st.sets(st.sampled_from(["gpu", "nic"])))
    def offered(self, devices: int, classes: set[str]) -> None:
        self.there.put(make_slice("n1", [f"d{number}" for number in range(devices)]))
        for name in ("gpu", "nic"):
            self.there.snapshot.drop("DeviceClass", name)
        self.there.put(*(make_class(name) for name in classes))

    @rule(name=st.sampled_from(["", *NAMES]))
    def namespace(self, name: str) -> None:
        self.there.snapshot.put("Namespace", "shop", namespace("shop", name))

    @rule(data=st.data(), place=st.sampled_from(list(QueueName)))
    def move(self, data: Any, place: QueueName) -> None:
        if self.pods:
            self.there.pending.placed(data.draw(st.sampled_from(self.pods)), place)

    @rule(data=st.data(), there=st.booleans())
    def on_node(self, data: Any, there: bool) -> None:
        if self.pods:
            pod = data.draw(st.sampled_from(self.pods))
            if there:
                self.there.run(pod.info)
            else:
                self.there.snapshot.table.remove_pod(pod.uid)

    @rule(data=st.data())
    def drop(self, data: Any) -> None:
        if self.pods:
            pod = data.draw(st.sampled_from(self.pods))
            self.pods.remove(pod)
            self.there.pending.drop(pod.key)

    @invariant()
    def as_from_scratch(self) -> None:
        fresh = Divided(cores=50)
        for kind, key, value in self.there.snapshot.every_other():
            fresh.snapshot.put(kind, key, value)
        assert dict(self.there.ledger.added([NEXT])) == _added(self.there)
        for _, info in self.there.snapshot.table.placed():
            fresh.run(info)
        for pod in self.pods:
            fresh.wait(pod.info, pod.place)
        mine, theirs = self.there.ledger.divide(), fresh.ledger.divide()
        assert mine.shares.keys() == theirs.shares.keys()
        for name, share in mine.shares.items():
            other = theirs.shares[name]
            assert (share.running, share.waiting) == (other.running, other.waiting)
            assert _some(share.usage) == _some(other.usage)
            assert _some(share.pending) == _some(other.pending)
            assert share.fair == other.fair
            assert share.contended == other.contended
        for name, share in mine.shares.items():
            assert share.news or self.told[name] == _told(share)
        asked, fresh_asked = ([_lines(each, name) for name in NAMES] for each in (self.there, fresh))
        assert asked == fresh_asked


def _told(share: Share) -> Any:
    """What is told of a queue, as it is now."""
    amounts = (share.usage, share.pending, share.fair, share.guaranteed, share.limits)
    return (share.running, share.waiting, *[dict(each) for each in amounts])


def _added(there: Divided) -> dict[str, int]:
    """What the queue of `NEXT` has more with it."""
    share = there.ledger.tree.leaf("a")
    if share is None:
        return dict(there.ledger.added([NEXT]))
    before = Counter(share.usage)
    there.run(NEXT)
    more = Counter(share.usage)
    there.snapshot.table.remove_pod(NEXT.uid)
    assert share.usage == {**before}
    more.subtract(before)
    return _some(more)


def _lines(there: Divided, name: str) -> list[tuple[str, list[tuple[str, int]]]]:
    """What each pod of a queue asks for that stands in the active queue."""
    there.picking.count_held_back()
    stands = there.picking._stands
    return sorted(
        (key, sorted(_some(line.amounts).items()))
        for key, place in stands.items()
        if (line := place.line).queue == name
    )


def _some(amounts: Mapping[str, int]) -> dict[str, int]:
    return {resource: amount for resource, amount in amounts.items() if amount}


Followed.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestFollowed = Followed.TestCase
