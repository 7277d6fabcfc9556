"""Where pod groups and their pods stand, and gangs of which some pods have nodes."""

from typing import Any

import pytest

from dsched.fsck import nothing_lost, one_place, pod_groups
from dsched.fsck.findings import Kind
from dsched.fsck.reading import suspects
from dsched.fsck.view import View
from dsched.state.standings import Standing
from tests.unit.fsck.seeing import VERSION, a_group, a_pod, noted, reservation, standing, told, view

ENTITY, GANG = "podgroup/shop/gang", "shop/gang"
WEB = a_pod(group=GANG)


def entity(queue: str = "backoff", **record: Any) -> Standing:
    return standing(queue, key=ENTITY, **record)


def beside(key: str = "shop/web", **record: Any) -> Standing:
    return standing("group", key=key, **{"place": GANG, "group": GANG, **record})


def seen(*, group: Standing | None = None, pod: Standing | None = None, **more: Any) -> View:
    """A group in backoff with one pod beside it, unless told otherwise."""
    standings = {ENTITY: entity() if group is None else group, "shop/web": beside() if pod is None else pod}
    return view(WEB, **{"groups": [a_group()], "standings": standings, **more})


def found(of: View) -> list[str]:
    return told([*one_place.check(of), *nothing_lost.check(of), *pod_groups.check(of)])


@pytest.mark.parametrize("queue", ["active", "backoff", "gated", "inflight"])
def test_a_group_stands_in_the_queue_and_its_pods_beside_it(queue):
    assert found(seen(group=entity(queue))) == []


def test_pods_in_flight_are_not_beside_their_group():
    assert found(seen(group=entity("inflight"), pod=standing("inflight", place=GANG, group=GANG))) == []


def test_what_a_group_counts_begins_anew():
    assert found(seen(group=entity(attempts=0))) == []
    assert found(seen(pod=beside(attempts=0))) == ["I4 shop/web: has been tried, and its record counts 0 attempts"]


@pytest.mark.parametrize("queue", ["unschedulable", "group"])
def test_a_group_stands_where_groups_do(queue):
    assert told(pod_groups.check(seen(group=entity(queue)))) == [
        f"I1 {ENTITY}: is a pod group, and its record says {queue}, where only pods stand"
    ]


def test_a_group_without_its_object_is_a_breach_once_the_leader_has_heard_of_it():
    (gone,) = pod_groups.check(seen(groups=[]))
    assert (str(gone), gone.heard) == (f"I1 {ENTITY}: has a record, and there is no such pod group", VERSION)
    (other,) = pod_groups.check(seen(groups=[a_group(uid="new")]))
    assert str(other) == f"I1 {ENTITY}: has a record of uid uid-gang, the pod group has uid new"


def test_a_group_is_not_looked_for_where_groups_were_not_read_or_cannot_be():
    assert found(seen(groups=None)) == []
    assert found(seen(groups=[], broken={(Kind.GROUP, GANG): "why"})) == []
    assert found(view(standings={ENTITY: entity(), "shop/web": beside()}, version=0)) == []


def test_a_group_that_no_pod_stands_beside():
    alone = view(groups=[a_group()], standings={ENTITY: entity()})
    (one,) = pod_groups.check(alone)
    assert (str(one), one.heard) == (f"I1 {ENTITY}: stands in backoff, and no pod stands beside it", VERSION)
    in_flight = view(groups=[a_group()], standings={ENTITY: entity("inflight")})
    led_by_nobody = view(groups=[a_group()], standings={ENTITY: entity()}, leader="")
    assert found(in_flight) == found(led_by_nobody) == []


def test_a_pod_beside_a_group_that_is_not_in_the_queue():
    standings = {"shop/web": beside()}
    (one,) = pod_groups.check(view(WEB, groups=[a_group()], standings=standings))
    assert str(one) == f"I1 shop/web: stands beside pod group {GANG}, which is not in the queue"
    assert found(view(WEB, groups=[a_group()], standings=standings, leader="")) == []
    empty = view(WEB, groups=[a_group()], standings={**standings, ENTITY: Standing()})
    assert told(pod_groups.check(empty)) == [str(one)]


def test_a_pod_beside_another_group_than_its_own():
    strange = seen(pod=beside(place="shop/other"))
    assert found(strange)[0] == "I1 shop/web: stands beside pod group shop/other, its record says shop/gang"
    of_none = view(a_pod(), groups=[a_group()], standings={ENTITY: entity(), "shop/web": beside()})
    assert found(of_none) == [f"I1 shop/web: stands beside pod group {GANG}, it is of none"]


def test_a_pod_beside_its_group_and_in_the_queue():
    assert found(seen(pod=standing("group", places=("group", "active"), place=GANG, group=GANG))) == [
        "I1 shop/web: stands in active and in group"
    ]


def test_a_pod_stands_beside_its_group_as_its_record_says():
    pod = beside()
    moved = Standing({**pod.record, "place": "shop/new", "group": "shop/new"}, pod.members)
    assert "I1 shop/web: stands in group as 'shop/gang shop/web', its record says 'shop/new shop/web'" in found(
        seen(pod=moved)
    )


# -- I13 ---------------------------------------------------------------------------------------------------------------

DB = a_pod("shop/db", group=GANG, node="n1")


def gang(*pods: Any, **more: Any) -> View:
    return view(*pods, **{"groups": [a_group()], **more})


def test_a_gang_of_which_too_few_pods_have_nodes_is_worth_knowing():
    torn = gang(WEB, DB)
    assert noted(pod_groups.check(torn)) == [
        "I13 shop/gang: 1 of its pods have nodes, fewer than its minCount 2: "
        "others were deleted or not bound since, or they were not placed together"
    ]
    assert found(gang(DB, a_pod(node="n2", group=GANG))) == []


@pytest.mark.parametrize(
    "more",
    [
        {"groups": [a_group(scheduled=True)]},
        {"groups": [a_group(min_count=1)]},
        {"idle": False},
        {"leader": ""},
        {"reservations": [reservation()]},
    ],
    ids=str,
)
def test_what_may_be_so_with_a_gang(more):
    assert noted(pod_groups.check(gang(WEB, DB, **more))) == []


def test_a_gang_that_has_no_nodes_or_none_by_the_scheduler():
    by_manifest = a_pod("shop/db", group=GANG, node="n1", by_manifest=True)
    assert noted(pod_groups.check(gang(WEB))) == noted(pod_groups.check(gang(WEB, by_manifest))) == []


# -- looking again -----------------------------------------------------------------------------------------------------


def test_with_a_pod_its_whole_group_is_looked_at_again():
    first = view(WEB, DB, groups=[], standings={ENTITY: entity(), "shop/web": beside(), "shop/x": standing()})
    assert suspects(first, list(pod_groups.check(first))).keys == {ENTITY, "shop/web", "shop/db"}
    torn = gang(WEB, DB)
    assert suspects(torn, list(pod_groups.check(torn))).keys == {ENTITY, "shop/web", "shop/db"}
