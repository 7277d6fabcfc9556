"""VolumeBinding: PreFilter, Filter and Score. Reserve and PreBind are in `test_volume_binding_reserve`."""

from typing import Any

import numpy as np
import pytest

from dsched.config import Features, ShapePoint, VolumeBindingArgs
from dsched.errors import PluginError, SelectorError
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Code
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.pod import Pod
from dsched.plugins.volume_binding import ERR_REASONS, UNBOUND_IMMEDIATE, VolumeBinding
from tests.builders import make_node, make_pod, make_term
from tests.storage import (
    HOSTNAME,
    REGION,
    ZONE,
    Handle,
    claiming,
    csi,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_volume,
    with_volumes,
    world,
)
from tests.unit.plugins.storage_asking import codes, pre_filtered, reasons, rejected, skips, statuses
from tests.versions import V34, V36, V37, with_gates

PLUGIN = VolumeBinding(VolumeBindingArgs(), Handle(Snapshot()))
ELSEWHERE, NO_VOLUME, NO_SPACE, MISSING = ((reason,) for reason in ERR_REASONS.values())
FITS: tuple[str, ...] = ()
NODES = [make_node(name, labels={HOSTNAME: name, ZONE: f"z-{name}", REGION: "r"}) for name in "abc"]
SETTLED = make_claim("shop/settled", volume="pv-settled")


def asked(pod: Pod, *objects: Any) -> list[tuple[str, ...]]:
    """About nodes a, b and c."""
    return reasons(PLUGIN, pod, world(NODES, (), *objects))


class TestPreFilter:
    def test_skip_for_pods_without_claims(self) -> None:
        assert skips(PLUGIN, make_pod(), world(NODES))
        assert skips(PLUGIN, with_volumes({"emptyDir": {}}, {"gcePersistentDisk": {"pdName": "d"}}), world(NODES))

    @pytest.mark.parametrize(
        ("claim", "reason"),
        [
            (None, 'persistentvolumeclaim "data" not found'),
            (
                make_claim("shop/data", volume="gone", phase="Lost"),
                'persistentvolumeclaim "data" bound to non-existent persistentvolume "gone"',
            ),
            (
                make_claim("shop/data", volume="pv", meta={"deletionTimestamp": "2024-01-01T00:00:00Z"}),
                'persistentvolumeclaim "data" is being deleted',
            ),
            (make_claim("shop/data", class_name="now"), UNBOUND_IMMEDIATE),
            (make_claim("shop/data", class_name="unknown"), UNBOUND_IMMEDIATE),
            (make_claim("shop/data", class_name=None), UNBOUND_IMMEDIATE),
            (make_claim("shop/data", volume="pv", bound=False), UNBOUND_IMMEDIATE),
        ],
    )
    def test_claims_that_cannot_be_used(self, claim: Any, reason: str) -> None:
        objects = [make_class("local"), make_class("now", mode="Immediate"), SETTLED, *([claim] if claim else [])]
        assert rejected(PLUGIN, claiming("settled", "data"), world(NODES, (), *objects)) == reason

    def test_the_first_claim_that_is_wrong_is_told(self) -> None:
        waiting = make_claim("shop/data", class_name="now")
        snapshot = world(NODES, (), waiting, make_class("now", mode="Immediate"))
        assert "gone" in rejected(PLUGIN, claiming("data", "gone"), snapshot)

    def test_ephemeral_volumes(self) -> None:
        pod = with_volumes({"ephemeral": {}})
        reason = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "web-v0"'
        assert rejected(PLUGIN, pod, world(NODES)) == reason
        reason = "PVC shop/web-v0 was not created for pod shop/web (pod is not owner)"
        for owner in (None, make_pod("shop/web", uid="an older one")):
            claim = make_claim("shop/web-v0", volume="pv", owner=owner)
            assert rejected(PLUGIN, pod, world(NODES, (), claim)) == reason
        mine = make_claim("shop/web-v0", volume="pv", owner=pod)
        assert asked(pod, mine, make_volume("pv", at=["b"])) == [ELSEWHERE, FITS, ELSEWHERE]

    def test_a_class_without_a_mode_is_an_error(self) -> None:
        status = pre_filtered(PLUGIN, claiming("data"), world(NODES, (), make_claim(), make_class(mode=None)))
        assert status is not None
        assert (status.code, status.message) == (Code.ERROR, 'VolumeBindingMode not set for StorageClass "local"')

    def test_the_beta_annotation_names_the_class(self) -> None:
        beta = {"volume.beta.kubernetes.io/storage-class": "now"}
        claim = make_claim("shop/data", annotations=beta)
        objects = [claim, make_class("local"), make_class("now", mode="Immediate")]
        assert rejected(PLUGIN, claiming("data"), world(NODES, (), *objects)) == UNBOUND_IMMEDIATE

    def test_a_filter_without_pre_filter(self) -> None:
        with pytest.raises(PluginError, match="PreFilter has not run"):
            statuses(PLUGIN, claiming("data"), world(NODES), state=CycleState())


