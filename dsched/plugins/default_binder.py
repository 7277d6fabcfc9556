"""DefaultBinder: binds a pod to its node through the cluster.

Source: pkg/scheduler/framework/plugins/defaultbinder/default_binder.go.
"""

from typing import Any, ClassVar, Protocol

from dsched.framework import interface
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Status
from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NodeName


class BinderHandle(Protocol):
    """What a binder process gives to its plugins."""

    def bind(self, pod: PodInfo, node: NodeName) -> Status | None:
        """Bind one pod through the cluster; None when it is bound to the node, by this call or an earlier one."""
        ...


class DefaultBinder:
    name = "DefaultBinder"
    binds_through_cluster: ClassVar[bool] = True
    """Binding is one call to the cluster and nothing else, so a binder may bind the pods of a message together."""

    def __init__(self, args: Any, handle: Any) -> None:
        self._handle: BinderHandle = handle

    def bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status | None:
        return self._handle.bind(pod, node)


_role: type[interface.BindPlugin] = DefaultBinder
