"""The plugin alone: what it answers, asked as the engine asks it."""

from collections.abc import Iterator

import pytest
from dsched_gang import GangPlugin

from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Action, ClusterEvent, Code, Hint, PermitResult, Resource
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName, from_builtins
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.scheduler.ports import QueueName
from dsched.scheduler.queue import QueuedPod
from dsched.scheduler.waiting_pods import WaitingPod

STATE = CycleState()


class Leader:
    """What the plugin sees of a leader: two nodes of 2 CPUs in zone a, three of them in zone b."""

    def __init__(self) -> None:
        self.snapshot = Snapshot()
        self.pending: dict[str, QueuedPod] = {}
        self.waiting: dict[str, WaitingPod] = {}
        self.plugin = GangPlugin({"deadlineSeconds": 20}, self)  # type: ignore[arg-type]
        for name in ("a1", "a2", "b1", "b2", "b3"):
            labels = {"topology.kubernetes.io/zone": name[0]}
            node = {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": {"cpu": "2", "pods": "9"}}}
            self.snapshot.table.set_node(from_builtins(node, Node))

    def waiting_pods(self) -> Iterator[WaitingPod]:
        return iter(self.waiting.values())

    def pending_pods(self) -> Iterator[QueuedPod]:
        return iter(self.pending.values())

    def pending_pod(self, key: str) -> QueuedPod | None:
        return self.pending.get(key)

    def add(self, *pods: Pod) -> None:
        """Pods come into the queue."""
        for pod in pods:
            self.pending[pod.key] = QueuedPod(PodInfo(pod), QueueName.ACTIVE)

    def place(self, pod: Pod, node: str) -> PermitResult:
        """A pod is reserved on a node; what Permit says."""
        info = PodInfo(pod)
        self.snapshot.table.add_pod(info, NodeName(node))
        result = self.plugin.permit(STATE, info, NodeName(node))
        if result.status is not None and result.status.code is Code.WAIT:
            self.waiting[pod.key] = WaitingPod(info, 0, {"Gang": 0})
        elif result.status is not None:
            self.snapshot.table.remove_pod(pod.uid)
        return result

    def allowed(self) -> list[str]:
        return [key for key, waiting in self.waiting.items() if waiting.allowed]


@pytest.fixture
def leader() -> Leader:
    return Leader()


def member(name: str, gang: str = "one", size: str = "3", one_zone: str = "false") -> Pod:
    labels = {"example.com/gang": gang, "example.com/gang-size": size, "example.com/gang-one-zone": one_zone}
    container = {"name": "main", "resources": {"requests": {"cpu": "2"}}}
    metadata = {"name": name, "namespace": "shop", "uid": name, "labels": labels}
    return from_builtins({"metadata": metadata, "spec": {"containers": [container]}}, Pod)


def reason(result: PermitResult) -> str:
    return "" if result.status is None else result.status.message


def test_members_stay_out_of_the_queue_until_all_exist(leader: Leader) -> None:
    leader.add(member("x"), member("y"))
    status = leader.plugin.pre_enqueue(member("x"))
    assert status is not None
    assert status.message == "gang one: 2 of 3 members exist"
    leader.add(member("z"))
    assert leader.plugin.pre_enqueue(member("x")) is None


def test_a_size_that_is_no_number_is_told(leader: Leader) -> None:
    status = leader.plugin.pre_enqueue(member("x", size="many"))
    assert status is not None
    assert "found 'many'" in status.message


def test_the_last_member_lets_all_go(leader: Leader) -> None:
    members = [member(name) for name in "xyz"]
    leader.add(*members)
    assert leader.place(members[0], "a1").timeout_s == 20
    leader.place(members[1], "a2")
    assert leader.allowed() == []
    assert leader.place(members[2], "b1").status is None
    assert leader.allowed() == ["shop/x", "shop/y"]


def test_a_member_that_loses_its_place_takes_the_others_along(leader: Leader) -> None:
    members = [member(name) for name in "xyz"]
    leader.add(*members)
    leader.place(members[0], "a1")
    leader.place(members[1], "a2")
    leader.plugin.unreserve(STATE, PodInfo(members[0]), NodeName("a1"))
    rejected = [waiting.rejection.message for waiting in leader.waiting_pods() if waiting.rejection]
    assert rejected == ["gang one: 2 of 3 members had a node"] * 2
    assert reason(leader.place(members[2], "b1")) == "gang one is being turned away"


def test_only_one_gang_waits_at_a_time(leader: Leader) -> None:
    one, two = [member(name) for name in "xyz"], [member(name, "two") for name in "uvw"]
    leader.add(*one, *two)
    leader.place(one[0], "a1")
    assert reason(leader.place(two[0], "a2")) == "gang one goes first"
    leader.place(one[1], "a2")
    leader.place(one[2], "b1")
    landed = ClusterEvent(Resource.ASSIGNED_POD, Action.ADD, new=one[0])
    assert leader.plugin._after_assigned_pod(two[0], landed) is Hint.QUEUE


def test_a_gang_in_one_zone(leader: Leader) -> None:
    pod, table = PodInfo(member("x", one_zone="true")), leader.snapshot.table
    assert leader.plugin.score_table(STATE, pod, table, table.all_rows).tolist() == [2, 2, 3, 3, 3]
    leader.snapshot.table.add_pod(PodInfo(member("y", one_zone="true")), NodeName("b2"))
    verdict = leader.plugin.filter_table(STATE, pod, table, table.all_rows)
    assert verdict.index.tolist() == [1, 1, 0, 0, 0]
    assert leader.plugin.score_table(STATE, pod, table, table.all_rows).tolist() == [0, 0, 1, 2, 1]


def test_what_is_worth_another_try(leader: Leader) -> None:
    mine, other = member("x"), member("u", "two")

    def hint(resource: Resource, action: Action, pod: Pod) -> Hint:
        event = ClusterEvent(resource, action, **{"old" if action is Action.DELETE else "new": pod})
        ask = (
            leader.plugin._after_pending_pod if resource is Resource.PENDING_POD else leader.plugin._after_assigned_pod
        )
        return ask(mine, event)

    assert hint(Resource.PENDING_POD, Action.ADD, member("y")) is Hint.QUEUE
    assert hint(Resource.PENDING_POD, Action.ADD, other) is Hint.SKIP
    assert hint(Resource.ASSIGNED_POD, Action.DELETE, other) is Hint.QUEUE
    leader.add(other)  # it is pending again: it had only been reserved
    assert hint(Resource.ASSIGNED_POD, Action.DELETE, other) is Hint.SKIP
    assert hint(Resource.ASSIGNED_POD, Action.ADD, other) is Hint.SKIP


@pytest.mark.parametrize("args", [{"deadlineSeconds": 0}, {"deadlineSeconds": "soon"}, {"deadline": 3}])
def test_arguments_that_are_refused(leader: Leader, args: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        GangPlugin(args, leader)  # type: ignore[arg-type]
