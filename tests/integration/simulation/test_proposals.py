"""Manifests beside a running system: what is taken from where."""

from pathlib import Path
from typing import Any

import pytest

from dsched import config
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.config.feature_gates import NEWEST, features
from dsched.errors import ManifestError, NotFound
from dsched.model.meta import PodKey
from dsched.plugins import registry
from dsched.simulation import proposals
from dsched.simulation.outcome import Ending
from dsched.simulation.proposals import Proposal
from dsched.state.client import Store
from tests.integration.simulation.test_live_cluster import bind, reserve
from tests.manifests import Json, apply, group_manifest, loaded, node_manifest, pod_manifest


def propose(store: Store, folder: Path, *objects: Json, **how: Any) -> Proposal:
    manifests = loaded(folder, *objects)
    return proposals.propose(
        config.default(), registry.intree(), store, StandaloneCluster(store), manifests, 1_700_000_000_000, **how
    )


def asked(key: str = "shop/asked", cpu: str = "1", **spec: Any) -> Json:
    container = {"name": "main", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}
    return pod_manifest(key, **{"containers": [container], **spec})


def placements(proposed: Proposal) -> dict[str, tuple[Ending, str]]:
    return {pod.key: (pod.ending, pod.node) for pod in proposed.outcome.pods}


def test_bound_and_reserved_pods_take_up_room(store: Store, tmp_path: Path) -> None:
    apply(store, tmp_path, node_manifest("n1"), node_manifest("n2"), asked("shop/a", "4"), asked("shop/b", "4"))
    bind(store, "shop/a", "n1")
    assert placements(propose(store, tmp_path, asked())) == {"shop/asked": (Ending.PLACED, "n2")}
    reserve(store, "shop/b", "n2")
    proposed = propose(store, tmp_path, asked())
    assert placements(proposed) == {"shop/asked": (Ending.UNSCHEDULABLE, "")}
    assert proposed.explained is not None
    assert {node.rejection.message for node in proposed.explained.nodes if node.rejection} == {"Insufficient cpu"}


def test_an_object_of_the_manifests_takes_the_place_of_the_clusters(store: Store, tmp_path: Path) -> None:
    apply(store, tmp_path, node_manifest("n1", cpu="1"), asked("shop/asked", "1"))
    bind(store, "shop/asked", "n1")
    # The same pod with other requests, and the node with more room: the pod that is bound does not count beside it.
    proposed = propose(store, tmp_path, asked(cpu="2"), node_manifest("n1", cpu="2"))
    assert placements(proposed) == {"shop/asked": (Ending.PLACED, "n1")}


def test_a_copy_of_a_pod_with_its_uid_is_another_pod(store: Store, tmp_path: Path) -> None:
    apply(store, tmp_path, node_manifest("n1"), asked("shop/first", "3"))
    uid = reserve(store, "shop/first", "n1")
    copy = asked("shop/copy", "3")
    copy["metadata"]["uid"] = uid
    assert placements(propose(store, tmp_path, copy)) == {"shop/copy": (Ending.UNSCHEDULABLE, "")}


def test_the_first_pod_that_does_not_fit_is_explained_with_the_others_in_place(store: Store, tmp_path: Path) -> None:
    apply(store, tmp_path, node_manifest("n1"))
    pods = [asked("shop/a", "3"), asked("shop/b", "3"), asked("shop/c", "1")]
    proposed = propose(store, tmp_path, *pods)
    assert [ending for ending, _ in placements(proposed).values()].count(Ending.PLACED) == 2
    assert proposed.explained is not None
    assert (proposed.explained.pod, proposed.explained.chosen) == ("shop/b", None)
    other = propose(store, tmp_path, *pods, wanted=PodKey("shop/c")).explained
    assert other is not None
    assert (other.pod, other.chosen) == ("shop/c", "n1")
    with pytest.raises(NotFound, match="no pod shop/none"):
        propose(store, tmp_path, *pods, wanted=PodKey("shop/none"))


def test_pods_that_wait_are_left_out_unless_asked_for(store: Store, tmp_path: Path) -> None:
    apply(store, tmp_path, node_manifest("n1"), asked("shop/waits", "3"), asked("shop/foreign", schedulerName="other"))
    assert placements(propose(store, tmp_path, asked(cpu="3"))) == {"shop/asked": (Ending.PLACED, "n1")}
    both = placements(propose(store, tmp_path, asked(cpu="3", priority=-1), with_pending=True))
    assert both == {"shop/waits": (Ending.PLACED, "n1"), "shop/asked": (Ending.UNSCHEDULABLE, "")}


def test_too_many_pods_that_wait(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposals, "MOST_PENDING", 1)
    apply(store, tmp_path, node_manifest("n1"), asked("shop/a"), asked("shop/b"))
    with pytest.raises(ManifestError, match="2 pods are pending, more than 1"):
        propose(store, tmp_path, asked(), with_pending=True)


def test_a_pod_for_no_profile_is_not_explained(store: Store, tmp_path: Path) -> None:
    apply(store, tmp_path, node_manifest("n1"))
    proposed = propose(store, tmp_path, asked(schedulerName="other"))
    assert placements(proposed) == {"shop/asked": (Ending.IGNORED, "")}
    assert proposed.explained is None


def test_pods_with_a_node_are_taken_as_there(store: Store, tmp_path: Path) -> None:
    apply(store, tmp_path, node_manifest("n1"))
    proposed = propose(store, tmp_path, asked("shop/there", "3", nodeName="n1"), asked(cpu="3"))
    assert proposed.pods == ("shop/asked",)
    assert placements(proposed) == {"shop/asked": (Ending.UNSCHEDULABLE, "")}


def test_a_group_is_placed_whole_with_those_of_it_that_wait(store: Store, tmp_path: Path) -> None:
    """Two of its pods are proposed, one waits in the system; the rack that has room for all three is taken."""
    gates = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}
    rack = "example.com/rack"
    nodes = [node_manifest(name, labels={rack: name[0]}) for name in ("a0", "b0", "b1")]
    topology = {"schedulingConstraints": {"topology": [{"key": rack}]}}
    of_group = {"schedulingGroup": {"podGroupName": "train"}}
    apply(store, tmp_path, *nodes, group_manifest("shop/train", 3, **topology), asked("shop/train-0", "2", **of_group))
    manifests = loaded(tmp_path, asked("shop/train-1", "2", **of_group), asked("shop/train-2", "2", **of_group))
    proposed = proposals.propose(
        config.default(features(NEWEST, gates)), registry.intree(), store, StandaloneCluster(store), manifests, 0
    )
    assert {node for _, node in placements(proposed).values()} == {"b0", "b1"}
    (told,) = proposed.outcome.groups
    assert (told.key, told.pods, told.placed, told.ending) == ("shop/train", 3, 3, "scheduled")
    assert proposed.group is not None
    explained, standing = proposed.group
    assert [(each.name, each.fits) for each in explained.placements] == [("b", True), ("a", False)]
    assert (explained.chosen, dict(standing.placed)) == ("b", {})