class TestBoundClaims:
    def test_volumes_have_to_be_reachable(self) -> None:
        terms = [make_term(f"{ZONE} In z-a z-b", f"{HOSTNAME} NotIn b"), make_term(f"{ZONE} In z-c")]
        assert asked(claiming("settled"), SETTLED, make_volume("pv-settled", terms=terms)) == [FITS, ELSEWHERE, FITS]
        assert asked(claiming("settled"), SETTLED, make_volume("pv-settled")) == [FITS] * 3

    def test_nothing_that_preemption_does_can_help(self) -> None:
        snapshot = world(NODES, (), SETTLED, make_volume("pv-settled", at=["a"]))
        assert codes(PLUGIN, claiming("settled"), snapshot)[1:] == [Code.UNSCHEDULABLE_AND_UNRESOLVABLE] * 2

    def test_terms_are_asked_as_if_nodes_had_no_name(self) -> None:
        by_name = [
            make_term(fields=["metadata.name In a"]),
            make_term(f"{ZONE} Exists", fields=["metadata.name NotIn b"]),
        ]
        volume = make_volume("pv-settled", terms=by_name[:1])
        assert asked(claiming("settled"), SETTLED, volume) == [ELSEWHERE] * 3
        volume = make_volume("pv-settled", terms=by_name)
        assert asked(claiming("settled"), SETTLED, volume) == [FITS] * 3

    def test_illegal_terms_match_nothing(self) -> None:
        volume = make_volume("pv-settled", terms=[make_term(f"{ZONE} In"), make_term(), make_term(f"{HOSTNAME} In b")])
        assert asked(claiming("settled"), SETTLED, volume) == [ELSEWHERE, FITS, ELSEWHERE]

    def test_a_volume_that_does_not_exist(self) -> None:
        assert asked(claiming("settled"), SETTLED) == [MISSING] * 3

    def test_the_first_claim_that_fails_is_told(self) -> None:
        other = make_claim("shop/other", volume="gone")
        objects = [SETTLED, other, make_volume("pv-settled", at=["a"])]
        assert asked(claiming("settled", "other"), *objects) == [MISSING, ELSEWHERE, ELSEWHERE]
        assert asked(claiming("other", "settled"), *objects) == [MISSING] * 3

    def test_what_waits_is_told_beside_what_is_bound(self) -> None:
        objects = [SETTLED, make_volume("pv-settled", at=["a"], claim=SETTLED), make_claim(), make_class()]
        assert asked(claiming("settled", "data"), *objects) == [NO_VOLUME, ELSEWHERE + NO_VOLUME, ELSEWHERE + NO_VOLUME]


