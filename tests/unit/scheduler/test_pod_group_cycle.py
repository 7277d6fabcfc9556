"""A pod group is placed as kube-scheduler's cycle places it, or not at all."""

from random import Random

import pytest

from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Code
from dsched.framework.pod_info import PodInfo
from dsched.metrics import PREEMPTION_DISRUPTIONS, PREEMPTION_EVALUATION
from dsched.model.meta import NodeName
from dsched.scheduler.decision import GroupEnd
from dsched.scheduler.pod_group_cycle import PodGroupCycle
from tests.builders import make_node, make_pod
from tests.metrics import count, total
from tests.unit.scheduler.grouped import Grouped, make_group, members

RACK = "example.com/rack"
NOBODY_ASKED = 'error in "DynamicResources" PodGroupPostFilter plugins: not found'
"""What upstream says where none of the pods came as far as PreFilter."""


def nodes(*cpus: str, rack: str = "") -> list:
    labels = {RACK: rack} if rack else {}
    return [make_node(f"{rack or 'n'}{place}", cpu=cpu, labels=labels) for place, cpu in enumerate(cpus)]


def test_a_gang_that_fits_is_placed_whole() -> None:
    cluster = Grouped(nodes("2", "2"), groups=[make_group(min_count=3)])
    found = cluster.decide(members(3, cpu="1"))
    assert found.end is GroupEnd.SCHEDULED and found.message == ""
    assert len(cluster.placed) == 3
    assert [decision.node for decision in found.decisions] == [cluster.placed[f"shop/train-{n}"] for n in range(3)]


def test_of_a_gang_that_does_not_fit_nothing_is_placed() -> None:
    cluster = Grouped(nodes("1", "1"), groups=[make_group(min_count=3)])
    found = cluster.decide(members(3, cpu="1"))
    assert found.end is GroupEnd.UNSCHEDULABLE and cluster.placed == {}
    preempted = "pod group preemption: No preemption victims found for incoming preemptor"
    message = f"minCount (3) cannot be satisfied: 2 scheduled, 0 remaining, {preempted}"
    assert found.message == message
    assert [decision.message for decision in found.decisions] == [
        f"pod group is unschedulable, {message}",
        f"pod group is unschedulable, {message}",
        "0/2 nodes are available: 2 Insufficient cpu.",
    ]


def test_pods_that_nobody_looked_at_are_told_why_their_group_failed() -> None:
    cluster = Grouped(nodes("1"), groups=[make_group(min_count=3)])
    found = cluster.decide(members(4, cpu="1"))
    assert found.decisions[2].message == "0/1 nodes are available: 1 Insufficient cpu."
    assert found.decisions[3].message == "minCount (3) cannot be satisfied: 1 scheduled, 1 remaining"


def test_too_few_pods_are_not_tried() -> None:
    cluster = Grouped(nodes("4"), groups=[make_group(min_count=3)])
    found = cluster.decide(members(2, cpu="1"))
    assert (found.end, found.message) == (GroupEnd.ERROR, NOBODY_ASKED)
    assert [each.message for each in found.decisions] == [NOBODY_ASKED] * 2


def test_where_there_is_no_node_the_attempt_fails() -> None:
    cluster = Grouped([], groups=[make_group(min_count=1)])
    found = cluster.decide(members(2, cpu="1"))
    assert (found.end, found.message) == (GroupEnd.ERROR, NOBODY_ASKED)


def test_where_a_topology_domain_is_to_be_found_too_few_pods_fit_nowhere() -> None:
    cluster = Grouped(nodes("4", rack="a"), groups=[make_group(min_count=3, topology=RACK)], topology=True)
    found = cluster.decide(members(2, cpu="1"))
    assert found.end is GroupEnd.UNSCHEDULABLE
    assert found.message.startswith(
        "pod group is unschedulable, 0/1 placements are available, first placement status: pod group is unschedulable, "
    )


