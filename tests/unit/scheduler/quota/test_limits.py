"""What Redis counts against limits, as pods are reserved, refused, bound and gone: never too little, and in the end
what is counted from scratch."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NodeName
from dsched.scheduler.ports import Amounts, NodeUsage
from dsched.scheduler.quota.limits import Charges, Limits
from tests.devices import asking, make_claim
from tests.manifests import Json, queue_manifest
from tests.unit.scheduler.quota.divided import Divided, make_pod

GPU = "gpu.deviceclass.resource.k8s.io/devices"
CLAIMS = ["x", "y", "z"]
LIMITED = {"cpu": {"limit": 500}, GPU: {"limit": 100}}
QUEUES: list[Json] = [
    queue_manifest("top", resources={GPU: {"limit": 200}}),
    queue_manifest("a", "top", resources=LIMITED),
    queue_manifest("b", "top"),
]


class Kept(NodeUsage):
    """What Redis has of queues.

    Attributes:
        used: what counts there; what was gathered is written by `flush`.
    """

    def __init__(self) -> None:
        self.used: dict[str, Counter[str]] = {}
        self._gathered: list[tuple[str, Amounts, int]] = []

    def add(self, node: NodeName, amounts: Amounts) -> None:
        self._gathered.append((node, amounts, 1))

    def subtract(self, node: NodeName, amounts: Amounts) -> None:
        self._gathered.append((node, amounts, -1))

    def flush(self) -> None:
        for queue, amounts, sign in self._gathered:
            self.charge([(queue, amounts)], sign)
        self._gathered.clear()

    def rebuild(self, nodes: Sequence[tuple[NodeName, Amounts, Amounts]]) -> None:
        self._gathered.clear()
        self.used = {name: Counter(used) for name, _, used in nodes}

    def charge(self, charges: Charges, sign: int = 1) -> None:
        """As the reserve script does at once."""
        for queue, amounts in charges:
            for resource, amount in amounts.items():
                self.used[queue][resource] += sign * amount


def claim(name: str, count: int) -> Json:
    return make_claim(f"shop/{name}", asking(count=count))


class There:
    """Limits of queues over a `Divided`."""

    def __init__(self) -> None:
        self.divided = Divided(*QUEUES, *(claim(name, 2) for name in CLAIMS))
        self.kept = Kept()
        self.limits = Limits(self.divided.ledger, self.kept)
        self.limits.restart([])

    def send(self, *pods: tuple[PodInfo, str]) -> list[Charges]:
        """Reservations are on their way, and Redis carries them out."""
        charges = self.limits.charges(pods)
        for each in charges:
            self.kept.charge(each)
        return charges

    def used(self, queue: str = "a") -> dict[str, int]:
        """What Redis counts once everything is written."""
        self.kept.flush()
        return {name: amount for name, amount in self.kept.used[queue].items() if amount}


def pod(name: str, *claims: str, queue: str = "a") -> PodInfo:
    return make_pod(name, queue, claims=claims)


def test_the_pod_that_comes_first_is_charged_with_a_claim_and_the_last_one_gives_it_back() -> None:
    there, one, two = There(), pod("p", "x"), pod("q", "x")
    there.send((one, ""))
    there.limits.reserved(one)
    assert there.send((two, "")) == [[("a", {"cpu": 1000})]]
    there.limits.reserved(two)
    assert there.used() == {"cpu": 2000, GPU: 2}
    there.limits.left(one.uid)
    assert there.used() == {"cpu": 1000, GPU: 2}
    there.limits.left(two.uid)
    assert there.used() == there.used("top") == {}


def test_a_claim_stays_charged_while_another_pod_of_it_is_about_to_be_reserved() -> None:
    there, one, two = There(), pod("p", "x"), pod("q", "x")
    there.send((one, ""))
    there.limits.reserved(one)
    there.send((two, ""))
    there.limits.left(one.uid)
    assert there.used() == {"cpu": 1000, GPU: 2}
    there.limits.reserved(two)
    assert there.used() == {"cpu": 1000, GPU: 2}


def test_a_refused_pod_gives_back_what_it_alone_waited_for() -> None:
    there, one, two = There(), pod("p", "x"), pod("q", "x")
    there.send((one, ""))
    there.limits.reserved(one)
    there.limits.charges([(two, "")])
    there.limits.left(one.uid)
    assert there.used() == {GPU: 2}
    there.limits.left(two.uid)
    assert there.used() == {}


def test_pods_of_one_claim_that_are_reserved_on_their_own_are_all_charged_until_that_is_done() -> None:
    there, one, two = There(), pod("p", "x"), pod("q", "x")
    there.send((one, ""), (two, ""))
    assert there.used() == {"cpu": 2000, GPU: 4}
    there.limits.left(one.uid)  # refused by whoever did not carry it out
    there.kept.charge([("a", {"cpu": 1000, GPU: 2}), ("top", {GPU: 2})], -1)
    there.limits.reserved(two)
    assert there.used() == {"cpu": 1000, GPU: 2}
    three, four = pod("r", "y"), pod("s", "y")
    there.send((three, ""), (four, ""))
    there.limits.reserved(three)
    there.limits.reserved(four)
    assert there.used() == {"cpu": 3000, GPU: 4}


def test_a_group_is_charged_with_its_claim_once() -> None:
    there, pods = There(), [pod(name, "x") for name in "pqr"]
    charges = there.send(*((each, "shop/train") for each in pods))
    assert [dict(each)["a"] for each in charges] == [{"cpu": 1000, GPU: 2}, {"cpu": 1000}, {"cpu": 1000}]
    for each in pods:
        there.limits.reserved(each)
    assert there.used() == {"cpu": 3000, GPU: 2}


def test_a_pod_of_another_queue_is_charged_for_itself() -> None:
    there, one, two = There(), pod("p", "x"), pod("q", "x", queue="b")
    there.send((one, "g"), (two, "g"))
    there.limits.reserved(one)
    there.limits.reserved(two)
    assert there.used("top") == {GPU: 4}


def test_a_pod_that_somebody_else_binds_and_one_that_is_relabelled() -> None:
    there, one = There(), pod("p", "x")
    there.limits.bound(one)
    assert there.used() == {"cpu": 1000, GPU: 2}
    moved = pod("p", "x", queue="b")
    assert there.limits.differs(moved) and not there.limits.differs(pod("p", "x"))
    there.limits.bound(moved)
    assert (there.used(), there.used("top")) == ({}, {GPU: 2})


def test_a_claim_that_goes_while_it_is_used_counts_no_more() -> None:
    there, one = There(), pod("p", "x")
    there.limits.bound(one)
    there.divided.snapshot.drop("ResourceClaim", "shop/x")
    there.limits.refresh()
    assert there.used() == {"cpu": 1000}
    there.divided.put(claim("x", 3))
    there.limits.refresh()
    assert there.used() == {"cpu": 1000, GPU: 3}


class Charged(RuleBasedStateMachine):
    """A leader's turns, in the order in which they may come, against what is counted from scratch."""

    def __init__(self) -> None:
        super().__init__()
        self.there = There()
        self.number = 0
        self.on: dict[str, PodInfo] = {}
        self.sent: list[list[tuple[PodInfo, str, Charges]]] = []
        """Units that are on their way; all or none of one are carried out."""

    @rule(
        units=st.lists(
            st.lists(
                st.tuples(st.sampled_from("ab"), st.lists(st.sampled_from(CLAIMS), max_size=2)), min_size=1, max_size=3
            ),
            min_size=1,
            max_size=3,
        ),
        data=st.data(),
    )
    def send(self, units: list[list[tuple[str, list[str]]]], data: Any) -> None:
        """A batch is sent; the script carries out some units of it, in order, and answers later."""
        asked: list[tuple[PodInfo, str]] = []
        for at, unit in enumerate(units):
            for queue, claims in unit:
                self.number += 1
                group = f"shop/g{at}" if len(unit) > 1 else ""
                asked.append((make_pod(f"p{self.number}", queue, claims=claims), group))
        charges = iter(self.there.limits.charges(asked))
        entries = iter(asked)
        for unit in units:
            sent = [(*next(entries), next(charges)) for _ in unit]
            fine = data.draw(st.booleans())
            if fine:
                for _, _, each in sent:
                    self.there.kept.charge(each)
            self.sent.append([(info, group if fine else "refused", each) for info, group, each in sent])

    @rule()
    def finish(self) -> None:
        """The answers come."""
        for unit in self.sent:
            for info, group, _ in unit:
                if group == "refused":
                    self.there.limits.left(info.uid)
                else:
                    self.there.limits.reserved(info)
                    self.on[info.uid] = info
        self.sent.clear()

    @rule(queue=st.sampled_from("ab"), claims=st.lists(st.sampled_from(CLAIMS), max_size=2), data=st.data())
    def bound(self, queue: str, claims: list[str], data: Any) -> None:
        """Somebody else binds a pod, or one changes that is on its node."""
        self.number += 1
        name = data.draw(st.sampled_from([f"p{self.number}", *self.on]))
        info = make_pod(name, queue, claims=claims)
        self.there.limits.bound(info)
        self.on[info.uid] = info

    @rule(data=st.data())
    def left(self, data: Any) -> None:
        if self.on:
            info = self.on.pop(data.draw(st.sampled_from([*self.on])))
            self.there.limits.left(info.uid)

    @rule()
    def written(self) -> None:
        self.there.kept.flush()

    @rule(name=st.sampled_from(CLAIMS), count=st.integers(0, 3), weight=st.integers(1, 2), anew=st.booleans())
    def change(self, name: str, count: int, weight: int, anew: bool) -> None:
        """Claims or queues change, and the leader looks at them once it knows what was reserved."""
        self.finish()
        if anew:
            self.there.divided.put(queue_manifest("b", "top", weight=weight))
        elif count:
            self.there.divided.put(claim(name, count))
        else:
            self.there.divided.snapshot.drop("ResourceClaim", f"shop/{name}")
        self.there.limits.refresh()
        self.there.kept.flush()

    @invariant()
    def enough_is_counted(self) -> None:
        carried_out = [info for unit in self.sent for info, group, _ in unit if group != "refused"]
        true = self._from_scratch([*self.on.values(), *carried_out])
        for queue, amounts in true.items():
            kept = Counter(self.there.kept.used[queue])
            for name, gathered, sign in self.there.kept._gathered:  # may be written at any time
                if name == queue:
                    kept.update({resource: sign * amount for resource, amount in gathered.items()})
            assert all(kept[resource] >= amount for resource, amount in amounts.items())

    @invariant()
    def in_the_end_it_is_what_there_is(self) -> None:
        if self.sent:
            return
        self.there.kept.flush()
        true = self._from_scratch([*self.on.values()])
        for queue in ("top", "a"):
            kept = {name: amount for name, amount in self.there.kept.used[queue].items() if amount}
            assert kept == true[queue]
            standing = self.there.limits.standing(NodeName(queue))
            assert standing is not None and {name: amount for name, amount in standing[1].items() if amount} == kept

    def _from_scratch(self, pods: Sequence[PodInfo]) -> dict[str, dict[str, int]]:
        fresh = Divided(*QUEUES)
        for kind, key, value in self.there.divided.snapshot.every_other():
            fresh.snapshot.put(kind, key, value)
        fresh.run(*pods)
        shares = fresh.ledger.tree.shares
        return {
            name: {resource: amount for resource, amount in shares[name].usage.items() if resource in limited}
            for name, limited in (("top", {GPU}), ("a", {GPU, "cpu"}))
        }


Charged.TestCase.settings = settings(max_examples=100, stateful_step_count=25, deadline=None)
TestCharged = Charged.TestCase
