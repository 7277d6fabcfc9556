"""In-tree volumes in the terms of their drivers; cases as in k8s.io/csi-translation-lib."""

from typing import Any

import pytest

from dsched.errors import PluginError
from dsched.model import meta, migration
from dsched.model.migration import AZURE_DISK, BETA_REGION, BETA_ZONE, GCE_PD, REGION, ZONE
from dsched.model.pod import Volume
from dsched.model.volumes import PersistentVolume
from tests.builders import make_term
from tests.storage import make_volume

GKE_ZONE = GCE_PD.zone_key


def persistent(**fields: Any) -> PersistentVolume:
    return meta.from_builtins(make_volume("pv", **fields), PersistentVolume)


def inline(**source: Any) -> Volume:
    return meta.from_builtins({"name": "v", **source}, Volume)


def disk(name: str = "d") -> dict[str, Any]:
    return {"gcePersistentDisk": {"pdName": name}}


def test_plugins_are_told_by_their_source() -> None:
    assert migration.plugin_of(inline(**disk())) is GCE_PD
    assert migration.plugin_of(persistent(azureDisk={"diskURI": "u"}).spec) is AZURE_DISK
    assert migration.plugin_of(inline(emptyDir={})) is None
    assert migration.plugin_of(persistent(csi={"driver": "d"}).spec) is None


class TestHandles:
    @pytest.mark.parametrize(
        ("labels", "place"),
        [
            ({}, "zones/UNSPECIFIED"),
            ({ZONE: "us-central1-a"}, "zones/us-central1-a"),
            ({ZONE: "us-central1-a", BETA_ZONE: "us-central1-b"}, "zones/us-central1-b"),
            ({ZONE: "us-central1-a__us-central1-b"}, "regions/us-central1"),
        ],
    )
    def test_gce(self, labels: dict[str, str], place: str) -> None:
        volume = persistent(labels=labels, **disk())
        assert migration.handle(volume.spec, volume.metadata.labels) == f"projects/UNSPECIFIED/{place}/disks/d"

    @pytest.mark.parametrize(
        ("zones", "problem"),
        [("a__b", "zone in unexpected format"), ("us-east1-a__us-west1-a", "multiple or no regions gotten from zones")],
    )
    def test_gce_zones_that_make_no_region(self, zones: str, problem: str) -> None:
        with pytest.raises(PluginError, match=problem):
            migration.handle(persistent(**disk()).spec, {ZONE: zones})

    @pytest.mark.parametrize(
        "text", ["vol-02399794d890f9375", "aws:///vol-02399794d890f9375", "aws://z/vol-02399794d890f9375"]
    )
    def test_ebs(self, text: str) -> None:
        assert migration.handle(inline(awsElasticBlockStore={"volumeID": text})) == "vol-02399794d890f9375"

    @pytest.mark.parametrize("text", ["aws://us-west-2/disk-1", "aws://us-west-2/vol-1/x", "aws://vol-1"])
    def test_ebs_that_is_none(self, text: str) -> None:
        with pytest.raises(PluginError, match="Invalid format for AWS volume"):
            migration.handle(inline(awsElasticBlockStore={"volumeID": text}))

    def test_azure_disks_are_managed_ones(self) -> None:
        assert migration.handle(inline(azureDisk={"diskURI": "u"})) == "u"
        assert migration.handle(inline(azureDisk={"diskURI": "u", "kind": "managed"})) == "u"
        with pytest.raises(PluginError, match=r"kind\(Shared\) is not supported"):
            migration.handle(inline(azureDisk={"diskURI": "u", "kind": "Shared"}))

    def test_the_others_say_it_themselves(self) -> None:
        assert migration.handle(inline(cinder={"volumeID": "c"})) == "c"
        assert migration.handle(inline(portworxVolume={"volumeID": "p"})) == "p"
        with pytest.raises(PluginError, match="no source that a driver has taken over"):
            migration.handle(inline(vsphereVolume={"volumePath": "p"}))


class TestAffinity:
    def of(self, *terms: Any, labels: dict[str, str] | None = None, plugin: Any = GCE_PD, **source: Any) -> Any:
        selector = migration.affinity(persistent(terms=terms, labels=labels, **(source or disk())), plugin)
        if selector is None:
            return None
        return [
            [f"{each.key} {each.operator} {' '.join(each.values)}" for each in term.match_expressions]
            for term in selector.node_selector_terms
        ]

    def test_zones_get_the_drivers_key(self) -> None:
        found = self.of(make_term(f"{ZONE} In a b", "disk In ssd"), make_term(f"{ZONE} NotIn c"))
        assert found == [[f"{GKE_ZONE} In a b", "disk In ssd"], [f"{GKE_ZONE} NotIn c"]]

    def test_beta_keys_of_zone_and_region(self) -> None:
        found = self.of(make_term(f"{BETA_ZONE} In a", f"{BETA_REGION} In r"))
        assert found == [[f"{GKE_ZONE} In a", f"{REGION} In r"]]

    def test_new_keys_go_before_old_ones(self) -> None:
        found = self.of(make_term(f"{ZONE} In a"), make_term(f"{BETA_ZONE} In b", f"{BETA_REGION} In r"))
        assert found == [[f"{GKE_ZONE} In a"], [f"{BETA_ZONE} In b", f"{BETA_REGION} In r"]]

    def test_labels_where_the_affinity_is_silent(self) -> None:
        assert self.of(labels={ZONE: "us-b-1__us-b-2__us-b-1"}) == [[f"{GKE_ZONE} In us-b-1 us-b-2"]]
        found = self.of(make_term("disk In ssd"), make_term("gpu Exists"), labels={BETA_ZONE: "us-b-1"})
        assert found == [["disk In ssd", f"{GKE_ZONE} In us-b-1"], ["gpu Exists ", f"{GKE_ZONE} In us-b-1"]]

    def test_nothing_is_said(self) -> None:
        assert self.of() is None
        assert self.of(labels={ZONE: ""}) is None
        assert self.of(make_term("disk In ssd")) == [["disk In ssd"]]

    def test_plugins_whose_zones_stay(self) -> None:
        found = self.of(make_term(f"{ZONE} In a"), plugin=AZURE_DISK, azureDisk={"diskURI": "u"})
        assert found == [[f"{ZONE} In a"]]

    def test_a_source_that_makes_no_sense(self) -> None:
        with pytest.raises(PluginError):
            self.of(make_term(f"{ZONE} In a"), labels={ZONE: "a__b"})