def test_what_is_left_of_a_group_that_has_enough_is_told_nothing_of_placements() -> None:
    """That none of them is placed is no fault of the placement. Source: ``runRootSchedulingAlgorithm``."""
    (placed,) = members(1, cpu="1", node="n0")
    cluster = Grouped(nodes("1"), [placed], [make_group(min_count=1)], topology=True)
    found = cluster.decide(members(1, start=1, cpu="1"))
    assert found.end is GroupEnd.UNSCHEDULABLE
    assert found.message == (
        "pod group is unschedulable, pod group preemption: No preemption victims found for incoming preemptor"
    )


def test_members_that_are_placed_count() -> None:
    (placed,) = members(1, cpu="1", node="n0")
    cluster = Grouped(nodes("3"), [placed], [make_group(min_count=3)])
    assert cluster.decide(members(2, start=1, cpu="1")).end is GroupEnd.SCHEDULED


def test_more_than_the_least_are_placed_where_they_fit_and_the_rest_waits() -> None:
    cluster = Grouped(nodes("3"), groups=[make_group(min_count=2)])
    found = cluster.decide(members(5, cpu="1"))
    assert found.end is GroupEnd.SCHEDULED
    assert [decision.node for decision in found.decisions] == ["n0", "n0", "n0", None, None]
    assert found.decisions[3].message == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_group_without_a_least_is_placed_as_far_as_it_fits() -> None:
    cluster = Grouped(nodes("1"), groups=[make_group()])
    found = cluster.decide(members(2, cpu="1"))
    assert [decision.node for decision in found.decisions] == ["n0", None]


@pytest.mark.parametrize(
    ("pods", "message"),
    [
        (
            [*members(1), *members(1, start=1, spec={"schedulerName": "other"})],
            'all pods in a single pod group should have the same .spec.schedulerName set, got: "other" and '
            '"default-scheduler"',
        ),
        (
            [*members(1), *members(1, start=1, priority=7)],
            "all pods in a single pod group should have the same priority as the pod group's priority, got 7 and 0",
        ),
        (
            [*members(1), *members(1, start=1, spec={"preemptionPolicy": "Never"})],
            "all pods in a single pod group should have the same preemption policy, got Never and PreemptLowerPriority",
        ),
        (members(1, spec={"schedulerName": "other"}), 'profile not found for scheduler name "other"'),
    ],
)
def test_pods_that_do_not_belong_together_fail(pods: list, message: str) -> None:
    cluster = Grouped(nodes("4"), groups=[make_group(min_count=1)])
    found = cluster.decide(pods)
    assert (found.end, found.message) == (GroupEnd.ERROR, message)
    assert {decision.message for decision in found.decisions} == {message} and cluster.placed == {}


def test_a_group_gets_one_rack() -> None:
    there = [*nodes("2", "1", rack="a"), *nodes("2", "2", rack="b"), *nodes("8", rack="")]
    cluster = Grouped(there, groups=[make_group(min_count=4, topology=RACK)], topology=True)
    assert cluster.decide(members(4, cpu="1")).end is GroupEnd.SCHEDULED
    assert set(cluster.placed.values()) == {"b0", "b1"}


def test_the_fuller_rack_is_taken() -> None:
    there = [*nodes("8", rack="a"), *nodes("4", rack="b")]
    cluster = Grouped(there, groups=[make_group(min_count=2, topology=RACK)], topology=True)
    cluster.decide(members(2, cpu="1"))
    assert set(cluster.placed.values()) == {"b0"}


def test_members_that_run_say_which_rack() -> None:
    (placed,) = members(1, cpu="1", node="a0")
    there = [*nodes("8", rack="a"), *nodes("4", rack="b")]
    cluster = Grouped(there, [placed], [make_group(min_count=2, topology=RACK)], topology=True)
    cluster.decide(members(2, start=1, cpu="1"))
    assert set(cluster.placed.values()) == {"a0"}


