"""VolumeBinding: Reserve and Unreserve in the leader, PreBind in a binder."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgpack
import pytest

from dsched.clock import ManualClock
from dsched.config import Features, VolumeBindingArgs, feature_gates
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Code, Status
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName
from dsched.model.pod import Pod
from dsched.model.volumes import ClaimBinding, NodeSelection
from dsched.plugins.volume_binding import ERR_REASONS, TIMED_OUT, VolumeBinding
from dsched.plugins.volumes import assumptions
from tests.builders import make_node, make_pod, make_term
from tests.storage import (
    HOSTNAME,
    ZONE,
    Handle,
    claiming,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
    put,
    with_volumes,
    world,
)
from tests.unit.plugins.storage_asking import reasons

Json = dict[str, Any]
NO_VOLUME = (list(ERR_REASONS.values())[1],)
NODES = [make_node(name, labels={HOSTNAME: name}) for name in "ab"]
SELECTED = "volume.kubernetes.io/selected-node"
NEWER = {"resourceVersion": "2"}


class Leader:
    """The plugin as the leader has it."""

    def __init__(self, snapshot: Snapshot, clock: ManualClock | None = None) -> None:
        self.snapshot = snapshot
        self.plugin = VolumeBinding(VolumeBindingArgs(), Handle(snapshot, clock=clock or ManualClock(1000)))

    def reserve(self, pod: Pod, node: str) -> tuple[Status | None, Any]:
        """Reserve's status, and what it leaves to the binder, as the message carries it."""
        state = CycleState()
        status = self.plugin.reserve(state, PodInfo(pod), NodeName(node))
        left = msgpack.unpackb(msgpack.packb(state.shared))
        return status, left.get("VolumeBinding")

    def unreserve(self, pod: Pod, node: str) -> None:
        self.plugin.unreserve(CycleState(), PodInfo(pod), NodeName(node))

    def fits(self, pod: Pod) -> list[bool]:
        return [found == () for found in reasons(self.plugin, pod, self.snapshot)]

    @property
    def assumed(self) -> int:
        return len(assumptions.of(self.snapshot))


def claims(*names: str, class_name: str = "local") -> list[Json]:
    return [make_claim(f"shop/{name}", class_name=class_name) for name in names]


