"""Pod groups with the gate ``DschedGangPlacement``: levels, tightness, elastic groups, other orders. The rules are in
docs/pod-groups.md."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.framework.pod_info import PodInfo
from dsched.model.node import Node
from dsched.model.placement_wishes import DESIRED, PREFERRED, REQUIRED
from dsched.model.pod import Pod
from dsched.scheduler import gang_placement
from dsched.scheduler.decision import Candidate, Decision, GroupEnd
from tests.builders import make_node, make_pod
from tests.unit.scheduler.grouped import Grouped, make_group, members

RACK, BLOCK, ZONE = "example.com/rack", "example.com/block", "topology.kubernetes.io/zone"


def node(name: str, cpu: int, *, pods: int = 110, **labels: str) -> Node:
    keys = {"rack": RACK, "block": BLOCK, "zone": ZONE}
    return make_node(name, cpu=str(cpu), pods=pods, labels={keys[level]: value for level, value in labels.items()})


def wishes(**given: str) -> dict[str, str]:
    names = {"required": REQUIRED, "preferred": PREFERRED, "desired": DESIRED}
    return {names[name]: text for name, text in given.items()}


def placed(cluster: Grouped, pods: Sequence[Pod]) -> list[str | None]:
    return [decision.node for decision in cluster.decide(pods).decisions]


# -- one kind of pods ------------------------------------------------------------------------------------------------


def test_the_tightest_domain_is_taken() -> None:
    there = [node("a", 8, rack="a"), node("b", 4, rack="b"), node("c", 5, rack="c"), node("d", 3, rack="d")]
    group = make_group(min_count=4, annotations=wishes(required=RACK))
    cluster = Grouped(there, groups=[group], placement=True)
    assert placed(cluster, members(4, cpu="1")) == ["b"] * 4


def test_the_narrowest_level_that_takes_all_is_taken() -> None:
    there = [
        *(node(f"a{n}", 1, rack=f"a{n}", block="a", zone="z") for n in range(2)),
        *(node(f"b{n}", 2, rack=f"b{n}", block="b", zone="z") for n in range(3)),
    ]
    preferring = wishes(preferred=f"{RACK},{BLOCK},{ZONE}")
    for count, racks, blocks in ((2, 1, 1), (6, 3, 1), (8, 5, 2)):
        cluster = Grouped(there, groups=[make_group(min_count=count, annotations=preferring)], placement=True)
        nodes = placed(cluster, members(count, cpu="1"))
        assert len(set(nodes)) == racks and len({str(name)[0] for name in nodes}) == blocks


def test_racks_of_one_name_in_two_blocks_are_two_racks() -> None:
    there = [node("a", 2, rack="r", block="a"), node("b", 2, rack="r", block="b")]
    group = make_group(min_count=3, annotations=wishes(preferred=RACK, required=BLOCK))
    found = Grouped(there, groups=[group], placement=True).decide(members(3, cpu="1"))
    assert found.end is GroupEnd.UNSCHEDULABLE
    assert "0/2 placements are available, first placement status: minCount (3) cannot be satisfied" in found.message


def test_nothing_is_asked_for_and_nothing_fits() -> None:
    group = make_group(min_count=3, annotations=wishes(preferred=RACK))
    found = Grouped([node("a", 2, rack="a")], groups=[group], placement=True).decide(members(3, cpu="1"))
    assert found.message.startswith("minCount (3) cannot be satisfied: 2 scheduled, 0 remaining")


def test_an_elastic_group_gets_the_least_where_there_is_no_more_room_and_the_rest_later() -> None:
    there = [node("a", 4, rack="a"), node("b", 3, rack="b")]
    group = make_group(min_count=3, annotations=wishes(required=RACK))
    cluster = Grouped(there, groups=[group], placement=True)
    assert placed(cluster, members(6, cpu="1")) == ["a"] * 4 + [None] * 2
    cluster.memory.forget(members(1, cpu="1")[0].uid, released=False)
    assert placed(cluster, members(2, start=4, cpu="1")) == ["a", None]


def test_the_rest_of_a_group_that_prefers_a_rack_may_go_elsewhere() -> None:
    there = [node("a", 4, rack="a"), node("b", 3, rack="b")]
    group = make_group(min_count=3, annotations=wishes(preferred=RACK))
    cluster = Grouped(there, groups=[group], placement=True)
    assert placed(cluster, members(4, cpu="1")) == ["a"] * 4
    assert placed(cluster, members(2, start=4, cpu="1")) == ["b", "b"]


def test_there_is_room_for_pods_that_are_still_to_come() -> None:
    there = [node("a", 2, rack="a"), node("b", 5, rack="b"), node("c", 9, rack="c")]
    for desired, rack in (("2", "a"), ("4", "b"), ("20", "c")):
        group = make_group(min_count=2, annotations=wishes(required=RACK, desired=desired))
        assert placed(Grouped(there, groups=[group], placement=True), members(2, cpu="1")) == [rack] * 2


def test_pods_that_run_say_which_domain_it_has_to_be() -> None:
    (runs,) = members(1, cpu="1", node="b")
    there = [node("a", 4, rack="a"), node("b", 9, rack="b")]
    group = make_group(min_count=2, annotations=wishes(required=RACK))
    assert placed(Grouped(there, [runs], [group], placement=True), members(2, start=1, cpu="1")) == ["b"] * 2


def test_pods_that_run_in_two_domains_of_which_there_may_be_one_are_an_error() -> None:
    runs = [*members(1, cpu="1", node="a"), *members(1, start=1, cpu="1", node="b")]
    there = [node("a", 4, rack="a"), node("b", 9, rack="b")]
    group = make_group(min_count=2, annotations=wishes(required=RACK))
    found = Grouped(there, runs, [group], placement=True).decide(members(1, start=2, cpu="1"))
    expected = "cannot determine domain for already scheduled pods: they are not in one domain of example.com/rack"
    assert (found.end, found.message) == (GroupEnd.ERROR, expected)


def test_no_node_has_the_label() -> None:
    group = make_group(min_count=1, annotations=wishes(required=RACK))
    found = Grouped([node("a", 4)], groups=[group], placement=True).decide(members(1, cpu="1"))
    assert found.message.startswith("no feasible placements found, ")


def test_a_cluster_without_nodes_has_no_room() -> None:
    found = Grouped([], groups=[make_group(min_count=1)], placement=True).decide(members(1, cpu="1"))
    assert found.end is GroupEnd.UNSCHEDULABLE


def test_the_constraint_of_the_spec_is_cut_further() -> None:
    there = [node("a", 9, zone="z", rack="a"), node("b", 4, zone="z", rack="b"), node("c", 4, rack="c")]
    group = make_group(min_count=4, topology=ZONE, annotations=wishes(preferred=RACK))
    assert placed(Grouped(there, groups=[group], topology=True, placement=True), members(4, cpu="1")) == ["b"] * 4


def test_room_is_made_in_one_domain() -> None:
    low = [make_pod(f"shop/low-{place}", cpu="2", node=name) for place, name in enumerate(["a", "b"])]
    there = [node("a", 2, rack="a"), node("b", 3, rack="b")]
    group = make_group(min_count=3, priority=10, annotations=wishes(required=RACK))
    found = Grouped(there, low, [group], placement=True).decide(members(3, cpu="1", priority=10))
    assert found.end is GroupEnd.PREEMPTING
    assert [victim.key for victim in found.victims] == ["shop/low-1"]


def test_annotations_that_say_nothing_useful_are_told_with_their_place() -> None:
    group = make_group(min_count=4, annotations=wishes(preferred=f"{RACK},", desired="2"))
    found = Grouped([node("a", 4)], groups=[group], placement=True).decide(members(4, cpu="1"))
    assert found.end is GroupEnd.ERROR
    assert found.message == (
        f'metadata.annotations[{PREFERRED}]: "{RACK}," has an empty entry; list node labels with commas between them; '
        f"metadata.annotations[{DESIRED}]: 2 is less than spec.schedulingPolicy.gang.minCount, 4"
    )


def test_without_the_gate_annotations_are_not_read() -> None:
    there = [node("a", 1, rack="a"), node("b", 1, rack="b")]
    group = make_group(min_count=2, annotations=wishes(required=RACK, desired="none"))
    assert sorted(map(str, placed(Grouped(there, groups=[group]), members(2, cpu="1")))) == ["a", "b"]


# -- pods that differ ------------------------------------------------------------------------------------------------


def test_pods_that_fit_in_another_order_only_are_placed() -> None:
    """In their own order the small ones are spread, and leave no node to the large one."""
    there = [node("a", 4), node("b", 4)]
    pods = [*members(2, cpu="1"), *members(1, start=2, cpu="4")]
    assert Grouped(there, groups=[make_group(min_count=3)]).decide(pods).end is GroupEnd.UNSCHEDULABLE
    cluster = Grouped(there, groups=[make_group(min_count=3)], placement=True)
    nodes = placed(cluster, pods)
    assert nodes[0] == nodes[1] != nodes[2] and None not in nodes


def test_other_orders_are_tried_where_there_are_domains() -> None:
    there = [node("a", 3, rack="a"), *(node(f"b{n}", 4, rack="b") for n in range(2))]
    pods = [*members(2, cpu="1"), *members(1, start=2, cpu="4")]
    group = make_group(min_count=3, annotations=wishes(required=RACK))
    assert None not in placed(Grouped(there, groups=[group], placement=True), pods)


def test_pods_of_which_no_order_helps_are_told_of_their_own() -> None:
    pods = [*members(2, cpu="3"), *members(1, start=2, cpu="2")]
    found = Grouped([node("a", 4), node("b", 4)], groups=[make_group(min_count=3)], placement=True).decide(pods)
    assert found.message.startswith("minCount (3) cannot be satisfied: 2 scheduled, 0 remaining")
    assert found.decisions[2].message == "0/2 nodes are available: 2 Insufficient cpu."


def test_no_further_order_is_begun_once_so_many_pods_were_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gang_placement, "MOST_DECISIONS", 0)
    pods = [*members(2, cpu="1"), *members(1, start=2, cpu="4")]
    cluster = Grouped([node("a", 4), node("b", 4)], groups=[make_group(min_count=3)], placement=True)
    assert cluster.decide(pods).end is GroupEnd.UNSCHEDULABLE


@pytest.mark.parametrize("kinds", range(1, 8))
def test_orders_are_few_and_begin_with_the_largest(kinds: int) -> None:
    table = Grouped([node("a", 64)]).snapshot.table
    pods = [[Candidate(PodInfo(pod), 1) for pod in members(1, start=n, cpu=str(n + 1))] for n in range(kinds)]
    found = list(gang_placement.orders(pods, table))
    assert found[0] == tuple(each for kind in reversed(pods) for each in kind)
    assert len(set(found)) == len(found) <= gang_placement.MOST_ORDERS
    assert {order[0].info.key for order in found} == {kind[0].info.key for kind in pods}


# -- the examples of docs/pod-groups.md ------------------------------------------------------------------------------


def worked() -> list[list[str]]:
    """The cells of each row."""
    page = (Path(__file__).parents[3] / "docs" / "pod-groups.md").read_text()
    table = page.partition("<!-- worked: begin -->")[2].partition("<!-- worked: end -->")[0]
    rows = [line.strip("|").split("|") for line in table.strip().splitlines()[2:]]
    return [[cell.strip() for cell in row] for row in rows]


@pytest.mark.parametrize(("nodes", "least", "pods", "asks", "goes_to"), worked())
def test_the_examples_of_the_page_are_true(nodes: str, least: str, pods: str, asks: str, goes_to: str) -> None:
    def counts(text: str) -> dict[str, int]:
        return {name: int(count) for name, _, count in (each.partition(": ") for each in text.split(", ") if each)}

    there = []
    for name, cpu in counts(nodes).items():
        block, rack = name.split("/")
        there.append(node(name.replace("/", "-"), cpu, block=block, rack=rack))
    group: list[Pod] = []
    for count, cpus in (each.split(" × ") for each in pods.split(", ")):
        group += members(int(count), start=len(group), cpu=cpus)
    text = asks.replace("rack, block", f"{RACK},{BLOCK}").replace(" rack", f" {RACK}").replace(" block", f" {BLOCK}")
    annotations = wishes(**dict(each.split(" ") for each in text.split(", ")))
    cluster = Grouped(there, groups=[make_group(min_count=int(least), annotations=annotations)], placement=True)
    got = Counter(str(name).replace("-", "/") for name in placed(cluster, group) if name)
    assert got == counts(goes_to)


# -- against brute force -----------------------------------------------------------------------------------------------


class Case(NamedTuple):
    nodes: list[Node]
    required: tuple[str, ...]
    preferred: tuple[str, ...]
    cpu: int
    pods: int
    least: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    def drawn(place: int) -> Node:
        labels = {
            level: f"{level}{draw(st.integers(0, 1))}" for level in ("zone", "block", "rack") if draw(st.integers(0, 5))
        }
        return node(f"n{place}", draw(st.integers(0, 4)), pods=draw(st.integers(0, 3)), **labels)

    keys = draw(st.permutations([RACK, BLOCK, ZONE]))
    cut = draw(st.integers(0, 3))
    pods = draw(st.integers(1, 5))
    return Case(
        [drawn(place) for place in range(draw(st.integers(1, 6)))],
        tuple(keys[:cut]),
        tuple(keys[cut : draw(st.integers(cut, 3))]),
        draw(st.integers(1, 2)),
        pods,
        draw(st.integers(1, pods)),
    )


def most_pods(nodes: Sequence[Node], cpu: int, pods: int) -> int:
    """How many of some pods the nodes take, by trying each pod on each node."""
    most = 0
    for where in product([None, *range(len(nodes))], repeat=pods):
        used = [where.count(place) for place in range(len(nodes))]
        amounts = [(int(each.status.allocatable["cpu"]), int(each.status.allocatable["pods"])) for each in nodes]
        if all(count * cpu <= cpus and count <= slots for count, (cpus, slots) in zip(used, amounts, strict=True)):
            most = max(most, sum(used))
    return most


def domains(nodes: Sequence[Node], keys: Sequence[str]) -> list[list[Node]]:
    found: dict[tuple[str, ...], list[Node]] = {}
    for each in nodes:
        labels = each.metadata.labels
        if all(key in labels for key in keys):
            found.setdefault(tuple(labels[key] for key in keys), []).append(each)
    return [found[values] for values in sorted(found)]


def levels(case: Case) -> Iterator[list[list[Node]]]:
    for place in range(len(case.preferred) + 1):
        yield domains(case.nodes, [*case.required, *reversed(case.preferred[place:])])


@given(cases())
def test_a_domain_that_can_take_the_group_is_found_exactly_when_brute_force_finds_one(case: Case) -> None:
    annotations = {}
    if case.required:
        annotations[REQUIRED] = ",".join(case.required)
    if case.preferred:
        annotations[PREFERRED] = ",".join(case.preferred)
    cluster = Grouped(case.nodes, groups=[make_group(min_count=case.least, annotations=annotations)], placement=True)
    found = cluster.decide(members(case.pods, cpu=str(case.cpu)))
    took = [
        [(most_pods(domain, case.cpu, case.pods), {each.name for each in domain}) for domain in level]
        for level in levels(case)
    ]
    possible = any(most >= case.least for level in took for most, _ in level)
    assert (found.end is GroupEnd.SCHEDULED) == possible
    if not possible:
        assert cluster.placed == {}
        return
    whole = [level for level in took if any(most == case.pods for most, _ in level)]
    first = (whole or [level for level in took if any(most >= case.least for most, _ in level)])[0]
    got = {str(decision.node) for decision in found.decisions if decision.node}
    count = sum(decision.node is not None for decision in found.decisions)
    assert count == max(most for most, _ in first)
    assert any(got <= names for most, names in first if most == count)


@given(st.lists(st.lists(st.integers(0, 7), min_size=1, max_size=2), min_size=2, max_size=5), st.integers(1, 3))
def test_the_domain_is_the_one_with_the_least_room(racks: list[list[int]], cpu: int) -> None:
    """Of the domains of one required level that take the whole group, the first among equals."""
    there = [
        node(f"r{place}n{number}", size, rack=f"r{place}")
        for place, sizes in enumerate(racks)
        for number, size in enumerate(sizes)
    ]
    group = make_group(min_count=2, annotations=wishes(required=RACK))
    found = Grouped(there, groups=[group], placement=True).decide(members(2, cpu=str(cpu)))
    rooms = [sum(size // cpu for size in sizes) for sizes in racks]
    able = [room for room in rooms if room >= 2]
    assert (found.end is GroupEnd.SCHEDULED) == bool(able)
    if able:
        assert {str(name)[:2] for name in nodes_of(found.decisions)} == {f"r{rooms.index(min(able))}"}


@st.composite
def mixed(draw: st.DrawFn) -> tuple[list[Node], list[Pod], int]:
    there = [node(f"n{place}", draw(st.integers(1, 5)), pods=draw(st.integers(1, 4))) for place in range(3)]
    count = draw(st.integers(1, 5))
    pods = [members(1, start=place, cpu=str(draw(st.integers(1, 4))))[0] for place in range(count)]
    return there, pods, draw(st.integers(1, count))


@given(mixed())
def test_pods_that_differ_are_placed_where_greedy_places_them_and_never_where_nothing_fits(
    drawn: tuple[list[Node], list[Pod], int],
) -> None:
    there, pods, least = drawn
    greedy = Grouped(there, groups=[make_group(min_count=least)]).decide(pods)
    cluster = Grouped(there, groups=[make_group(min_count=least)], placement=True)
    found = cluster.decide(pods)
    if greedy.end is GroupEnd.SCHEDULED:
        assert nodes_of(found.decisions) == nodes_of(greedy.decisions)
    if found.end is not GroupEnd.SCHEDULED:
        assert cluster.placed == {}
        return
    assert [each.candidate.info.key for each in found.decisions] == [pod.key for pod in pods]
    assert sum(each.node is not None for each in found.decisions) >= least
    table = cluster.snapshot.table
    for row in range(len(table)):
        assert table.requested("cpu")[row] <= table.allocatable("cpu")[row]
    assert any(_packs(there, chosen) for chosen in combinations(pods, least))


def _packs(there: Sequence[Node], pods: Sequence[Pod]) -> bool:
    """Whether there is any way to put all of these pods on nodes."""
    for where in product(range(len(there)), repeat=len(pods)):
        used = [0] * len(there)
        for place, pod in zip(where, pods, strict=True):
            used[place] += int(pod.spec.containers[0].resources.requests["cpu"])
        fits = (
            used[place] <= int(each.status.allocatable["cpu"])
            and where.count(place) <= int(each.status.allocatable["pods"])
            for place, each in enumerate(there)
        )
        if all(fits):
            return True
    return False


def nodes_of(decisions: Sequence[Decision]) -> list[str | None]:
    return [each.node for each in decisions]


# -- without the gate --------------------------------------------------------------------------------------------------


@given(mixed(), st.booleans())
def test_without_the_gate_a_group_is_decided_pod_by_pod(drawn: tuple[list[Node], list[Pod], int], alike: bool) -> None:
    """Upstream's cycle written down once more: pods in order by themselves, until the least is out of reach."""
    there, pods, least = drawn
    if alike:
        pods = members(len(pods), cpu=str(pods[0].spec.containers[0].resources.requests["cpu"]))
    found = Grouped(there, groups=[make_group(min_count=least)]).decide(pods)
    singly = Grouped(there)
    expected: list[str | None] = []
    for place, pod in enumerate(pods):
        (decided,) = singly.cycle.decide([Candidate(PodInfo(_alone(pod)), 1)])
        expected.append(decided.node)
        if sum(each is not None for each in expected) + len(pods) - place - 1 < least:
            break
    enough = sum(each is not None for each in expected) >= least
    assert found.end is (GroupEnd.SCHEDULED if enough else GroupEnd.UNSCHEDULABLE)
    assert nodes_of(found.decisions) == (expected if enough else [None] * len(pods))


def _alone(pod: Pod) -> Pod:
    """The pod without its group."""
    cpu = pod.spec.containers[0].resources.requests["cpu"]
    return make_pod(pod.key, cpu=str(cpu))


def test_what_is_told_of_a_group_is_told_of_the_domains_of_all_levels() -> None:
    there = [node("a", 2, rack="a", block="x"), node("b", 4, rack="b", block="x"), node("c", 1)]
    group = make_group(min_count=3, annotations=wishes(preferred=f"{RACK},{BLOCK}"))
    cluster = Grouped(there, groups=[group], placement=True)
    trials = cluster.cycle.trials(cluster.candidate(members(3, cpu="1")))
    assert isinstance(trials, list)
    assert [(trial.placement.name, trial.lacking is None) for trial in trials] == [
        ("x/a", False),
        ("x/b", True),
        ("x", True),
        ("", True),
    ]
    assert cluster.placed == {}