def test_where_no_rack_takes_it_the_first_says_why() -> None:
    there = [*nodes("1", rack="a"), *nodes("1", rack="b")]
    cluster = Grouped(there, groups=[make_group(min_count=2, topology=RACK)], topology=True)
    found = cluster.decide(members(2, cpu="1"))
    assert found.message.startswith(
        "pod group is unschedulable, 0/2 placements are available, first placement status: "
        "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining, "
    )
    assert found.decisions[1].message == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_promised_node_of_another_rack_is_none_of_those_that_are_counted() -> None:
    """Source: schedule_one.go ``evaluateNominatedNode``."""
    cluster = Grouped(
        [*nodes("1", rack="a"), *nodes("1", rack="b")], groups=[make_group(min_count=1, topology=RACK)], topology=True
    )
    (pod,) = members(1, cpu="2")
    cluster.snapshot.nominations.set(PodInfo(pod), NodeName("b0"))
    assert cluster.decide([pod]).decisions[0].message == "0/1 nodes are available: 1 Insufficient cpu."


def test_without_any_rack_there_is_no_placement() -> None:
    cluster = Grouped(nodes("4"), groups=[make_group(min_count=2, topology=RACK)], topology=True)
    assert cluster.decide(members(2, cpu="1")).message.startswith("no feasible placements found, ")


def test_room_is_made_for_a_gang() -> None:
    low = [make_pod(f"shop/low-{place}", cpu="1", node=f"n{place}") for place in range(3)]
    cluster = Grouped(nodes("1", "1", "1"), low, [make_group(min_count=2, priority=10)])
    found = cluster.decide(members(2, cpu="1", priority=10))
    assert found.end is GroupEnd.PREEMPTING
    assert found.message.endswith("pod group preemption: found a placement for podgroup, preempting 2 victims")
    assert len(found.victims) == 2 and len(cluster.placed) == 3
    nominated = [decision.nominated for decision in found.decisions]
    assert sorted(nominated) == sorted(cluster.placed[victim.key] for victim in found.victims)
    nominations = cluster.snapshot.nominations
    assert [nominations.node_of(decision.candidate.info.uid) for decision in found.decisions] == nominated


def test_pods_that_wait_are_turned_away_for_a_gang_and_not_deleted() -> None:
    """Source: framework/preemption/executor.go ``actuatePodGroupPreemption``, ``PreemptPod``."""
    low = [make_pod(f"shop/low-{place}", cpu="1", node=f"n{place}") for place in range(3)]
    cluster = Grouped(nodes("1", "1", "1"), low, [make_group(min_count=3, priority=10)])
    cluster.waiting.hold(PodInfo(low[0]), {"Pair": 60.0})
    found = cluster.decide(members(3, cpu="1", priority=10))
    assert found.end is GroupEnd.PREEMPTING
    assert {victim.key for victim in found.victims} == {"shop/low-1", "shop/low-2"}
    assert [victim.key for victim in found.turned_away.pods] == ["shop/low-0"]
    waiting = cluster.waiting.get(low[0].uid)
    assert waiting is not None and waiting.rejection is not None


def test_nobody_is_evicted_unless_the_whole_gang_then_fits() -> None:
    low = [make_pod("shop/low", cpu="1", node="n0")]
    cluster = Grouped(nodes("1"), low, [make_group(min_count=2, priority=10)])
    found = cluster.decide(members(2, cpu="1", priority=10))
    assert (found.end, found.victims) == (GroupEnd.UNSCHEDULABLE, ())
    assert cluster.placed == {"shop/low": "n0"}


def test_a_group_that_is_disrupted_together_goes_whole() -> None:
    low = members(2, "shop/low", cpu="1", node="n0") + members(1, "shop/low", start=2, cpu="1", node="n1")
    groups = [make_group("shop/low", 1, together=True), make_group(min_count=1, priority=10)]
    cluster = Grouped(nodes("2", "1"), low, groups)
    disrupted, evaluated = (
        PREEMPTION_DISRUPTIONS.labels("podgroup"),
        PREEMPTION_EVALUATION.labels("podgroup", "Success"),
    )
    before = total(disrupted), count(disrupted), count(evaluated)
    found = cluster.decide(members(1, cpu="1", priority=10))
    assert {victim.key for victim in found.victims} == {pod.key for pod in low}
    assert (total(disrupted), count(disrupted), count(evaluated)) == tuple(each + 1 for each in before)