class TestReserve:
    def test_a_volume_that_is_promised_is_gone_for_others(self) -> None:
        volumes = [make_volume("pv-a", at=["a"]), make_volume("pv-b", at=["b"])]
        leader = Leader(world(NODES, (), make_class(), *claims("one", "two"), *volumes))
        status, left = leader.reserve(claiming("one", key="shop/first"), "a")
        assert status is None
        assert left == {
            "bindings": [{"claim": "shop/one", "claimUid": "uid-one", "volume": "pv-a", "volumeVersion": "1"}],
            "sinceMs": 1000,
        }
        assert leader.fits(claiming("two")) == [False, True]
        assert leader.fits(claiming("one")) == [True, False]  # the claim itself may have it

    def test_whoever_was_asked_about_before_hears_of_the_promise_and_of_its_end(self) -> None:
        """What was derived from a pod is kept; the objects have not changed."""
        leader = Leader(world(NODES, (), make_class(), *claims("one", "two"), make_volume("pv-a", at=["a"])))
        second = PodInfo(claiming("two", key="shop/second"))

        def codes() -> list[int]:
            state, table = CycleState(), leader.snapshot.table
            leader.plugin.pre_filter(state, second, leader.snapshot)
            return leader.plugin.filter_table(state, second, table, table.all_rows).index.tolist()

        fits, first = codes(), claiming("one", key="shop/first")
        leader.reserve(first, "a")
        assert codes() != fits
        leader.unreserve(first, "a")
        assert codes() == fits

    def test_until_the_reservation_is_given_back(self) -> None:
        leader = Leader(world(NODES, (), make_class(), *claims("one", "two"), make_volume("pv-a", at=["a"])))
        first = claiming("one", key="shop/first")
        leader.reserve(first, "a")
        leader.unreserve(claiming("two", key="shop/second"), "a")
        assert leader.fits(claiming("two")) == [False, False]
        leader.unreserve(first, "a")
        leader.unreserve(first, "a")
        assert leader.fits(claiming("two")) == [True, False]
        assert leader.assumed == 0

    def test_or_the_volume_changes(self) -> None:
        leader = Leader(world(NODES, (), make_class(), *claims("one", "two"), make_volume("pv-a", at=["a"])))
        leader.reserve(claiming("one", key="shop/first"), "a")
        put(leader.snapshot, make_volume("pv-a", at=["a"], meta=NEWER))
        assert leader.fits(claiming("two")) == [True, False]
        assert leader.assumed == 0

    def test_a_volume_is_to_be_made_for_one_node(self) -> None:
        leader = Leader(world(NODES, (), make_class("fast", "ssd"), *claims("one", class_name="fast")))
        status, left = leader.reserve(claiming("one", key="shop/first"), "b")
        assert status is None
        assert left == {
            "selections": [{"claim": "shop/one", "claimUid": "uid-one", "claimVersion": "1", "node": "b"}],
            "sinceMs": 1000,
        }
        second = claiming("one", key="shop/second")
        assert leader.fits(second) == [False, True]
        assert leader.reserve(second, "b")[1]["selections"] == left["selections"]
        leader.unreserve(second, "b")
        assert leader.fits(second) == [False, True]

    def test_a_volume_that_somebody_made_meanwhile(self) -> None:
        claim = make_claim("shop/one", class_name="fast", annotations={SELECTED: "b"})
        made = make_volume("made", class_name="fast", claim=claim)
        leader = Leader(world(NODES, (), make_class("fast", "ssd"), claim, made))
        _, left = leader.reserve(claiming("one"), "b")
        assert [each["volume"] for each in left["bindings"]] == ["made"]
        assert "selections" not in left

    def test_claims_that_are_bound_leave_nothing_to_do(self) -> None:
        bound = make_claim("shop/one", volume="pv")
        leader = Leader(world(NODES, (), bound, make_volume("pv", claim=bound)))
        assert leader.reserve(claiming("one"), "a") == (None, None)
        assert leader.reserve(make_pod(), "a") == (None, None)
        assert leader.assumed == 0

    def test_a_node_that_will_not_do_after_all(self) -> None:
        leader = Leader(world(NODES, (), make_class(), *claims("one"), make_volume("pv-a", at=["a"])))
        status, left = leader.reserve(claiming("one"), "b")
        assert (status, left) == (Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, NO_VOLUME), None)
        status, _ = leader.reserve(claiming("gone"), "b")
        assert status is not None and status.message == 'persistentvolumeclaim "gone" not found'
        status, _ = leader.reserve(claiming("one"), "c")
        assert status == Status(Code.ERROR, ('node "c" not found',))

    def test_ephemeral_volumes_are_the_pods_own(self) -> None:
        pods = [with_volumes({"ephemeral": {}}, key=f"shop/p{at}") for at in range(2)]
        owned = [make_claim(f"shop/p{at}-v0", owner=pod) for at, pod in enumerate(pods)]
        leader = Leader(world(NODES, (), make_class(), *owned, make_volume("pv-a", at=["a"])))
        _, left = leader.reserve(pods[1], "a")
        assert [each["claim"] for each in left["bindings"]] == ["shop/p1-v0"]
        assert leader.fits(pods[0]) == [False, False]

    def test_what_is_bound_does_not_pile_up(self) -> None:
        names = [f"c{at}" for at in range(100)]
        leader = Leader(world(NODES, (), make_class(), *claims(*names), *(make_volume(f"pv{at}") for at in range(100))))
        for name in names:
            _, left = leader.reserve(claiming(name, key=f"shop/p-{name}"), "a")
            volume = left["bindings"][0]["volume"]
            put(leader.snapshot, make_volume(volume, claim=make_claim(f"shop/{name}"), meta=NEWER))
        assert leader.assumed < 50


