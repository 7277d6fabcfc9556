"""Who is tried when, who has to go, who waits, and what is told of it."""

from typing import Any

import pytest
from msgspec.structs import replace

from dsched.framework.interface import Action, Code, Hint, PermitResult, Registration, Resource, Status, unschedulable
from dsched.simulation.outcome import Ending
from dsched.simulation.turned_away import MOST
from tests.builders import make_node, make_pod
from tests.unit.simulation.worlds import Gang, Told, plugin

# -- the order of attempts ---------------------------------------------------------------------------------------------


def test_pods_are_tried_in_queue_order() -> None:
    told = Told([make_node()], [make_pod("shop/a"), make_pod("shop/b", priority=5), make_pod("shop/c", priority=5)])
    assert told.tried == ["b", "c", "a"]


def test_a_preemptor_is_tried_again_once_its_victims_are_gone() -> None:
    low = make_pod("shop/low", cpu=3, node="n1")
    pods = [low, make_pod("shop/high", cpu=4, priority=9), make_pod("shop/small", cpu=1)]
    told = Told([make_node(cpu=4)], pods)
    assert told.tried == ["high", "small", "high"]
    assert (told.of("low").ending, told.of("low").node, told.of("low").evicted_by) == (
        Ending.EVICTED,
        "n1",
        "shop/high",
    )
    assert (told.of("high").ending, told.of("high").node, told.of("high").attempts) == (Ending.PLACED, "n1", 2)
    # The room is promised, so nobody else takes it in between.
    assert told.of("small").ending is Ending.UNSCHEDULABLE


def test_who_waits_for_pods_that_are_going_already_is_left_in_the_end() -> None:
    """Each takes back what another one was promised, which has that one tried again."""
    going = make_pod("shop/going", cpu="1250m", node="n1")
    going = replace(going, metadata=replace(going.metadata, deletion_timestamp="2023-11-14T22:13:20Z"))
    pods = [going, make_pod("shop/evicted", cpu="1180m", node="n2", priority=5)]
    pods += [make_pod("shop/a", cpu=3, priority=100), make_pod("shop/b", cpu="3600m", priority=100)]
    pods += [make_pod("shop/c", cpu=1, priority=10)]
    told = Told([make_node("n1", cpu=4), make_node("n2", cpu=4)], pods)
    assert told.of("evicted").ending is Ending.EVICTED
    assert Ending.UNSCHEDULABLE in {told.of(name).ending for name in "abc"}
    assert max(told.of(name).attempts for name in "abc") <= 2 * MOST


def test_who_may_be_tried_again_asks_pre_enqueue_again() -> None:
    class Once:
        name = "Once"

        def __init__(self, args: Any, handle: Any) -> None:
            self._asked = 0

        def pre_enqueue(self, pod: Any) -> Status | None:
            self._asked += 1
            return None if self._asked == 1 else unschedulable("it had its turn")

    pods = [make_pod("shop/low", cpu=3, node="n1"), make_pod("shop/high", cpu=4, priority=9)]
    told = Told([make_node(cpu=4)], pods, Once)
    assert told.tried == ["high"]
    assert told.of("low").ending is Ending.EVICTED
    high = told.of("high")
    assert (high.ending, high.message, high.attempts) == (Ending.GATED, "Once: it had its turn", 1)


def test_who_has_met_an_error_is_tried_again_once_anything_has_happened() -> None:
    bound = []

    def reserve(self: Any, state: Any, pod: Any, node: Any) -> Status | None:
        if pod.key == "shop/a" and not bound:
            return Status(Code.ERROR, ("no answer",))
        bound.append(pod.key)
        return None

    def failing(self: Any, state: Any, pod: Any, node: Any) -> Status:
        return Status(Code.ERROR, ("no answer",))

    def unreserve(self: Any, state: Any, pod: Any, node: Any) -> None:
        pass

    once, always = plugin(reserve=reserve, unreserve=unreserve), plugin(reserve=failing, unreserve=unreserve)
    told = Told([make_node()], [make_pod("shop/a"), make_pod("shop/b")], once)
    assert told.tried == ["a", "b", "a"]
    assert (told.of("a").ending, told.of("a").attempts) == (Ending.PLACED, 2)
    alone = Told([make_node()], [make_pod("shop/a")], always)
    assert alone.tried == ["a"]
    assert (alone.of("a").ending, alone.of("a").message) == (Ending.FAILED, "no answer")


def test_a_promise_in_the_manifest_is_kept() -> None:
    nodes = [make_node("n1", cpu=2), make_node("n2", cpu=2)]
    pods = [make_pod("shop/other", cpu=2), make_pod("shop/promised", cpu=2, nominated="n2")]
    told = Told(nodes, pods)
    assert (told.of("other").node, told.of("promised").node) == ("n1", "n2")