def test_while_a_group_that_is_disrupted_together_has_pods_on_a_node_that_is_gone_nobody_is_evicted() -> None:
    here, there = [*members(1, "shop/old", cpu="1", node="n0"), *members(1, "shop/old", 1, cpu="1", node="gone")]
    groups = [make_group("shop/old", 1, together=True, priority=0), make_group(min_count=1, priority=10)]
    cluster = Grouped([*nodes("1"), make_node("gone", cpu="1")], [here, there], groups)
    cluster.snapshot.table.remove_node(NodeName("gone"))
    found = cluster.decide(members(1, cpu="1", priority=10))
    why = 'failed to get node info for node "gone" from snapshot: nodeinfo not found for node name "gone"'
    text = f"pod group preemption: failed to create domain: {why}"
    assert (found.end, found.message) == (
        GroupEnd.ERROR,
        f'error in "DefaultPreemption" PodGroupPostFilter plugins: {text}',
    )


def test_members_on_a_node_that_is_gone_have_no_rack() -> None:
    gone = make_node("gone", cpu="1", labels={RACK: "r1"})
    placed = members(1, cpu="1", node="gone")
    cluster = Grouped([*nodes("2", rack="r1"), gone], placed, [make_group(topology=RACK)], topology=True)
    cluster.snapshot.table.remove_node(NodeName("gone"))
    found = cluster.decide(members(1, start=1, cpu="1"))
    why = 'getting node for pod shop/train-0: nodeinfo not found for node name "gone"'
    assert found.message == f"cannot determine domain for already scheduled pods: {why}"


@pytest.mark.parametrize("seed", range(60))
def test_what_is_placed_holds_and_what_is_not_leaves_no_trace(seed: int) -> None:
    """No group is partly placed; nothing takes more than there is; and a second try gives the same answer."""
    rng = Random(seed)
    racks = [f"r{number}" for number in range(rng.randint(1, 4))]
    there = [node for rack in racks for node in nodes(*(str(rng.randint(1, 4)) for _ in range(3)), rack=rack)]
    low = [make_pod(f"shop/low-{place}", cpu="1", node=rng.choice(there).name) for place in range(rng.randint(0, 4))]
    topology = rng.random() < 0.5
    least = rng.randint(1, 6)
    group = make_group(min_count=least, topology=RACK if topology else "", priority=rng.choice([0, 10]))
    cluster = Grouped(there, low, [group], topology=topology)
    pods = members(rng.randint(1, 8), cpu=str(rng.randint(1, 2)), priority=group["spec"]["priority"])
    before = cluster.placed
    found = cluster.decide(pods)
    got = [decision.node for decision in found.decisions if decision.node is not None]
    if found.end is GroupEnd.SCHEDULED:
        assert len(got) >= least
        assert not topology or len({node[:2] for node in got}) == 1
    else:
        assert not got and cluster.placed == before
        again = Grouped(there, low, [group], topology=topology).decide(pods)
        assert (again.end, again.message) == (found.end, found.message)
    for row, node in enumerate(cluster.snapshot.table.nodes):
        used = sum(pod.demand.requests.get("cpu", 0) for pod in cluster.snapshot.table.pods[row].values())
        before_it = sum(1000 for node_name in before.values() if node_name == node.name)
        assert used <= max(cluster.snapshot.table.allocatable("cpu")[row], before_it)


