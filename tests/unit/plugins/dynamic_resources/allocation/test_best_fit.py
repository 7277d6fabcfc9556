"""Devices and nodes that leave the least waste: gate ``DschedDeviceBestFit``. The rules are in docs/best-fit.md."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.framework.pod_info import PodInfo
from dsched.plugins.dynamic_resources.allocation.best_fit import BEST
from dsched.plugins.dynamic_resources.allocation.features import AllocatorFeatures
from tests.devices import (
    alternative,
    asking,
    capacity,
    make_claim,
    make_class,
    make_device,
    make_slice,
    one_of,
    result,
    uses,
)
from tests.unit.plugins.dynamic_resources.allocation.finding import allocator, devices, node
from tests.unit.plugins.dynamic_resources.judging import claiming, cluster, framework, judged, plugin, reserve

Json = dict[str, Any]
ON = {"DschedDeviceBestFit": True}
FEATURES = AllocatorFeatures(best_fit=True)
CLASSES = [make_class("gpu", "any")]


def plain(name: str, memory: int | None = None, **attributes: Any) -> Json:
    """A device that one claim has."""
    given = {} if memory is None else {"capacity": {"memory": capacity(f"{memory}Gi")}}
    return make_device(name, attributes=attributes, **given)


def part(name: str, slices: int, of: str = "gpu0") -> Json:
    """A partition that takes some of a device's seven slices."""
    return make_device(name, consumesCounters=[uses({"slices": str(slices)}, of)])


def shared(name: str, memory: int) -> Json:
    """A device of which claims have shares."""
    return make_device(name, allowMultipleAllocations=True, capacity={"memory": capacity(f"{memory}Gi")})


def partitioned(*parts: Json, sets: Sequence[str] = ("gpu0",)) -> list[Json]:
    counters = {name: {"slices": "7"} for name in sets}
    return [
        make_slice("n1", parts, name="parts", slices=2),
        make_slice("n1", counters=counters, name="counters", slices=2),
    ]


def chosen(slices: list[Json], *requests: Json, held: Sequence[Json] = ()) -> list[str] | None:
    """The devices that a claim gets, by name."""
    found = allocator([make_claim("default/mine", *requests)], slices, held=held, classes=CLASSES, features=FEATURES)
    names = devices(found.allocate(node()))
    return None if names is None else [each.rpartition("/")[2] for each in names]


def has(name: str, **of_result: Any) -> Json:
    return make_claim(f"default/has-{name}", asking(), allocated=[result(name, **of_result)])


def share(name: str, memory: int) -> Json:
    return has(name, shareID=f"share-{name}", consumedCapacity={"memory": f"{memory}Gi"})


def fit(slices: list[Json], *requests: Json, held: Sequence[Json] = ()) -> int | None:
    found = allocator([make_claim("default/mine", *requests)], slices, held=held, classes=CLASSES, features=FEATURES)
    given = found.found(node())
    return None if given is None else given.fit


