"""Which rejected pods an event may help."""

from typing import Any

import pytest

from dsched.clock import ManualClock
from dsched.config import Features
from dsched.extenders.extenders import Extenders
from dsched.framework.extender import EXTENDER
from dsched.framework.interface import Action, ClusterEvent, Hint, Registration, Resource
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.model.meta import NodeName, PodKey
from dsched.model.node import Node
from dsched.model.queues import PLUGIN
from dsched.scheduler.hints import Hints
from dsched.scheduler.nominations import released
from dsched.scheduler.ports import QueueName
from dsched.scheduler.queue import Backoff, PendingPods, QueuedPod
from tests.builders import make_node, make_pod
from tests.unit.framework.frameworks import NAME, default_framework, framework_of, frameworks
from tests.versions import V36, V37

SORTING = default_framework()


def registering(called: str, *registrations: Registration) -> type[Any]:
    return type(
        called,
        (),
        {
            "name": called,
            "__init__": lambda self, args, handle: None,
            "filter": lambda self, state, pod, node: None,
            "events_to_register": lambda self: registrations,
        },
    )


class Silent:
    """Says nothing of events: every one may help."""

    name = "Silent"

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def filter(self, state: Any, pod: Any, node: Any) -> None:
        return None


def rejected(
    *plugins: str, place: QueueName = QueueName.UNSCHEDULABLE, priority: int = 0
) -> tuple[PendingPods, QueuedPod]:
    pending = PendingPods(ManualClock(), Backoff())
    pod = pending.add(PodInfo(make_pod("shop/web", cpu="2", priority=priority)), SORTING)
    pending.requeued(pod, SORTING, frozenset(plugins))
    pending.placed(pod, place)
    return pending, pod


def helped(
    framework: Framework, event: ClusterEvent, *plugins: str, place: QueueName = QueueName.UNSCHEDULABLE
) -> bool:
    pending, pod = rejected(*plugins, place=place)
    found = Hints({NAME: framework}).helped(event, pending)
    assert found in ([], [pod])
    return bool(found)


def pod_event(action: Action, old: Any = None, new: Any = None) -> ClusterEvent:
    return ClusterEvent(Resource.ASSIGNED_POD, action, old, new)


NODE_ADDED = ClusterEvent(Resource.NODE, Action.ADD, new=make_node("n1"))


@pytest.mark.parametrize(
    ("event", "plugin", "helps"),
    [
        (pod_event(Action.DELETE, make_pod("shop/old", cpu="4", node="n1")), "NodeResourcesFit", True),
        (pod_event(Action.DELETE, make_pod("shop/old", cpu="4", node="n1")), "TaintToleration", False),
        (pod_event(Action.ADD, new=make_pod("shop/new", node="n1")), "NodeResourcesFit", False),
        (NODE_ADDED, "NodeResourcesFit", True),
        (ClusterEvent(Resource.NODE, Action.ADD, new=make_node("n1", cpu="1")), "NodeResourcesFit", False),
        (
            ClusterEvent(Resource.NODE, Action.ADD, new=make_node("n1", taints=["a:NoSchedule"])),
            "TaintToleration",
            False,
        ),
        (NODE_ADDED, "TaintToleration", True),
        (ClusterEvent(Resource.NODE, Action.DELETE, old=make_node("n1")), "NodeResourcesFit", False),
        (ClusterEvent(Resource.NAMESPACE, Action.ADD), "NodeResourcesFit", False),
    ],
)
def test_events_and_the_plugins_in_tree(event: ClusterEvent, plugin: str, helps: bool) -> None:
    assert helped(default_framework(), event, plugin) is helps


PLAIN = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
BY_TAINTS = ["InterPodAffinity", "NodeAffinity", "NodeName", "NodePorts", "NodeResourcesFit"]
BY_TAINTS += ["VolumeBinding", "VolumeRestrictions", "VolumeZone"]
BARE, CORDONED = make_node("n1", cpu="1"), make_node("n1", cpu="1", unschedulable=True)
TAINTED = make_node("n1", cpu="1", taints=["a:NoSchedule"])