@pytest.mark.parametrize("seed", range(120))
def test_a_placement_that_is_foreseen_is_the_one_that_trying_all_finds(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups one after the other, so that racks fill up; some pods are not alike, some nodes have taints."""

    def run(*, tries_all: bool) -> list[tuple[object, ...]]:
        rng = Random(seed)
        taints = ["key=value:NoSchedule"] if rng.random() < 0.3 else []
        there = [
            make_node(
                f"r{rack}{place}",
                cpu=str(rng.randint(1, 4)),
                pods=rng.randint(1, 5),
                labels={RACK: f"r{rack}"},
                taints=taints if rng.random() < 0.3 else [],
            )
            for rack in range(rng.randint(2, 4))
            for place in range(rng.randint(1, 4))
        ]
        counts = [rng.randint(1, 5) for _ in range(4)]
        groups = [make_group(f"shop/g{n}", rng.randint(1, size), topology=RACK) for n, size in enumerate(counts)]
        cluster = Grouped(there, groups=groups, topology=True)
        if tries_all:
            monkeypatch.setattr(PodGroupCycle, "_foreseen", lambda self, *args: None)
        found = []
        for number, size in enumerate(counts):
            pods = members(size, f"shop/g{number}", cpu=str(rng.randint(1, 2)))
            if rng.random() < 0.2:
                pods[-1] = members(1, f"shop/g{number}", start=size - 1, cpu="500m")[0]
            decided = cluster.decide(pods)
            each = [(decision.node, decision.message) for decision in decided.decisions]
            found.append((decided.end, decided.message, each))
        return found

    assert run(tries_all=False) == run(tries_all=True)


def test_a_group_of_scheduler_plugins_waits_until_its_resources_are_free() -> None:
    """What its own pods hold counts as free."""
    (runs,) = members(1, cpu="1", node="n0")
    group = make_group(min_count=2, coscheduling={"minResources": {"cpu": "5", "memory": "1Ki", "pods": 1}})
    cluster = Grouped(nodes("2", "2"), [runs], [group])
    found = cluster.decide(members(2, start=1, cpu="1"))
    assert found.end is GroupEnd.UNSCHEDULABLE
    assert found.message.startswith("minResources of the pod group are not free in the cluster: cpu 1000, ")
    cluster.put(make_group(min_count=2, coscheduling={"minResources": {"cpu": "4"}}))
    assert cluster.decide(members(2, start=1, cpu="1")).end is GroupEnd.SCHEDULED


# -- searches that end early -------------------------------------------------------------------------------------------


def racks(**nodes_of: int) -> list:
    """So many nodes a rack, numbered within it."""
    return [
        make_node(f"{rack}-{place:03}", cpu="1", labels={RACK: rack})
        for rack, count in nodes_of.items()
        for place in range(count)
    ]


@pytest.mark.parametrize("start", [0, 7, 130])
def test_in_a_placement_a_search_ends_when_enough_nodes_are_found(start: int) -> None:
    """100 of the 120 nodes of rack a are looked at; those of b are too few to stop early."""
    cluster = Grouped(racks(a=120, b=5), groups=[make_group(min_count=6, topology=RACK)], topology=True, percentage=50)
    selector = cluster.cycle._selector
    selector.next_start = begin = start
    found = cluster.decide(members(6, cpu="1"))
    assert found.end is GroupEnd.SCHEDULED and all(node.startswith("a-") for node in cluster.placed.values())
    taken: set[int] = set()
    for decision in found.decisions:
        free = [step % 120 for step in range(begin, begin + 120) if step % 120 not in taken][:100]
        assert decision.node in {f"a-{place:03}" for place in free}
        taken.add(int(str(decision.node).removeprefix("a-")))
        begin = (free[-1] + 1) % 120
    # Rack b is tried last: of its five nodes all are looked at, over and over.
    assert selector.next_start == begin % 5


@pytest.mark.parametrize(("coscheduling", "seconds"), [(None, 300.0), ({}, 60.0), ({"scheduleTimeoutSeconds": 7}, 7.0)])
def test_how_long_permit_holds_a_pod_back(coscheduling: dict | None, seconds: float) -> None:
    cluster = Grouped(nodes("2"), groups=[make_group(min_count=2, coscheduling=coscheduling)])
    plugin = cluster.frameworks["default-scheduler"].plugin("GangScheduling")
    (pod,) = members(1)
    found = plugin.permit(CycleState(), PodInfo(pod), "n0")
    assert (found.status.code, found.timeout_s) == (Code.WAIT, seconds)
