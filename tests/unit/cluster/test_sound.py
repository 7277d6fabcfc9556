"""Nodes that are read: those alike share what they say, and what cannot be counted is found out each time."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dsched.cluster import sound
from dsched.model.meta import from_json
from dsched.model.node import ContainerImage, Node
from tests.manifests import node_manifest


def read(name: str, **allocatable: str) -> Node:
    manifest = node_manifest(name)
    manifest["status"]["allocatable"] |= allocatable
    return from_json(msgspec.json.encode(manifest), Node)


AMOUNTS = st.sampled_from(["1", "2", "3Gi", "500m"])


@given(st.lists(st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/gpu"]), AMOUNTS), max_size=8))
def test_nodes_are_as_they_were_read_and_share_what_is_equal(statuses: list[dict[str, str]]) -> None:
    before = [read(f"n{number}", **status) for number, status in enumerate(statuses)]
    after = [sound.node(node) for node in before]
    assert after == before
    for one in after:
        for other in after:
            assert (one.status is other.status) == (one.status == other.status)


def test_nodes_with_the_same_and_other_images_share_what_they_have() -> None:
    one, other = read("n1", cpu="7"), read("n2", cpu="7")
    other = replace(other, status=replace(other.status, images=[ContainerImage(["model"], 5)]))
    first, second = sound.node(one), sound.node(other)
    assert (first, second) == (one, other)
    assert first.status.allocatable is second.status.allocatable
    assert first.status.capacity is second.status.capacity


def test_however_many_there_are_they_are_as_they_were_read() -> None:
    before = [read(f"n{number}", cpu=str(number)) for number in range(600)]
    assert [sound.node(node) for node in before] == before


def test_what_cannot_be_counted_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match=r"status\.allocatable\.cpu: -1e30 is beyond 64 bits"):
            sound.node(read("n", cpu="-1e30"))
