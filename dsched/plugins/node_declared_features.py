"""NodeDeclaredFeatures: a pod that needs a feature of the kubelet fits only nodes that declare it.

Source: kubernetes v1.37 pkg/scheduler/framework/plugins/nodedeclaredfeatures/nodedeclaredfeatures.go;
k8s.io/component-helpers v0.37 nodedeclaredfeatures/features, and of the versions before.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from dsched.arithmetic import matching
from dsched.config import Features
from dsched.config.feature_gates import UNSAID
from dsched.framework import interface
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import (
    Action,
    ClusterEvent,
    Hint,
    PreFilterResult,
    Registration,
    Resource,
    Rows,
    Scope,
    Status,
    Verdict,
)
from dsched.framework.pod_info import PodInfo
from dsched.framework.runners import row_numbers
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model.pod import Pod, PodSpec

ERR_REASON = "node(s) didn't match Pod's required features"
_UNDECLARED = interface.unresolvable(ERR_REASON)


def _restarts_all(spec: PodSpec) -> bool:
    rules = chain.from_iterable(each.restart_policy_rules for each in (*spec.containers, *spec.init_containers))
    return any(rule.action == "RestartAllContainers" for rule in rules)


def _host_network_with_users(spec: PodSpec) -> bool:
    return spec.host_network and spec.host_users is False


def _mount_options(spec: PodSpec) -> bool:
    containers = (*spec.containers, *spec.init_containers, *spec.ephemeral_containers)
    return any(mount.bind_mount_options for container in containers for mount in container.volume_mounts)


INFERRED: Mapping[str, tuple[int, Callable[[PodSpec], bool]]] = {
    "RestartAllContainersOnContainerExits": (35, _restarts_all),
    "UserNamespacesHostNetworkSupport": (36, _host_network_with_users),
    "VolumeBindMountOptions": (37, _mount_options),
}
"""Feature to the minor version since which it is looked for, and whether a pod needs it. The others that kubelets
declare matter to updates of a pod alone."""


@dataclass(frozen=True, slots=True)
class _Needed:
    features: frozenset[str]


class NodeDeclaredFeatures:
    name = "NodeDeclaredFeatures"
    label_blind = True
    claim_blind = True
    takes_features = True
    hints_per_class = True
    filter_scope = Scope.NODE
    pre_filter_scope = Scope.NODE

    def __init__(self, args: Any, handle: interface.Handle, features: Features = UNSAID) -> None:
        on = features.enabled("NodeDeclaredFeatures")
        self._inferred = {name: needs for name, (minor, needs) in INFERRED.items() if on and features.since(minor)}

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status | None:
        """Skip for pods that need no feature."""
        needed = self._needed(pod.pod)
        if not needed:
            return interface.SKIP
        state.write(_Needed(needed))
        return None

    def filter_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> Verdict:
        kept = state.read(_Needed)
        needed = self._needed(pod.pod) if kept is None else kept.features
        if not needed:
            return Verdict.where(matching.none(rows), _UNDECLARED)
        declared = (table.nodes[row].status.declared_features for row in row_numbers(rows).tolist())
        lacking = np.fromiter((not needed.issubset(each) for each in declared), np.bool_, matching.count(rows))
        return Verdict.where(lacking, _UNDECLARED)

    def alike(self, pod: PodInfo, other: PodInfo) -> bool:
        """Whether both need the same."""
        return self._needed(pod.pod) == self._needed(other.pod)

    def events_to_register(self) -> Sequence[Registration]:
        return (
            Registration(Resource.NODE, frozenset({Action.ADD, Action.UPDATE}), _after_node_change, about_taints=False),
            Registration(Resource.POD, frozenset({Action.UPDATE}), self._after_own_update),
        )

    def _needed(self, pod: Pod) -> frozenset[str]:
        return frozenset(name for name, needs in self._inferred.items() if needs(pod.spec))

    def _after_own_update(self, pod: Pod, event: ClusterEvent) -> Hint:
        """The pod needs others than before."""
        return Hint.SKIP if self._needed(event.old) == self._needed(event.new) else Hint.QUEUE


def _after_node_change(pod: Pod, event: ClusterEvent) -> Hint:
    """A node came, or declares others."""
    if event.old is None:
        return Hint.QUEUE
    same = event.old.status.declared_features == event.new.status.declared_features
    return Hint.SKIP if same else Hint.QUEUE


_roles: tuple[type[interface.PreFilterPlugin], type[interface.TableFilterPlugin]] = (
    NodeDeclaredFeatures,
    NodeDeclaredFeatures,
)
_enqueue: type[interface.EnqueueExtensions] = NodeDeclaredFeatures
_alike: type[interface.Alike] = NodeDeclaredFeatures
