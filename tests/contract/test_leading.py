"""Leading: who does not lead any more reports and deletes nothing, whatever he had in mind."""

from collections.abc import Callable

import pytest

from dsched.cluster.interface import Cluster, GroupStatus, SchedulingStatus
from dsched.manifests import kinds
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.model.pod_groups import GroupKey
from dsched.model.queues import QueueStatus
from tests.contract.systems import System
from tests.manifests import Json, group_manifest, node_manifest, pod_manifest, queue_manifest

WEB, UID = PodKey("default/web"), PodUid("pod-1")
TRAIN, GROUP_UID = GroupKey("default/train"), "group-1"


def statuses(cluster: Cluster) -> None:
    cluster.report([SchedulingStatus(WEB, UID, "Unschedulable", "no room")])


def promises(cluster: Cluster) -> None:
    cluster.report([SchedulingStatus(WEB, UID, "", "", NodeName("n1"))])


def evictions(cluster: Cluster) -> None:
    cluster.delete_pods([(WEB, UID)], "PreemptionByScheduler", "preempted")


def groups(cluster: Cluster) -> None:
    cluster.report_groups([GroupStatus(TRAIN, GROUP_UID, True, "Scheduled", "")])


def queues(cluster: Cluster) -> None:
    cluster.report_queues({"train": QueueStatus(pending_pods=1)})


SAID: list[Callable[[Cluster], None]] = [statuses, promises, evictions, groups, queues]


@pytest.fixture(autouse=True)
def there(system: System) -> None:
    group = group_manifest(TRAIN)
    group["metadata"]["uid"] = GROUP_UID
    system.put(node_manifest(), pod_manifest(WEB, uid=UID), group, queue_manifest())
    system.lead(groups=True, queues=True)
    system.listed()


def everything(system: System) -> list[Json | None]:
    wanted = ((kinds.POD, WEB), (kinds.POD_GROUP, TRAIN), (kinds.QUEUE, "train"))
    return [system.read(kind, key) for kind, key in wanted]


@pytest.mark.parametrize("said", SAID)
def test_who_leads_is_heard(system: System, said: Callable[[Cluster], None]) -> None:
    before = everything(system)
    said(system.cluster)
    system.settle()
    assert sum(one != other for one, other in zip(before, everything(system), strict=True)) == 1


@pytest.mark.parametrize("said", SAID)
def test_who_does_not_lead_any_more_is_not(system: System, said: Callable[[Cluster], None]) -> None:
    before = everything(system)
    system.another_leads()
    with system.refuses():
        said(system.cluster)
    assert everything(system) == before
    system.cluster.stand_down()
    system.settle()
    assert everything(system) == before, "it is left to the next leader"


@pytest.mark.parametrize("said", SAID)
def test_who_leads_again_is_heard_again(system: System, said: Callable[[Cluster], None]) -> None:
    """And says nothing of what he had in mind before."""
    before = everything(system)
    system.another_leads()
    with system.refuses():
        said(system.cluster)
    system.cluster.stand_down()
    system.lead(groups=True, queues=True)
    system.listed()
    system.settle()
    assert everything(system) == before
    said(system.cluster)
    system.settle()
    assert everything(system) != before


def test_whoever_binds_and_reads_need_not_lead(system: System) -> None:
    system.another_leads()
    binder = system.another()
    (outcome,) = binder.bind([system.binding(WEB)])
    assert outcome.node == "n1"
    (pod,) = binder.get_pods([WEB])
    assert pod is not None and pod.node_name == "n1"


def test_standing_down_is_repeatable_and_needs_no_lead(system: System) -> None:
    other = system.another()
    for _ in range(2):
        other.stand_down()
        system.cluster.stand_down()
    assert [pod.key for pod in system.cluster.list().pods] == [WEB]


def test_nothing_waits_where_nothing_was_said(system: System) -> None:
    assert system.cluster.drain(0.0)
    assert system.cluster.drain(0.0, hurry=True)
