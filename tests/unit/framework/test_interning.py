"""Pods of a class share what is equal in them, and nothing else."""

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dsched.framework import interning
from dsched.framework.per_class import PerClass
from dsched.framework.pod_info import PodInfo
from tests.builders import make_pod
from tests.unit.framework.random_clusters import random_class, random_pod

RESIZED = {"containerStatuses": [{"name": "app", "resources": {"requests": {"cpu": "3"}}}]}
CLAIM = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


@pytest.fixture(autouse=True)
def nothing_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interning, "_first_of", PerClass(lambda first: first))
    monkeypatch.setattr(interning, "_of_parts", {})
    monkeypatch.setattr(interning, "_read_alike", {})


@given(st.integers(0, 2**32))
def test_a_pod_is_what_it_would_be_by_itself(seed: int) -> None:
    rng = Random(seed)
    classes = [random_class(rng, 5) for _ in range(2)]
    for number in range(8):
        pod = random_pod(rng, f"web-{number}", rng.choice(classes))
        if rng.random() < 0.3:
            pod = pod.on("node-1")
        lean, own = interning.shared(pod), PodInfo(pod)
        assert lean.pod == pod
        assert (lean.class_key, lean.requests_key, lean.demand) == (own.class_key, own.requests_key, own.demand)


@given(st.integers(0, 2**32), st.integers(1, 4))
def test_so_it_is_where_pods_were_read_with_the_same_parts(seed: int, most: int) -> None:
    """As from standalone mode: what is equal in two pods is one object there, in any combination."""
    rng = Random(seed)
    samples = [random_pod(rng, f"web-{number}", random_class(rng, 5)) for number in range(3)]
    samples.append(make_pod("shop/disk", spec={"volumes": [{"name": "disk", "ephemeral": {}}]}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interning, "MOST_READ", most)
        patch.setattr(interning, "_of_parts", {})
        patch.setattr(interning, "_read_alike", {})
        for number in range(24):
            spec, labels, owners = (rng.choice(samples) for _ in range(3))
            metadata = replace(
                spec.metadata,
                name=f"p{number}",
                uid=f"u{number}",
                labels=labels.metadata.labels,
                owner_references=owners.metadata.owner_references,
                namespace=rng.choice(["shop", "web"]),
            )
            pod = replace(spec, metadata=metadata)
            lean, own = interning.shared(pod), PodInfo(pod)
            assert lean.pod == pod
            assert (lean.class_key, lean.requests_key, lean.demand) == (own.class_key, own.requests_key, own.demand)
            assert lean.unlabelled_key == own.unlabelled_key
            assert (lean.unclaimed_key, lean.claim_names) == (own.unclaimed_key, own.claim_names)
            assert max(len(interning._read_alike), len(interning._of_parts)) <= most


def test_pods_that_differ_in_labels_share_what_is_derived_from_the_rest() -> None:
    """As from standalone mode, where specs that are written alike are read once."""
    first = make_pod("shop/a", cpu="1", labels={"signature": "a"})
    metadata = replace(first.metadata, name="b", uid="b", labels={"signature": "b"})
    one, two = interning.shared(first), interning.shared(replace(first, metadata=metadata))
    assert two.pod.metadata.labels == {"signature": "b"}
    assert two.class_key != one.class_key
    assert two.unlabelled_key is one.unlabelled_key
    assert two.demand is one.demand


def test_pods_of_a_class_have_one_spec() -> None:
    first, second = (interning.shared(make_pod(f"shop/{name}", cpu="1", labels={"app": "web"})) for name in "ab")
    assert second.pod.spec is first.pod.spec
    assert second.pod.metadata.labels is first.pod.metadata.labels
    assert (second.class_key is first.class_key, second.demand is first.demand) == (True, True)
    assert second.key == "shop/b"


def test_a_bound_pod_has_the_parts_of_it() -> None:
    first, second = (
        interning.shared(make_pod("shop/a", cpu="1")),
        interning.shared(make_pod("shop/b", cpu="1", node="n1")),
    )
    assert second.node_name == "n1"
    assert second.pod.spec.containers is first.pod.spec.containers


def test_each_keeps_the_volumes_that_are_its_own() -> None:
    """As they come from an API server, with a token each."""
    pods = [
        make_pod(f"shop/{name}", spec={"volumes": [*CLAIM, {"name": f"kube-api-access-{name}", "projected": {}}]})
        for name in "ab"
    ]
    first, second = map(interning.shared, pods)
    assert second.pod == pods[1]
    assert second.pod.spec.containers is first.pod.spec.containers


def test_what_is_shared_already_stays_as_it_is() -> None:
    interning.shared(make_pod("shop/a", cpu="1"))
    for node in ("", "n1"):
        lean = interning.shared(make_pod("shop/b", cpu="1", node=node)).pod
        assert interning.shared(lean).pod is lean


def test_a_resize_under_way_is_not_shared() -> None:
    plain, larger, again = (
        interning.shared(make_pod(f"shop/{name}", cpu="1", status=status))
        for name, status in (("a", {}), ("b", RESIZED), ("c", {}))
    )
    assert [info.demand.requests["cpu"] for info in (plain, larger, again)] == [1000, 3000, 1000]


def test_nor_is_that_of_the_first() -> None:
    larger, plain = (
        interning.shared(make_pod(f"shop/{name}", cpu="1", status=status))
        for name, status in (("a", RESIZED), ("b", {}))
    )
    assert (larger.demand.requests["cpu"], plain.demand.requests["cpu"]) == (3000, 1000)
    assert msgspec.structs.asdict(plain.pod.status) == msgspec.structs.asdict(make_pod().status)


def test_pods_of_a_class_keep_their_own_groups() -> None:
    """No plugin that judges nodes looks at the group, so it makes no class of its own."""
    pods = [make_pod(f"shop/{name}-0", spec={"schedulingGroup": {"podGroupName": name}}) for name in ("one", "other")]
    infos = [interning.shared(pod) for pod in pods]
    assert infos[0].class_key == infos[1].class_key
    assert [info.pod.group_key for info in infos] == ["shop/one", "shop/other"]
