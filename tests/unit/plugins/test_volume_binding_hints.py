"""Events that may help a pod which VolumeBinding rejected."""

from typing import Any

from dsched.config import VolumeBindingArgs
from dsched.framework.interface import Action, Resource
from dsched.framework.snapshot import Snapshot
from dsched.plugins.volume_binding import VolumeBinding
from tests.builders import make_node
from tests.storage import (
    HOSTNAME,
    ZONE,
    Handle,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_volume,
    with_volumes,
)
from tests.unit.plugins.hints import queues

PLUGIN = VolumeBinding(VolumeBindingArgs(), Handle(Snapshot()))
NODES = [make_node(name, labels={HOSTNAME: name}) for name in "ab"]


class TestHints:
    POD = with_volumes({"persistentVolumeClaim": {"claimName": "data"}}, {"csi": {"driver": "d"}}, {"ephemeral": {}})

    def changed(self, resource: Resource, old: Any, new: Any) -> bool:
        return queues(PLUGIN, self.POD, resource, Action.UPDATE, old, new)

    def added(self, resource: Resource, new: Any) -> bool:
        return queues(PLUGIN, self.POD, resource, Action.ADD, new=new)

    def test_classes(self) -> None:
        assert self.added(Resource.STORAGE_CLASS, make_class())
        assert self.changed(Resource.STORAGE_CLASS, make_class(), make_class(topologies=[{ZONE: ["a"]}]))
        assert not self.changed(Resource.STORAGE_CLASS, make_class(), make_class(mode="Immediate"))

    def test_claims_of_the_pod(self) -> None:
        for claim in (make_claim("shop/data"), make_claim("shop/web-v2")):
            assert self.added(Resource.PVC, claim)
            assert self.changed(Resource.PVC, claim, claim)
        assert not self.added(Resource.PVC, make_claim("shop/other"))
        assert not self.added(Resource.PVC, make_claim("dev/data"))

    def test_any_volume(self) -> None:
        assert self.added(Resource.PV, make_volume())
        assert self.changed(Resource.PV, make_volume(), make_volume())

    def test_nodes(self) -> None:
        assert self.added(Resource.NODE, NODES[0])
        assert self.changed(Resource.NODE, NODES[0], NODES[1])
        assert not self.changed(Resource.NODE, NODES[0], NODES[0])

    def test_csi_nodes(self) -> None:
        assert self.added(Resource.CSI_NODE, make_csi_node("a"))
        assert self.changed(Resource.CSI_NODE, make_csi_node("a"), make_csi_node("a", migrated="x"))
        assert not self.changed(Resource.CSI_NODE, make_csi_node("a"), make_csi_node("a", {"d": 1}))

    def test_drivers(self) -> None:
        minds, does_not = make_driver("d"), make_driver("d", storage_capacity=False)
        assert self.changed(Resource.CSI_DRIVER, minds, does_not)
        assert not self.changed(Resource.CSI_DRIVER, does_not, minds)
        assert not self.changed(Resource.CSI_DRIVER, minds, minds)
        others = make_driver("e"), make_driver("e", storage_capacity=None)
        assert not self.changed(Resource.CSI_DRIVER, *others)

    def test_room(self) -> None:
        def room(capacity: str | None, largest: str | None = None) -> Any:
            return make_capacity("c", "fast", capacity, {}, largest)

        assert self.added(Resource.CSI_STORAGE_CAPACITY, room("1Gi"))
        assert self.changed(Resource.CSI_STORAGE_CAPACITY, room("1Gi"), room("2Gi"))
        assert self.changed(Resource.CSI_STORAGE_CAPACITY, room(None), room("1Gi"))
        assert self.changed(Resource.CSI_STORAGE_CAPACITY, room("9Gi", "1Gi"), room("9Gi", "2Gi"))
        assert not self.changed(Resource.CSI_STORAGE_CAPACITY, room("2Gi"), room("1Gi"))
        assert not self.changed(Resource.CSI_STORAGE_CAPACITY, room("1Gi"), room(None))
        assert not self.changed(Resource.CSI_STORAGE_CAPACITY, room("1Gi", "1Gi"), room("9Gi", "1Gi"))
