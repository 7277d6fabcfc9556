"""Who has to give back what to whom, and that it comes to rest."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.manifests import Json, queue_manifest
from tests.unit.plugins.fair_share.divided import Cluster


def guaranteed(cores: int) -> dict[str, Json]:
    return {"cpu": {"guaranteed": cores}}


def test_a_guarantee_is_reached_by_taking_back_what_was_borrowed() -> None:
    there = Cluster(queue_manifest("a", resources=guaranteed(6)), queue_manifest("b", resources=guaranteed(4)))
    there.run(0, *[there.pod(f"b{number}", "b") for number in range(10)])
    there.wait(*[there.pod(f"a{number}", "a") for number in range(10)])
    there.settle()
    assert there.used() == {"a": 6, "b": 4}
    assert len(there.evicted) == 6


def test_idle_room_is_borrowed_by_weights_and_given_back_when_somebody_is_due_it() -> None:
    there = Cluster(queue_manifest("a"), queue_manifest("b", weight=3), cores=(8,))
    there.wait(*[there.pod(f"a{number}", "a") for number in range(8)])
    there.settle()
    assert there.used() == {"a": 8, "b": 0}
    there.wait(*[there.pod(f"b{number}", "b") for number in range(8)])
    there.settle()
    assert there.used() == {"a": 2, "b": 6}


def test_nothing_is_taken_where_the_pod_would_not_fit_all_the_same() -> None:
    there = Cluster(queue_manifest("a", resources=guaranteed(6)), queue_manifest("b"), cores=(4, 4))
    there.run(0, *[there.pod(f"b{number}", "b") for number in range(4)])
    there.run(1, *[there.pod(f"c{number}", "b") for number in range(4)])
    there.wait(there.pod("large", "a", cpu=5))
    there.settle()
    assert there.evicted == []


def test_lowest_priority_first_and_of_these_who_ran_shortest() -> None:
    there = Cluster(queue_manifest("a", resources=guaranteed(1)), queue_manifest("b"), cores=(3,))
    there.run(0, there.pod("high", "b", priority=5), there.pod("first", "b"), there.pod("second", "b"))
    there.wait(there.pod("p", "a"))
    there.turn()
    assert there.evicted == ["second"]


def test_budgets_are_respected_before_importance() -> None:
    there = Cluster(queue_manifest("a", resources=guaranteed(1)), queue_manifest("b"), cores=(3,))
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
    there.run(0, there.pod("high", "b", priority=5), there.pod("higher", "b", priority=9), kept)
    there.wait(there.pod("p", "a"))
    there.turn()
    assert there.evicted == ["high"]


def test_pods_of_a_group_that_is_disrupted_together_go_together() -> None:
    there = Cluster(queue_manifest("a", resources=guaranteed(1)), queue_manifest("b"), cores=(3,))
    policy = {"schedulingPolicy": {"basic": {}}, "disruptionMode": {"all": {}}}
    there.memory.snapshot.put("PodGroup", "shop/g", {"metadata": {"name": "g", "namespace": "shop"}, "spec": policy})
    of = {"schedulingGroup": {"podGroupName": "g"}}
    there.run(0, there.pod("alone", "b", priority=5), *[there.pod(f"g{number}", "b", **of) for number in range(2)])
    there.wait(there.pod("p", "a"))
    there.turn()
    assert sorted(there.evicted) == ["g0", "g1"]


def test_what_a_queue_is_due_is_left_to_it() -> None:
    there = Cluster(queue_manifest("a"), queue_manifest("b"), cores=(10,))
    there.run(0, *[there.pod(f"b{number}", "b", cpu=2) for number in range(5)])
    there.wait(*[there.pod(f"a{number}", "a", cpu=2) for number in range(5)])
    there.settle()
    assert there.used() == {"a": 4, "b": 6}, "with one pod less b would have less than its 5 cores"


def test_a_queue_that_never_gives_back_keeps_what_it_has() -> None:
    there = Cluster(queue_manifest("a", resources=guaranteed(6)), queue_manifest("b", reclaim="Never"))
    there.run(0, *[there.pod(f"b{number}", "b") for number in range(10)])
    there.wait(there.pod("p", "a", priority=100))
    there.settle()
    assert there.evicted == []


def test_a_queue_that_gives_back_lower_priorities_keeps_the_others() -> None:
    there = Cluster(queue_manifest("a", resources=guaranteed(6)), queue_manifest("b", reclaim="LowerPriority"))
    there.run(0, *[there.pod(f"b{number}", "b", priority=number) for number in range(10)])
    there.wait(*[there.pod(f"a{number}", "a", priority=2) for number in range(5)])
    there.settle()
    assert sorted(there.evicted) == ["b0", "b1"]


def test_a_pod_runs_for_as_long_as_its_queue_says_before_it_is_taken_back() -> None:
    there = Cluster(queue_manifest("a", resources=guaranteed(6)), queue_manifest("b", minRuntime="1000000h"))
    there.run(0, *[there.pod(f"b{number}", "b") for number in range(10)])
    there.wait(there.pod("p", "a"))
    there.settle()
    assert there.evicted == []


def test_inside_a_queue_priority_preempts() -> None:
    there = Cluster(queue_manifest("a"), cores=(2,))
    there.run(0, there.pod("low", "a"), there.pod("same", "a", priority=5))
    there.wait(there.pod("p", "a", priority=5))
    there.settle()
    assert there.evicted == ["low"]
    assert there.used() == {"a": 2}


def test_priority_does_not_reach_into_another_queue_beyond_what_the_own_one_is_due() -> None:
    there = Cluster(queue_manifest("a"), queue_manifest("b"), cores=(4,))
    there.run(0, *[there.pod(f"{name}{number}", name) for name in ("a", "b") for number in range(2)])
    there.wait(there.pod("p", "a", priority=1000))
    there.settle()
    assert there.evicted == ["a0"] or there.evicted == ["a1"]


def test_brothers_settle_among_themselves_before_cousins_are_asked() -> None:
    there = Cluster(
        queue_manifest("ml", resources=guaranteed(4)),
        queue_manifest("x", "ml", resources=guaranteed(2)),
        queue_manifest("y", "ml", resources=guaranteed(2)),
        queue_manifest("web", resources=guaranteed(4)),
        cores=(8,),
    )
    there.run(0, *[there.pod(f"y{number}", "y") for number in range(4)])
    there.run(0, *[there.pod(f"web{number}", "web") for number in range(4)])
    there.wait(there.pod("p", "x"), there.pod("q", "x"))
    there.settle()
    assert there.used() == {"ml": 4, "x": 2, "y": 2, "web": 4}
    assert {name[0] for name in there.evicted} == {"y"}


queues = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d", "e"]),
    st.tuples(
        st.sampled_from(["", "a", "b"]),
        st.integers(0, 3),
        st.integers(0, 6),
        st.one_of(st.none(), st.integers(6, 20)),
        st.sampled_from(["Any", "Any", "LowerPriority", "Never"]),
    ),
    min_size=1,
)
pods = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", "d", "e"]), st.integers(1, 3), st.integers(0, 2)), max_size=16
)


def test_a_guarantee_is_reached_below_a_queue_that_is_due_nothing_beyond_its_own() -> None:
    """Nobody says how many pods are due to whom, so that is no reason to leave the guarantee unreached."""
    there = Cluster(
        queue_manifest("z", weight=0),
        queue_manifest("a", "z", resources=guaranteed(2)),
        queue_manifest("b", "z"),
        cores=(4,),
    )
    there.run(0, *[there.pod(f"b{number}", "b") for number in range(4)])
    there.wait(*[there.pod(f"a{number}", "a") for number in range(2)])
    there.settle()
    assert there.used() == {"z": 4, "a": 2, "b": 2}


Asked = dict[str, tuple[str, int, int, int | None, str]]
"""Queue to parent, weight, guarantee, limit, and what it gives back."""


def generated(asked: Asked, cores: Sequence[int], **more: Any) -> Cluster:
    return Cluster(
        *[
            queue_manifest(
                name,
                parent if parent < name else "",
                resources={"cpu": {"guaranteed": due, **({} if limit is None else {"limit": limit})}},
                weight=weight,
                reclaim=reclaim,
            )
            for name, (parent, weight, due, limit, reclaim) in asked.items()
        ],
        cores=cores,
        **more,
    )


def test_what_is_free_for_a_pod_stays_so_when_another_preempts_in_its_own_queue() -> None:
    """p0, whose room c1 takes back, has a pod of its own queue evicted: not for the next of that queue, but for itself.
    What is idle then is c3's, which comes before c1."""
    there = Cluster(
        *[queue_manifest(name, resources=guaranteed(due), weight=0) for name, due in (("a", 3), ("c", 1), ("d", 3))],
        cores=(7,),
    )
    there.wait(there.pod("p0", "a", priority=1), there.pod("p1", "a", 3), there.pod("p2", "a", 3))
    there.wait(there.pod("c1", "c"), there.pod("c3", "c", 3, priority=1))
    there.wait(there.pod("d1", "d"), there.pod("d2", "d", 2))
    there.settle()
    assert there.used() == {"a": 1, "c": 3, "d": 3}
    assert sorted(there.evicted) == ["c1", "p0", "p1"]


@settings(max_examples=150, deadline=None)
@given(queues, pods, pods, st.lists(st.integers(2, 8), min_size=1, max_size=3))
def test_a_fixed_demand_comes_to_rest_within_all_limits(
    asked: Asked, first: list[tuple[str, int, int]], then: list[tuple[str, int, int]], cores: list[int]
) -> None:
    there = generated(asked, cores)
    for wave in (first, then):
        there.wait(
            *[there.pod(f"p{number}", name, cpu, priority=high) for number, (name, cpu, high) in enumerate(wave)]
        )
        there.settle()
        for name, share in there.picking.ledger.tree.shares.items():
            assert there.used()[name] * 1000 <= share.limits.get("cpu", 10**9)