@pytest.mark.parametrize("plugin", [*BY_TAINTS, "NodeVolumeLimits", "NodeUnschedulable", "TaintToleration"])
def test_taints_and_uncordoning_help_who_registers_for_nodes_that_come(plugin: str) -> None:
    """Source: scheduler.go ``buildQueueingHintMap``; framework/events.go ``NodeSchedulingPropertiesChange``."""

    def helps(before: Node, after: Node) -> bool:
        event = ClusterEvent(Resource.NODE, Action.UPDATE, before, after)
        return helped(default_framework(), event, plugin)

    assert helps(BARE, TAINTED) is (plugin in BY_TAINTS)
    assert helps(TAINTED, BARE) is (plugin in [*BY_TAINTS, "TaintToleration"])
    assert helps(CORDONED, BARE) is (plugin in [*BY_TAINTS, "NodeUnschedulable"])
    assert not helps(BARE, CORDONED)
    assert not helps(BARE, BARE)


@pytest.mark.parametrize("features", [V36, V37], ids=["1.36", "1.37"])
def test_since_137_taints_and_uncordoning_help_only_who_registers_for_them(features: Features) -> None:
    framework = frameworks(PLAIN, features=features)[NAME]
    for before, after in ((BARE, TAINTED), (CORDONED, BARE)):
        event = ClusterEvent(Resource.NODE, Action.UPDATE, before, after)
        for plugin in BY_TAINTS:
            assert helped(framework, event, plugin) is not features.since(37), plugin
    assert helped(framework, ClusterEvent(Resource.NODE, Action.UPDATE, TAINTED, BARE), "TaintToleration")


@pytest.mark.parametrize(
    ("actions", "about_taints", "helps"),
    [
        ({Action.ADD}, True, True),
        ({Action.ADD, Action.UPDATE}, True, False),
        ({Action.ADD, Action.UPDATE}, False, True),
        ({Action.UPDATE}, False, False),
        ({Action.DELETE}, True, False),
    ],
)
def test_a_plugin_that_hears_of_taints_is_asked(actions: set[Action], about_taints: bool, helps: bool) -> None:
    skips = Registration(Resource.NODE, frozenset(actions), lambda pod, event: Hint.SKIP, about_taints)
    event = ClusterEvent(Resource.NODE, Action.UPDATE, BARE, TAINTED)
    assert helped(framework_of(registering("Mine", skips)), event, "Mine") is helps


@pytest.mark.parametrize(("priority", "helps"), [(9, True), (10, True), (11, False)])
def test_a_promise_that_ends_helps_nobody_of_higher_priority(priority: int, helps: bool) -> None:
    """Source: eventhandlers.go ``getLEPriorityPreCheck``."""
    event = released(PodInfo(make_pod("shop/promised", cpu="1", priority=10)), NodeName("n1"))
    pending, pod = rejected("NodeResourcesFit", priority=priority)
    assert Hints({NAME: default_framework()}).helped(event, pending) == ([pod] if helps else [])


def test_where_queues_divide_the_cluster_promises_hold_for_all_and_their_end_helps_all() -> None:
    event = released(PodInfo(make_pod("shop/promised", cpu="1", priority=10)), NodeName("n1"))
    pending, pod = rejected("NodeResourcesFit", priority=11)
    divided = {NAME: default_framework(), "divided": framework_of(registering(PLUGIN))}
    assert Hints(divided).helped(event, pending) == [pod]


def test_a_promise_that_ends_helps_the_pod_itself_and_a_reservation_that_ends_does_not() -> None:
    pending, pod = rejected("NodeResourcesFit")
    hints = Hints({NAME: default_framework()})
    assert hints.helped(released(pod.info, NodeName("n1")), pending) == [pod]
    assert hints.helped(pod_event(Action.DELETE, pod.info.pod.on(NodeName("n1"))), pending) == []


