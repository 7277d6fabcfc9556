"""The cluster as it was before each decision, told to a program line by line as a recording tells of it."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from msgspec.structs import replace

from dsched.judging.program import Program
from dsched.model import tape
from dsched.model.meta import NO_NODE, NodeName, PodKey, PodUid
from dsched.model.pod import Pod

KINDS = {
    "Namespace": "namespaces",
    "Service": "services",
    "ReplicationController": "replicationControllers",
    "ReplicaSet": "replicaSets",
    "StatefulSet": "statefulSets",
    "PersistentVolume": "persistentVolumes",
    "PersistentVolumeClaim": "persistentVolumeClaims",
    "StorageClass": "storageClasses",
    "CSINode": "csiNodes",
    "CSIDriver": "csiDrivers",
    "CSIStorageCapacity": "csiStorageCapacities",
    "VolumeAttachment": "volumeAttachments",
    "PodDisruptionBudget": "podDisruptionBudgets",
    "DeviceClass": "deviceClasses",
    "DeviceTaintRule": "deviceTaintRules",
    "ResourceSlice": "resourceSlices",
    "ResourceClaim": "resourceClaims",
}
"""What the program calls the lists that objects are in. Others decide nothing in kube-scheduler."""
_NAMESPACED = frozenset(
    {
        "Service",
        "ReplicationController",
        "ReplicaSet",
        "StatefulSet",
        "PersistentVolumeClaim",
        "CSIStorageCapacity",
        "PodDisruptionBudget",
        "ResourceClaim",
    }
)


class ToldCluster:
    """What a program was told.

    Attributes:
        nodes: names of the nodes there are.
        pending: pods that have to be placed.
        keys: of all pods that were ever heard of.
        promises: pods that wait for a node.
    """

    def __init__(self, program: Program, configuration: Mapping[str, Any]) -> None:
        self._program = program
        self.nodes: set[NodeName] = set()
        self.pending: dict[PodUid, Pod] = {}
        self.keys: dict[PodUid, PodKey] = {}
        self.promises: dict[PodUid, NodeName] = {}
        self._placed: dict[PodUid, tuple[Pod, NodeName]] = {}
        self._bound: set[PodUid] = set()
        program.tell({"begin": {"config": configuration}})

    def apply(self, line: tape.Line) -> None:
        """Something has happened that was no decision."""
        match line:
            case tape.NodeIs(node=node):
                self.nodes.add(node.name)
                self._set("nodes", node)
            case tape.NodeGone(name=name):
                self.nodes.discard(name)
                self._gone("nodes", name)
            case tape.ObjectIs(kind=kind, object=value) if kind in KINDS:
                self._set(KINDS[kind], _with_namespace(value) if kind in _NAMESPACED else value)
            case tape.ObjectGone(kind=kind, key=key) if kind in KINDS:
                self._gone(KINDS[kind], key)
            case tape.PodOn(node=node, pod=pod) | tape.Reserved(node=node, pod=pod):
                self._on(pod, node)
            case tape.PodOff(uid=uid) | tape.Released(uid=uid):
                self._off(uid)
            case tape.Pending(pod=pod):
                self._came(pod)
            case tape.Bound(uid=uid):
                self._take_root(uid)
            case tape.NoLongerPending(uid=uid):
                self._no_longer_pending(uid)
            case tape.Promised(uid=uid, node=node):
                self._promise(uid, node)
            case tape.PromiseEnded(uid=uid):
                self._promise(uid, NO_NODE)
            case _:
                pass

    def ask(self, pod: Pod, choice: tape.Choice) -> None:
        """Ask about a pod; the answer is the program's next one."""
        self._program.tell({"decide": {"name": pod.key, "pod": _named(pod), "node": choice.node}})

    def decided(self, pod: Pod, choice: tape.Choice) -> None:
        """What a recorded decision brings, after the program was asked about the pod. For promises see
        `dsched.scheduler.cycle.Cycle` and `dsched.leader.preemption`."""
        if choice.node:
            self._program.tell({"place": {"node": choice.node}})
            self.promises.pop(pod.uid, None)
            self._placed[pod.uid] = pod, choice.node
        elif choice.failed or choice.nominated == NO_NODE:
            self._promise(pod.uid, NO_NODE)
        elif choice.nominated is not None:
            for uid in [uid for uid, node in self.promises.items() if node == choice.nominated]:
                other = self.pending.get(uid)
                if other is not None and other.spec.priority < pod.spec.priority:
                    self._promise(uid, NO_NODE)
            if not pod.node_name:
                self._promise(pod.uid, choice.nominated)

    def equals(self, some: AbstractSet[str], others: AbstractSet[str]) -> bool:
        """Whether pods on nodes are as important as others: their priorities and starts are the same.

        Args:
            some, others: keys.

        Source: pkg/scheduler/util/utils.go ``MoreImportantPod``.
        """
        there = {pod.key: (pod.spec.priority, pod.status.start_time) for pod, _ in self._placed.values()}
        return {there.get(PodKey(key)) for key in some} == {there.get(PodKey(key)) for key in others}

    # -- lines -----------------------------------------------------------------------------------------------------

    def _set(self, kind: str, value: object) -> None:
        self._program.tell({"set": {"kind": kind, "object": value}})

    def _gone(self, kind: str, key: str) -> None:
        self._program.tell({"gone": {"kind": kind, "key": key}})

    def _on(self, pod: Pod, node: NodeName) -> None:
        self.keys[pod.uid] = pod.key
        self._placed[pod.uid] = pod, node
        self.promises.pop(pod.uid, None)
        self._set("pods", _named(pod.on(node)))

    def _off(self, uid: PodUid) -> None:
        placed = self._placed.pop(uid, None)
        if placed is not None:
            self._gone("pods", placed[0].key)

    def _came(self, pod: Pod) -> None:
        self.keys[pod.uid] = pod.key
        self.pending[pod.uid] = pod
        if pod.uid in self.promises:
            self._promise(pod.uid, self.promises[pod.uid])

    def _take_root(self, uid: PodUid) -> None:
        """A pod that has changed while it was reserved counts as it is now."""
        self._bound.add(uid)
        placed, pod = self._placed.get(uid), self.pending.get(uid)
        if placed is not None and pod is not None and pod is not placed[0]:
            self._on(pod, placed[1])

    def _no_longer_pending(self, uid: PodUid) -> None:
        pod = self.pending.get(uid)
        if uid not in self._bound and not (pod is not None and pod.node_name):  # a resize is over, the pod stays
            self._off(uid)
            self._promise(uid, NO_NODE)
        self._bound.discard(uid)
        self.pending.pop(uid, None)

    def _promise(self, uid: PodUid, node: NodeName) -> None:
        pod = self.pending.get(uid)
        if pod is None or (not node and uid not in self.promises):
            return
        if node:
            self.promises[uid] = node
        else:
            del self.promises[uid]
        self._program.tell({"promise": {"pod": _named(pod), "node": node}})


def _named(pod: Pod) -> Pod:
    """With the namespace that its key has."""
    if pod.metadata.namespace:
        return pod
    return replace(pod, metadata=replace(pod.metadata, namespace="default"))


def _with_namespace(value: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = value.get("metadata") or {}
    if metadata.get("namespace"):
        return value
    return {**value, "metadata": {**metadata, "namespace": "default"}}
