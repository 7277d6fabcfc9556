"""Whom kube-scheduler tries again: the hints in which dsched means to differ from it, as it has them.

docs/architecture.md, "Differs from kube-scheduler", says which these are.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from dsched.framework.interface import ClusterEvent, Hint, Resource
from dsched.framework.pod_info import PodInfo
from dsched.model.pod import Pod, PodAffinityTerm
from dsched.plugins.inter_pod_affinity import plugin as inter_pod_affinity
from dsched.plugins.inter_pod_affinity.plugin import InterPodAffinity
from dsched.plugins.pod_topology_spread.plugin import PodTopologySpread

NOWHERE = ["-"]
"""Namespaces, of which there are none."""


def until_1_35(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have InterPodAffinity and PodTopologySpread try again whom they do until 1.35."""
    spread = PodTopologySpread._after_pod_change

    def spread_on_nodes(plugin: PodTopologySpread, pod: Pod, event: ClusterEvent) -> Hint:
        return Hint.SKIP if event.resource is Resource.ASSIGNED_POD and _waits(event) else spread(plugin, pod, event)

    monkeypatch.setattr(InterPodAffinity, "_after_pod_change", _after_pod_change)
    monkeypatch.setattr(inter_pod_affinity, "_after_own_update", lambda *_: Hint.SKIP)
    monkeypatch.setattr(PodTopologySpread, "_after_pod_change", spread_on_nodes)


def of_unlabelled_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have InterPodAffinity know no labels of namespaces when it is asked whom to try again, as no version does."""
    ours = InterPodAffinity._after_pod_change

    def theirs(plugin: InterPodAffinity, pod: Pod, event: ClusterEvent) -> Hint:
        blind = ClusterEvent(event.resource, event.action, _unselected(event.old), _unselected(event.new))
        return ours(plugin, _unselected(pod), blind)

    monkeypatch.setattr(InterPodAffinity, "_after_pod_change", theirs)


def _unselected(pod: Any) -> Any:
    """The pod without namespaces that its terms select by labels."""
    affinity = None if pod is None else pod.spec.affinity
    if affinity is None:
        return pod
    sides = {}
    for side in ("pod_affinity", "pod_anti_affinity"):
        if (found := getattr(affinity, side)) is not None:
            terms = [_blind(term) for term in found.required_during_scheduling_ignored_during_execution]
            sides[side] = replace(found, required_during_scheduling_ignored_during_execution=terms)
    return replace(pod, spec=replace(pod.spec, affinity=replace(affinity, **sides)))


def _blind(term: PodAffinityTerm) -> PodAffinityTerm:
    selector = term.namespace_selector
    if selector is None or not selector.match_labels:  # others may admit what has no labels
        return term
    return replace(term, namespace_selector=None, namespaces=term.namespaces or NOWHERE)


def _waits(event: ClusterEvent) -> bool:
    """Whether it is about a pod that has no node yet, but was promised one."""
    return any(pod is not None and not pod.node_name for pod in (event.old, event.new))


def _after_pod_change(plugin: InterPodAffinity, pod: Pod, event: ClusterEvent) -> Hint:
    """Source: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go ``isSchedulableAfterPodChange``, v1.34."""
    if _waits(event):
        return Hint.SKIP
    terms = plugin._incoming.of(PodInfo(pod), plugin._handle.snapshot)
    if terms.problems:
        return Hint.QUEUE

    def needed(other: Pod | None) -> bool:
        return other is not None and terms.near is not None and terms.near.admits_pod(other)

    def apart(other: Pod | None) -> bool:
        return other is not None and bool(terms.apart) and all(query.admits_pod(other) for _, query in terms.apart)

    helps = (not needed(event.old) and needed(event.new)) or (apart(event.old) and not apart(event.new))
    return Hint.QUEUE if helps else Hint.SKIP
