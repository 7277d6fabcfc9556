"""UnsupportedFields: refuses pods whose placement hangs on a plugin that is not there.

Ignoring such a field would place the pod wrongly and silently, so the pod is refused, and says why.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dsched.framework import interface
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import SKIP, Action, PreFilterResult, Registration, Resource, Scope, Status
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.pod import PodSpec

NAME = "UnsupportedFields"


FIELDS: dict[str, tuple[str, Callable[[PodSpec], bool]]] = {
    "DynamicResources": ("spec.resourceClaims", lambda spec: bool(spec.resource_claims)),
    "GangScheduling": (
        "spec.schedulingGroup",
        lambda spec: spec.scheduling_group is not None or spec.workload_ref is not None,
    ),
}
"""Plugin to the field that it reads, and whether a pod uses it."""


class UnsupportedFields:
    name = NAME
    label_blind = True
    claim_blind = True
    hints_per_class = True
    pre_filter_scope = Scope.NODE

    def __init__(self, args: Any, handle: Any) -> None:
        """``args["plugins"]`` has the plugins that are not there, and what is said of each."""
        self._why: Mapping[str, str] = args["plugins"]
        self._checked = {plugin: check for plugin, check in FIELDS.items() if plugin in self._why}

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status | None:
        used = [
            f"{field} needs the plugin {plugin}, which {self._why[plugin]}"
            for plugin, (field, uses) in self._checked.items()
            if uses(pod.pod.spec)
        ]
        return interface.unresolvable(*used) if used else SKIP

    def events_to_register(self) -> Sequence[Registration]:
        """Nothing but a change of the pod itself can help."""
        return (Registration(Resource.POD, frozenset({Action.UPDATE})),)


_role: type[interface.PreFilterPlugin] = UnsupportedFields
