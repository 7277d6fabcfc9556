"""Whom older releases try again: the hints in which dsched means to differ from them, as they have them.

docs/architecture.md, "Differs from kube-scheduler", says which these are.
"""

import pytest

from dsched.framework.interface import ClusterEvent, Hint, Resource
from dsched.framework.pod_info import PodInfo
from dsched.model.pod import Pod
from dsched.plugins.inter_pod_affinity import plugin as inter_pod_affinity
from dsched.plugins.inter_pod_affinity.plugin import InterPodAffinity
from dsched.plugins.pod_topology_spread.plugin import PodTopologySpread


def until_1_35(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have InterPodAffinity and PodTopologySpread try again whom they do until 1.35."""
    spread = PodTopologySpread._after_pod_change

    def spread_on_nodes(plugin: PodTopologySpread, pod: Pod, event: ClusterEvent) -> Hint:
        return Hint.SKIP if event.resource is Resource.ASSIGNED_POD and _waits(event) else spread(plugin, pod, event)

    monkeypatch.setattr(InterPodAffinity, "_after_pod_change", _after_pod_change)
    monkeypatch.setattr(inter_pod_affinity, "_after_own_update", lambda *_: Hint.SKIP)
    monkeypatch.setattr(PodTopologySpread, "_after_pod_change", spread_on_nodes)


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
