"""Objects of a snapshot are decoded once, until they change."""

import gc
from weakref import ref

from dsched.framework.snapshot import Snapshot
from dsched.plugins.volumes import objects as volume_objects
from tests.storage import make_claim, make_csi_node, make_volume, put, world


def test_one_for_each_snapshot() -> None:
    snapshot = world()
    assert volume_objects.of(snapshot) is volume_objects.of(snapshot)
    assert volume_objects.of(snapshot) is not volume_objects.of(world())


def test_an_object_is_decoded_again_only_when_it_changed() -> None:
    snapshot = world((), (), make_claim("shop/a"), make_claim("shop/b"))
    objects = volume_objects.of(snapshot)
    first, other = objects.claims.get("shop/a"), objects.claims.get("shop/b")
    assert objects.claims.get("shop/a") is first
    put(snapshot, make_claim("shop/a", "9Gi"))
    again = objects.claims.get("shop/a")
    assert again is not None and again.spec.resources.requests == {"storage": "9Gi"}
    assert objects.claims.get("shop/b") is other
    snapshot.drop("PersistentVolumeClaim", "shop/a")
    assert objects.claims.get("shop/a") is None


def test_explicit_nulls() -> None:
    claim = make_claim("shop/a", selector=None)
    claim["metadata"]["annotations"] = None
    snapshot = world((), (), claim)
    found = volume_objects.of(snapshot).claims.get("shop/a")
    assert found is not None and found.metadata.annotations == {}


def test_volumes_by_class() -> None:
    snapshot = world((), (), make_volume("a"), make_volume("b", class_name="fast"), make_volume("c"))
    objects = volume_objects.of(snapshot)

    def names(class_name: str) -> list[str]:
        return [offer.name for offer in objects.offers_of(class_name)]

    assert (names("local"), names("fast"), names("none")) == (["a", "c"], ["b"], [])
    kept = objects.offers_of("local")[0]
    put(snapshot, make_volume("c", class_name="fast"))
    assert (names("local"), names("fast")) == (["a"], ["b", "c"])
    assert objects.offers_of("local")[0] is kept


def test_nodes_that_a_plugin_has_migrated_on() -> None:
    snapshot = world((), (), make_csi_node("a", migrated="x,y"), make_csi_node("b", migrated="y"), make_csi_node("c"))
    objects = volume_objects.of(snapshot)
    assert (objects.migrated_to("x"), objects.migrated_to("y"), objects.migrated_to("z")) == ({"a"}, {"a", "b"}, set())
    put(snapshot, make_csi_node("b"))
    assert objects.migrated_to("y") == {"a"}


def test_what_is_gone_is_let_go() -> None:
    snapshot = world()
    objects = volume_objects.of(snapshot)
    for number in range(1000):
        put(snapshot, make_claim(f"shop/c{number}"))
        assert objects.claims.get(f"shop/c{number}") is not None
        snapshot.drop("PersistentVolumeClaim", f"shop/c{number}")
    assert len(objects.claims._made) < 100


def test_a_snapshot_that_is_gone_is_let_go() -> None:
    snapshot: Snapshot | None = world((), (), make_claim("shop/a"))
    assert snapshot is not None
    gone = ref(snapshot)
    objects = volume_objects.of(snapshot)
    assert objects.claims.get("shop/a") is not None
    snapshot = None
    gc.collect()
    assert gone() is None
    assert objects.claims.get("shop/a") is None