class TestDevices:
    def test_the_smallest_one_that_suffices(self) -> None:
        offered = [make_slice("n1", [plain("big", 80), plain("small", 40), plain("middle", 60)])]
        assert chosen(offered, asking()) == ["small"]
        assert chosen(offered, asking(count=2)) == ["small", "middle"]

    def test_the_smallest_partition(self) -> None:
        offered = partitioned(part("whole", 7), part("half", 4), part("seventh", 1))
        assert chosen(offered, asking()) == ["seventh"]

    def test_what_is_broken_already_is_broken_further(self) -> None:
        """Of gpu0 nothing is taken, of gpu1 four slices: a seventh comes from gpu1, and gpu0 stays whole."""
        parts = [part(f"{size}-{gpu}", size, f"gpu{gpu}") for gpu in (0, 1) for size in (7, 4, 2, 1)]
        offered = partitioned(*parts, sets=("gpu0", "gpu1"))
        assert chosen(offered, asking()) == ["1-0"]  # both are whole: the order in which they are offered
        assert chosen(offered, asking(), held=[has("4-1")]) == ["1-1"]

    def test_the_shared_device_with_the_least_left(self) -> None:
        offered = [make_slice("n1", [shared("one", 80), shared("two", 80), shared("three", 80)])]
        wanted = asking(capacity={"requests": {"memory": "20Gi"}})
        taken = [share("one", 10), share("two", 50), share("three", 70)]
        assert chosen(offered, wanted, held=taken) == ["two"]

    def test_constraints_go_before_the_fit(self) -> None:
        """Two small devices do not match; the pair that does is taken."""
        offered = [make_slice("n1", [plain("a", 40, numa=0), plain("b", 50, numa=1), plain("c", 80, numa=0)])]
        claim = make_claim(
            "default/mine",
            asking(count=2),
            constraints=[{"matchAttribute": "gpu.example.com/numa"}],
        )
        found = allocator([claim], offered, classes=CLASSES, features=FEATURES)
        assert devices(found.allocate(node())) == ["r:n1/a", "r:n1/c"]

    def test_an_earlier_alternative_goes_before_a_smaller_device(self) -> None:
        offered = [make_slice("n1", [plain("small", 40, model="b"), plain("big", 80, model="a")])]
        wanted = one_of("r", alternative("first", where=["model=a"]), alternative("then", where=["model=b"]))
        assert chosen(offered, wanted) == ["big"]

    def test_a_device_at_which_nobody_may_look_ends_nothing(self) -> None:
        """The best order would come to a device whose selector fails; the ordinary one does not."""
        offered = [make_slice("n1", [plain("big", 80), plain("d1", 40)])]
        requests = asking("r"), asking("s", where=["only:d1"])
        ordinary = allocator([make_claim("default/mine", *requests)], offered, classes=CLASSES)
        assert devices(ordinary.allocate(node())) == ["r:n1/big", "s:n1/d1"]
        assert chosen(offered, *requests) == ["big", "d1"]


class TestNodes:
    def test_by_hand(self) -> None:
        """Plain devices: 1000 / (1 + left). Partitions: 1 of 7 from a whole device of 7, 4 and 1: the largest that is
        left is 4/7, so that 7/7 - 4/7 - 1/7 = 2/7 are wasted; 6/7 are left: 1000 * 5/7 / (13/7) = 384."""
        four = [make_slice("n1", ["d1", "d2", "d3", "d4"])]
        assert fit(four, asking()) == 250
        assert fit(four, asking(count=4)) == BEST
        assert fit(four, asking(), held=[has("d1"), has("d2")]) == 500
        assert fit(partitioned(part("whole", 7), part("half", 4), part("seventh", 1)), asking()) == 384

    def test_the_worked_example(self) -> None:
        sizes = {"n1": [80, 40], "n2": [80, 80, 40, 40], "n3": [80]}
        found = {
            name: fit([make_slice("n1", [plain(f"d{at}", size) for at, size in enumerate(devices)])], asking())
            for name, devices in sizes.items()
        }
        assert found == {"n1": 500, "n2": 250, "n3": 1000}
        ones = [part(f"seventh{at}", 1) for at in range(2)]
        broken = partitioned(part("whole", 7), part("half", 4), *ones)
        assert fit(broken, asking(), held=[has("half")]) == 777

    def test_a_part_of_a_shared_device_that_is_left_counts_as_a_part(self) -> None:
        """80 Gi, 20 taken, 40 wanted: a quarter is left, 1000 / (5/4)."""
        wanted = asking(capacity={"requests": {"memory": "40Gi"}})
        assert fit([make_slice("n1", [shared("one", 80)])], wanted, held=[share("one", 20)]) == 800

    @pytest.mark.parametrize("minor", [35, 36, 37])
    def test_the_fullest_node_that_suffices_is_liked_most(self, minor: int) -> None:
        """n1 has one free device, n2 two, n3 none."""
        users = [make_claim(f"default/{at}", asking(), allocated=[result(f"d{at}", pool="n3")]) for at in range(2)] + [
            make_claim("default/x", asking(), allocated=[result("d0", pool="n1")])
        ]
        slices = [make_slice(name, ["d0", "d1"]) for name in ("n1", "n2", "n3")]
        snapshot = cluster(make_class(), *slices, *users, make_claim("default/mine", asking()))
        of = framework(snapshot, minor, ON)
        evaluation = judged(of, claiming("mine"), snapshot)
        rows = np.array([0, 1], dtype=np.intp)
        raw = plugin(of).score_table(evaluation.state, PodInfo(claiming("mine")), snapshot.table, rows)
        assert evaluation.feasible.tolist() == [True, True, False]
        assert raw.tolist() == [1000, 500]

    def test_without_the_gate_nodes_are_alike(self) -> None:
        snapshot = cluster(
            make_class(), make_slice("n1", ["d0"]), make_slice("n2", ["d0", "d1"]), make_claim("default/mine", asking())
        )
        evaluation = judged(framework(snapshot), claiming("mine"), snapshot)
        assert "DynamicResources" in evaluation.state.skip_score


