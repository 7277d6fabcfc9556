"""Pod groups that take back what their queue is due, as one."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.manifests import Json, guaranteed, queue_manifest
from tests.unit.plugins.fair_share.divided import Cluster
from tests.unit.plugins.fair_share.test_reclaim import Asked, generated, queues


def divided(cores: tuple[int, ...] = (10,), racks: str = "", **b: object) -> Cluster:
    """Queue a has 6 cores guaranteed, b 4 and all that is there."""
    spec: Json = {"resources": guaranteed(cpu=4), **b}
    there = Cluster(
        queue_manifest("a", resources=guaranteed(cpu=6)),
        queue_manifest("b", **spec),
        cores=cores,
        racks=tuple(racks),
        groups=True,
    )
    for node, count in enumerate(cores):
        there.run(node, *[there.pod(f"b{node}-{number}", "b") for number in range(count)])
    return there


def test_a_group_takes_back_room_for_all_its_pods() -> None:
    there = divided()
    there.wait(*there.group("g", "a", 4, 4))
    there.settle()
    assert there.used() == {"a": 4, "b": 6}
    assert len(there.evicted) == 4


def test_nobody_goes_for_a_group_that_is_due_less_than_the_least_it_needs() -> None:
    there = divided()
    there.wait(*there.group("g", "a", 8, 7))
    there.settle()
    assert there.evicted == []


def test_a_group_takes_what_its_queue_is_due_if_that_is_enough() -> None:
    there = divided()
    there.wait(*there.group("g", "a", 8, 5))
    there.settle()
    assert there.used() == {"a": 6, "b": 4}
    assert len(there.evicted) == 6


def test_the_rest_of_a_group_takes_back_what_is_due_later() -> None:
    there = Cluster(queue_manifest("a", resources=guaranteed(cpu=3)), queue_manifest("b"), cores=(4,), groups=True)
    there.run(0, *[there.pod("b", "b") for _ in range(4)])
    members = there.group("g", "a", 3, 2)
    there.wait(*members[:2])
    there.settle()
    assert there.used() == {"a": 2, "b": 2}
    there.wait(members[2])
    there.settle()
    assert there.used() == {"a": 3, "b": 1}


def test_nobody_goes_where_the_group_would_not_fit_all_the_same() -> None:
    there = divided(cores=(4, 4, 2))
    there.wait(*there.group("g", "a", 2, 2, cpu=3))
    there.settle()
    assert len(there.evicted) == 6, "two nodes are large enough"
    there = divided(cores=(4, 2, 2))
    there.wait(*there.group("g", "a", 2, 2, cpu=3))
    there.settle()
    assert there.evicted == []


def test_a_group_that_has_to_be_in_one_rack_gets_room_in_one() -> None:
    there = divided(cores=(2, 2, 3, 3), racks="xxyy")
    there.wait(*there.group("g", "a", 5, 5, rack=True))
    there.turn()
    assert sorted({name[:2] for name in there.evicted}) == ["b2", "b3"]
    assert len(there.evicted) == 5


def test_what_may_go_elsewhere_does_not_hide_what_may_go_in_the_rack() -> None:
    """Four may go from queue b, and the least important ones are where the group has no room."""
    there = Cluster(
        queue_manifest("a", resources=guaranteed(cpu=6)),
        queue_manifest("b", resources=guaranteed(cpu=6)),
        cores=(3, 3, 4),
        racks=("x", "x", "y"),
        groups=True,
    )
    for node, count in enumerate((3, 3, 4)):
        there.run(node, *[there.pod(f"b{node}", "b", priority=node) for _ in range(count)])
    there.wait(*there.group("g", "a", 1, 1, cpu=4, rack=True))
    there.turn()
    assert there.evicted == ["b2"] * 4


def test_nodes_that_are_out_of_the_question_do_not_hide_those_that_are_not() -> None:
    there = divided(cores=(5, 5), racks="xy")
    there.memory.snapshot.put("Queue", "b", queue_manifest("b", resources=guaranteed(cpu=8)))
    members = there.group("g", "a", 2, 2)
    pinned = [
        there.pod(f"g{number}", "a", schedulingGroup={"podGroupName": "g"}, nodeSelector={"rack": "x"})
        for number in range(len(members))
    ]
    there.wait(*pinned)
    there.turn()
    assert sorted({name[:2] for name in there.evicted}) == ["b0"]


def test_free_room_is_used_before_anybody_goes() -> None:
    there = divided(cores=(4, 4, 2))
    there.memory.snapshot.table.remove_pod(next(uid for uid in there.memory.snapshot.table.pods[2]))
    there.wait(*there.group("g", "a", 2, 2))
    there.turn()
    assert len(there.evicted) == 1


def test_lowest_priority_first_and_of_these_who_ran_shortest() -> None:
    there = Cluster(queue_manifest("a", resources=guaranteed(cpu=2)), queue_manifest("b"), cores=(2, 2), groups=True)
    there.run(0, there.pod("high", "b", priority=5), there.pod("first", "b"))
    there.run(1, there.pod("higher", "b", priority=6), there.pod("second", "b"))
    there.wait(*there.group("g", "a", 2, 2))
    there.turn()
    assert sorted(there.evicted) == ["first", "second"]


def test_budgets_are_respected_before_importance() -> None:
    there = Cluster(queue_manifest("a", resources=guaranteed(cpu=2)), queue_manifest("b"), cores=(2, 2), groups=True)
    there.memory.snapshot.put(
        "PodDisruptionBudget",
        "shop/keep",
        {
            "metadata": {"name": "keep", "namespace": "shop"},
            "spec": {"selector": {"matchLabels": {"kept": "yes"}}},
            "status": {"disruptionsAllowed": 0},
        },
    )
    kept = there.pod("low", "b")
    kept.pod.metadata.labels["kept"] = "yes"
    there.run(0, kept, there.pod("high", "b", priority=5))
    there.run(1, there.pod("higher", "b", priority=6), there.pod("higher", "b", priority=6))
    there.wait(*there.group("g", "a", 2, 2))
    there.turn()
    assert sorted(there.evicted) == ["high", "higher"]


def test_victims_that_are_disrupted_together_go_together_or_stay() -> None:
    there = Cluster(
        queue_manifest("a", resources=guaranteed(cpu=2)),
        queue_manifest("b", resources=guaranteed(cpu=2)),
        cores=(2, 2),
        groups=True,
    )
    together = there.group("v", "b", 3, None, disruptionMode={"all": {}})
    there.run(0, *together[:2])
    there.run(1, together[2], there.pod("alone", "b"))
    there.wait(*there.group("g", "a", 2, 2))
    there.settle()
    assert there.evicted == [], "b would have less than its 2 cores without all three"
    there = Cluster(queue_manifest("a", resources=guaranteed(cpu=3)), queue_manifest("b"), cores=(2, 2), groups=True)
    together = there.group("v", "b", 3, None, disruptionMode={"all": {}})
    there.run(0, *together[:2])
    there.run(1, together[2], there.pod("alone", "b", priority=1))
    there.wait(*there.group("g", "a", 2, 2))
    there.turn()
    assert sorted(there.evicted) == ["v0", "v1", "v2"]


def test_what_a_queue_does_not_give_back_it_keeps() -> None:
    for kept in ({"reclaim": "Never"}, {"reclaim": "LowerPriority"}, {"minRuntime": "1000000h"}):
        there = divided(**kept)
        there.wait(*there.group("g", "a", 2, 2))
        there.settle()
        assert there.evicted == [], kept
    there = divided(reclaim="LowerPriority")
    there.wait(*there.group("g", "a", 2, 2, priority=1))
    there.settle()
    assert len(there.evicted) == 2


def test_inside_a_queue_groups_preempt_by_priority() -> None:
    there = Cluster(queue_manifest("a"), cores=(3,), groups=True)
    there.run(0, there.pod("low", "a"), there.pod("low", "a"), there.pod("same", "a", priority=5))
    there.wait(*there.group("g", "a", 2, 2, priority=5))
    there.turn()
    assert there.evicted == ["low", "low"]


def test_a_group_of_no_queue_evicts_by_priority_alone() -> None:
    there = Cluster(queue_manifest("a"), cores=(3,), groups=True)
    there.run(0, *[there.pod(f"a{number}", "a", priority=number) for number in range(3)])
    there.wait(*there.group("g", "", 2, 2, priority=2))
    there.turn()
    assert sorted(there.evicted) == ["a0", "a1"]


def test_a_group_whose_pods_are_of_several_queues_takes_nothing() -> None:
    there = divided()
    members = there.group("g", "a", 2, 2)
    members[1].pod.metadata.labels["dsched.io/queue"] = "b"
    there.wait(*members)
    there.settle()
    assert there.evicted == []


def test_what_is_promised_to_a_group_is_kept_from_others_and_nobody_goes_twice() -> None:
    there = divided()
    there.wait(*there.group("g", "a", 4, 4))
    decided = there.turn()
    assert {decision.nominated for decision in decided} == {"n0"}
    there.wait(*[there.pod("high", "b", priority=1000) for _ in range(3)])
    there.settle()
    assert there.used() == {"a": 4, "b": 6}
    assert len([name for name in there.evicted if name[0] == "b"]) <= 4 + 3, "high ones take from their own queue"


waves = st.lists(
    st.tuples(st.sampled_from("abcde"), st.integers(1, 2), st.integers(0, 2), st.integers(0, 3), st.booleans()),
    max_size=10,
)


@settings(max_examples=150, deadline=None)
@given(queues, waves, waves, st.lists(st.integers(2, 8), min_size=1, max_size=3), st.booleans())
def test_a_fixed_demand_of_pods_and_groups_comes_to_rest_within_all_limits(
    asked: Asked,
    first: list[tuple[str, int, int, int, bool]],
    then: list[tuple[str, int, int, int, bool]],
    cores: list[int],
    together: bool,
) -> None:
    there = generated(asked, cores, racks=[str(number) for number in range(len(cores))], groups=True)
    spec = {"disruptionMode": {"all": {}}} if together else {}
    for turn, wave in enumerate((first, then)):
        for number, (name, cpu, high, size, rack) in enumerate(wave):
            if size == 0:
                there.wait(there.pod(f"p{number}", name, cpu, priority=high))
            else:
                least = max(1, size - 1)
                there.wait(*there.group(f"g{turn}-{number}", name, size, least, cpu, rack=rack, priority=high, **spec))
        there.settle()
        for name, share in there.picking.ledger.tree.shares.items():
            assert there.used()[name] * 1000 <= share.limits.get("cpu", 10**9)
