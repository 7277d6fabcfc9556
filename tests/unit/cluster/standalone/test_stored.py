"""Batches, and the text that scripts rely on."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.cluster.standalone import stored
from dsched.manifests import kinds
from dsched.model.meta import from_json
from dsched.model.pod import Pod
from tests.manifests import pod_manifest


def test_a_stored_object_begins_with_version_and_uid():
    value = pod_manifest("shop/web")
    value["metadata"] = {"name": "web", "resourceVersion": "3", "namespace": "shop", "uid": "u-1"}
    json = stored.head(kinds.POD).encode() + b"17" + stored.tail(value)
    assert json.startswith(b'{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"17","uid":"u-1",')
    value["metadata"]["resourceVersion"] = "17"
    assert msgspec.json.decode(json) == value


def test_an_object_of_metadata_alone_is_stored():
    value = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "uid": "u-1"}}
    json = stored.head(kinds.NAMESPACE).encode() + b"1" + stored.tail(value)
    assert msgspec.json.decode(json)["metadata"] == {"resourceVersion": "1", "uid": "u-1", "name": "shop"}


def test_the_state_line_of_a_pod():
    value = pod_manifest(schedulingGates=[{"name": "a"}], uid="u-1")
    assert stored.state_line(value, "", 0) == "u-1 - 0 gated - Pending"
    value = {**pod_manifest(uid="u-1"), "status": {"phase": "Failed"}}
    value["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z"
    assert stored.state_line(value, "n1", 5) == "u-1 n1 5 - deleting Failed"
    assert stored.pod_state(b"u-1 n1 5 - deleting Failed 9").bound_to == "n1"


def read(reader: Callable[[bytes], Pod], raw: bytes) -> Pod | str:
    """What it reads, or how it says that it cannot."""
    try:
        return reader(raw)
    except msgspec.MsgspecError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize(
    "raw",
    [
        b'{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c"}]},"status":{"phase":"Pending"}}',
        b'{"apiVersion":"v1","metadata":{"name":"a","labels":null}}',
        b'{"metadata":{"name":"a"},"spec":null}',
        b'{"metadata":{"name":"a"},"spec":{"nodeSelector":{"a":null},"tolerations":null},"status":null}',
        b'{"metadata":{"name":"a"},"spec":{"priority":"high"}}',
        b'{"metadata":{"name":5},"spec":{}}',
        b'{"metadata":{},"spec":{"containers":[{"resources":{"requests":{"cpu":[]}}}]}}',
        b'{"metadata":{},"spec":{},"status":{"phase":1}}',
        b'{"metadata":{},"spec":7}',
        b'{"metadata":{},"spec":{"containers":[}}',
        b'{"spec":{"containers":[]}',
        b"[]",
        b"",
    ],
)
def test_a_pod_is_read_as_if_its_spec_had_not_been_read_before(raw: bytes):
    expected = read(lambda raw: from_json(raw, Pod), raw)
    assert read(stored.applied, raw) == expected
    assert read(stored.applied, raw) == expected


@given(
    name=st.text(max_size=5),
    labels=st.dictionaries(st.text(max_size=3), st.none() | st.text(max_size=3), max_size=2),
    spec=st.fixed_dictionaries(
        {},
        optional={
            "priority": st.none() | st.integers(-(2**54), 2**54),
            "nodeName": st.none() | st.text(max_size=3) | st.integers(),
            "nodeSelector": st.dictionaries(st.text(max_size=3), st.none() | st.text(max_size=3), max_size=2),
            "unknown": st.integers() | st.lists(st.integers(), max_size=2),
        },
    ),
)
def test_any_pod_is_read_so(name: str, labels: dict[str, str | None], spec: dict[str, object]):
    raw = msgspec.json.encode({"metadata": {"name": name, "labels": labels}, "spec": spec})
    assert read(stored.applied, raw) == read(lambda raw: from_json(raw, Pod), raw)


def test_pods_of_a_template_share_their_spec():
    one, other = (
        stored.applied(b'{"metadata":{"name":"%s"},"spec":{"schedulerName":"a"},"status":{}}' % name)
        for name in (b"one", b"other")
    )
    assert one.spec is other.spec
    assert (one.metadata.name, other.metadata.name) == ("one", "other")


OF_A_LENGTH = {
    "labels": [{"app": "web"}, {"app": "sql"}],
    "annotations": [{"a": "1"}, {"a": "2"}],
    "ownerReferences": [[{"name": "a", "controller": True}], [{"name": "b", "controller": True}]],
    "spec": [{"schedulerName": "a"}, {"schedulerName": "b"}],
    "status": [{"phase": "Pending"}, {"phase": "Running"}],
}


@given(st.lists(st.fixed_dictionaries({name: st.sampled_from(two) for name, two in OF_A_LENGTH.items()}), max_size=6))
def test_pods_are_told_apart_whose_parts_are_of_the_same_lengths(parts: list[dict[str, object]]):
    for each in parts:
        metadata = {name: each[name] for name in ("labels", "annotations", "ownerReferences")}
        raw = msgspec.json.encode({"metadata": metadata, "spec": each["spec"], "status": each["status"]})
        assert stored.applied(raw) == from_json(raw, Pod)


@given(
    applied_at=st.sampled_from(["", "7"]),
    node=st.sampled_from(["-", "n1"]),
    same=st.booleans(),
    status=st.fixed_dictionaries(
        {},
        optional={
            "phase": st.sampled_from(["Pending", "Running"]),
            "nominatedNodeName": st.sampled_from(["n1", "n2"]),
            "conditions": st.just([{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}]),
        },
    ),
    written=st.none()
    | st.fixed_dictionaries(
        {},
        optional={
            "nominatedNodeName": st.sampled_from(["", "n2"]),
            "conditions": st.just([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]),
        },
    ),
)
def test_a_pod_is_read_as_if_each_part_were_put_into_it_after_the_other(
    applied_at: str, node: str, same: bool, status: dict[str, object], written: dict[str, object] | None
):
    value = {"metadata": {"name": "a", "uid": "u", "resourceVersion": applied_at}, "spec": {}, "status": status}
    raw, told = msgspec.json.encode(value), None if written is None else msgspec.json.encode(written)
    read = stored.pod(raw, f"{'u' if same else 'other'} {node} 0 - - Pending 9".encode(), told)
    expected = from_json(raw, Pod)
    if same:
        value["metadata"]["resourceVersion"] = "9"
        expected = from_json(msgspec.json.encode(value), Pod)
        expected = stored.on_node(expected, node) if node != "-" else stored.with_status(expected, told)
    assert read == expected