def test_who_left_promised_room_alone_is_tried_again() -> None:
    """The promised pod finds its place elsewhere."""
    nodes = [make_node("n1", cpu=4, labels={"at": "n1"}), make_node("n2", cpu=3)]
    small = make_pod("shop/small", cpu=2, node_selector={"at": "n1"})
    pods = [make_pod("shop/old", cpu=2, node="n1"), small, make_pod("shop/promised", cpu=3, nominated="n1")]
    told = Told(nodes, pods)
    assert told.tried == ["small", "promised", "small"]
    assert (told.of("promised").node, told.of("small").node) == ("n2", "n1")


def test_a_promise_that_is_left_at_the_end_is_told() -> None:
    """The node's pod is being deleted, so there is nobody to evict; and nobody ends its deletion here."""
    deleting = make_pod("shop/old", cpu=4, node="n1")
    deleting = type(deleting)(
        metadata=type(deleting.metadata)(
            name="old", namespace="shop", uid="uid-old", deletion_timestamp="2025-01-01T00:00:00Z"
        ),
        spec=deleting.spec,
    )
    told = Told([make_node(cpu=4)], [deleting, make_pod("shop/high", cpu=4, priority=9)])
    assert (told.of("high").ending, told.of("high").nominated) == (Ending.UNSCHEDULABLE, "n1")
    assert [pod.key for pod in told.outcome.pods] == ["shop/high"]


class Follows:
    """Pods named follower fit once a pod named leader is placed."""

    name = "Follows"

    def __init__(self, args: Any, handle: Any) -> None:
        self._handle = handle

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        leads = any(other.pod.metadata.name == "leader" for _, other in self._handle.snapshot.table.placed())
        return None if leads or pod.pod.metadata.name != "follower" else unschedulable("nobody leads")

    def events_to_register(self) -> list[Registration]:
        return [Registration(Resource.ASSIGNED_POD, frozenset({Action.ADD}), self._hint)]

    def _hint(self, pod: Any, event: Any) -> Hint:
        return Hint.QUEUE if event.new.metadata.name == "leader" else Hint.SKIP


def test_a_pod_is_tried_again_when_a_hint_says_so() -> None:
    pods = [
        make_pod("shop/follower", priority=9),
        make_pod("shop/other"),
        make_pod("shop/leader"),
        make_pod("shop/last"),
    ]
    told = Told([make_node()], pods, Follows)
    assert told.tried == ["follower", "other", "leader", "last", "follower"]
    assert (told.of("follower").ending, told.of("follower").attempts) == (Ending.PLACED, 2)


def test_a_pod_that_no_hint_helped_is_tried_again_once_a_pod_has_gone() -> None:
    """As the leader does after five minutes."""

    class Deaf(Follows):
        name = "Deaf"

        def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
            there = [other.pod.metadata.name for _, other in self._handle.snapshot.table.placed()]
            return unschedulable("low is there") if "low" in there and pod.pod.metadata.name == "follower" else None

    low = make_pod("shop/low", cpu=3, node="n1")
    patient = make_pod("shop/follower", priority=99, spec={"preemptionPolicy": "Never"})
    told = Told([make_node(cpu=4)], [low, patient, make_pod("shop/high", cpu=4, priority=9)], Deaf)
    assert told.tried == ["follower", "high", "high", "follower"]
    assert told.of("follower").ending is Ending.PLACED


# -- gates, other schedulers, failures ---------------------------------------------------------------------------------


def test_a_pod_that_a_plugin_activates_is_tried_again() -> None:
    class Calls:
        name = "Calls"

        def __init__(self, args: Any, handle: Any) -> None:
            self._handle, self._called = handle, False

        def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
            return None if self._called or pod.key == "shop/last" else unschedulable("nobody has called")

        def events_to_register(self) -> list[Registration]:
            return []

        def reserve(self, state: Any, pod: Any, node: Any) -> None:
            self._called = True
            self._handle.activate(["shop/b"])

        def unreserve(self, state: Any, pod: Any, node: Any) -> None:
            pass

    pods = [make_pod("shop/a", priority=2), make_pod("shop/b", priority=2), make_pod("shop/last")]
    told = Told([make_node()], pods, Calls)
    assert told.tried == ["a", "b", "last", "b"]
    assert told.of("a").ending is Ending.UNSCHEDULABLE


