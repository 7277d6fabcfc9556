"""The end of a promise concerns plugins for which promised pods count like those on nodes, as upstream since v1.36.

Source: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go ``isSchedulableAfterPodChange``;
podtopologyspread/plugin.go ``involvedInTopologySpreading``.
"""

from typing import Any

import pytest

from dsched.clock import ManualClock
from dsched.framework.interface import ClusterEvent
from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NodeName
from dsched.model.pod import Pod
from dsched.scheduler.hints import Hints
from dsched.scheduler.nominations import released
from dsched.scheduler.ports import QueueName
from dsched.scheduler.queue import Backoff, PendingPods
from tests.builders import make_pod
from tests.unit.framework.frameworks import NAME, default_framework

WEB = {"matchLabels": {"app": "web"}}
TERM = {"topologyKey": "zone", "labelSelector": WEB}
APART = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}}
SPREAD = {
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB}
    ]
}
PROMISED = "shop/promised"


def ended(promised: Pod) -> ClusterEvent:
    return released(PodInfo(promised), NodeName("n1"))


def helped(plugin: str, pod: Pod, event: ClusterEvent) -> bool:
    framework = default_framework()
    pending = PendingPods(ManualClock(), Backoff())
    queued = pending.add(PodInfo(pod), framework)
    pending.requeued(queued, framework, frozenset({plugin}))
    pending.placed(queued, QueueName.UNSCHEDULABLE)
    return Hints({NAME: framework}).helped(event, pending) == [queued]


@pytest.mark.parametrize(("plugin", "spec"), [("InterPodAffinity", APART), ("PodTopologySpread", SPREAD)])
def test_a_promise_of_a_pod_that_is_meant_ends(plugin: str, spec: Any) -> None:
    waiting = make_pod("shop/waiting", spec=spec)
    assert helped(plugin, waiting, ended(make_pod(PROMISED, labels={"app": "web"})))
    assert not helped(plugin, waiting, ended(make_pod(PROMISED, labels={"app": "other"})))
    assert not helped(plugin, waiting, ended(make_pod("elsewhere/promised", labels={"app": "web"})))


def test_a_promise_of_a_pod_that_repels_this_one_ends() -> None:
    waiting = make_pod("shop/waiting", labels={"app": "web"})
    assert helped("InterPodAffinity", waiting, ended(make_pod(PROMISED, spec=APART)))
    assert not helped("InterPodAffinity", make_pod("shop/waiting"), ended(make_pod(PROMISED, spec=APART)))
