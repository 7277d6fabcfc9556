"""DynamicResources, as far as pods without resource claims meet it: the words that PostFilter adds.

Claims are not evaluated: pods that have some are refused by `UnsupportedFields`, whether a profile names this plugin or
not.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go.
"""

from typing import Any

from dsched.config import Features
from dsched.config.feature_gates import UNSAID
from dsched.engine.failed_attempt import FailedAttempt
from dsched.framework import interface
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import SKIP, Code, PostFilterResult, PreFilterResult, Scope, Status, unschedulable
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot


class _NoClaims:
    """PreFilter was called, and the pod has no claims."""


class DynamicResources:
    name = "DynamicResources"
    takes_features = True
    pre_filter_scope = Scope.NODE

    def __init__(self, args: Any, handle: Any, features: Features = UNSAID) -> None:
        self._silent = features.since(37)

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status | None:
        state.write(_NoClaims())
        return SKIP

    def post_filter(self, attempt: FailedAttempt) -> PostFilterResult:
        """Where an earlier PreFilter plugin ended the attempt, this one has not run: upstream fails to read what it
        would have written, and says so.

        Source: ``PostFilter``, ``getStateData``.
        """
        if attempt.pod.pod.spec.resource_claims:
            return PostFilterResult(None, unschedulable())
        if attempt.state.read(_NoClaims) is None:
            return PostFilterResult(None, Status(Code.ERROR, ("not found",)))
        return PostFilterResult(None, unschedulable(*([] if self._silent else ["no new claims to deallocate"])))


_roles: tuple[type[interface.PreFilterPlugin], type[interface.PostFilterPlugin]] = DynamicResources, DynamicResources