class TestMigratedVolumes:
    """On nodes that list a plugin as migrated, its volumes are where its driver says."""

    EBS = "kubernetes.io/aws-ebs"
    DRIVERS_ZONE = "topology.ebs.csi.aws.com/zone"

    def asked(self, volume: Any) -> list[tuple[str, ...]]:
        """About a node in zone a whose driver agrees, one whose driver says b, one not migrated in a, one in b."""
        nodes = [
            make_node("agrees", labels={ZONE: "a", self.DRIVERS_ZONE: "a"}),
            make_node("differs", labels={ZONE: "a", self.DRIVERS_ZONE: "b"}),
            make_node("plain", labels={ZONE: "a"}),
            make_node("plain-b", labels={ZONE: "b", self.DRIVERS_ZONE: "a"}),
        ]
        migrated = [make_csi_node(name, migrated=f"x,{self.EBS}") for name in ("agrees", "differs", "gone")]
        snapshot = world(nodes, (), SETTLED, volume, *migrated, make_csi_node("plain", migrated="x"))
        return reasons(PLUGIN, claiming("settled"), snapshot)

    def test_zones_of_the_affinity(self) -> None:
        source = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
        volume = make_volume("pv-settled", terms=[make_term(f"{ZONE} In a")], **source)
        assert self.asked(volume) == [FITS, ELSEWHERE, FITS, ELSEWHERE]

    def test_zones_of_the_labels(self) -> None:
        source = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
        volume = make_volume("pv-settled", labels={ZONE: "a__c"}, **source)
        assert self.asked(volume) == [FITS, ELSEWHERE, FITS, FITS]

    def test_other_volumes_are_where_they_say(self) -> None:
        volume = make_volume("pv-settled", terms=[make_term(f"{ZONE} In a")], csi=csi("ebs.csi.aws.com", "vol-1"))
        assert self.asked(volume) == [FITS, FITS, FITS, ELSEWHERE]

    def test_a_source_that_makes_no_sense_is_an_error(self) -> None:
        volume = make_volume("pv-settled", awsElasticBlockStore={"volumeID": "aws://a/disk"})
        with pytest.raises(PluginError, match="could not translate pv: failed to translate Kubernetes ID"):
            self.asked(volume)