def test_pods_that_are_activated_again_and_again_are_left_in_the_end() -> None:
    class Restless:
        name = "Restless"

        def __init__(self, args: Any, handle: Any) -> None:
            self._handle = handle

        def pre_filter(self, state: Any, pod: Any, snapshot: Any) -> Status:
            self._handle.activate(["shop/a", "shop/b"])
            return unschedulable("not now")

        def events_to_register(self) -> list[Registration]:
            return []

    told = Told([make_node()], [make_pod("shop/a"), make_pod("shop/b")], Restless)
    assert 2 < len(told.tried) < 10


def test_gated_pods_are_not_tried() -> None:
    told = Told([make_node()], [make_pod("shop/web", gates=["example.com/later"]), make_pod("shop/free")])
    assert told.tried == ["free"]
    message = "SchedulingGates: waiting for scheduling gates: [example.com/later]"
    assert (told.of("web").ending, told.of("web").message) == (Ending.GATED, message)
    assert [pod.key for pod in told.outcome.pods] == ["shop/free", "shop/web"]


def test_a_gate_that_opens_lets_the_pod_in() -> None:
    class UntilSomebodyIsThere:
        name = "UntilSomebodyIsThere"

        def __init__(self, args: Any, handle: Any) -> None:
            self._handle = handle

        def pre_enqueue(self, pod: Any) -> Status | None:
            alone = not any(True for _ in self._handle.snapshot.table.placed())
            return unschedulable("alone") if alone and pod.metadata.name == "shy" else None

    told = Told([make_node()], [make_pod("shop/shy", priority=9), make_pod("shop/bold")], UntilSomebodyIsThere)
    assert told.tried == ["bold", "shy"]
    assert told.of("shy").ending is Ending.PLACED


def test_pods_of_other_schedulers_are_ignored() -> None:
    told = Told([make_node()], [make_pod("shop/web", spec={"schedulerName": "other"})])
    assert told.tried == []
    assert told.of("web").ending is Ending.IGNORED
    assert told.of("web").message == 'schedulerName "other" is none of default-scheduler'


def test_a_plugin_that_fails_fails_its_pod_alone() -> None:
    def filter_(self: Any, state: Any, pod: Any, node: Any) -> Status | None:
        return Status(Code.ERROR, ("on fire",)) if pod.pod.metadata.name == "bad" else None

    told = Told([make_node()], [make_pod("shop/bad"), make_pod("shop/good")], plugin(filter=filter_))
    assert told.of("bad").ending is Ending.FAILED
    assert "on fire" in told.of("bad").message
    assert told.of("good").ending is Ending.PLACED


# -- Permit ------------------------------------------------------------------------------------------------------------


class Pairs:
    """Permit holds a pod back until a second one is there; a pod named spoiler turns the one that waits away."""

    name = "Pairs"

    def __init__(self, args: Any, handle: Any) -> None:
        self._handle = handle
        self.unreserved: list[str] = []

    def reserve(self, state: Any, pod: Any, node: Any) -> None:
        return None

    def unreserve(self, state: Any, pod: Any, node: Any) -> None:
        Pairs.given_back.append(pod.pod.metadata.name)

    def permit(self, state: Any, pod: Any, node: Any) -> PermitResult:
        if pod.pod.metadata.name == "free":
            return PermitResult()
        for other in self._handle.waiting_pods():
            if pod.pod.metadata.name == "spoiler":
                other.reject(self.name, "spoiled")
                return PermitResult()
            other.allow(self.name)
            return PermitResult()
        return PermitResult(Status(Code.WAIT), timeout_s=60)

    given_back: list[str] = []


@pytest.fixture(autouse=True)
def fresh_pairs() -> None:
    Pairs.given_back = []


def test_a_pod_that_permit_holds_back_keeps_its_room_until_nothing_is_left_to_try() -> None:
    told = Told([make_node(cpu=2)], [make_pod("shop/a", cpu=2), make_pod("shop/free", cpu=1)], Pairs)
    assert told.tried == ["a", "free", "free", "a"]
    assert Pairs.given_back == ["a"]
    assert told.of("free").ending is Ending.PLACED
    assert told.of("a").ending is Ending.UNSCHEDULABLE


def test_patience_ends_once_for_each_pod() -> None:
    told = Told([make_node(cpu=2)], [make_pod("shop/a", cpu=2)], Pairs)
    assert told.tried == ["a", "a"]
    assert (told.of("a").ending, told.of("a").node, told.of("a").message) == (
        Ending.WAITING,
        "n1",
        "held back by Pairs",
    )
    first, _ = told.decisions
    assert first.waiting is not None
    assert first.waiting.rejection is not None
    assert first.waiting.rejection.message == "rejected due to timeout after waiting 1m0s at plugin Pairs"


def test_a_pod_that_permit_lets_go_is_placed() -> None:
    told = Told([make_node()], [make_pod("shop/a"), make_pod("shop/b")], Pairs)
    assert [told.of(name).ending for name in "ab"] == [Ending.PLACED, Ending.PLACED]
    assert Pairs.given_back == []


