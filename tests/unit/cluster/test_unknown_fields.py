"""Fields of a pod's spec that dsched does not know: which are found, and how often they are told."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from dsched.clock import ManualClock
from dsched.cluster import unknown_fields
from dsched.cluster.interface import PodEvent
from dsched.cluster.kubernetes import resources
from dsched.cluster.unknown_fields import Fields, Telling
from dsched.model.pod import Pod
from tests.builders import make_pod
from tests.unit.cluster.kubernetes.test_decode import POD

NEW = "spec.brandNew"


@pytest.fixture(autouse=True)
def nothing_looked_at() -> Iterator[None]:
    unknown_fields._of_class.clear()
    yield
    unknown_fields._of_class.clear()


def found(spec: dict[str, Any], **metadata: Any) -> tuple[str, ...]:
    value = {"metadata": {"name": "web", "namespace": "shop", "uid": "u", **metadata}, "spec": spec}
    return resources.decode(resources.POD, json.dumps(value).encode()).unknown_fields


def full(known: Fields) -> dict[str, Any]:
    """An object that has all the fields; where fields are walked into, one by itself and, in turn, a list."""
    return {name: None if inner is None else [full(inner)] for name, inner in known.items()}


# -- finding -----------------------------------------------------------------------------------------------------------


def test_a_field_of_tomorrow_is_found_and_the_pod_is_read() -> None:
    known = resources.decode(resources.POD, json.dumps(POD).encode())
    assert known.unknown_fields == ("spec.somethingOfTomorrow",)
    assert isinstance(known.object, Pod)
    assert known.object.spec.scheduler_name == "dsched"


def test_nothing_is_found_in_a_pod_of_today() -> None:
    today = {name: value for name, value in POD["spec"].items() if name != "somethingOfTomorrow"}
    assert found(today) == ()


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"brandNew": 0}, NEW),
        ({"containers": [{"name": "a"}, {"brandNew": {}}]}, "spec.containers[].brandNew"),
        ({"initContainers": [{"ports": [{"brandNew": 1}]}]}, "spec.initContainers[].ports[].brandNew"),
        ({"ephemeralContainers": [{"targetContainerName": "a", "n": 1}]}, "spec.ephemeralContainers[].n"),
        ({"containers": [{"targetContainerName": "a"}]}, "spec.containers[].targetContainerName"),
        ({"containers": [{"volumeMounts": [{"n": 1}]}]}, "spec.containers[].volumeMounts[].n"),
        ({"containers": [{"resources": {"claims": [{"n": 1}]}}]}, "spec.containers[].resources.claims[].n"),
        ({"volumes": [{"name": "v", "newSource": {}}]}, "spec.volumes[].newSource"),
        ({"tolerations": [{"n": ""}]}, "spec.tolerations[].n"),
        ({"schedulingGroup": {"n": ""}}, "spec.schedulingGroup.n"),
        (
            {"topologySpreadConstraints": [{"labelSelector": {"matchExpressions": [{"n": 1}]}}]},
            "spec.topologySpreadConstraints[].labelSelector.matchExpressions[].n",
        ),
        (
            {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"n": 1}]}}},
            "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[].n",
        ),
        (
            {
                "affinity": {
                    "nodeAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"n": 1}}]
                    }
                }
            },
            "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[].preference.n",
        ),
    ],
)
def test_the_path_says_where_it_is(spec: dict[str, Any], path: str) -> None:
    assert found(spec) == (path,)


def test_all_of_them_are_found_each_once() -> None:
    spec = {"b": 1, "a": 1, "containers": [{"c": 1}, {"c": 2}], "hostAliases": [{"notWalkedInto": 1}]}
    assert found(spec) == ("spec.a", "spec.b", "spec.containers[].c")


def test_null_counts_as_absent() -> None:
    assert found({"brandNew": None, "volumes": None, "affinity": {"podAffinity": None}}) == ()


def test_what_refuses_a_pod_is_no_unknown_field() -> None:
    assert found({"schedulingGroup": {"podGroupName": "g"}, "workloadRef": {}, "resourceClaims": [{"name": "c"}]}) == ()


def test_a_spec_with_all_that_is_known() -> None:
    value = json.dumps({"spec": full(unknown_fields.KNOWN)}).replace("null", "7").encode()
    assert unknown_fields._look(value) == ()


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["containers", "ports", "affinity", "podAffinity", "tolerations", "key", "n"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ).filter(lambda value: isinstance(value, dict))
)
def test_the_quick_look_finds_whatever_the_slow_one_does(spec: dict[str, Any]) -> None:
    slow = tuple(sorted(set(unknown_fields.beyond(spec, unknown_fields.KNOWN, "spec"))))
    assert unknown_fields._look(json.dumps({"spec": spec}).encode()) == slow


def test_what_cannot_be_read_all_the_same_is_no_reason_to_refuse_the_pod() -> None:
    raw = b'{"metadata":{"name":"web","namespace":"shop"},"spec":{"hostname":"\xff","brandNew":1}}'
    known = resources.decode(resources.POD, raw)
    assert (known.key, known.unknown_fields) == ("shop/web", ())


def test_of_a_controller_one_pod_of_a_class_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[bytes] = []
    real = unknown_fields._look
    monkeypatch.setattr(unknown_fields, "_look", lambda raw: looked.append(bytes(raw)) or real(raw))

    def replica(name: str, revision: str) -> tuple[str, ...]:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"web-{revision}", "controller": True}
        labels = {"app": "web", "pod-template-hash": revision}
        spec = {"brandNew": 1} if revision == "2" else {}
        return found(spec, name=name, uid=name, labels=labels, ownerReferences=[owner])

    assert [replica(name, "1") for name in "abc"] == [()] * 3
    assert [replica(name, "2") for name in "def"] == [(NEW,)] * 3
    assert len(looked) == 2


def test_pods_without_a_controller_are_all_looked_at() -> None:
    assert found({}, name="a") == ()
    assert found({"brandNew": 1}, name="b") == (NEW,)


def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unknown_fields.interning, "MOST", 2)
    for number in range(5):
        owner = {"kind": "Job", "name": f"job-{number}", "controller": True}
        assert found({"brandNew": 1}, name=f"p{number}", ownerReferences=[owner]) == (NEW,)
        assert len(unknown_fields._of_class) <= 2


# -- telling -----------------------------------------------------------------------------------------------------------


class Told:
    """What was recorded, by a clock that stands still."""

    def __init__(self) -> None:
        self.events: list[PodEvent] = []
        self.clock = ManualClock()
        self.telling = Telling(self.events.extend, self.clock)
        self.telling.profiles = {"dsched"}


@pytest.fixture
def told() -> Told:
    return Told()


def ours(key: str = "shop/web", node: str = "", scheduler: str = "dsched") -> Pod:
    return make_pod(key, node=node, spec={"schedulerName": scheduler})


def count(field: str) -> float:
    return REGISTRY.get_sample_value("dsched_unknown_fields_total", {"field": field}) or 0.0


def test_the_pod_is_told_what_is_ignored_and_what_helps(told: Told) -> None:
    told.telling.found(ours(), ["spec.a", "spec.b"])
    (event,) = told.events
    assert (event.key, event.type, event.reason, event.scheduler) == ("shop/web", "Warning", "UnknownField", "dsched")
    assert event.message == (
        "dsched ignores fields that it does not know and schedules the pod as if they were not there; upgrade dsched "
        "to a version that knows them: spec.a, spec.b"
    )


def test_a_field_has_an_event_a_minute(told: Told) -> None:
    for seconds, key in ((0, "shop/a"), (30, "shop/b"), (30, "shop/c"), (59, "shop/d")):
        told.clock.advance(seconds)
        told.telling.found(ours(key), ["spec.a"])
    told.telling.found(ours("shop/e"), ["spec.a", "spec.b"])
    assert [(event.key, event.message.rpartition(": ")[2]) for event in told.events] == [
        ("shop/a", "spec.a"),
        ("shop/c", "spec.a"),
        ("shop/e", "spec.b"),
    ]


@pytest.mark.parametrize("pod", [ours(node="n1"), ours(scheduler="another")])
def test_pods_that_are_not_ours_to_place_get_no_event_and_are_counted(told: Told, pod: Pod) -> None:
    before = count("spec.notOurs")
    told.telling.found(pod, ["spec.notOurs"])
    assert told.events == []
    assert count("spec.notOurs") == before + 1
    told.telling.found(ours(), ["spec.notOurs"])
    assert len(told.events) == 1


def test_the_log_says_a_field_once(told: Told, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    for key in ("shop/a", "shop/b"):
        told.telling.found(ours(key), ["spec.a"])
        told.clock.advance(3600)
    (line,) = [vars(record) for record in caplog.records]
    assert (line["pod"], line["field"], line["action"]) == ("shop/a", "spec.a", "unknown_field")


def test_pods_are_counted(told: Told) -> None:
    before = count("spec.counted")
    for key in ("shop/a", "shop/b"):
        told.telling.found(ours(key), ["spec.counted"])
    assert count("spec.counted") == before + 2


def test_labels_and_lines_are_bounded(told: Told, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    before = count(unknown_fields.OTHER)
    for number in range(unknown_fields.MOST_FIELDS + 10):
        told.telling.found(ours(), [f"spec.bounded{number}"])
    assert count(unknown_fields.OTHER) == before + 10
    assert count(f"spec.bounded{unknown_fields.MOST_FIELDS}") == 0
    assert len(caplog.records) == len(told.events) == unknown_fields.MOST_FIELDS + 1


def test_who_does_not_lead_tells_nothing(told: Told) -> None:
    told.telling.profiles = None
    before = count("spec.notLeading")
    told.telling.found(ours(), ["spec.notLeading"])
    assert (told.events, count("spec.notLeading")) == ([], before)
