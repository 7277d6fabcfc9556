"""Poisoned pods fail alone: whatever one pod holds or a plugin does with it, the rest of its batch is scheduled.

The pods are put where no manifest check sees them, as an API server might hold them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dsched.cluster.standalone import keys as cluster_keys
from dsched.cluster.standalone.applying import Applier
from dsched.framework.interface import Code, PermitResult, Status
from dsched.fsck.inspection import inspect
from dsched.manifests import kinds
from dsched.manifests.load import Manifest
from dsched.metrics import UNREADABLE, WATCH_UNREADABLE
from dsched.state import keys
from tests.integration.leader.rig import Rig
from tests.manifests import Json, node_manifest, pod_manifest
from tests.metrics import value


def requests(**amounts: str) -> Json:
    return {"containers": [{"name": "main", "resources": {"requests": amounts}}]}


def required(**expression: Any) -> Json:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", **expression}]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def spread(**selector: Any) -> Json:
    constraint = {"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"topologySpreadConstraints": [constraint]}


HARMLESS: dict[str, Json] = {
    "tolerations": {"tolerations": [{"key": f"k{number}", "operator": "Exists"} for number in range(10_000)]},
    "ports": {
        "containers": [
            {"name": "main", "ports": [{"containerPort": 1, "hostPort": number} for number in range(1, 10_000)]}
        ]
    },
    "no containers": {"containers": None},
}
"""Strange, and schedulable all the same."""

HOPELESS: dict[str, Json] = {
    "exponent": requests(cpu="1e900"),
    "suffix": requests(memory="99999999999999999999Ei"),
    "digits": requests(cpu="9" * 5000),
    "extended": requests(**{"example.com/gpu": "1e30"}),
    "negative": requests(cpu="-5"),
    "no quantity": requests(cpu="lots"),
    "operator": required(operator="Weird", values=["a"]),
    "number": required(operator="Gt", values=["x"]),
    "spreading": spread(matchExpressions=[{"key": "a", "operator": "Foo"}]),
}
"""Nowhere to be scheduled, each with a reason of its own."""


def put(rig: Rig, spec: Json, **annotations: str) -> None:
    """The poisoned pod, past all checks."""
    value = pod_manifest("default/m-poisoned", schedulerName="default-scheduler")
    value["spec"] = {**value["spec"], **spec}
    value["metadata"]["annotations"] = annotations
    Applier(rig.store, rig.clock).apply([Manifest("test", kinds.POD, "default/m-poisoned", value)])


def scheduled_around(rig: Rig, poison: Callable[[], None]) -> None:
    """One batch: pods before and after the poisoned one."""
    names = [f"default/{name}" for name in ("a", "b", "y", "z")]
    rig.apply(node_manifest("n1"), node_manifest("n2"))
    led = rig.lead()
    rig.apply(*(pod_manifest(name) for name in names[:2]))
    poison()
    rig.apply(*(pod_manifest(name) for name in names[2:]))
    led.run()
    assert all(rig.node_of(name) for name in names)


@pytest.mark.parametrize("spec", HARMLESS.values(), ids=HARMLESS)
def test_strange_pods_are_scheduled_with_the_rest(rig: Rig, spec: Json) -> None:
    scheduled_around(rig, lambda: put(rig, spec))
    assert rig.node_of("default/m-poisoned")


def test_a_large_annotation_is_no_trouble(rig: Rig) -> None:
    scheduled_around(rig, lambda: put(rig, {}, large="x" * (1 << 20)))
    assert rig.node_of("default/m-poisoned")


@pytest.mark.parametrize("spec", HOPELESS.values(), ids=HOPELESS)
def test_hopeless_pods_wait_with_a_reason_and_the_rest_is_scheduled(rig: Rig, spec: Json) -> None:
    scheduled_around(rig, lambda: put(rig, spec))
    assert rig.node_of("default/m-poisoned") == ""
    assert rig.queue("default/m-poisoned") in ("unschedulable", "backoff")
    assert rig.condition("default/m-poisoned")[1]


def test_a_pod_that_cannot_even_be_read_is_left_out_also_by_the_next_leader(rig: Rig) -> None:
    scheduled_around(rig, lambda: put(rig, {"containers": "none"}))
    rig.apply(pod_manifest("default/later"))
    rig.lead().run()
    assert rig.node_of("default/later")


UNREADABLE_PODS: dict[str, Json] = {
    "priority of 71 bits": {"priority": 2**70},
    "negative": {"priority": -(2**70)},
    "inexact": {"priority": 2**53 + 1},
    "priority of 33 bits": {"priority": 2**31},
    "a port that is none": {"containers": [{"name": "main", "ports": [{"containerPort": 1, "hostPort": 2**40}]}]},
    "cpu of 67 bits": requests(cpu=10**20),
    "toleration of 67 bits": {"tolerations": [{"operator": "Exists", "tolerationSeconds": 10**20}]},
    "text": {"priority": "high"},
    "container": {"containers": [7]},
}
"""Nobody can say what they mean."""


@pytest.mark.parametrize("spec", UNREADABLE_PODS.values(), ids=UNREADABLE_PODS)
def test_pods_that_mean_nothing_are_left_out_counted_and_named_by_fsck(rig: Rig, spec: Json) -> None:
    before = value(WATCH_UNREADABLE.labels("Pod"))
    scheduled_around(rig, lambda: put(rig, spec))
    assert value(WATCH_UNREADABLE.labels("Pod")) > before
    rig.apply(pod_manifest("default/later"))
    rig.lead().run()
    assert rig.node_of("default/later")
    report = inspect(rig.store, rig.clock, pause_s=0)
    assert [(note.subject, note.rule) for note in report.notes] == [("default/m-poisoned", "unreadable")]
    assert not report.breaches


def test_a_pod_changed_by_hand_into_nonsense_is_set_aside_and_comes_back_when_it_is_mended(rig: Rig) -> None:
    """Into the object itself, in redis-cli: no version changes and no watch tells."""
    rig.apply(node_manifest("n1"), pod_manifest("default/m", nodeSelector={"a": "b"}))
    rig.lead().run()
    name = rig.store.key(cluster_keys.objects(kinds.POD).name)
    good = rig.store.redis.hget(name, "default/m")
    rig.store.redis.hset(name, "default/m", good.replace(b'"priority":0', b'"priority":%d' % 2**70))
    led = rig.lead()
    rig.apply(pod_manifest("default/later"))
    led.run()
    assert rig.node_of("default/later") == "n1"
    assert led.place("default/m") == ""
    assert [note.rule for note in inspect(rig.store, rig.clock, pause_s=0).notes] == ["unreadable"]
    rig.store.redis.hset(name, "default/m", good)
    assert rig.lead().place("default/m") == "active"


def spoil_record(rig: Rig, uid: str, field: str, text: bytes) -> None:
    rig.store.redis.hset(rig.store.key("pod:default/m"), field, text)


def spoil_reservation(rig: Rig, uid: str, field: str, text: bytes) -> None:
    rig.store.redis.hset(rig.store.key(keys.RESERVATIONS.name), uid, text)


@pytest.mark.parametrize(
    ("what", "field", "text"),
    [
        ("record", "attempts", b"many"),
        ("record", "queue", b"limbo"),
        ("record", "order", b"1e99"),
        ("record", "first_ms", b"\xff"),
        ("record", "crashes", b"-"),
        ("reservation", "", b"nonsense"),
        ("reservation", "", b"a b c d e f"),
    ],
)
def test_state_that_somebody_has_spoilt_is_made_anew_by_the_next_leader(
    rig: Rig, what: str, field: str, text: bytes
) -> None:
    rig.apply(node_manifest("n1", cpu="1"), pod_manifest("default/m", **requests(cpu="2")))
    rig.lead().run()
    assert rig.queue("default/m") == "unschedulable"
    before = value(UNREADABLE.labels(what))
    spoil = spoil_record if what == "record" else spoil_reservation
    spoil(rig, rig.uid("default/m"), field, text)
    led = rig.lead()
    assert value(UNREADABLE.labels(what)) == before + 1
    led.run()
    assert rig.queue("default/m") == "unschedulable"
    rig.apply(node_manifest("n2", cpu="4"))
    rig.clock.advance(60)
    led.run()
    assert rig.node_of("default/m") == "n2"
    assert not inspect(rig.store, rig.clock, pause_s=0).breaches


def test_a_turn_in_the_queue_that_no_pod_has_is_passed_over(rig: Rig) -> None:
    rig.apply(node_manifest("n1"))
    led = rig.lead()
    rig.store.redis.zadd(rig.store.key(keys.ACTIVE.name), {"2020 default/nobody": -(2**60), "nonsense": -1})
    rig.apply(pod_manifest("default/m"))
    led.run()
    assert rig.node_of("default/m") == "n1"
    assert rig.store.redis.zcard(rig.store.key(keys.ACTIVE.name)) == 0


class Mad:
    """Does as the label ``mad`` of a pod says, at the point of that name."""

    name = "Mad"

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def _act(self, pod: Any, point: str, sane: Any) -> Any:
        what = pod.pod.metadata.labels.get("mad", "").partition("-")
        if what[0] != point:
            return sane
        if what[2] == "raises":
            raise RuntimeError("mad")
        return {"text": "mad", "wrong": Status(Code.WAIT), "nothing": NotImplemented, "nan": float("nan")}[what[2]]

    def pre_filter(self, state: Any, pod: Any, snapshot: Any) -> Any:
        return self._act(pod, "prefilter", None)

    def filter(self, state: Any, pod: Any, node: Any) -> Any:
        return self._act(pod, "filter", None)

    def score(self, state: Any, pod: Any, node: Any) -> Any:
        return self._act(pod, "score", np.int64(1))

    def reserve(self, state: Any, pod: Any, node: Any) -> Any:
        return self._act(pod, "reserve", None)

    def unreserve(self, state: Any, pod: Any, node: Any) -> Any:
        return None

    def permit(self, state: Any, pod: Any, node: Any) -> Any:
        return self._act(pod, "permit", PermitResult())


CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: Mad}]}
"""


@pytest.mark.parametrize("how", ["raises", "text", "nothing"])
@pytest.mark.parametrize("point", ["prefilter", "filter", "score", "reserve", "permit"])
def test_a_plugin_that_fails_at_one_pod_fails_that_pod_alone(rig: Rig, point: str, how: str) -> None:
    rig.configure(CONFIGURATION, Mad)
    scheduled_around(rig, lambda: rig.apply(pod_manifest("default/m-poisoned", labels={"mad": f"{point}-{how}"})))
    assert rig.node_of("default/m-poisoned") == ""
    assert rig.queue("default/m-poisoned") == "backoff"
    assert "Mad" in rig.condition("default/m-poisoned")[1]
