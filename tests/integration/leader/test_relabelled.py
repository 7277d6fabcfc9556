"""Pods that change between their reservation and their bind: on their nodes they count as they are."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from dsched.cluster.interface import BindVerdict, Change, Event
from dsched.leader.binders.tracker import OVERDUE_S
from dsched.leader.sources import Heard
from dsched.model.messages import BindRequest
from dsched.model.meta import PodKey, PodUid
from dsched.model.pod import Pod
from tests.integration.leader.checker import Checker
from tests.integration.leader.rig import Led, Rig
from tests.manifests import Json, node_manifest, pod_manifest

A, B = "shop/a", "shop/b"
HOST = "kubernetes.io/hostname"


def a(app: str) -> Json:
    return pod_manifest(A, labels={"app": app})


def rival(app: str) -> Json:
    """A pod that wants to be on no node with such a pod."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOST}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return pod_manifest(B, affinity=anti)


def known(led: Led, uid: str) -> Pod:
    """The pod as the leader has it on its node."""
    info = led.term.memory.cache.snapshot.table.pod(PodUid(uid))
    assert info is not None
    found: Pod = info.pod
    return found


def current(rig: Rig) -> Pod:
    (found,) = rig.cluster.get_pods([PodKey(A)])
    assert found is not None
    return found


def told(rig: Rig, led: Led, change: Change, pod: Pod) -> None:
    """The watch of an API server says so: it shows the pod with everything that is so by then."""
    version = int(pod.metadata.resource_version)
    event = Event(change, "Pod", pod.key, version, pod.uid, pod, pod.node_name)
    led.term.hear([Heard([event], rig.cluster.newest_version())])
    led.term.state.line.settle()


def report(rig: Rig, led: Led, request: BindRequest) -> None:
    """The change is heard of, then the binder says that the pod is bound."""
    rig.apply(a("new"))
    led.hear()
    rig.binder.work(request)
    led.settle()


def report_ahead(rig: Rig, led: Led, request: BindRequest) -> None:
    """The binder's word overtakes the watch."""
    rig.apply(a("new"))
    rig.binder.work(request)
    led.settle()


def watch(rig: Rig, led: Led, request: BindRequest) -> None:
    """Both are told by the watch."""
    rig.apply(a("new"))
    rig.binder.bind(request, rig.binder.begin(request))
    led.hear()


def watch_at_once(rig: Rig, led: Led, request: BindRequest) -> None:
    """A watch that was interrupted tells of both at once."""
    rig.apply(a("new"))
    rig.binder.bind(request, rig.binder.begin(request))
    told(rig, led, Change.MODIFIED, current(rig))


def look_up(rig: Rig, led: Led, request: BindRequest) -> None:
    """The binder's word is lost, and the pod is looked up before the watch has told of the change."""
    rig.apply(a("new"))
    rig.binder.bind(request, rig.binder.begin(request))
    rig.clock.advance(OVERDUE_S + 1)
    led.term.binding.look_up_overdue()


def look_up_unclear(rig: Rig, led: Led, request: BindRequest) -> None:
    """The binder does not know."""
    rig.apply(a("new"))
    rig.binder.bind(request, rig.binder.begin(request))
    rig.binder.says(request, BindVerdict.UNKNOWN)
    led.settle()


def late(rig: Rig, led: Led, request: BindRequest) -> None:
    """The binder's word overtakes what an API server's watch says of the change, and of the bind."""
    before = current(rig)
    rig.binder.work(request)
    led.settle()
    after = current(rig)
    version = str(int(before.metadata.resource_version) + 1)
    labels = replace(before.metadata, labels={"app": "new"}, resource_version=version)
    told(rig, led, Change.MODIFIED, replace(before, metadata=labels))
    bound = replace(labels, resource_version=str(int(version) + 1))
    told(rig, led, Change.BOUND, replace(after, metadata=bound))


WAYS = [report, report_ahead, watch, watch_at_once, look_up, look_up_unclear]
Way = Callable[[Rig, Led, BindRequest], None]


def reserved(rig: Rig) -> tuple[Led, BindRequest]:
    """A leader that has just handed out the pod."""
    rig.apply(node_manifest("n1", labels={HOST: "n1"}), a("old"))
    led = rig.lead()
    led.term.batches.decide()
    led.term.batches.finish()
    (request,) = led.requests()
    return led, request


@pytest.mark.parametrize("way", WAYS)
def test_a_pod_counts_with_the_labels_that_it_is_bound_with(rig: Rig, check: Checker, way: Way) -> None:
    led, request = reserved(rig)
    way(rig, led, request)
    led.run()
    assert known(led, rig.uid(A)).metadata.labels == {"app": "new"}
    rig.apply(rival("new"))
    led.run()
    assert (rig.node_of(B), rig.queue(B)) == ("", "unschedulable")
    check.settled()


