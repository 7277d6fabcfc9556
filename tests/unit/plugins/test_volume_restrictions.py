"""VolumeRestrictions."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.errors import PluginError
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Action, Code, Resource
from dsched.framework.pod_info import PodInfo
from dsched.plugins.volume_restrictions import ERR_REASON_DISK, ERR_REASON_ONE_POD, VolumeRestrictions
from tests.builders import make_node, make_pod
from tests.storage import claiming, make_claim, with_volumes, world
from tests.unit.plugins.hints import queues
from tests.unit.plugins.storage_asking import agree_row_by_row, codes, reasons, rejected, skips, statuses

NO_HANDLE: Any = None
PLUGIN = VolumeRestrictions(None, NO_HANDLE)
NODES = [make_node("n1"), make_node("n2")]


def gce(name: str, read_only: bool = False) -> dict[str, Any]:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def ebs(name: str, read_only: bool = False) -> dict[str, Any]:
    return {"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}}


def iscsi(name: str, read_only: bool = False) -> dict[str, Any]:
    return {"iscsi": {"targetPortal": "p", "iqn": name, "lun": 0, "readOnly": read_only}}


def rbd(monitors: str, read_only: bool = False, pool: str = "rbd", image: str = "i") -> dict[str, Any]:
    return {"rbd": {"monitors": monitors.split(), "pool": pool, "image": image, "readOnly": read_only}}


class TestDisks:
    @pytest.mark.parametrize(
        ("wanted", "used", "clash"),
        [
            (gce("a"), gce("a"), True),
            (gce("a"), gce("b"), False),
            (gce("a", True), gce("a"), True),
            (gce("a"), gce("a", True), True),
            (gce("a", True), gce("a", True), False),
            (ebs("a", True), ebs("a", True), True),
            (ebs("a"), ebs("b"), False),
            (iscsi("a"), iscsi("a"), True),
            (iscsi("a", True), iscsi("a", True), False),
            (rbd("m1 m2"), rbd("m2 m3"), True),
            (rbd("m1 m2"), rbd("m3"), False),
            (rbd("m1"), rbd("m1", pool="other"), False),
            (rbd("m1"), rbd("m1", image="other"), False),
            (rbd("m1", True), rbd("m1", True), False),
            (gce("a"), ebs("a"), False),
        ],
    )
    def test_what_does_not_go_together(self, wanted: Any, used: Any, clash: bool) -> None:
        snapshot = world(NODES, [with_volumes(used, key="shop/other", node="n1")])
        assert reasons(PLUGIN, with_volumes(wanted), snapshot) == [(ERR_REASON_DISK,) if clash else (), ()]

    def test_one_writer_among_readers_is_enough(self) -> None:
        pods = [with_volumes(gce("a", key != "c"), key=f"shop/{key}", node="n2") for key in "abc"]
        snapshot = world(NODES, pods)
        assert reasons(PLUGIN, with_volumes(gce("a", True)), snapshot) == [(), (ERR_REASON_DISK,)]
        snapshot.table.remove_pod(pods[2].uid)
        assert reasons(PLUGIN, with_volumes(gce("a", True)), snapshot) == [(), ()]

    def test_preemption_can_help(self) -> None:
        snapshot = world(NODES, [with_volumes(ebs("a"), key="shop/other", node="n1")])
        assert codes(PLUGIN, with_volumes(ebs("a")), snapshot) == [Code.UNSCHEDULABLE, Code.SUCCESS]


class TestClaimsOfOnePod:
    CLAIM = make_claim("shop/data", modes=["ReadWriteOncePod"], volume="pv")

    def test_one_in_use_anywhere_rejects_every_node(self) -> None:
        snapshot = world(NODES, [claiming("data", key="shop/other", node="n2")], self.CLAIM)
        assert reasons(PLUGIN, claiming("data"), snapshot) == [(ERR_REASON_ONE_POD,)] * 2
        assert codes(PLUGIN, claiming("data"), snapshot) == [Code.UNSCHEDULABLE] * 2

    def test_neither_other_claims_nor_other_modes_do(self) -> None:
        shared = make_claim("shop/shared", modes=["ReadWriteMany"], volume="pv2")
        users = [claiming("shared", key="shop/other", node="n2"), claiming("data", key="dev/other", node="n1")]
        snapshot = world(NODES, users, self.CLAIM, shared)
        assert reasons(PLUGIN, claiming("data", "shared"), snapshot) == [(), ()]

    def test_a_clash_of_disks_is_told_first(self) -> None:
        user = with_volumes(gce("a"), {"persistentVolumeClaim": {"claimName": "data"}}, key="shop/other", node="n1")
        snapshot = world(NODES, [user], self.CLAIM)
        pod = with_volumes(gce("a"), {"persistentVolumeClaim": {"claimName": "data"}})
        assert reasons(PLUGIN, pod, snapshot) == [(ERR_REASON_DISK,), (ERR_REASON_ONE_POD,)]

    def test_pods_that_leave_and_join_for_the_sake_of_argument(self) -> None:
        user = claiming("data", key="shop/other", node="n2")
        snapshot = world(NODES, [user], self.CLAIM)
        state, pod = CycleState(), claiming("data")
        PLUGIN.pre_filter(state, PodInfo(pod), snapshot)
        trial = state.fork()
        PLUGIN.remove_pod(trial, PodInfo(pod), PodInfo(user), snapshot.table.info(1))
        assert statuses(PLUGIN, pod, snapshot, state=trial) == [None, None]
        PLUGIN.add_pod(trial, PodInfo(pod), PodInfo(user), snapshot.table.info(0))
        assert None not in statuses(PLUGIN, pod, snapshot, state=trial)
        assert None not in statuses(PLUGIN, pod, snapshot, state=state)

    def test_where_nobody_used_it_before_a_nominated_pod_does_not_count(self) -> None:
        """Upstream's PreFilter says Skip there; but not where the pod has a disk."""
        snapshot, other = world(NODES, (), self.CLAIM), claiming("data", key="shop/other")
        claim = {"persistentVolumeClaim": {"claimName": "data"}}
        for pod, kept_out in ((with_volumes(claim), False), (with_volumes(claim, ebs("a")), True)):
            state = CycleState()
            PLUGIN.pre_filter(state, PodInfo(pod), snapshot)
            PLUGIN.add_pod(state, PodInfo(pod), PodInfo(other), snapshot.table.info(0))
            assert (None not in statuses(PLUGIN, pod, snapshot, state=state)) is kept_out

    def test_a_pod_in_another_namespace_counts_by_the_name_of_its_claim(self) -> None:
        """As in the source, where the namespace is not looked at."""
        snapshot = world(NODES, [claiming("data", key="shop/other", node="n2")], self.CLAIM)
        state, pod = CycleState(), claiming("data")
        PLUGIN.pre_filter(state, PodInfo(pod), snapshot)
        PLUGIN.remove_pod(state, PodInfo(pod), PodInfo(claiming("data", key="dev/x")), snapshot.table.info(1))
        assert statuses(PLUGIN, pod, snapshot, state=state) == [None, None]


