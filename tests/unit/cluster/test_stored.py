"""Batches, and the text that scripts rely on."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dsched.cluster import stored
from dsched.manifests import kinds
from tests.manifests import pod_manifest


@given(sizes=st.lists(st.integers(0, 5_000_000), max_size=30))
def test_batches_keep_order_and_stay_within_bytes(sizes: list[int]):
    batches = list(stored.batches(sizes, lambda size: size))
    assert [size for batch in batches for size in batch] == sizes
    for batch in batches:
        assert len(batch) == 1 or sum(batch) <= 4_000_000


def test_batches_hold_five_hundred():
    assert [len(batch) for batch in stored.batches(range(1001))] == [500, 500, 1]
    assert list(stored.batches([])) == []


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