class StoredVolumes:
    """A cluster of claims and volumes that notes what is asked of it."""

    def __init__(self, *objects: Json, refuses: str = "") -> None:
        self.asked: list[ClaimBinding | NodeSelection] = []
        self.read: list[str] = []
        self._refuses = refuses
        nodes = {node.name: {"metadata": {"name": node.name, "labels": node.metadata.labels}} for node in NODES}
        self._objects: dict[tuple[str, str], Json] = {("Node", name): value for name, value in nodes.items()}
        self._objects |= {self._key(value): value for value in objects}

    def put(self, value: Json) -> None:
        self._objects[self._key(value)] = value

    def get_objects(self, kind: str, keys: Sequence[str]) -> Sequence[Mapping[str, Any] | None]:
        self.read.append(kind)
        return [self._objects.get((kind, key)) for key in keys]

    def bind_volumes(self, bindings: Sequence[ClaimBinding]) -> Sequence[str]:
        self.asked += bindings
        return [self._refuses for _ in bindings]

    def select_nodes(self, selections: Sequence[NodeSelection]) -> Sequence[str]:
        self.asked += selections
        return [self._refuses for _ in selections]

    @staticmethod
    def _key(value: Json) -> tuple[str, str]:
        metadata = value["metadata"]
        namespace = metadata.get("namespace")
        return value["kind"], f"{namespace}/{metadata['name']}" if namespace else metadata["name"]


CLAIM = make_claim("shop/one", volume="pv")
VOLUME = make_volume("pv", at=["a"], claim=CLAIM)
MADE = make_claim("shop/one", volume="pv", annotations={SELECTED: "a"})
BINDING = {"claim": "shop/one", "claimUid": "uid-one", "volume": "pv", "volumeVersion": "1"}
SELECTION = {"claim": "shop/one", "claimUid": "uid-one", "claimVersion": "1", "node": "a"}
BIND: Json = {"bindings": [BINDING], "sinceMs": 0}
SELECT: Json = {"selections": [SELECTION], "sinceMs": 0}


def pre_bind(
    cluster: StoredVolumes,
    owed: Json | None,
    now_ms: int = 1000,
    timeout_s: int = 600,
    features: Features = feature_gates.UNSAID,
) -> Status | None:
    handle = Handle(Snapshot(), cluster=cluster, clock=ManualClock(now_ms))
    plugin = VolumeBinding(VolumeBindingArgs(timeout_s), handle, features)
    state = CycleState({} if owed is None else {"VolumeBinding": owed})
    return plugin.pre_bind(state, PodInfo(claiming("one")), NodeName("a"))