def test_it_is_enough_that_one_plugin_is_helped() -> None:
    event = pod_event(Action.DELETE, make_pod("shop/old", cpu="4", node="n1"))
    assert helped(default_framework(), event, "TaintToleration", "NodeResourcesFit")


@pytest.mark.parametrize("place", [QueueName.ACTIVE, QueueName.BACKOFF, QueueName.INFLIGHT, QueueName.RESERVED])
def test_pods_that_are_on_their_way_are_left_alone(place: QueueName) -> None:
    assert not helped(default_framework(), NODE_ADDED, "NodeResourcesFit", place=place)


def test_a_registration_without_a_hint_is_helped_by_every_such_event() -> None:
    framework = framework_of(registering("Any", Registration(Resource.NODE, frozenset({Action.ADD, Action.UPDATE}))))
    assert helped(framework, NODE_ADDED, "Any")
    assert helped(framework, ClusterEvent(Resource.NODE, Action.UPDATE), "Any")
    assert not helped(framework, ClusterEvent(Resource.NODE, Action.DELETE), "Any")


def test_one_of_several_hints_for_an_event_is_enough() -> None:
    """Source: scheduler.go ``buildQueueingHintMap``, which keeps all of a plugin's hint functions."""
    for hints in ((Hint.QUEUE, Hint.SKIP), (Hint.SKIP, Hint.QUEUE)):
        registrations = [
            Registration(Resource.NODE, frozenset({Action.ADD}), lambda pod, event, hint=hint: hint)  # type: ignore[misc]
            for hint in hints
        ]
        assert helped(framework_of(registering("Two", *registrations)), NODE_ADDED, "Two")


def test_a_plugin_that_says_nothing_is_helped_by_everything_but_changes_of_pending_pods() -> None:
    framework = framework_of(Silent)
    assert helped(framework, NODE_ADDED, "Silent")
    assert helped(framework, ClusterEvent(Resource.PVC, Action.UPDATE), "Silent")
    assert helped(framework, pod_event(Action.ADD, new=make_pod("shop/new", node="n1")), "Silent")
    assert not helped(framework, ClusterEvent(Resource.POD, Action.UPDATE), "Silent")
    assert not helped(framework, ClusterEvent(Resource.PENDING_POD, Action.ADD), "Silent")


def test_most_of_what_happens_helps_a_pod_that_an_extender_rejected() -> None:
    """Source: framework/types.go ``UnrollWildCardResource``; framework/events.go ``NodeSchedulingPropertiesChange``."""
    framework = framework_of()
    framework.extenders = Extenders([])

    def helps(resource: Resource, old: Any = None, new: Any = None) -> bool:
        return helped(framework, ClusterEvent(resource, Action.UPDATE, old, new), EXTENDER)

    assert helps(Resource.ASSIGNED_POD, make_pod("shop/old", node="n1"), make_pod("shop/old", node="n1"))
    assert all(map(helps, (Resource.PVC, Resource.CSI_NODE, Resource.RESOURCE_CLAIM, Resource.POD_GROUP)))
    assert not any(map(helps, (Resource.NAMESPACE, Resource.SERVICE, Resource.PDB, Resource.RESOURCE_SLICE)))
    assert helps(Resource.NODE, CORDONED, BARE)
    assert helps(Resource.NODE, BARE, TAINTED)
    assert helps(Resource.NODE, BARE, make_node("n1", cpu="2"))
    assert not helps(Resource.NODE, BARE, CORDONED)
    assert not helps(Resource.NODE, BARE, make_node("n1", cpu="1", images={"app": 1}))


def test_the_pods_own_change_helps_where_nothing_is_known_of_events() -> None:
    framework = framework_of(Silent)
    _, pod = rejected("Silent")
    assert Hints({NAME: framework}).helps(ClusterEvent(Resource.POD, Action.UPDATE), pod)


