"""Claims and volumes: whose they are, of what class, and whether they are bound."""

import pytest

from dsched.model import meta, volumes
from dsched.model.meta import ObjectMeta
from dsched.model.volumes import (
    CsiNode,
    CsiStorageCapacity,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
)
from tests.builders import make_pod
from tests.storage import make_capacity, make_claim, make_csi_node, make_volume, with_volumes

BETA = {"volume.beta.kubernetes.io/storage-class": "old"}


def claim(**fields: object) -> PersistentVolumeClaim:
    return meta.from_builtins(make_claim(**fields), PersistentVolumeClaim)  # type: ignore[arg-type]


def test_claims_of_a_pod_in_the_order_of_its_volumes() -> None:
    named = {"persistentVolumeClaim": {"claimName": "data"}}
    pod = with_volumes(named, {"emptyDir": {}}, {"ephemeral": {}}, named, key="shop/web")
    assert list(volumes.claims_of(pod)) == [
        ("shop/data", "data", False),
        ("shop/web-v2", "web-v2", True),
        ("shop/data", "data", False),
    ]


def test_the_default_namespace() -> None:
    pod = meta.from_builtins({"spec": {"volumes": [{"persistentVolumeClaim": {"claimName": "c"}}]}}, type(make_pod()))
    assert [use.key for use in volumes.claims_of(pod)] == ["default/c"]
    assert volumes.namespace_of(ObjectMeta()) == "default"
    assert volumes.key_of({"metadata": {"name": "c"}}) == "default/c"


def test_the_beta_annotation_goes_before_the_field() -> None:
    assert volumes.class_of_claim(claim()) == "local"
    assert volumes.class_of_claim(claim(annotations=BETA)) == "old"
    assert volumes.class_of_claim(claim(class_name=None)) == ""
    volume = meta.from_builtins(make_volume(meta={"annotations": BETA}), PersistentVolume)
    assert volumes.class_of_volume(volume) == "old"


def test_bound_means_that_both_know() -> None:
    assert volumes.fully_bound(claim(volume="pv"))
    assert not volumes.fully_bound(claim(volume="pv", bound=False))
    assert not volumes.fully_bound(claim(annotations={"pv.kubernetes.io/bind-completed": "yes"}))


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        (None, False),
        (ObjectReference("shop", "data", "uid-data"), True),
        (ObjectReference("shop", "data"), True),
        (ObjectReference("shop", "data", "uid-older"), False),
        (ObjectReference("shop", "other", "uid-data"), False),
        (ObjectReference("dev", "data", "uid-data"), False),
    ],
)
def test_whom_a_volume_is_bound_to(reference: ObjectReference | None, expected: bool) -> None:
    assert volumes.refers_to(reference, claim()) is expected


def test_an_ephemeral_claim_belongs_to_its_pod() -> None:
    pod = make_pod("shop/web")
    assert volumes.made_for(claim(owner=pod), pod)
    assert not volumes.made_for(claim(owner=pod), make_pod("shop/web", uid="another"))
    assert not volumes.made_for(claim(), pod)
    not_controlling = {"ownerReferences": [{"kind": "Pod", "name": "web", "uid": pod.uid}]}
    assert not volumes.made_for(claim(meta=not_controlling), pod)


def test_what_a_csi_node_says() -> None:
    node = meta.from_builtins(make_csi_node("n", {"a": 3, "b": None, "c": 0}, migrated="x,y"), CsiNode)
    assert node.limits == {"a": 3, "c": 0}
    assert node.migrated == {"x", "y"}
    assert meta.from_builtins(make_csi_node("n"), CsiNode).migrated == frozenset()


def test_the_largest_volume_there_is_room_for() -> None:
    def limit(capacity: str | None, largest: str | None) -> object:
        return meta.from_builtins(make_capacity("c", "fast", capacity, {}, largest), CsiStorageCapacity).limit

    assert limit("9Gi", "4Gi") == "4Gi"
    assert limit("9Gi", None) == "9Gi"
    assert limit(None, None) is None