class TestPreBind:
    def test_what_is_owed_is_asked_for_and_looked_at(self) -> None:
        for owed, claim in ((BIND, CLAIM), (SELECT, MADE)):
            cluster = StoredVolumes(claim, VOLUME)
            assert pre_bind(cluster, owed) is None
            assert pre_bind(cluster, owed) is None
            assert len(cluster.asked) == 2

    def test_where_nothing_is_owed_nothing_is_asked(self) -> None:
        cluster = StoredVolumes()
        assert pre_bind(cluster, None) is None
        assert (cluster.asked, cluster.read) == ([], [])

    def test_it_waits_for_claims_that_are_not_bound_yet(self) -> None:
        waits = Status(Code.WAIT, ("waiting for persistentvolumeclaim shop/one to be bound",))
        assert pre_bind(StoredVolumes(make_claim("shop/one"), VOLUME), BIND) == waits
        selected = make_claim("shop/one", annotations={SELECTED: "a"})
        assert pre_bind(StoredVolumes(selected), SELECT) == waits
        half = make_claim("shop/one", volume="pv", bound=False, annotations={SELECTED: "a"})
        assert pre_bind(StoredVolumes(half, VOLUME), SELECT) == waits
        assert pre_bind(StoredVolumes(MADE), SELECT) == waits  # its volume may show yet

    def test_but_not_for_ever(self) -> None:
        cluster = StoredVolumes(make_claim("shop/one"), VOLUME)
        waiting, over = pre_bind(cluster, BIND, now_ms=599_999), pre_bind(cluster, BIND, now_ms=600_000)
        assert waiting is not None and waiting.code is Code.WAIT
        assert over == Status(Code.ERROR, (TIMED_OUT,))
        assert pre_bind(cluster, BIND, timeout_s=0) == Status(Code.ERROR, (TIMED_OUT,))
        assert pre_bind(StoredVolumes(CLAIM, VOLUME), BIND, timeout_s=0) is None

    def test_a_refusal_ends_it(self) -> None:
        cluster = StoredVolumes(CLAIM, VOLUME, refuses="it has changed")
        assert pre_bind(cluster, BIND) == Status(Code.ERROR, ("it has changed",))
        assert pre_bind(cluster, SELECT) == Status(Code.ERROR, ("it has changed",))

    @pytest.mark.parametrize(
        ("objects", "owed", "reason"),
        [
            ([CLAIM, make_volume("pv")], BIND, 'ClaimRef got reset for pv "pv"'),
            (
                [CLAIM, make_volume("pv", at=["b"], claim=CLAIM)],
                BIND,
                'pv "pv" node affinity doesn\'t match node "a": no matching NodeSelectorTerms',
            ),
            ([make_claim("shop/one")], SELECT, 'selectedNode annotation reset for PVC "one"'),
            ([CLAIM, VOLUME], SELECT, 'provisioning failed for PVC "one"'),
            (
                [make_claim("shop/one", annotations={SELECTED: "b"})],
                SELECT,
                'provisioning failed for PVC "one"',
            ),
            (
                [MADE, make_volume("pv", at=["b"], claim=MADE)],
                SELECT,
                'pv "pv" node affinity doesn\'t match node "a": no matching NodeSelectorTerms',
            ),
        ],
    )
    def test_what_binding_cannot_get_over(self, objects: list[Json], owed: Json, reason: str) -> None:
        assert pre_bind(StoredVolumes(*objects), owed) == Status(Code.ERROR, (f"binding volumes: {reason}",))

    @pytest.mark.parametrize("refuses", ["", "persistentvolumeclaim shop/one does not exist"])
    @pytest.mark.parametrize(
        ("objects", "owed", "before", "since"),
        [
            (
                [CLAIM],
                BIND,
                'failed to check binding: could not find v1.PersistentVolume "pv"',
                'failed to check binding: persistentvolumes "pv" not found',
            ),
            (
                [VOLUME],
                BIND,
                'failed to check binding: could not find v1.PersistentVolumeClaim "shop/one"',
                'failed to check binding: persistentvolumeclaims "shop/one" not found',
            ),
            (
                [VOLUME],
                SELECT,
                'failed to check provisioning pvc: could not find v1.PersistentVolumeClaim "shop/one"',
                'failed to check provisioning pvc: persistentvolumeclaims "shop/one" not found',
            ),
        ],
    )
    def test_what_is_gone_while_it_waits_is_told_in_the_words_of_its_version_though_the_cluster_refuses_to_write(
        self, objects: list[Json], owed: Json, before: str, since: str, refuses: str
    ) -> None:
        for version, reason in ((34, before), (35, since), (36, since)):
            features = feature_gates.features(feature_gates.Version(1, version))
            found = pre_bind(StoredVolumes(*objects, refuses=refuses), owed, features=features)
            assert found == Status(Code.ERROR, (f"binding volumes: {reason}",))

    def test_a_node_that_is_gone(self) -> None:
        cluster = StoredVolumes(CLAIM, VOLUME)
        plugin = VolumeBinding(VolumeBindingArgs(), Handle(Snapshot(), cluster=cluster))
        status = plugin.pre_bind(CycleState({"VolumeBinding": BIND}), PodInfo(claiming("one")), NodeName("c"))
        reason = 'binding volumes: failed to get node "c": node "c" not found'
        assert status == Status(Code.ERROR, (reason,))

    def test_migrated_volumes_are_where_their_driver_says(self) -> None:
        source = {"gcePersistentDisk": {"pdName": "d"}}
        volume = make_volume("pv", claim=CLAIM, terms=[make_term(f"{ZONE} In z")], **source)
        node = {"kind": "Node", "metadata": {"name": "a", "labels": {"topology.gke.io/zone": "z"}}}
        cluster = StoredVolumes(CLAIM, volume, node)
        found = pre_bind(cluster, BIND)
        assert found is not None and "node affinity doesn't match" in found.message
        cluster.put(make_csi_node("a", migrated="kubernetes.io/gce-pd"))
        assert pre_bind(cluster, BIND) is None