@pytest.mark.parametrize(
    ("waiting", "ends"), [(frozenset({"Waits"}), True), (frozenset({"Rejects"}), False), (frozenset(), False)]
)
def test_only_what_a_plugin_waits_for_ends_the_pause(waiting: frozenset[str], ends: bool) -> None:
    """Source: backend/queue/scheduling_queue.go ``isPodWorthRequeuing``."""
    node_added = frozenset({Action.ADD})
    framework = framework_of(
        registering("Waits", Registration(Resource.NODE, node_added)),
        registering("Rejects", Registration(Resource.NODE, node_added, lambda pod, event: Hint.SKIP)),
    )
    _, pod = rejected("Waits", "Rejects")
    pod.waiting = waiting
    hints = Hints({NAME: framework})
    assert hints.helps(NODE_ADDED, pod)
    assert hints.end_pause(NODE_ADDED, pod) is ends


def test_a_pod_with_unsupported_fields_is_not_helped_by_the_cluster() -> None:
    claims = make_pod("shop/web", spec={"resourceClaims": [{"name": "gpu"}]})
    framework = default_framework()
    for resource in Resource:
        for action in Action:
            own = (resource, action) == (Resource.POD, Action.UPDATE)
            pending = PendingPods(ManualClock(), Backoff())
            pod = pending.add(PodInfo(claims), SORTING)
            pending.requeued(pod, SORTING, frozenset({"UnsupportedFields"}))
            pending.placed(pod, QueueName.UNSCHEDULABLE)
            assert bool(Hints({NAME: framework}).helped(ClusterEvent(resource, action), pending)) is own


