"""Claims that are given devices before a workload begins."""

from random import Random
from typing import Any

import pytest

from dsched.bench.writing import allocated
from dsched.cluster.standalone.applying import Applier
from dsched.config.feature_gates import DEFAULT
from dsched.errors import ConfigError
from dsched.state.client import Store
from tests.devices import asking, make_claim, make_class, make_slice
from tests.manifests import loaded, node_manifest

NODES = ("n1", "n2")


@pytest.fixture
def cluster(store: Store, tmp_path: Any) -> Any:
    """Two nodes with two devices each; applies more."""

    def apply(*objects: Any) -> None:
        Applier(store).apply(loaded(tmp_path, *objects))

    apply(make_class("gpu"), *map(node_manifest, NODES), *(make_slice(node, ("a", "b")) for node in NODES))
    return apply


def given(store: Store, seed: int = 1) -> list[tuple[str, str]]:
    """Node and device of each claim that gets one; they are written."""
    found = allocated(store, "default", DEFAULT, Random(seed))
    Applier(store).apply(found)
    results = [each.value["status"]["allocation"]["devices"]["results"] for each in found]
    return [(result["pool"], result["device"]) for (result,) in results]


def test_each_claim_gets_a_device_of_its_own_once(store: Store, cluster: Any) -> None:
    cluster(*(make_claim(f"default/c{number}", asking()) for number in range(3)))
    first = given(store)
    assert len(set(first)) == len(first) == 3
    assert given(store) == []
    cluster(make_claim("default/late", asking()))
    assert {*first, *given(store)} == {(node, device) for node in NODES for device in ("a", "b")}


def test_claims_of_other_namespaces_are_left_alone(store: Store, cluster: Any) -> None:
    cluster(make_claim("other/elsewhere", asking()))
    assert given(store) == []


def test_too_few_devices_are_an_error_that_names_the_claim(store: Store, cluster: Any) -> None:
    cluster(*(make_claim(f"default/c{number}", asking()) for number in range(5)))
    with pytest.raises(ConfigError, match=r"claim default/c\d cannot get devices: only 4 claims before it can"):
        given(store)