class Thing(NamedTuple):
    """A device of the little clusters below: plain with so much memory, a partition of so many slices, or shared."""

    kind: str
    size: int
    of: int
    busy: bool


THINGS = st.lists(
    st.builds(Thing, st.sampled_from(["plain", "part", "shared"]), st.integers(1, 7), st.integers(0, 1), st.booleans()),
    min_size=1,
    max_size=6,
)


class Little:
    """A cluster of one node, small enough to try everything.

    It says for itself what is allowed and what is how good, by the text of the decision.
    """

    def __init__(self, things: Sequence[Thing], wants: Sequence[tuple[int, int]]) -> None:
        """
        Args:
            wants: for each request, how many devices, and how much memory of shared ones.
        """
        self.things = things
        self.wants = wants
        self.left = {0: 7, 1: 7}
        self.busy: list[bool] = []
        for each in things:
            can = each.busy and (each.kind != "part" or each.size <= self.left[each.of])
            self.busy.append(can)
            if can and each.kind == "part":
                self.left[each.of] -= each.size
        memory = [each.size for each in things if each.kind != "part"]
        self.most = max(memory, default=1)

    def slices(self) -> list[Json]:
        made = []
        for at, each in enumerate(self.things):
            if each.kind == "part":
                made.append(part(f"d{at}", each.size, f"gpu{each.of}"))
            else:
                made.append((plain if each.kind == "plain" else shared)(f"d{at}", each.size))
        return partitioned(*made, sets=("gpu0", "gpu1"))

    def held(self) -> list[Json]:
        return [
            share(f"d{at}", 1) if self.things[at].kind == "shared" else has(f"d{at}")
            for at, busy in enumerate(self.busy)
            if busy
        ]

    def requests(self) -> list[Json]:
        return [
            asking(f"r{at}", count=count, **({"capacity": {"requests": {"memory": f"{memory}Gi"}}} if memory else {}))
            for at, (count, memory) in enumerate(self.wants)
        ]

    def largest(self, left: Mapping[int, int], gone: int | None) -> Fraction:
        free = (
            Fraction(each.size, 7)
            for at, each in enumerate(self.things)
            if each.kind == "part" and not self.busy[at] and at != gone and each.size <= left[each.of]
        )
        return max(free, default=Fraction(0))

    def badness(self, at: int, memory: int) -> tuple[Fraction, Fraction, Fraction, int]:
        each = self.things[at]
        if each.kind == "plain":
            return Fraction(each.size, self.most), Fraction(0), Fraction(0), at
        if each.kind == "shared":  # without a request for capacity all of it is taken
            taken = memory or each.size
            left = max(each.size - int(self.busy[at]) - taken, 0)
            return Fraction(taken, self.most), Fraction(0), Fraction(left, self.most), at
        size, after = Fraction(each.size, 7), dict(self.left)
        after[each.of] -= each.size
        lost = self.largest(self.left, None) - self.largest(after, at)
        return size, max(Fraction(0), lost - size), Fraction(0), at

    def allowed(self, picked: Sequence[tuple[int, int]]) -> bool:
        """Whether these devices may be taken together, each for a request for so much memory."""
        left, memory_left = (
            dict(self.left),
            [each.size - int(busy) for each, busy in zip(self.things, self.busy, strict=True)],
        )
        whole = [at for at, _ in picked if self.things[at].kind != "shared"]
        for at, memory in picked:
            each = self.things[at]
            if each.kind == "shared":
                memory_left[at] -= memory or each.size
            elif self.busy[at] or (memory and (each.kind == "part" or memory > each.size)):
                return False
            elif each.kind == "part":
                left[each.of] -= each.size
        shared_enough = all(memory_left[at] >= 0 for at, _ in picked if self.things[at].kind == "shared")
        return len(set(whole)) == len(whole) and min(left.values()) >= 0 and shared_enough

    def solutions(self, before: tuple[tuple[int, int], ...] = ()) -> Iterator[tuple[tuple[int, int], ...]]:
        """Everything that is allowed, as devices with the memory that they are wanted for, the best of a request
        first."""
        met = 0
        for count, memory in self.wants:
            if met == len(before):
                numbers = sorted(range(len(self.things)), key=lambda at: self.badness(at, memory))
                for some in combinations(numbers, count):
                    following = (*before, *((at, memory) for at in some))
                    if self.allowed(following):
                        yield from self.solutions(following)
                return
            met += count
        yield before

    def best(self) -> list[str] | None:
        found = min(self.solutions(), key=lambda some: [self.badness(*each) for each in some], default=None)
        return None if found is None else [f"d{at}" for at, _ in found]