class TestWaitingClaims:
    CLASS = make_class("local")

    def asked(self, claim: Any, *volumes: Any, pod: Pod | None = None) -> list[tuple[str, ...]]:
        return asked(pod or claiming("data"), self.CLASS, claim, *volumes)

    @pytest.mark.parametrize(
        ("volume", "fits"),
        [
            ({}, True),
            ({"size": "5Gi"}, True),
            ({"size": "4.99Gi"}, False),
            ({"class_name": "other"}, False),
            ({"phase": "Released"}, False),
            ({"phase": ""}, False),
            ({"modes": ["ReadWriteMany", "ReadWriteOnce"]}, True),
            ({"modes": ["ReadWriteMany"]}, False),
            ({"volumeMode": "Filesystem"}, True),
            ({"volumeMode": "Block"}, False),
            ({"volumeAttributesClassName": "gold"}, False),
            ({"meta": {"deletionTimestamp": "2024-01-01T00:00:00Z"}}, False),
            ({"claim": make_claim("shop/other")}, False),
            ({"claim": make_claim("dev/data")}, False),
        ],
    )
    def test_what_a_claim_can_be_bound_to(self, volume: Any, fits: bool) -> None:
        expected = [NO_VOLUME, FITS if fits else NO_VOLUME, NO_VOLUME]
        assert self.asked(make_claim(), make_volume(at=["b"], **volume)) == expected

    @pytest.mark.parametrize(
        ("claim", "volume", "fits"),
        [
            ({"volumeMode": "Block"}, {"volumeMode": "Block"}, True),
            ({"volumeAttributesClassName": "gold"}, {"volumeAttributesClassName": "gold"}, True),
            ({"volumeAttributesClassName": "gold"}, {}, False),
            ({"selector": {"matchLabels": {"disk": "ssd"}}}, {"labels": {"disk": "ssd"}}, True),
            ({"selector": {"matchLabels": {"disk": "ssd"}}}, {"labels": {"disk": "hdd"}}, False),
            ({"selector": {}}, {}, True),
            ({"size": None}, {"size": "0"}, True),
        ],
    )
    def test_what_a_claim_asks_for(self, claim: Any, volume: Any, fits: bool) -> None:
        expected = [NO_VOLUME, FITS if fits else NO_VOLUME, NO_VOLUME]
        assert self.asked(make_claim(**claim), make_volume(at=["b"], **volume)) == expected

    def test_a_selector_that_is_not_legal_is_an_error(self) -> None:
        claim = make_claim(selector={"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]})
        with pytest.raises(SelectorError):
            self.asked(claim, make_volume())

    def test_a_volume_bound_to_the_claim_is_the_only_one(self) -> None:
        claim = make_claim()
        volumes = [make_volume("mine", at=["b"], claim=claim), make_volume("free", "6Gi")]
        assert self.asked(claim, *volumes) == [NO_VOLUME, FITS, NO_VOLUME]

    def test_one_reserved_by_name_alone_will_do(self) -> None:
        claim = make_claim()
        by_name = make_volume("mine", at=["b"], claim={"metadata": {**claim["metadata"], "uid": ""}})
        assert self.asked(claim, by_name) == [NO_VOLUME, FITS, NO_VOLUME]
        another = make_volume("mine", at=["b"], claim={"metadata": {**claim["metadata"], "uid": "an older one"}})
        assert self.asked(claim, another) == [NO_VOLUME] * 3

    def test_one_that_is_too_small_does_not_stand_in_the_way(self) -> None:
        claim = make_claim()
        volumes = [make_volume("mine", "1Gi", at=["b"], claim=claim), make_volume("free", at=["a"])]
        assert self.asked(claim, *volumes) == [FITS, NO_VOLUME, NO_VOLUME]

    def test_claims_of_a_pod_do_not_share_a_volume(self) -> None:
        claims = [make_claim("shop/small", "1Gi"), make_claim("shop/large", "8Gi")]
        volumes = [
            make_volume("a", "10Gi", at=["a"]),
            make_volume("b1", "2Gi", at=["b"]),
            make_volume("b2", "10Gi", at=["b"]),
            make_volume("c1", "2Gi", at=["c"]),
            make_volume("c2", "4Gi", at=["c"]),
        ]
        pod = claiming("large", "small")
        assert asked(pod, self.CLASS, *claims, *volumes) == [NO_VOLUME, FITS, NO_VOLUME]

    def test_a_claim_that_two_volumes_name_needs_two(self) -> None:
        """As in the source, which does not notice that they are one."""
        volumes = [make_volume("a", at=["a"]), make_volume("b1", at=["b"]), make_volume("b2", at=["b"])]
        assert self.asked(make_claim(), *volumes, pod=claiming("data", "data")) == [NO_VOLUME, FITS, NO_VOLUME]


class TestProvisioning:
    SSD = "ssd.example.com"

    def asked(self, *objects: Any, claim: Any = None, topologies: Any = ()) -> list[tuple[str, ...]]:
        made = make_class("fast", self.SSD, topologies=topologies)
        return asked(claiming("data"), made, claim or make_claim(class_name="fast"), *objects)

    def test_anywhere_unless_the_class_says_where(self) -> None:
        assert self.asked() == [FITS] * 3
        assert self.asked(topologies=[{ZONE: ["z-a", "z-b"], REGION: ["r"]}, {HOSTNAME: ["c"]}]) == [FITS] * 3
        assert self.asked(topologies=[{ZONE: ["z-a", "z-b"], REGION: ["r"]}]) == [FITS, FITS, NO_VOLUME]
        assert self.asked(topologies=[{ZONE: ["z-a"], REGION: ["other"]}]) == [NO_VOLUME] * 3

    def test_empty_and_illegal_topologies_match_no_node(self) -> None:
        assert self.asked(topologies=[{}]) == [NO_VOLUME] * 3
        assert self.asked(topologies=[{ZONE: []}, {HOSTNAME: ["b"]}]) == [NO_VOLUME, FITS, NO_VOLUME]

    def test_a_volume_that_is_there_goes_first(self) -> None:
        volume = make_volume(class_name="fast", at=["c"])
        assert self.asked(volume, topologies=[{HOSTNAME: ["b"]}]) == [NO_VOLUME, FITS, FITS]

    def test_no_class_without_a_provisioner(self) -> None:
        for provisioner in ("", "kubernetes.io/no-provisioner"):
            objects = [make_class("none", provisioner), make_claim(class_name="none")]
            assert asked(claiming("data"), *objects) == [NO_VOLUME] * 3

    def test_the_driver_has_to_have_room(self) -> None:
        capacities = [
            make_capacity("enough", "fast", "5Gi", {HOSTNAME: "a"}),
            make_capacity("little", "fast", "4Gi", {HOSTNAME: "b"}),
            make_capacity("others", "slow", "9Gi", {HOSTNAME: "b"}),
            make_capacity("pieces", "fast", "9Gi", {HOSTNAME: "c"}, largest="4Gi"),
            make_capacity("nowhere", "fast", "9Gi", None),
            make_capacity("unknown", "fast", None, {HOSTNAME: "b"}),
        ]
        assert self.asked(make_driver(self.SSD), *capacities) == [FITS, NO_SPACE, NO_SPACE]
        assert self.asked(make_driver(self.SSD)) == [NO_SPACE] * 3
        zones = make_capacity("zones", "fast", "5Gi", {ZONE: "z-b", REGION: "r"})
        everywhere = make_capacity("everywhere", "fast", "5Gi", {})
        assert self.asked(make_driver(self.SSD), zones) == [NO_SPACE, FITS, NO_SPACE]
        assert self.asked(make_driver(self.SSD), everywhere) == [FITS] * 3

    def test_only_drivers_that_say_so_are_asked(self) -> None:
        for storage_capacity in (False, None):
            assert self.asked(make_driver(self.SSD, storage_capacity=storage_capacity)) == [FITS] * 3
        sizeless = make_claim(class_name="fast", size=None)
        assert self.asked(make_driver(self.SSD), claim=sizeless) == [FITS] * 3

    def test_topology_is_told_before_space(self) -> None:
        assert self.asked(make_driver(self.SSD), topologies=[{HOSTNAME: ["a"]}]) == [NO_SPACE, NO_VOLUME, NO_VOLUME]

    def test_a_node_that_was_selected_before(self) -> None:
        selected = {"volume.kubernetes.io/selected-node": "b"}
        claim = make_claim(class_name="fast", annotations=selected)
        assert self.asked(claim=claim) == [NO_VOLUME, FITS, NO_VOLUME]
        assert self.asked(claim=claim, topologies=[{HOSTNAME: ["a"]}]) == [NO_VOLUME] * 3
        assert self.asked(make_driver(self.SSD), claim=claim) == [NO_VOLUME, NO_SPACE, NO_VOLUME]
        # no volume is looked for any more
        local = [make_class("local"), make_claim(annotations=selected), make_volume(at=["b"])]
        assert asked(claiming("data"), *local) == [NO_VOLUME] * 3

    def test_claims_with_nodes_that_differ(self) -> None:
        claims = [
            make_claim(f"shop/{name}", class_name="fast", annotations={"volume.kubernetes.io/selected-node": node})
            for name, node in (("one", "a"), ("two", "b"))
        ]
        assert asked(claiming("one", "two"), make_class("fast", self.SSD), *claims) == [NO_VOLUME] * 3


class TestScore:
    def test_volumes_are_not_scored(self) -> None:
        snapshot = world(NODES)
        status = PLUGIN.pre_score(CycleState(), PodInfo(make_pod()), snapshot, np.ones(3, dtype=np.bool_))
        assert status is not None and status.code is Code.SKIP
        scores = PLUGIN.score_table(CycleState(), PodInfo(make_pod()), snapshot.table, slice(0, 3))
        assert scores.tolist() == [0, 0, 0]


class TestScores:
    """Storage that is used less is liked more: the default shape goes from 0 % → 100 to 100 % → 0."""

    DEFAULT_SHAPE = (ShapePoint(0, 10), ShapePoint(100, 0))

    def scored(self, pod: Pod, *objects: Any, features: Features = V37) -> list[int] | None:
        """Raw scores of the nodes a, b and c; None where PreScore skips."""
        snapshot = world(NODES, (), *objects)
        plugin = VolumeBinding(VolumeBindingArgs(shape=self.DEFAULT_SHAPE), Handle(snapshot), features)
        state, info = CycleState(), PodInfo(pod)
        assert plugin.pre_filter(state, info, snapshot) is None
        if plugin.pre_score(state, info, snapshot, np.ones(3, dtype=np.bool_)) is not None:
            return None
        return plugin.score_table(state, info, snapshot.table, snapshot.table.all_rows).tolist()

    def test_static_volumes(self) -> None:
        """5Gi of 10Gi at a, of 20Gi at b; the smallest is picked."""
        volumes = [
            make_volume("pa", "10Gi", at=["a"]),
            make_volume("pa-large", "50Gi", at=["a"]),
            make_volume("pb", "20Gi", at=["b"]),
            make_volume("pc", "5Gi", at=["c"]),
        ]
        claim = make_claim("shop/data", "5Gi")
        assert self.scored(claiming("data"), make_class(), claim, *volumes) == [50, 75, 0]

    def test_volumes_of_a_class_add_up_and_classes_are_averaged(self) -> None:
        """Class local: 8Gi of 20Gi, 60; class fast: 1Gi of 8Gi, 12 % used, 88. Their mean is 74."""
        objects = [
            make_class("local"),
            make_class("fast"),
            make_claim("shop/one", "3Gi"),
            make_claim("shop/two", "5Gi"),
            make_claim("shop/three", "1Gi", class_name="fast"),
            make_volume("p1", "10Gi"),
            make_volume("p2", "10Gi"),
            make_volume("p3", "8Gi", class_name="fast"),
        ]
        assert self.scored(claiming("one", "two", "three"), *objects) == [74] * 3

    def test_volumes_that_would_be_made(self) -> None:
        """5Gi of the room that the driver reports; a class without reports has no say."""
        objects = [
            make_class("made", "d"),
            make_driver("d"),
            make_capacity("c1", "made", "10Gi", {HOSTNAME: "a"}),
            make_capacity("c2", "made", "50Gi", {HOSTNAME: "b"}),
            make_capacity("c3", "made", "5Gi", {HOSTNAME: "c"}),
            make_claim("shop/data", "5Gi", class_name="made"),
        ]
        assert self.scored(claiming("data"), *objects) == [50, 90, 0]
        silent = [make_class("quiet", "q"), make_claim("shop/more", "5Gi", class_name="quiet")]
        assert self.scored(claiming("data", "more"), *objects, *silent) == [50, 90, 0]

    def test_claims_of_a_class_share_the_room_of_a_report(self) -> None:
        """Twice 5Gi of 20Gi, not of 40Gi."""
        objects = [
            make_class("made", "d"),
            make_driver("d"),
            make_capacity("c1", "made", "20Gi", {REGION: "r"}),
            *(make_claim(f"shop/{name}", "5Gi", class_name="made") for name in ("one", "two")),
        ]
        assert self.scored(claiming("one", "two"), *objects) == [50] * 3

    def test_where_a_volume_is_picked_only_picked_ones_count(self) -> None:
        objects = [
            make_class("local"),
            make_class("made", "d"),
            make_driver("d"),
            make_capacity("c1", "made", "10Gi", {REGION: "r"}),
            make_volume("pa", "10Gi"),
            make_claim("shop/static", "1Gi"),
            make_claim("shop/dynamic", "9Gi", class_name="made"),
        ]
        assert self.scored(claiming("static", "dynamic"), *objects) == [90] * 3

    def test_skip_without_the_gate_and_for_claims_that_are_bound(self) -> None:
        claim, volume = make_claim("shop/data", "5Gi"), make_volume("pa", "10Gi")
        off = with_gates(V37, StorageCapacityScoring=False)
        for features in (V34, V36, off):
            assert self.scored(claiming("data"), make_class(), claim, volume, features=features) is None
        assert self.scored(claiming("settled"), SETTLED, make_volume("pv-settled")) is None

    def test_more_than_there_is_counts_as_all(self) -> None:
        objects = [
            make_class("made", "d"),
            make_driver("d"),
            make_capacity("c1", "made", "1Gi", {REGION: "r"}, largest="20Gi"),
            make_claim("shop/data", "5Gi", class_name="made"),
        ]
        assert self.scored(claiming("data"), *objects) == [0] * 3