@pytest.mark.parametrize("answer", [LookupError("x"), "junk", None])
def test_a_hint_that_fails_queues_the_pod(answer: Any) -> None:
    def hint(pod: Any, event: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    framework = framework_of(registering("Odd", Registration(Resource.NODE, frozenset({Action.ADD}), hint)))
    assert helped(framework, NODE_ADDED, "Odd")


def test_pods_of_two_profiles_are_asked_each_by_its_own() -> None:
    quiet = framework_of(registering("Both", Registration(Resource.NODE, frozenset({Action.DELETE}))))
    eager = framework_of(registering("Both", Registration(Resource.NODE, frozenset({Action.ADD}))))
    pending = PendingPods(ManualClock(), Backoff())
    for name in ("quiet", "eager"):
        pod = pending.add(PodInfo(make_pod(f"shop/{name}", spec={"schedulerName": name})), SORTING)
        pending.requeued(pod, SORTING, frozenset({"Both"}))
        pending.placed(pod, QueueName.UNSCHEDULABLE)
    found = Hints({"quiet": quiet, "eager": eager}).helped(NODE_ADDED, pending)
    assert [pod.key for pod in found] == ["shop/eager"]


@pytest.mark.parametrize("per_class", [True, False])
def test_a_hint_that_is_the_same_for_a_class_is_asked_once(per_class: bool) -> None:
    """Three pods of one class and one of another; the hint wants those that ask for 2 CPUs."""
    asked: list[str] = []

    def hint(pod: Any, event: ClusterEvent) -> Hint:
        asked.append(pod.metadata.name)
        return Hint.QUEUE if pod.spec.containers[0].resources.requests["cpu"] == "2" else Hint.SKIP

    plugin = registering("Choosy", Registration(Resource.NODE, frozenset({Action.ADD}), hint))
    plugin.hints_per_class = per_class  # type: ignore[attr-defined]
    pending = PendingPods(ManualClock(), Backoff())
    for name, cpu in (("a", "2"), ("b", "2"), ("c", "1"), ("d", "2")):
        pod = pending.add(PodInfo(make_pod(f"shop/{name}", cpu=cpu)), SORTING)
        pending.requeued(pod, SORTING, frozenset({"Choosy"}))
        pending.placed(pod, QueueName.UNSCHEDULABLE)
    event = ClusterEvent(Resource.NODE, Action.ADD, new=make_node("n1"))
    found = Hints({NAME: framework_of(plugin)}).helped(event, pending)
    assert [pod.info.pod.metadata.name for pod in found] == ["a", "b", "d"]
    assert sorted(asked) == (["a", "c"] if per_class else ["a", "b", "c", "d"])


def test_an_event_about_a_claim_is_asked_about_with_those_that_name_it() -> None:
    asked: list[str] = []

    def hint(pod: Any, event: ClusterEvent) -> Hint:
        asked.append(pod.key)
        return Hint.QUEUE

    def claim(event: ClusterEvent) -> str | None:
        return event.new

    pending = PendingPods(ManualClock(), Backoff())
    for name in ("a", "b", "c"):
        made = make_pod(f"shop/{name}", spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": name}]})
        pod = pending.add(PodInfo(made), SORTING)
        pending.requeued(pod, SORTING, frozenset({"Test"}))
        pending.placed(pod, QueueName.GATED if name == "b" else QueueName.UNSCHEDULABLE)
    registration = Registration(Resource.RESOURCE_CLAIM, frozenset({Action.ADD}), hint, claim=claim)
    hints = Hints({NAME: framework_of(registering("Test", registration))})
    for named, found in (("shop/b", ["shop/b"]), ("shop/none", []), (None, ["shop/a", "shop/b", "shop/c"])):
        event = ClusterEvent(Resource.RESOURCE_CLAIM, Action.ADD, new=named)
        assert [pod.key for pod in hints.helped(event, pending)] == found
        assert asked == found
        asked.clear()
    pending.drop(PodKey("shop/b"))
    assert hints.helped(ClusterEvent(Resource.RESOURCE_CLAIM, Action.ADD, new="shop/b"), pending) == []


def test_an_event_that_a_plugin_fails_to_understand_is_asked_about_with_all() -> None:
    def claim(event: ClusterEvent) -> str | None:
        raise ValueError("what is this?")

    registration = Registration(Resource.RESOURCE_CLAIM, frozenset({Action.ADD}), claim=claim)
    pending, pod = rejected("Test")
    hints = Hints({NAME: framework_of(registering("Test", registration))})
    assert hints.helped(ClusterEvent(Resource.RESOURCE_CLAIM, Action.ADD, new={}), pending) == [pod]


def test_an_event_about_a_group_is_asked_about_with_one_of_its_pods() -> None:
    asked: list[str] = []

    def hint(pod: Any, event: ClusterEvent) -> Hint:
        asked.append(pod.key)
        return Hint.SKIP if event.action is Action.UPDATE else Hint.QUEUE

    def group(event: ClusterEvent) -> str | None:
        return event.new

    pending = PendingPods(ManualClock(), Backoff())
    for name, of in (("a", "one"), ("b", "two"), ("c", "one"), ("d", "")):
        spec = {"schedulingGroup": {"podGroupName": of}} if of else {}
        pod = pending.add(PodInfo(make_pod(f"shop/{name}", spec=spec)), SORTING)
        pending.requeued(pod, SORTING, frozenset({"Test"}))
        pending.placed(pod, QueueName.GATED)
    registration = Registration(Resource.POD_GROUP, frozenset({Action.ADD, Action.UPDATE}), hint, group=group)
    hints = Hints({NAME: framework_of(registering("Test", registration))})
    for action, named, found, once in (
        (Action.ADD, "shop/one", ["shop/a", "shop/c"], ["shop/a"]),
        (Action.UPDATE, "shop/one", [], ["shop/a"]),
        (Action.ADD, "shop/none", [], []),
        (Action.ADD, "", [], []),
        (Action.ADD, None, [f"shop/{name}" for name in "abcd"], [f"shop/{name}" for name in "abcd"]),
    ):
        event = ClusterEvent(Resource.POD_GROUP, action, new=named)
        assert [pod.key for pod in hints.helped(event, pending)] == found
        assert asked == once
        asked.clear()
    pending.drop(PodKey("shop/a"))
    event = ClusterEvent(Resource.POD_GROUP, Action.ADD, new="shop/one")
    assert [pod.key for pod in hints.helped(event, pending)] == ["shop/c"]
