"""NodeVolumeLimits, and which claims have a volume to themselves."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.config import Features
from dsched.errors import PluginError
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Action, Code, Resource
from dsched.framework.snapshot import Snapshot
from dsched.model.pod import Pod
from dsched.model.volumes import CLAIM, PERSISTENT_VOLUME
from dsched.plugins import node_volume_limits
from dsched.plugins.node_volume_limits import ERR_REASON, NodeVolumeLimits, Sharing, _Wanted
from dsched.plugins.volumes.attachments import Attachment, Taken
from tests.builders import make_node, make_pod
from tests.storage import (
    Handle,
    claiming,
    csi,
    info,
    make_attachment,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_volume,
    put,
    with_volumes,
    world,
)
from tests.unit.plugins.hints import queues
from tests.unit.plugins.storage_asking import agree_row_by_row, codes, reasons, skips, statuses
from tests.versions import V34, V35, V36, V37, with_gates

NO, YES = (ERR_REASON,), ()
PORTWORX = "kubernetes.io/portworx-volume"
CLAIMS = ("a", "b", "c", "d")


def bound(*names: str, driver: str = "d") -> list[Any]:
    """Claims and the CSI volumes that they are bound to, handles like names."""
    found: list[Any] = []
    for name in names:
        found += [make_claim(f"shop/{name}", volume=f"pv-{name}"), make_volume(f"pv-{name}", csi=csi(driver, name))]
    return found


def asked(pod: Pod, snapshot: Snapshot) -> list[tuple[str, ...]]:
    return reasons(NodeVolumeLimits(None, Handle(snapshot)), pod, snapshot)


def fits(limit: int | None, used: list[Pod], pod: Pod, *objects: Any, driver: str = "d", migrated: str = "") -> bool:
    """Whether one node with this limit, on which these pods are, takes the pod."""
    node = make_csi_node("n1", {driver: limit}, migrated)
    return asked(pod, world([make_node("n1")], used, node, *objects)) == [YES]


class TestCsi:
    USED = [claiming("a", key="shop/p1", node="n1"), claiming("b", key="shop/p2", node="n1")]
    OBJECTS = bound("a", "b", "c", "d")

    def test_up_to_the_limit(self) -> None:
        # two there, one comes
        assert fits(3, self.USED, claiming("c"), *self.OBJECTS)
        assert not fits(2, self.USED, claiming("c"), *self.OBJECTS)
        assert not fits(3, self.USED, claiming("c", "d"), *self.OBJECTS)
        assert fits(None, self.USED, claiming("c"), *self.OBJECTS)
        assert not fits(0, [], claiming("c"), *self.OBJECTS)

    def test_what_is_there_already_is_not_counted_twice(self) -> None:
        assert fits(2, self.USED, claiming("a"), *self.OBJECTS)
        assert fits(1, self.USED, claiming("a", "b"), *self.OBJECTS)  # nothing new, though the node has too many
        twice = [*self.USED, claiming("a", key="shop/p3", node="n1")]
        assert fits(3, twice, claiming("c", "c"), *self.OBJECTS)

    def test_two_volumes_of_one_handle_are_one(self) -> None:
        same = [make_claim("shop/e", volume="pv-e"), make_volume("pv-e", csi=csi("d", "a"))]
        assert fits(2, self.USED, claiming("e"), *self.OBJECTS, *same)

    def test_drivers_count_for_themselves(self) -> None:
        assert fits(2, self.USED, claiming("z"), *self.OBJECTS, *bound("z", driver="other"))

    def test_nodes_without_a_limit_or_a_csi_node_take_any_number(self) -> None:
        nodes = [make_node("n1"), make_node("n2"), make_node("n3")]
        reported = [make_csi_node("n1", {"d": 0}), make_csi_node("n2", {"d": None}), make_csi_node("gone", {"d": 0})]
        snapshot = world(nodes, [], *reported, *self.OBJECTS)
        assert asked(claiming("a"), snapshot) == [NO, YES, YES]
        plugin = NodeVolumeLimits(None, Handle(snapshot))
        assert codes(plugin, claiming("a"), snapshot)[0] is Code.UNSCHEDULABLE

    def test_claims_that_are_not_bound_count_by_their_class(self) -> None:
        waiting = [make_claim("shop/w", class_name="fast"), make_class("fast", "d")]
        assert not fits(2, self.USED, claiming("w"), *self.OBJECTS, *waiting)
        assert fits(3, self.USED, claiming("w", "w"), *self.OBJECTS, *waiting)
        lost = make_claim("shop/w", class_name="fast", volume="gone")
        assert not fits(2, self.USED, claiming("w"), *self.OBJECTS, lost, waiting[1])

    @pytest.mark.parametrize(
        "claim",
        [
            make_claim("shop/w", class_name=None),
            make_claim("shop/w", class_name="unknown"),
            make_claim("shop/w", class_name="vsphere"),
            make_claim("shop/w", volume="local"),
            make_claim("shop/w", volume="vsphere"),
        ],
    )
    def test_what_is_nobodys_volume_is_not_counted(self, claim: Any) -> None:
        vsphere = make_volume("vsphere", vsphereVolume={"volumePath": "p"})
        others = [make_class("vsphere", "kubernetes.io/vsphere-volume"), make_volume("local"), vsphere]
        assert fits(0, [], claiming("w"), claim, *others)

    def test_pods_whose_claims_cannot_be_looked_up_are_passed_over(self) -> None:
        lost = [claiming("gone", key="shop/p3", node="n1"), with_volumes({"ephemeral": {}}, key="shop/p4", node="n1")]
        stranger = make_claim("shop/p4-v0", volume="pv-d")
        assert fits(3, [*self.USED, *lost], claiming("c"), *self.OBJECTS, stranger)

    def test_ephemeral_volumes(self) -> None:
        pod = with_volumes({"ephemeral": {}}, key="shop/web")
        claim = make_claim("shop/web-v0", class_name="fast", owner=pod)
        assert not fits(2, self.USED, pod, *self.OBJECTS, claim, make_class("fast", "d"))
        assert fits(3, self.USED, pod, *self.OBJECTS, claim, make_class("fast", "d"))

    def test_it_follows_pods_limits_and_claims(self) -> None:
        snapshot = world([make_node("n1")], self.USED, make_csi_node("n1", {"d": 2}), *self.OBJECTS)
        assert asked(claiming("c"), snapshot) == [NO]
        snapshot.table.remove_pod(self.USED[0].uid)
        assert asked(claiming("c"), snapshot) == [YES]
        put(snapshot, make_csi_node("n1", {"d": 1}))
        assert asked(claiming("c"), snapshot) == [NO]
        put(snapshot, make_claim("shop/b", volume="pv-c"))
        assert asked(claiming("c"), snapshot) == [YES]  # what the other pod has is what this one wants


class TestMigration:
    """Volumes of in-tree plugins count as those of the drivers that took them over."""

    @pytest.mark.parametrize(
        ("driver", "volume"),
        [
            ("pd.csi.storage.gke.io", {"gcePersistentDisk": {"pdName": "a"}}),
            ("ebs.csi.aws.com", {"awsElasticBlockStore": {"volumeID": "aws://zone/vol-a"}}),
            ("cinder.csi.openstack.org", {"cinder": {"volumeID": "a"}}),
            ("disk.csi.azure.com", {"azureDisk": {"diskURI": "a", "kind": "Managed"}}),
        ],
    )
    def test_inline_and_persistent(self, driver: str, volume: Any) -> None:
        assert not fits(0, [], with_volumes(volume), driver=driver)
        assert fits(1, [with_volumes(volume, key="shop/other", node="n1")], with_volumes(volume), driver=driver)
        objects = [make_claim("shop/a", volume="pv"), make_volume("pv", **volume)]
        assert not fits(0, [], claiming("a"), *objects, driver=driver)
        assert fits(1, [], claiming("a"), *objects, driver=driver)

    def test_portworx_only_where_the_node_says_so(self) -> None:
        pod = with_volumes({"portworxVolume": {"volumeID": "a"}})
        assert fits(0, [], pod, driver="pxd.portworx.com")
        assert not fits(0, [], pod, driver="pxd.portworx.com", migrated=f"x,{PORTWORX}")
        used = [with_volumes({"portworxVolume": {"volumeID": "b"}}, key="shop/other", node="n1")]
        assert not fits(1, used, pod, driver="pxd.portworx.com", migrated=PORTWORX)

    def test_others_are_not_counted(self) -> None:
        pod = with_volumes({"vsphereVolume": {"volumePath": "p"}}, {"azureFile": {"shareName": "s"}})
        assert fits(0, [], pod, driver="csi.vsphere.vmware.com")
        assert fits(0, [], pod, driver="file.csi.azure.com")

    def test_classes_of_in_tree_plugins(self) -> None:
        objects = [make_claim("shop/w", class_name="gce"), make_class("gce", "kubernetes.io/gce-pd")]
        assert not fits(0, [], claiming("w"), *objects, driver="pd.csi.storage.gke.io")
        portworx = [make_claim("shop/w", class_name="px"), make_class("px", PORTWORX)]
        assert fits(0, [], claiming("w"), *portworx, driver="pxd.portworx.com")
        assert not fits(0, [], claiming("w"), *portworx, driver="pxd.portworx.com", migrated=PORTWORX)

    def test_a_source_that_makes_no_sense(self) -> None:
        bad = {"awsElasticBlockStore": {"volumeID": "aws://zone/disk"}}
        with pytest.raises(PluginError, match=r"converting volume\(v0\) from inline to csi"):
            fits(1, [], with_volumes(bad), driver="ebs.csi.aws.com")
        objects = [make_claim("shop/a", volume="pv"), make_volume("pv", **bad)]
        assert fits(0, [with_volumes(bad, key="shop/x", node="n1")], claiming("a"), *objects, driver="ebs.csi.aws.com")


class TestAttachments:
    """VolumeAttachments that no pod accounts for take up room too."""

    def asked(self, *attachments: Any) -> list[tuple[str, ...]]:
        nodes = [make_node("n1"), make_node("n2")]
        limits = [make_csi_node("n1", {"d": 2}), make_csi_node("n2", {"d": 2})]
        used = [claiming("a", key="shop/p1", node="n1"), claiming("b", key="shop/p2", node="n2")]
        return asked(claiming("c"), world(nodes, used, *limits, *bound("a", "b", "c", "x"), *attachments))

    def test_they_count_on_their_node(self) -> None:
        # n1: a of a pod, x attached, c comes: 3 of 2
        assert self.asked(make_attachment("va", "n1", "pv-x", "d")) == [NO, YES]

    def test_what_a_pod_accounts_for_is_not_counted_twice(self) -> None:
        assert self.asked(make_attachment("va", "n1", "pv-a", "d")) == [YES, YES]

    def test_what_the_pod_itself_wants_is_counted_twice(self) -> None:
        """As in the source, which takes only what pods use off what is new."""
        assert self.asked(make_attachment("va", "n1", "pv-c", "d")) == [NO, YES]

    @pytest.mark.parametrize(
        "attachment",
        [
            make_attachment("va", "n1", None, "d"),
            make_attachment("va", "n1", "gone", "d"),
            make_attachment("va", "n1", "pv-x", ""),
            make_attachment("va", "elsewhere", "pv-x", "d"),
            make_attachment("va", "n1", "pv-x", "other"),
        ],
    )
    def test_what_says_nothing(self, attachment: Any) -> None:
        assert self.asked(attachment) == [YES, YES]


class TestPreFilter:
    def test_skip_for_pods_that_attach_nothing(self) -> None:
        snapshot = world([make_node("n1")])
        plugin = NodeVolumeLimits(None, Handle(snapshot))
        assert skips(plugin, make_pod(), snapshot)
        assert skips(plugin, with_volumes({"emptyDir": {}}, {"iscsi": {"iqn": "i"}}), snapshot)

    def test_a_missing_claim_is_told_by_the_filter(self) -> None:
        snapshot = world([make_node("n1")])
        plugin = NodeVolumeLimits(None, Handle(snapshot))
        expected = 'looking up PVC shop/gone: persistentvolumeclaim "gone" not found'
        (status,) = statuses(plugin, claiming("gone"), snapshot)
        assert status is not None
        assert (status.code, status.message) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, expected)

    def test_it_does_without_pre_filter(self) -> None:
        snapshot = world([make_node("n1")], [], make_csi_node("n1", {"d": 0}), *bound("a"))
        plugin = NodeVolumeLimits(None, Handle(snapshot))
        assert statuses(plugin, claiming("a"), snapshot, state=CycleState()) != [None]

    def test_a_claim_of_another_pod_is_an_error_of_the_filter(self) -> None:
        snapshot = world([make_node("n1")], [], make_claim("shop/web-v0"))
        plugin = NodeVolumeLimits(None, Handle(snapshot))
        with pytest.raises(PluginError, match=r"PVC shop/web-v0 was not created for pod shop/web \(pod is not owner\)"):
            statuses(plugin, with_volumes({"ephemeral": {}}), snapshot)


class TestHints:
    PLUGIN = NodeVolumeLimits(None, Handle(world()))
    POD = claiming("data")

    def test_csi_nodes(self) -> None:
        def changed(old: dict[str, int | None], new: dict[str, int | None]) -> bool:
            nodes = make_csi_node("n1", old), make_csi_node("n1", new)
            return queues(self.PLUGIN, self.POD, Resource.CSI_NODE, Action.UPDATE, *nodes)

        assert queues(self.PLUGIN, self.POD, Resource.CSI_NODE, Action.ADD, new=make_csi_node("n1"))
        assert changed({"d": 1}, {"d": 2})
        assert changed({}, {"d": 1})
        assert changed({"d": None}, {"d": 1})
        assert not changed({"d": 2}, {"d": 1})
        assert not changed({"d": 2}, {"d": 2, "e": 0})
        assert not changed({"d": 2}, {"d": None})

    def test_pods_that_are_gone(self) -> None:
        def gone(pod: Pod) -> bool:
            return queues(self.PLUGIN, self.POD, Resource.ASSIGNED_POD, Action.DELETE, old=pod)

        assert gone(claiming("x", node="n1"))
        assert gone(with_volumes({"ephemeral": {}}, nominated="n1"))
        assert gone(with_volumes({"vsphereVolume": {"volumePath": "p"}}, node="n1"))
        assert not gone(claiming("x"))
        assert not gone(with_volumes({"emptyDir": {}}, node="n1"))
        assert not gone(make_pod(node="n1"))

    def test_claims_of_the_pod(self) -> None:
        assert queues(self.PLUGIN, self.POD, Resource.PVC, Action.ADD, new=make_claim("shop/data"))
        assert not queues(self.PLUGIN, self.POD, Resource.PVC, Action.ADD, new=make_claim("shop/other"))

    def test_volumes_that_are_detached(self) -> None:
        """Source: nodevolumelimits/csi_test.go ``TestIsSchedulableAfterVolumeAttachmentDeleted``."""

        def detached(pod: Pod, driver: str) -> bool:
            gone = make_attachment("va", "n1", "pv-a", driver)
            return queues(self.PLUGIN, pod, Resource.VOLUME_ATTACHMENT, Action.DELETE, old=gone)

        ebs = {"awsElasticBlockStore": {"volumeID": "v"}}
        assert detached(self.POD, "anything")
        assert detached(with_volumes(ebs), "ebs.csi.aws.com")
        assert not detached(with_volumes(ebs), "pd.csi.storage.gke.io")
        assert detached(with_volumes(ebs, {"persistentVolumeClaim": {"claimName": "c"}}), "other")
        assert not detached(make_pod(), "ebs.csi.aws.com")

    def test_ephemeral_claims_of_the_pod(self) -> None:
        ephemeral = with_volumes({"ephemeral": {}}, key="shop/web")
        assert queues(self.PLUGIN, ephemeral, Resource.PVC, Action.ADD, new=make_claim("shop/web-v0"))


NAMES = st.sampled_from("abcdef")


@settings(max_examples=80, deadline=None)
@given(
    used=st.lists(st.lists(NAMES, max_size=3), min_size=1, max_size=6),
    wanted=st.lists(NAMES, min_size=1, max_size=3),
    limits=st.lists(st.none() | st.integers(0, 4), min_size=3, max_size=3),
    order=st.lists(st.integers(0, 9), min_size=1),
)
def test_all_rows_at_once_and_each_alone(
    used: list[list[str]], wanted: list[str], limits: list[int | None], order: list[int]
) -> None:
    pods = [claiming(*names, key=f"shop/p{at}", node=f"n{at % 3}") for at, names in enumerate(used)]
    nodes = [make_csi_node(f"n{row}", {"d": limit}) for row, limit in enumerate(limits)]
    snapshot = world([make_node(f"n{row}") for row in range(3)], pods, *nodes, *bound(*"abcdef"))
    plugin, pod = NodeVolumeLimits(None, Handle(snapshot)), claiming(*wanted)
    agree_row_by_row(plugin, pod, snapshot, order)
    # told plainly: volumes there and volumes that are new, each once
    there = [{name for at, names in enumerate(used) if at % 3 == row for name in names} for row in range(3)]
    expected = [
        limit is None or not set(wanted) - names or len(names | set(wanted)) <= limit
        for limit, names in zip(limits, there, strict=True)
    ]
    assert [found == YES for found in reasons(plugin, pod, snapshot)] == expected


class TestDriversThatHaveToBeThere:
    NODES = (make_node("n1"), make_node("n2"), make_node("n3"))
    ON_N1 = (make_csi_node("n1", {"d": None}), make_csi_node("n2", {"other": 3}))
    NEEDED = ("d CSI driver is not installed on the node",)

    def asked(self, pod: Pod, *objects: Any, features: Features = V37) -> list[tuple[str, ...]]:
        snapshot = world(self.NODES, (), *self.ON_N1, *objects)
        return reasons(NodeVolumeLimits(None, Handle(snapshot), features), pod, snapshot)

    def driver(self, name: str, needed: bool | None) -> Any:
        return {
            "kind": "CSIDriver",
            "metadata": {"name": name},
            "spec": {} if needed is None else {"preventPodSchedulingIfMissing": needed},
        }

    @pytest.mark.parametrize("needed", [True, False, None])
    def test_only_drivers_that_ask_for_it(self, needed: bool | None) -> None:
        found = self.asked(claiming("a"), *bound("a"), self.driver("d", needed))
        assert found == ([YES, self.NEEDED, self.NEEDED] if needed else [YES] * 3)

    def test_a_driver_that_is_no_object_may_be_missing(self) -> None:
        assert self.asked(claiming("a"), *bound("a")) == [YES] * 3

    def test_it_needs_its_gate(self) -> None:
        asked = claiming("a"), *bound("a"), self.driver("d", True)
        off = with_gates(V37, VolumeLimitScaling=False)
        assert [self.asked(*asked, features=features)[1] for features in (V34, V36, off)] == [YES] * 3
        assert self.asked(*asked, features=with_gates(V36, VolumeLimitScaling=True))[1] == self.NEEDED

    def test_volumes_that_are_there_already_need_it_too(self) -> None:
        snapshot = world(
            self.NODES,
            [claiming("a", key="shop/p1", node="n2")],
            *self.ON_N1,
            *bound("a"),
            self.driver("d", True),
        )
        found = reasons(NodeVolumeLimits(None, Handle(snapshot), V37), claiming("a"), snapshot)
        assert found[1] == self.NEEDED

    def test_it_is_looked_at_before_anything_is_counted(self) -> None:
        full = make_csi_node("n3", {"other": 0})
        needed = [*bound("a"), *bound("z", driver="other"), self.driver("d", True), full]
        assert self.asked(claiming("a", "z"), *needed)[2] == self.NEEDED

    def test_in_tree_volumes_count_only_where_a_csi_node_is(self) -> None:
        ebs = with_volumes({"awsElasticBlockStore": {"volumeID": "vol-1"}})
        found = self.asked(ebs, self.driver("ebs.csi.aws.com", True))
        assert found == [("ebs.csi.aws.com CSI driver is not installed on the node",)] * 2 + [YES]

    def test_a_driver_that_comes_without_a_limit_helps(self) -> None:
        before, after = make_csi_node("n2", {"other": 3}), make_csi_node("n2", {"other": 3, "d": None})
        for features, helps in ((V36, False), (V37, True)):
            plugin = NodeVolumeLimits(None, Handle(Snapshot()), features)
            assert queues(plugin, claiming("a"), Resource.CSI_NODE, Action.UPDATE, old=before, new=after) is helps


@pytest.mark.parametrize(("features", "counts"), [(V35, False), (V36, True)])
def test_since_1_36_portworx_volumes_count_without_the_annotation(features: Features, counts: bool) -> None:
    volume = with_volumes({"portworxVolume": {"volumeID": "p1"}})
    snapshot = world([make_node("n1")], (), make_csi_node("n1", {"pxd.portworx.com": 0}))
    assert reasons(NodeVolumeLimits(None, Handle(snapshot), features), volume, snapshot) == [NO if counts else YES]


class TestWhatTellsPodsApart:
    """By `claims_meaning`, and by `answer_version` what was said before from what would be said now."""

    EBS = "ebs.csi.aws.com"

    def snapshot(self) -> Snapshot:
        found = world([make_node("n1")], (), make_csi_node("n1", {"d": 5, self.EBS: 5}), *bound("a", "b"))
        disk = {"awsElasticBlockStore": {"volumeID": "vol-c"}}
        put(found, make_claim("shop/c", volume="pv-c"), make_volume("pv-c", **disk))
        put(found, *bound("e", driver=self.EBS))
        return found

    def test_where_a_volume_has_to_be_announced_or_is_in_tree(self) -> None:
        """Its driver serves both, and one counts on other nodes than the other."""
        snapshot = self.snapshot()
        for features in (V34, V37):
            plugin = NodeVolumeLimits(None, Handle(snapshot), features)
            meanings = [plugin.claims_meaning(info(claiming(name)), snapshot) for name in "abce"]
            assert meanings[0] == meanings[1]
            assert len({*meanings}) == 3
            assert None not in meanings

    @pytest.mark.parametrize("announced", [True, False])
    def test_each_of_the_two_counts(self, announced: bool) -> None:
        one = Taken(Attachment("d", "a"), "kubernetes.io/x" if announced else "", in_tree=not announced)
        other = Taken(Attachment("d", "a"))
        assert _Wanted.of(frozenset([one])).kinds != _Wanted.of(frozenset([other])).kinds
        assert _Wanted.of(frozenset([one])).demand == _Wanted.of(frozenset([other])).demand

    @pytest.mark.parametrize("scaling", [True, False])
    def test_a_driver_that_has_to_be_there_counts_where_that_is_asked_for(self, scaling: bool) -> None:
        snapshot = self.snapshot()
        plugin = NodeVolumeLimits(None, Handle(snapshot), with_gates(V37, VolumeLimitScaling=scaling))
        pod = info(claiming("a"))
        seen = [plugin.answer_version(pod, snapshot)]
        driver = make_driver("d")
        put(snapshot, {**driver, "spec": {**driver["spec"], "preventPodSchedulingIfMissing": True}})
        seen.append(plugin.answer_version(pod, snapshot))
        put(snapshot, make_csi_node("n1", {self.EBS: 5}))
        seen.append(plugin.answer_version(pod, snapshot))
        assert None not in seen
        assert len({*seen}) == (3 if scaling else 1)

    def test_what_is_attached_to_a_full_node_counts(self) -> None:
        snapshot = self.snapshot()
        plugin = NodeVolumeLimits(None, Handle(snapshot))
        put(snapshot, make_csi_node("n1", {"d": 1}))
        snapshot.table.add_pod(info(claiming("b", key="shop/first")), "n1")
        before = plugin.answer_version(info(claiming("a")), snapshot)
        snapshot.table.remove_pod(info(claiming("b", key="shop/first")).uid)
        assert plugin.answer_version(info(claiming("a")), snapshot) != before


def volume(name: str, handle: str) -> Any:
    source: dict[str, Any] = {"csi": csi("driver", handle)} if handle else {"hostPath": {"path": "/"}}
    return make_volume(name, **source)


def alone(found: Sharing) -> list[bool]:
    return [found.alone(f"shop/{name}") for name in CLAIMS]


def test_of_a_claim_that_shares_nothing() -> None:
    snapshot = world((), (), make_claim("shop/a", volume="a"), volume("a", "one"))
    assert node_volume_limits.sharing_of(snapshot) is node_volume_limits.sharing_of(snapshot)
    assert alone(node_volume_limits.sharing_of(snapshot)) == [True, False, False, False]  # of the others there is none
    put(snapshot, make_claim("shop/b"), make_claim("shop/c", volume="c"))  # without a volume
    assert alone(node_volume_limits.sharing_of(snapshot)) == [True, False, False, False]


def test_a_volume_that_another_claim_names_or_a_driver_knows_twice() -> None:
    snapshot = world((), (), *(make_claim(f"shop/{name}", volume=name) for name in "abc"))
    put(snapshot, volume("a", "one"), volume("b", "one"), volume("c", "three"))
    assert alone(node_volume_limits.sharing_of(snapshot))[:3] == [False, False, True]
    put(snapshot, volume("b", "two"), make_claim("shop/d", volume="c"))
    assert alone(node_volume_limits.sharing_of(snapshot)) == [True, True, False, False]
    snapshot.drop(CLAIM, "shop/d")
    assert alone(node_volume_limits.sharing_of(snapshot))[:3] == [True, True, True]


def test_volumes_that_no_driver_has_to_attach_are_not_told_apart() -> None:
    snapshot = world((), (), *(make_claim(f"shop/{name}", volume=name) for name in "ab"), volume("a", ""))
    put(snapshot, volume("b", ""))
    assert alone(node_volume_limits.sharing_of(snapshot))[:2] == [True, True]


def test_a_volume_that_makes_no_sense_is_nobody_elses_trouble() -> None:
    snapshot = world((), (), make_claim("shop/a", volume="a"), volume("a", "one"), make_volume("b", "much"))
    assert alone(node_volume_limits.sharing_of(snapshot))[0]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("claim"), st.sampled_from(CLAIMS), st.sampled_from((*CLAIMS, ""))),
        st.tuples(st.just("volume"), st.sampled_from(CLAIMS), st.sampled_from(("one", "two", ""))),
        st.tuples(st.just("gone"), st.sampled_from((CLAIM, PERSISTENT_VOLUME)), st.sampled_from(CLAIMS)),
        st.just(("ask",)),
        st.just(("clear",)),
    ),
    max_size=30,
)


@settings(max_examples=200)
@given(STEPS)
def test_kept_up_to_date(steps: list[Any]) -> None:
    snapshot = Snapshot()
    kept = node_volume_limits.sharing_of(snapshot)
    for step in (*steps, ("ask",)):
        match step:
            case ("claim", name, wanted):
                put(snapshot, make_claim(f"shop/{name}", volume=wanted))
            case ("volume", name, handle):
                put(snapshot, volume(name, handle))
            case ("gone", kind, name):
                snapshot.drop(kind, f"shop/{name}" if kind == CLAIM else name)
            case ("clear",):
                snapshot.clear()
            case _:
                assert alone(kept) == alone(Sharing(snapshot))