def test_what_a_watch_says_late_counts(rig: Rig) -> None:
    led, request = reserved(rig)
    late(rig, led, request)
    assert known(led, rig.uid(A)).metadata.labels == {"app": "new"}
    rig.apply(rival("new"))
    led.turns()
    assert led.place(B) == "unschedulable"


@pytest.mark.parametrize("way", WAYS)
def test_a_pod_no_longer_repels_by_the_labels_that_it_had(rig: Rig, check: Checker, way: Way) -> None:
    led, request = reserved(rig)
    rig.apply(rival("old"))
    led.turns()
    assert led.place(B) == "unschedulable"
    way(rig, led, request)
    led.run()
    rig.clock.advance(2)
    led.run()
    assert rig.node_of(B) == "n1"
    check.at_rest()


@pytest.mark.parametrize("app", ["old", "new"])
def test_the_next_leader_knows_the_labels(rig: Rig, app: str) -> None:
    led, request = reserved(rig)
    rig.apply(a("new"))
    if app == "new":
        rig.binder.bind(request, rig.binder.begin(request))
    led = rig.lead()
    led.run()
    assert known(led, rig.uid(A)).metadata.labels == {"app": "new"}
    rig.apply(rival("new"))
    led.run()
    assert rig.node_of(B) == ""


def test_what_a_watch_repeats_does_not_bring_old_labels_back(rig: Rig) -> None:
    rig.apply(node_manifest("n1", labels={HOST: "n1"}))
    before = rig.cluster.newest_version()
    rig.apply(a("old"))
    rig.apply(a("new"))
    rig.bind_foreign(A, "n1")
    led = rig.lead()
    led.term.marks.version = led.term.heard = before
    led.hear()
    assert known(led, rig.uid(A)).metadata.labels == {"app": "new"}


CHANGES: list[Callable[[Json], Any]] = [
    lambda pod: pod["metadata"]["labels"].update(tier="back"),
    lambda pod: pod["metadata"]["labels"].clear(),
    lambda pod: pod["metadata"].update(annotations={"note": "x"}),
    lambda pod: pod["metadata"].update(
        ownerReferences=[{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}]
    ),
    lambda pod: pod["spec"].update(tolerations=[{"key": "k", "operator": "Exists"}]),
    lambda pod: pod["spec"]["containers"][0]["resources"].update(requests={"cpu": "300m"}),
    lambda pod: pod.update(status={"phase": "Running"}),
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("way", [report, report_ahead, watch, watch_at_once, look_up])
def test_everything_that_a_plugin_may_read_is_taken_over(
    rig: Rig, check: Checker, monkeypatch: pytest.MonkeyPatch, way: Way, change: Callable[[Json], Any]
) -> None:
    led, request = reserved(rig)
    changed = a("old")
    change(changed)
    monkeypatch.setattr(f"{__name__}.a", lambda app: changed)
    way(rig, led, request)
    led.run()
    is_now = current(rig)
    mine = known(led, is_now.uid)
    assert mine.metadata.labels == is_now.metadata.labels
    assert mine.metadata.annotations == is_now.metadata.annotations
    assert mine.metadata.owner_references == is_now.metadata.owner_references
    assert mine.on(is_now.node_name).spec == is_now.spec
    assert mine.status == is_now.status
    check.at_rest()


@pytest.mark.parametrize("seed", range(12))
def test_in_whatever_order_it_is_heard(rig: Rig, check: Checker, seed: int) -> None:
    """Changes, the bind, and the ways to hear of them, in any order."""
    chance = Random(seed)
    led, request = reserved(rig)
    steps: list[Callable[[], Any]] = [
        lambda: rig.apply(a(chance.choice(["old", "new", "other"]))),
        lambda: rig.apply(a(chance.choice(["old", "new", "other"]))),
        lambda: rig.binder.bind(request, rig.binder.begin(request)),
        lambda: rig.binder.work(request) if rig.reserved() else None,
        led.hear,
        led.settle,
        led.turn,
        lambda: rig.clock.advance(OVERDUE_S + 1),
    ]
    for _ in range(12):
        chance.choice(steps)()
    rig.binder.work(request)
    led.run()
    is_now = current(rig)
    mine = known(led, is_now.uid)
    assert mine.metadata.labels == is_now.metadata.labels
    assert mine.on(is_now.node_name).spec == is_now.spec
    check.at_rest()
