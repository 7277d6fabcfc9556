"""Claims and volumes in Redis: bound to each other, a compare-and-set; and VolumeBinding's PreBind on top of it."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from dsched.clock import ManualClock
from dsched.cluster.interface import Change
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.cluster.standalone.objects import Objects
from dsched.config import VolumeBindingArgs
from dsched.errors import RedisUnavailable
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Code
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.manifests import kinds
from dsched.model.meta import NodeName, PodKey
from dsched.model.volumes import ClaimBinding, NodeSelection
from dsched.plugins.volume_binding import TIMED_OUT, VolumeBinding
from dsched.state import client
from dsched.state.client import Store
from tests.builders import make_table
from tests.manifests import node_manifest, pod_manifest
from tests.storage import HOSTNAME, Handle, make_class, make_volume

Json = dict[str, Any]
CLAIMS, VOLUMES = kinds.PERSISTENT_VOLUME_CLAIM, kinds.PERSISTENT_VOLUME
DATA = "default/data"
SELECTED = "volume.kubernetes.io/selected-node"


def claim(name: str = "data", class_name: str = "local", size: str = "5Gi", **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            "storageClassName": class_name,
            **spec,
        },
    }


def volume(name: str = "pv", size: str = "10Gi", **fields: Any) -> Json:
    found = make_volume(name, size, **fields)
    del found["metadata"]["resourceVersion"]
    return found


def read(store: Store, kind: kinds.Kind, key: str) -> Json:
    (found,) = Objects(store).get(kind, [key])
    assert found is not None
    return found


def binding(store: Store, name: str = "pv", key: str = DATA) -> ClaimBinding:
    """For claim and volume as they are now."""
    uid = read(store, CLAIMS, key)["metadata"]["uid"]
    return ClaimBinding(key, uid, name, read(store, VOLUMES, name)["metadata"]["resourceVersion"])


class TestBinding:
    @pytest.fixture(autouse=True)
    def applied(self, apply) -> None:
        apply(make_class(), volume(), volume("other"), claim(), claim("more"))

    def test_both_sides_are_written(self, store, cluster):
        assert cluster.bind_volumes([binding(store)]) == [""]
        bound, its = read(store, CLAIMS, DATA), read(store, VOLUMES, "pv")
        metadata = bound["metadata"]
        assert its["spec"]["claimRef"] == {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": "default",
            "name": "data",
            "uid": metadata["uid"],
        }
        assert its["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
        assert (its["status"]["phase"], bound["spec"]["volumeName"]) == ("Bound", "pv")
        assert metadata["annotations"] == {
            "pv.kubernetes.io/bind-completed": "yes",
            "pv.kubernetes.io/bound-by-controller": "yes",
        }
        assert bound["status"] == {
            "phase": "Bound",
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "10Gi"},
        }

    def test_watchers_see_the_volume_first(self, store, cluster):
        version = cluster.newest_version()
        cluster.bind_volumes([binding(store)])
        events, _ = cluster.watch(version, 0)
        assert [(event.change, event.kind, event.key) for event in events] == [
            (Change.MODIFIED, "PersistentVolume", "pv"),
            (Change.MODIFIED, "PersistentVolumeClaim", DATA),
        ]

    def test_what_was_begun_is_finished(self, store, cluster, apply):
        asked = binding(store)
        metadata = read(store, CLAIMS, DATA)["metadata"]
        reference = {"namespace": "default", "name": "data", "uid": metadata["uid"]}
        apply(volume(claimRef=reference))
        assert cluster.bind_volumes([asked]) == [""]
        assert read(store, CLAIMS, DATA)["spec"]["volumeName"] == "pv"
        assert read(store, VOLUMES, "pv")["spec"]["claimRef"] == reference

    def test_a_volume_that_has_changed_is_not_bound(self, store, cluster, apply):
        asked = binding(store)
        apply(volume(size="20Gi"))
        (why,) = cluster.bind_volumes([asked])
        found = read(store, VOLUMES, "pv")["metadata"]["resourceVersion"]
        versions = f"expected version {asked.volume_version}, found {found}"
        assert why == f"persistentvolume pv has changed since the pod was reserved: {versions}"
        assert "claimRef" not in read(store, VOLUMES, "pv")["spec"]

    def test_a_claim_that_has_a_volume_gets_no_other(self, store, cluster):
        cluster.bind_volumes([binding(store)])
        assert cluster.bind_volumes([binding(store, "other")]) == [
            "persistentvolumeclaim default/data is bound to persistentvolume pv"
        ]
        assert "claimRef" not in read(store, VOLUMES, "other")["spec"]

    def test_two_binders_at_the_same_time(self, store, connect: Callable[[str], Store]):
        asked = {"default/data": binding(store), "default/more": binding(store, key="default/more")}
        clusters = [StandaloneCluster(connect(store.name)) for _ in range(4)]
        start, answers = threading.Barrier(4), {}

        def run(number: int, key: str) -> None:
            start.wait()
            answers[number, key] = clusters[number].bind_volumes([asked[key]])

        threads = [threading.Thread(target=run, args=(at, key)) for at, key in enumerate(list(asked) * 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        owner = read(store, VOLUMES, "pv")["spec"]["claimRef"]["name"]
        assert {key for (_, key), found in answers.items() if found == [""]} == {f"default/{owner}"}
        other = "more" if owner == "data" else "data"
        assert read(store, CLAIMS, f"default/{owner}")["spec"]["volumeName"] == "pv"
        assert "volumeName" not in read(store, CLAIMS, f"default/{other}")["spec"]


class TestReading:
    def test_a_kind_that_is_not_kept(self, cluster):
        assert cluster.get_objects("VolumeAttachment", ["a", "b"]) == [None, None]

    def test_while_redis_does_not_answer(self):
        cluster = StandaloneCluster(client.connect("redis://127.0.0.1:1/0", "nowhere"))
        for call in (
            lambda: cluster.get_objects("Node", ["n1"]),
            lambda: cluster.bind_volumes([ClaimBinding(DATA, "u", "pv", "1")]),
            lambda: cluster.select_nodes([NodeSelection(DATA, "u", "1", NodeName("n1"))]),
        ):
            with pytest.raises(RedisUnavailable):
                call()


@dataclass
class Scheduler:
    """VolumeBinding in a leader that has heard of everything in the cluster, and in a binder."""

    cluster: StandaloneCluster
    clock: ManualClock

    def snapshot(self) -> Snapshot:
        listing = self.cluster.list()
        snapshot = Snapshot(make_table(listing.nodes, (pod for pod in listing.pods if pod.node_name)))
        for kind, objects in listing.others.items():
            for value in objects:
                known = kinds.BY_NAME[kind]
                snapshot.put(kind, known.key(value["metadata"].get("namespace", ""), value["metadata"]["name"]), value)
        return snapshot

    def pod(self, key: str) -> PodInfo:
        (pod,) = self.cluster.get_pods([PodKey(key)])
        assert pod is not None
        return PodInfo(pod)

    def reserve(self, leader: VolumeBinding, node: str = "n1", key: str = "default/web") -> CycleState:
        state = CycleState()
        status = leader.reserve(state, self.pod(key), NodeName(node))
        assert status is None, status
        return state

    def leader(self) -> VolumeBinding:
        return VolumeBinding(VolumeBindingArgs(), Handle(self.snapshot(), clock=self.clock))

    def pre_bind(self, state: CycleState, node: str = "n1", key: str = "default/web") -> tuple[Code, str]:
        """What a binder makes of it, state and all as a message would bring it."""
        handle = Handle(Snapshot(), cluster=self.cluster, clock=self.clock)
        sent = msgspec.msgpack.decode(msgspec.msgpack.encode(state.shared))
        status = VolumeBinding(VolumeBindingArgs(), handle).pre_bind(CycleState(sent), self.pod(key), NodeName(node))
        return (Code.SUCCESS, "") if status is None else (status.code, status.message)


DONE = (Code.SUCCESS, "")


@pytest.fixture
def scheduler(cluster, clock) -> Scheduler:
    return Scheduler(cluster, clock)


class TestPreBind:
    WEB = pod_manifest(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    NODE = node_manifest(labels={HOSTNAME: "n1"})

    def test_a_local_volume_is_bound_and_binding_again_is_a_no_op(self, store, cluster, apply, scheduler):
        apply(self.NODE, self.WEB, make_class(), claim(), volume(at=["n1"]), volume("small", "1Gi", at=["n1"]))
        state = scheduler.reserve(scheduler.leader())
        assert scheduler.pre_bind(state) == DONE
        assert read(store, CLAIMS, DATA)["spec"]["volumeName"] == "pv"
        version = cluster.newest_version()
        assert scheduler.pre_bind(state) == DONE
        assert cluster.newest_version() == version
        # the next leader finds the claim bound
        assert scheduler.reserve(scheduler.leader()).shared == {}

    def test_several_claims_of_a_pod(self, store, apply, scheduler):
        names = ["data", "more"]
        volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
        apply(self.NODE, pod_manifest(volumes=volumes), make_class(), *(claim(name) for name in names))
        apply(volume("a", "6Gi"), volume("b", "5Gi"), volume("c", "7Gi"))
        assert scheduler.pre_bind(scheduler.reserve(scheduler.leader())) == DONE
        assert {read(store, CLAIMS, f"default/{name}")["spec"]["volumeName"] for name in names} == {"a", "b"}

    def test_a_volume_that_was_taken_meanwhile_fails_the_bind(self, store, cluster, apply, scheduler):
        apply(self.NODE, self.WEB, make_class(), claim(), claim("more"), volume())
        state = scheduler.reserve(scheduler.leader())
        cluster.bind_volumes([binding(store, key="default/more")])
        taken = "persistentvolume pv is bound to persistentvolumeclaim default/more"
        assert scheduler.pre_bind(state) == (Code.ERROR, taken)

    def test_a_claim_that_somebody_has_to_provision_for_waits(self, store, apply, scheduler, clock):
        fast = make_class("fast", "ssd.example.com")
        apply(self.NODE, self.WEB, fast, claim(class_name="fast"))
        state = scheduler.reserve(scheduler.leader())
        waits = (Code.WAIT, "waiting for persistentvolumeclaim default/data to be bound")
        assert scheduler.pre_bind(state) == waits
        assert read(store, CLAIMS, DATA)["metadata"]["annotations"] == {SELECTED: "n1"}
        assert scheduler.pre_bind(state) == waits
        clock.advance(600)
        assert scheduler.pre_bind(state) == (Code.ERROR, TIMED_OUT)
        # a volume made for the claim: applied with a claimRef, found when the pod is reserved anew
        reference = {"namespace": "default", "name": "data"}
        apply(volume("made", class_name="fast", claimRef=reference))
        assert scheduler.pre_bind(scheduler.reserve(scheduler.leader())) == DONE
        assert read(store, CLAIMS, DATA)["spec"]["volumeName"] == "made"

    def test_or_is_bound_by_hand(self, store, cluster, apply, scheduler):
        apply(self.NODE, self.WEB, make_class("fast", "ssd.example.com"), claim(class_name="fast"))
        state = scheduler.reserve(scheduler.leader())
        assert scheduler.pre_bind(state)[0] is Code.WAIT
        apply(volume("made", class_name="fast"))
        assert cluster.bind_volumes([binding(store, "made")]) == [""]
        assert scheduler.pre_bind(state) == DONE

    def test_provisioning_that_was_given_up(self, apply, scheduler):
        apply(self.NODE, self.WEB, make_class("fast", "ssd.example.com"), claim(class_name="fast"))
        state = scheduler.reserve(scheduler.leader())
        assert scheduler.pre_bind(state)[0] is Code.WAIT
        given_up = claim(class_name="fast")
        given_up["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": ""}
        apply(given_up)
        code, message = scheduler.pre_bind(state)
        assert code is Code.ERROR and "default/data has changed since the pod was reserved" in message
