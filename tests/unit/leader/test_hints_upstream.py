"""Which rejected pods an event moves, beside a straightforward transcription of kube-scheduler's rules.

Source: pkg/scheduler/eventhandlers.go; scheduler.go ``buildQueueingHintMap``; framework/events.go
``NodeSchedulingPropertiesChange``; backend/queue/scheduling_queue.go ``isPodWorthRequeuing``.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dsched.clock import ManualClock
from dsched.framework.interface import Action, ClusterEvent, Resource
from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NodeName
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.scheduler.hints import Hints
from dsched.scheduler.nominations import released
from dsched.scheduler.ports import QueueName
from dsched.scheduler.queue import Backoff, PendingPods
from tests.builders import make_node, make_pod
from tests.unit.framework.frameworks import NAME, default_framework

FRAMEWORK = default_framework()
HINTS = Hints({NAME: FRAMEWORK})
PLUGINS = ["NodeName", "NodeResourcesFit", "NodeUnschedulable", "NodePorts"]
REGISTERED = {
    "NodeName": {"add"},
    "NodePorts": {"add", "pod-delete"},
    "NodeResourcesFit": {"add", "allocatable", "pod-delete"},
    "NodeUnschedulable": {"add", "taint"},
}
"""Plugin to what it registers for: of pods, and of nodes."""

nodes = st.builds(
    lambda cpu, cordoned, taints, labels: make_node(
        "n1", cpu=cpu, unschedulable=cordoned, taints=taints, labels=labels
    ),
    st.integers(1, 3),
    st.booleans(),
    st.lists(st.sampled_from(["a:NoSchedule", "b:NoExecute"]), max_size=2, unique=True),
    st.sampled_from([{}, {"zone": "a"}]),
)
pods = st.builds(
    lambda name, cpu, priority, ports: make_pod(f"shop/{name}", cpu=cpu, priority=priority, ports=ports),
    st.sampled_from(["web", "db"]),
    st.integers(1, 3),
    st.integers(0, 2),
    st.sampled_from([(), (80,), (80, 81)]),
)
N1 = NodeName("n1")


def node_hint(plugin: str, pod: Pod, old: Node | None, new: Node) -> bool:
    """What the plugin's hint function says of such an event."""
    if plugin in ("NodeName", "NodePorts"):
        return True
    if plugin == "NodeUnschedulable":
        return not new.spec.unschedulable and (old is None or old.spec.unschedulable)
    wanted = int(pod.spec.containers[0].resources.requests["cpu"])
    now = int(new.status.allocatable["cpu"])
    return now >= wanted and (old is None or now > int(old.status.allocatable["cpu"]))


def moved_by_node(plugin: str, pod: Pod, old: Node | None, new: Node) -> bool:
    if old is None:
        return node_hint(plugin, pod, old, new)
    kinds = set()
    if old.status.allocatable != new.status.allocatable:
        kinds.add("allocatable")
    if old.spec.taints != new.spec.taints or (old.spec.unschedulable and not new.spec.unschedulable):
        kinds.add("taint")
    registered = REGISTERED[plugin]
    if "taint" not in registered and "taint" in kinds:
        return True
    return bool(kinds & registered) and node_hint(plugin, pod, old, new)


def moved_by_pod(plugin: str, pod: Pod, gone: Pod, *, promised: bool, own: bool) -> bool:
    if promised and pod.spec.priority > gone.spec.priority:
        return False
    if own and not promised:
        return False
    if plugin == "NodePorts":
        theirs = {port.host_port for port in gone.spec.containers[0].ports}
        return any(port.host_port in theirs for port in pod.spec.containers[0].ports)
    return "pod-delete" in REGISTERED[plugin]


def helped(pod: Pod, plugin: str, event: ClusterEvent) -> bool:
    pending = PendingPods(ManualClock(), Backoff())
    queued = pending.add(PodInfo(pod), FRAMEWORK)
    pending.requeued(queued, FRAMEWORK, frozenset({plugin}))
    pending.placed(queued, QueueName.UNSCHEDULABLE)
    return HINTS.helped(event, pending) == [queued]


@given(pods, st.sampled_from(PLUGINS), st.none() | nodes, nodes)
def test_nodes_that_come_and_change(pod: Pod, plugin: str, old: Any, new: Node) -> None:
    event = ClusterEvent(Resource.NODE, Action.ADD if old is None else Action.UPDATE, old, new)
    assert helped(pod, plugin, event) is moved_by_node(plugin, pod, old, new)


@given(pods, st.sampled_from(PLUGINS), pods, st.booleans())
def test_pods_and_promises_that_go(pod: Pod, plugin: str, gone: Pod, promised: bool) -> None:
    of_node = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, gone.on(N1))
    event = released(PodInfo(gone), N1) if promised else of_node
    own = pod.uid == gone.uid
    assert helped(pod, plugin, event) is moved_by_pod(plugin, pod, gone, promised=promised, own=own)