class TestPreFilter:
    def test_skip_for_pods_without_disks_and_claims(self) -> None:
        snapshot = world(NODES)
        assert skips(PLUGIN, make_pod(), snapshot)
        assert skips(PLUGIN, with_volumes({"emptyDir": {}}, {"configMap": {"name": "c"}}, {"ephemeral": {}}), snapshot)

    def test_a_missing_claim(self) -> None:
        snapshot = world(NODES, (), make_claim("shop/here"))
        pod = claiming("here", "gone")
        assert rejected(PLUGIN, pod, snapshot) == 'persistentvolumeclaim "gone" not found'

    def test_a_filter_without_pre_filter(self) -> None:
        with pytest.raises(PluginError, match="PreFilter has not run"):
            statuses(PLUGIN, claiming("data"), world(NODES), state=CycleState())


class TestHints:
    POD = with_volumes(gce("a", True), {"persistentVolumeClaim": {"claimName": "data"}})

    def gone(self, *volumes: Any, key: str = "shop/other") -> bool:
        old = with_volumes(*volumes, key=key, node="n1")
        return queues(PLUGIN, self.POD, Resource.ASSIGNED_POD, Action.DELETE, old=old)

    def test_a_pod_that_was_in_the_way(self) -> None:
        assert self.gone(gce("a"))
        assert self.gone({"persistentVolumeClaim": {"claimName": "data"}})

    def test_one_that_was_not(self) -> None:
        assert not self.gone(gce("a", True))
        assert not self.gone(gce("b"), {"persistentVolumeClaim": {"claimName": "other"}}, {"emptyDir": {}})
        assert not self.gone(gce("a"), key="dev/other")

    def test_new_nodes_and_claims(self) -> None:
        assert queues(PLUGIN, self.POD, Resource.NODE, Action.ADD, new=NODES[0])
        assert queues(PLUGIN, self.POD, Resource.PVC, Action.ADD, new=make_claim("shop/data"))
        assert not queues(PLUGIN, self.POD, Resource.PVC, Action.ADD, new=make_claim("shop/other"))
        assert not queues(PLUGIN, self.POD, Resource.PVC, Action.ADD, new=make_claim("dev/data"))


DISKS = st.lists(
    st.builds(
        lambda kind, name, read_only: kind(name, read_only),
        st.sampled_from([gce, ebs, iscsi, rbd]),
        st.sampled_from(["a", "b"]),
        st.booleans(),
    ),
    max_size=3,
)


@settings(max_examples=60, deadline=None)
@given(used=st.lists(DISKS, min_size=1, max_size=8), wanted=DISKS, order=st.lists(st.integers(0, 9), min_size=1))
def test_all_rows_at_once_and_each_alone(used: list[Any], wanted: list[Any], order: list[int]) -> None:
    nodes = [make_node(f"n{row}") for row in range(4)]
    pods = [with_volumes(*disks, key=f"shop/p{at}", node=f"n{at % 4}") for at, disks in enumerate(used)]
    claim = make_claim("shop/data")
    pod = with_volumes(*wanted, {"persistentVolumeClaim": {"claimName": "data"}})
    agree_row_by_row(PLUGIN, pod, world(nodes, pods, claim), order)