def test_a_pod_that_permit_turns_away_gives_its_room_back() -> None:
    pods = [make_pod("shop/a", cpu=1, priority=9), make_pod("shop/spoiler", cpu=1)]
    told = Told([make_node(cpu=2)], pods, Pairs)
    assert told.tried[:3] == ["a", "spoiler", "a"]
    assert Pairs.given_back[0] == "a"
    assert told.of("spoiler").ending is Ending.PLACED


def test_a_pod_that_is_turned_away_again_and_again_is_left_in_the_end() -> None:
    """Whose room is given back helps the other one."""
    pods = [make_pod("shop/a", priority=9), make_pod("shop/b", priority=9), make_pod("shop/stray")]
    told = Told([make_node()], pods, Gang)
    assert [told.tried.count(name) for name in "ab"] == [MOST, MOST]
    assert {told.of(name).ending for name in ("a", "b", "stray")} == {Ending.UNSCHEDULABLE}
    assert told.of("a").message == "0/1 nodes are available: 1 the gang is not complete."


def test_plugins_see_who_is_pending() -> None:
    """All pods are known before any of them is asked about."""

    class OnlyTogether:
        name = "OnlyTogether"

        def __init__(self, args: Any, handle: Any) -> None:
            self._handle = handle

        def pre_enqueue(self, pod: Any) -> Status | None:
            names = {each.info.pod.metadata.name for each in self._handle.pending_pods()}
            together = {"a", "b"} <= names and self._handle.pending_pod("shop/a") is not None
            return None if together else unschedulable("alone")

    alone = Told([make_node()], [make_pod("shop/a")], OnlyTogether)
    assert alone.of("a").message == "OnlyTogether: alone"
    told = Told([make_node()], [make_pod("shop/a"), make_pod("shop/b")], OnlyTogether)
    assert [told.of(name).ending for name in "ab"] == [Ending.PLACED, Ending.PLACED]


def test_a_victim_that_permit_holds_back_is_unreserved_and_queued_again() -> None:
    """The preemptor comes late: its gate opens when there is somebody to evict."""

    class Late:
        name = "Late"

        def __init__(self, args: Any, handle: Any) -> None:
            self._handle = handle
            self._open = False

        def pre_enqueue(self, pod: Any) -> Status | None:
            self._open = self._open or any(True for _ in self._handle.waiting_pods())
            return None if self._open or pod.metadata.name != "high" else unschedulable("too early")

    pods = [make_pod("shop/high", cpu=4, priority=9), make_pod("shop/low", cpu=2), make_pod("shop/free", cpu=1)]
    told = Told([make_node(cpu=4)], pods, Pairs, Late)
    assert told.tried[:3] == ["low", "free", "high"]
    assert Pairs.given_back[0] == "low"
    endings = {name: told.of(name).ending for name in ("low", "free")}
    assert endings == {"low": Ending.UNSCHEDULABLE, "free": Ending.EVICTED}
    assert told.of("high").node == "n1"


# -- how full ----------------------------------------------------------------------------------------------------------


def test_the_fill_before_and_after() -> None:
    pods = [
        make_pod("shop/a", cpu=1, memory="1Gi", node="n1"),
        make_pod("shop/b", cpu="500m", requests={"example.com/gpu": 1}),
    ]
    told = Told(
        [make_node("n1", cpu=4, memory="2Gi"), make_node("n2", cpu=1, allocatable={"example.com/gpu": 2})], pods
    )
    fills = {fill.resource: (fill.before, fill.after, fill.allocatable) for fill in told.outcome.resources}
    gi = 1 << 30
    assert fills == {
        "cpu": (1000, 1500, 5000),
        "memory": (gi, gi, 18 * gi),
        "example.com/gpu": (0, 1, 2),
        "pods": (1, 2, 220),
    }
    n1, n2 = told.outcome.nodes
    assert (n1.name, n1.changed, n1.pods.after) == ("n1", False, 1)
    assert (n2.name, n2.changed, [fill.resource for fill in n2.resources]) == (
        "n2",
        True,
        ["cpu", "memory", "example.com/gpu", "pods"],
    )


def test_bound_pods_whose_node_was_not_given_are_counted() -> None:
    assert Told([make_node()], [make_pod("shop/lost", node="gone")]).outcome.homeless == 1


def test_no_nodes_at_all() -> None:
    told = Told([], [make_pod("shop/web")])
    assert told.of("web").message.startswith("no nodes available to schedule pods")
    assert [(fill.resource, fill.allocatable) for fill in told.outcome.resources] == [("pods", 0)]
