"""VolumeZone."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Action, Code, Resource
from dsched.plugins.volume_zone import ERR_REASON, NO_NAME, NO_VOLUME, NO_VOLUME_NO_CLASS, VolumeZone
from tests.builders import make_node, make_pod
from tests.storage import REGION, ZONE, Handle, claiming, make_claim, make_class, make_volume, with_volumes, world
from tests.unit.plugins.hints import queues
from tests.unit.plugins.storage_asking import agree_row_by_row, codes, reasons, rejected, skips, statuses

NO_HANDLE: Any = None
PLUGIN = VolumeZone(None, NO_HANDLE)
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
CLAIM = make_claim("shop/data", volume="pv")
NODES = [
    make_node("a", labels={ZONE: "a", REGION: "r"}),
    make_node("b", labels={ZONE: "b", REGION: "r"}),
    make_node("old", labels={BETA_ZONE: "a"}),
    make_node("bare"),
]
NO, YES = (ERR_REASON,), ()


def asked(labels: dict[str, str]) -> list[tuple[str, ...]]:
    """About nodes a, b, one with a beta label only, and one that does not say where it is."""
    return reasons(PLUGIN, claiming("data"), world(NODES, (), CLAIM, make_volume("pv", labels=labels)))


class TestFilter:
    @pytest.mark.parametrize(
        ("labels", "expected"),
        [
            ({}, [YES, YES, YES, YES]),
            ({ZONE: "a"}, [YES, NO, NO, YES]),
            ({BETA_ZONE: "a"}, [YES, NO, YES, YES]),
            ({ZONE: "a__b"}, [YES, YES, NO, YES]),
            ({ZONE: "a__ c "}, [YES, NO, NO, YES]),
            ({ZONE: "a__"}, [YES, YES, YES, YES]),
            ({ZONE: "a", REGION: "other"}, [NO, NO, NO, YES]),
            ({BETA_REGION: "r"}, [YES, YES, NO, YES]),
            ({"other": "a"}, [YES, YES, YES, YES]),
        ],
    )
    def test_labels_of_the_volume(self, labels: dict[str, str], expected: list[tuple[str, ...]]) -> None:
        assert asked(labels) == expected

    def test_a_beta_label_of_the_node_goes_before_its_new_name(self) -> None:
        node = make_node("n", labels={BETA_ZONE: "a", ZONE: "b"})
        snapshot = world([node], (), CLAIM, make_volume("pv", labels={BETA_ZONE: "b"}))
        assert reasons(PLUGIN, claiming("data"), snapshot) == [NO]

    def test_every_volume_counts_and_nothing_can_help(self) -> None:
        more = make_claim("shop/more", volume="pv2")
        volumes = [make_volume("pv", labels={ZONE: "a__b"}), make_volume("pv2", labels={ZONE: "b"})]
        snapshot = world(NODES, (), CLAIM, more, *volumes)
        assert codes(PLUGIN, claiming("data", "more"), snapshot) == [
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            Code.SUCCESS,
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            Code.SUCCESS,
        ]

    def test_it_does_without_pre_filter(self) -> None:
        snapshot = world(NODES, (), CLAIM, make_volume("pv", labels={ZONE: "a"}))
        plugin = VolumeZone(None, Handle(snapshot))
        found = statuses(plugin, claiming("data"), snapshot, state=CycleState())
        assert [status is None for status in found] == [True, False, False, True]
        gone = statuses(plugin, claiming("gone"), snapshot, np.array([0, 1]), state=CycleState())
        assert [status.message if status else "" for status in gone] == ['persistentvolumeclaim "gone" not found'] * 2


class TestPreFilter:
    def test_skip_for_pods_without_claims(self) -> None:
        assert skips(PLUGIN, make_pod(), world(NODES))
        assert skips(PLUGIN, with_volumes({"ephemeral": {}}), world(NODES))

    @pytest.mark.parametrize(
        ("claim", "reason"),
        [
            (None, 'persistentvolumeclaim "data" not found'),
            (make_claim("shop/data", volume="gone"), 'persistentvolume "gone" not found'),
            (make_claim("shop/data", class_name=None), NO_VOLUME_NO_CLASS),
            (make_claim("shop/data", class_name="none"), 'storageclass.storage.k8s.io "none" not found'),
            (make_claim("shop/data", class_name="now"), NO_VOLUME),
            (make_claim("shop/data", class_name="unset"), 'VolumeBindingMode not set for StorageClass "unset"'),
        ],
    )
    def test_what_cannot_be_looked_up(self, claim: Any, reason: str) -> None:
        objects = [make_class("now", mode="Immediate"), make_class("unset", mode=None)]
        snapshot = world(NODES, (), *objects, *([claim] if claim else []))
        assert rejected(PLUGIN, claiming("data"), snapshot) == reason

    def test_a_claim_without_a_name(self) -> None:
        assert rejected(PLUGIN, with_volumes({"persistentVolumeClaim": {}}), world(NODES)) == NO_NAME

    def test_a_claim_that_waits_for_its_first_consumer_is_passed_over(self) -> None:
        snapshot = world(NODES, (), make_claim("shop/data"), make_class("local"))
        assert reasons(PLUGIN, claiming("data"), snapshot) == [YES] * 4


class TestHints:
    POD = claiming("data")

    def test_classes_that_wait_for_their_first_consumer(self) -> None:
        assert queues(PLUGIN, self.POD, Resource.STORAGE_CLASS, Action.ADD, new=make_class())
        assert not queues(PLUGIN, self.POD, Resource.STORAGE_CLASS, Action.ADD, new=make_class(mode="Immediate"))
        assert not queues(PLUGIN, self.POD, Resource.STORAGE_CLASS, Action.ADD, new=make_class(mode=None))

    def test_nodes_with_other_labels(self) -> None:
        a, b, *_ = NODES
        assert queues(PLUGIN, self.POD, Resource.NODE, Action.ADD, new=a)
        assert queues(PLUGIN, self.POD, Resource.NODE, Action.UPDATE, a, b)
        assert not queues(PLUGIN, self.POD, Resource.NODE, Action.UPDATE, a, make_node("a", labels=a.metadata.labels))

    def test_claims_of_the_pod(self) -> None:
        for action, old in ((Action.ADD, None), (Action.UPDATE, CLAIM)):
            assert queues(PLUGIN, self.POD, Resource.PVC, action, old, CLAIM)
            assert not queues(PLUGIN, self.POD, Resource.PVC, action, old, make_claim("shop/other"))
            assert not queues(PLUGIN, self.POD, Resource.PVC, action, old, make_claim("dev/data"))

    def test_volumes_that_moved(self) -> None:
        here, there = make_volume(labels={ZONE: "a"}), make_volume(labels={ZONE: "b"})
        assert queues(PLUGIN, self.POD, Resource.PV, Action.ADD, new=here)
        assert queues(PLUGIN, self.POD, Resource.PV, Action.UPDATE, here, there)
        assert not queues(PLUGIN, self.POD, Resource.PV, Action.UPDATE, here, make_volume(labels={ZONE: "a", "x": "y"}))


LABELS = st.dictionaries(
    st.sampled_from([ZONE, REGION, BETA_ZONE, BETA_REGION]), st.sampled_from(["a", "b", "a__b", "a__"]), max_size=3
)


def one_node(places: list[dict[str, str]], node: dict[str, str]) -> bool:
    """The rule for one node, told plainly: does it fit?"""
    renamed = {BETA_ZONE: ZONE, BETA_REGION: REGION}
    if not any(label in node for label in (ZONE, REGION, BETA_ZONE, BETA_REGION)):
        return True
    for labels in places:
        for label, text in labels.items():
            values = text.split("__")
            value = node.get(label, node.get(renamed.get(label, label)))
            if "" not in values and value not in values:
                return False
    return True


@settings(max_examples=100, deadline=None)
@given(
    nodes=st.lists(LABELS, min_size=1, max_size=8),
    places=st.lists(LABELS, min_size=1, max_size=2),
    order=st.lists(st.integers(0, 9), min_size=1),
)
def test_all_rows_at_once_and_each_alone(
    nodes: list[dict[str, str]], places: list[dict[str, str]], order: list[int]
) -> None:
    claims = [make_claim(f"shop/c{at}", volume=f"pv{at}") for at in range(len(places))]
    volumes = [make_volume(f"pv{at}", labels=labels) for at, labels in enumerate(places)]
    snapshot = world([make_node(f"n{at}", labels=labels) for at, labels in enumerate(nodes)], (), *claims, *volumes)
    pod = claiming(*(f"c{at}" for at in range(len(places))))
    agree_row_by_row(PLUGIN, pod, snapshot, order)
    assert [found == YES for found in reasons(PLUGIN, pod, snapshot)] == [one_node(places, node) for node in nodes]
