"""Objects as JSON and YAML readers give them, with nulls as Go's decoder reads them."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.model import meta
from dsched.model.devices import Counter, ResourceSlice
from dsched.model.pod import Pod
from dsched.model.resource_claims import ResourceClaim
from dsched.model.volumes import CsiNode

TEXT = st.sampled_from(["", "a", "null", 'say "null"'])
MAP = st.none() | st.dictionaries(TEXT, st.none() | TEXT, max_size=2)
CONTAINER = st.none() | st.fixed_dictionaries(
    {"name": TEXT},
    optional={"image": st.none() | TEXT, "resources": st.none() | st.fixed_dictionaries({"requests": MAP})},
)
POD = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries({"name": TEXT}, optional={"labels": MAP, "annotations": MAP}),
        "spec": st.fixed_dictionaries({}, optional={"containers": st.none() | st.lists(CONTAINER, max_size=2)}),
    }
)


@given(POD)
def test_nulls_are_read_wherever_they_are(pod: dict[str, Any]) -> None:
    assert meta.from_builtins(pod, Pod) == msgspec.convert(meta.without_nulls(pod), Pod)


def test_a_null_is_what_go_makes_of_it() -> None:
    found = meta.from_builtins(
        {"metadata": {"name": "web", "labels": {"app": None}}, "spec": {"containers": [None], "nodeName": None}}, Pod
    )
    assert (found.metadata.labels, len(found.spec.containers), found.node_name) == ({"app": ""}, 1, "")


def test_a_null_in_what_has_a_maps_name_is_read_by_what_is_in_it() -> None:
    device = {
        "name": "gpu-0",
        "attributes": {"model": None},
        "capacity": {"memory": None, "cores": {"value": "8"}},
        "consumesCounters": [{"counterSet": "set", "counters": {"memory": None}}],
        "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "values": [None]}]}]},
    }
    (found,) = meta.from_builtins({"spec": {"devices": [device]}}, ResourceSlice).spec.devices
    assert (found.attributes, found.capacity) == ({"model": {}}, {"memory": {}, "cores": {"value": "8"}})
    assert found.consumes_counters[0].counters == {"memory": Counter()}
    assert found.node_selector is not None
    assert found.node_selector.node_selector_terms[0].match_expressions[0].values == [""]
    drivers = [{"name": "disks.example.com", "allocatable": {"count": None}}]
    assert meta.from_builtins({"spec": {"drivers": drivers}}, CsiNode).limits == {}


def test_parameters_are_somebody_elses() -> None:
    opaque = {"driver": "example.com", "parameters": {"kept": None}}
    claim = {"spec": {"devices": {"config": [{"opaque": {**opaque, "dropped": None}}]}}}
    (found,) = meta.from_builtins(claim, ResourceClaim).spec.devices.config
    assert found.opaque == opaque


def test_what_json_does_not_have_is_told_with_its_place() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\.metadata\.name"):
        meta.from_builtins({"metadata": {"name": object()}}, Pod)
