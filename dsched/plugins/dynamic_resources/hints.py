"""Events that may help a pod which DynamicResources rejected.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go ``EventsToRegister``.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from dsched.config import Features
from dsched.framework.interface import Action, ClusterEvent, Hint, Registration, Resource
from dsched.framework.snapshot import Snapshot
from dsched.model.devices import DeviceTaintRule
from dsched.model.meta import decoded
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.plugins.dynamic_resources import extended_resources, objects, pod_claims
from dsched.plugins.dynamic_resources.allocation import features as allocator_features
from dsched.plugins.dynamic_resources.allocation.slices import tainted
from dsched.plugins.dynamic_resources.inventory import PREEMPTION
from dsched.plugins.dynamic_resources.pod_claims import PodClaims

_COME_OR_CHANGED = frozenset({Action.ADD, Action.UPDATE})
_ANY = frozenset({Action.ADD, Action.UPDATE, Action.DELETE})

Claims = Callable[[Pod], PodClaims]
"""The claims of a pod as they are now."""


def registrations(snapshot: Callable[[], Snapshot], features: Features) -> Sequence[Registration]:
    """The events, for a version of kube-scheduler."""

    def claims(pod: Pod) -> PodClaims:
        find = objects.of(snapshot()).claims.get
        groups = features.enabled(pod_claims.GROUPS)
        return pod_claims.claims_of(pod, find, capital_pod=features.since(36), groups=groups)

    def without_devices(pod: Pod, event: ClusterEvent) -> Hint:
        return _hint(_held_only_promises(event.old, claims))

    of_claims = _ANY if features.since(37) else _COME_OR_CHANGED
    gone = frozenset({Action.DELETE})
    evicted = (Registration(Resource.ASSIGNED_POD, gone, without_devices),) if features.enabled(PREEMPTION) else ()
    ruled = allocator_features.of(features).device_taint_rules
    rules = (Registration(Resource.DEVICE_TAINT_RULE, _ANY, _AfterRuleChange(snapshot)),) if ruled else ()
    return (
        *evicted,
        Registration(Resource.NODE, _COME_OR_CHANGED, _after_node_change, about_taints=False),
        Registration(Resource.RESOURCE_CLAIM, of_claims, partial(_after_claim_change, claims), claim=_claim_to_name),
        Registration(Resource.POD, frozenset({Action.UPDATE}), partial(_after_pod_change, claims)),
        Registration(Resource.DEVICE_CLASS, _COME_OR_CHANGED),
        Registration(Resource.RESOURCE_SLICE, _COME_OR_CHANGED),
        *rules,
    )


def _hint(helps: bool) -> Hint:
    return Hint.QUEUE if helps else Hint.SKIP


def _after_node_change(pod: Pod, event: ClusterEvent) -> Hint:
    """A node came, or has other labels or other resources."""
    old: Node | None = event.old
    new: Node = event.new
    if old is None:
        return Hint.QUEUE
    same_labels = old.metadata.labels == new.metadata.labels
    return _hint(not same_labels or old.status.allocatable != new.status.allocatable)


def _after_claim_change(claims: Claims, pod: Pod, event: ClusterEvent) -> Hint:
    """A claim of the pod came or has another status; or any claim has given its devices back.

    Source: ``isSchedulableAfterClaimChange``.
    """
    old: Mapping[str, Any] | None = event.old
    new: Mapping[str, Any] | None = event.new
    if new is None:
        return _hint(old is not None and _allocated(old))
    found = claims(pod)
    if found.problem:
        return Hint.SKIP
    if old is not None and _allocated(old) and not _allocated(new):
        return Hint.QUEUE
    if all(claim.uid != new["metadata"].get("uid") for claim in found.claims):
        return Hint.SKIP
    return _hint(old is None or (old.get("status") or {}) != (new.get("status") or {}))


def _claim_to_name(event: ClusterEvent) -> str | None:
    """The claim, unless it has given devices back, which may help any pod. To others `_after_claim_change` says no."""
    old: Mapping[str, Any] | None = event.old
    new: Mapping[str, Any] | None = event.new
    if new is None or (old is not None and _allocated(old) and not _allocated(new)):
        return None
    return f"{new['metadata'].get('namespace', '')}/{new['metadata']['name']}"


def _after_pod_change(claims: Claims, pod: Pod, event: ClusterEvent) -> Hint:
    """The claims that the pod waited for are named in its status now.

    Source: ``isSchedulableAfterTargetPodUpdate``.
    """
    changed: Pod = event.new
    if changed.uid != pod.uid:
        return Hint.SKIP
    before: Pod | None = event.old
    if before is not None and before.status.resource_claim_statuses == changed.status.resource_claim_statuses:
        return Hint.SKIP
    return _hint(not claims(changed).problem)


class _AfterRuleChange:
    """The rule gives a device of a slice another taint, or takes one from it: kube-scheduler hears of rules as changes
    of slices.

    Source: k8s.io/dynamic-resource-allocation resourceslice/tracker/tracker.go ``deviceTaintAdd``,
    ``deviceTaintUpdate``, ``syncSlice``.
    """

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot
        self._asked: ClusterEvent | None = None
        self._helps = False

    def __call__(self, pod: Pod, event: ClusterEvent) -> Hint:
        if event is not self._asked:  # the same for every pod, and all slices to look at
            self._asked, self._helps = event, self._retaints(event)
        return _hint(self._helps)

    def _retaints(self, event: ClusterEvent) -> bool:
        old, new = (None if raw is None else decoded(raw, DeviceTaintRule) for raw in (event.old, event.new))
        same_taint = old is not None and new is not None and _taint(event.old) == _taint(event.new)
        for record in objects.of(self._snapshot()).slices.every():
            before, after = (set() if rule is None else set(tainted(rule, record)) for rule in (old, new))
            if (before != after) if same_taint else (before or after):
                return True
        return False


def _taint(rule: Mapping[str, Any]) -> Any:
    """As it is written: the time from which it holds counts as well."""
    return (rule.get("spec") or {}).get("taint")


def _held_only_promises(pod: Pod, claims: Claims) -> bool:
    """Whether a pod that is gone was promised devices, which no claim shows: nothing else tells that they are free."""
    if pod.spec.resource_claims:
        return all(claim.allocation is None for claim in claims(pod).claims)
    return bool(extended_resources.requested(pod)) and pod.status.extended_resource_claim_status is None


def _allocated(claim: Mapping[str, Any]) -> bool:
    return bool((claim.get("status") or {}).get("allocation"))