@settings(max_examples=300)
@given(THINGS, st.lists(st.tuples(st.integers(1, 2), st.integers(0, 3)), min_size=1, max_size=3))
def test_the_choice_is_the_best_of_all_and_there_is_one_where_there_is_any(
    things: list[Thing], wants: list[tuple[int, int]]
) -> None:
    little = Little(things, wants)
    found = chosen(little.slices(), *little.requests(), held=little.held())
    assert found == little.best()
    plainly = allocator(
        [make_claim("default/mine", *little.requests())], little.slices(), held=little.held(), classes=CLASSES
    )
    assert (devices(plainly.allocate(node())) is None) is (found is None)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=4), st.integers(1, 3))
def test_the_node_is_the_best_of_all(nodes: list[tuple[int, int]], count: int) -> None:
    """Among nodes of plain devices the one with the fewest devices left scores most; the same nodes are feasible as
    without the gate.

    Args:
        nodes: of each, how many devices are free and how many are not.
    """
    names = [f"n{at}" for at in range(len(nodes))]
    offered, users = [], []
    for name, (free, busy) in zip(names, nodes, strict=True):
        offered.append(make_slice(name, [f"d{at}" for at in range(free + busy)]))
        users += [
            make_claim(f"default/{name}-{at}", asking(), allocated=[result(f"d{at}", pool=name)]) for at in range(busy)
        ]
    snapshot = cluster(make_class(), *offered, *users, make_claim("default/mine", asking(count=count)), nodes=names)
    mine = claiming("mine")
    with_gate, without = framework(snapshot, 37, ON), framework(snapshot)
    evaluation = judged(with_gate, mine, snapshot)
    feasible = [free >= count for free, _ in nodes]
    assert evaluation.feasible.tolist() == judged(without, mine, snapshot).feasible.tolist() == feasible
    rows = np.flatnonzero(feasible)
    if not len(rows):
        return
    state = evaluation.state
    raw = plugin(with_gate).score_table(state, PodInfo(mine), snapshot.table, rows).tolist()
    left = [nodes[row][0] - count for row in rows]
    assert raw == [1000 // (1 + each) for each in left]


def test_reserve_takes_what_fits_best() -> None:
    offered = make_slice("n1", [plain("big", 80), plain("small", 40)])
    snapshot = cluster(make_class(), offered, make_claim("default/mine", asking()))
    state, status = reserve(framework(snapshot, 37, ON), claiming("mine"), "n1")
    assert status is None
    (write,) = state.shared["DynamicResources"]["writes"]
    assert [each["device"] for each in write["allocation"]["devices"]["results"]] == ["small"]
