"""Which pods are taken into a queue, and what limits say of one that is on its node."""

import pytest

from dsched import config
from dsched.errors import PluginError
from dsched.framework.cycle_state import CycleState
from dsched.model.meta import NodeName
from dsched.plugins import registry
from dsched.plugins.fair_share.plugin import FairShare, arguments, decoded
from tests.manifests import Json, queue_manifest
from tests.unit.plugins.fair_share.divided import CONFIGURATION, Cluster

LIMIT_OF_3 = {"cpu": {"limit": 3}}


def plugin(there: Cluster) -> FairShare:
    found = there.made.frameworks["default-scheduler"].plugin("FairShare")
    assert isinstance(found, FairShare)
    return found


@pytest.mark.parametrize(
    ("queues", "message"),
    [
        ([queue_manifest("a")], ""),
        ([], 'queue "a" does not exist'),
        ([queue_manifest("a", "gone")], 'queue "a" cannot be used: its parent "gone" does not exist'),
        ([queue_manifest("a"), queue_manifest("b", "a")], 'queue "a" has queues below it; pods go into one of these'),
        ([queue_manifest("a", namespaces=["x"])], 'queue "a" may not be used by pods of namespace "shop"'),
        ([queue_manifest("a", namespaces=["x", "shop"])], ""),
        (
            [queue_manifest("top", resources=LIMIT_OF_3), queue_manifest("a", "top")],
            'pod requests 4000m of cpu, more than the limit of queue "top"',
        ),
        (
            [queue_manifest("a", resources={"pods": {"limit": 0}})],
            'pod requests 1 of pods, more than the limit of queue "a"',
        ),
    ],
)
def test_who_is_taken_in(queues: list[Json], message: str) -> None:
    there = Cluster(*queues)
    status = plugin(there).pre_enqueue(there.pod("p", "a", cpu=4).pod)
    assert ("" if status is None else status.message) == message


def test_pods_of_no_queue_are_taken_in() -> None:
    there = Cluster(queue_manifest("a"))
    assert plugin(there).pre_enqueue(there.pod("p", "", cpu=4).pod) is None


def test_a_pod_on_its_node_must_not_exceed_a_limit_of_what_it_requests() -> None:
    there = Cluster(queue_manifest("a", resources={"cpu": {"limit": 3}, "memory": {"limit": 0}}), cores=(10,))
    first, second = there.pod("p", "a", cpu=3), there.pod("q", "a")
    for pod, message in ((first, ""), (second, 'queue "a" would exceed its limit of cpu')):
        there.run(0, pod)
        status = plugin(there).reserve(CycleState(), pod, NodeName("n0"))
        assert ("" if status is None else status.message) == message


def test_a_pod_whose_queue_went_meanwhile_is_turned_away() -> None:
    there = Cluster(queue_manifest("a"))
    there.memory.snapshot.drop("Queue", "a")
    status = plugin(there).reserve(CycleState(), there.pod("p", "a"), NodeName("n0"))
    assert status is not None and status.message == 'queue "a" does not exist'


def test_arguments_are_those_of_a_profile_that_sorts_by_it() -> None:
    known = registry.served(registry.intree())
    assert arguments(config.default()) is None
    assert arguments(config.load(CONFIGURATION, plugins=known)) == decoded(None)
    given = CONFIGURATION + "  pluginConfig: [{name: FairShare, args: {kueueLabel: true}}]\n"
    found = arguments(config.load(given, plugins=known))
    assert found is not None and found.kueue_label


@pytest.mark.parametrize("args", [{"kueueLabel": "yes"}, {"kueue": True}])
def test_other_arguments_are_refused(args: Json) -> None:
    with pytest.raises(PluginError, match=r"^arguments of plugin FairShare: .*kueue"):
        FairShare(args, None)


def test_pods_of_a_group_that_cannot_run_are_no_demand() -> None:
    there = Cluster(queue_manifest("a"), groups=True)
    share = there.picking.ledger.tree.shares["a"]
    members = there.group("g", "a", 3, 3)
    there.wait(*members[:2])
    assert (share.waiting, share.pending) == (0, {}), "too few"
    there.wait(members[2])
    assert (share.waiting, share.pending["cpu"]) == (3, 3000)
    gated = there.pod("g3", "a", schedulingGroup={"podGroupName": "g"}, schedulingGates=[{"name": "later"}])
    there.wait(gated)
    assert share.waiting == 0, "a gate of one holds all back"
    there.drop(gated)
    members.append(there.pod("g4", "a", schedulingGroup={"podGroupName": "g"}))
    there.wait(members[3])
    assert share.waiting == 0, "who gated it does not hear of pods that come"
    there.release("g")
    assert share.waiting == 4
    there.drop(members[0])
    assert share.waiting == 3
    there.drop(members[1])
    assert share.waiting == 2, "who goes still counts when the others are asked"
    there.drop(members[2])
    assert share.waiting == 0
    there.drop(members[3])
    assert (share.waiting, share.pending) == (0, {})


def test_a_group_whose_pods_are_gone_is_picked_no_more() -> None:
    there = Cluster(queue_manifest("a"), groups=True)
    members = there.group("g", "a", 2, None)
    there.wait(*members)
    for pod in members:
        there.drop(pod)
    assert not there.picking.any_active()
    assert there.turn() == []
