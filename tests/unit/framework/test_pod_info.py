"""What scheduling derives from a pod."""

from typing import Any

import pytest

from dsched.framework.pod_info import HostPort, PodInfo, host_ports
from dsched.model import meta
from dsched.model.pod import Pod
from tests.builders import make_container, make_pod


def test_demand() -> None:
    """cpu 300m + 200m sidecar; memory 1Gi + 200Mi, which scores count for the sidecar without a request."""
    pod = make_pod(
        containers=[make_container("app", "300m", "1Gi", ports=[80])],
        init=[make_container("log", "200m", sidecar=True, ports=["81/UDP"])],
    )
    demand = PodInfo(pod).demand
    assert demand.requests == {"cpu": 500, "memory": 2**30}
    assert (demand.nonzero_cpu, demand.nonzero_memory) == (500, 2**30 + 200 * 2**20)
    assert set(demand.ports) == {HostPort("0.0.0.0", "TCP", 80), HostPort("0.0.0.0", "UDP", 81)}


def test_ports_of_init_containers_are_not_taken() -> None:
    pod = make_pod(init=[make_container("setup", ports=[80])], ports=["127.0.0.1:82"])
    assert host_ports(pod.spec) == (HostPort("127.0.0.1", "TCP", 82),)


def test_a_resize_under_way_counts_for_this_pod_alone() -> None:
    resized: dict[str, Any] = {"containerStatuses": [{"name": "app", "resources": {"requests": {"cpu": "3"}}}]}
    plain, larger = PodInfo(make_pod("shop/a", cpu="1")), PodInfo(make_pod("shop/b", cpu="1", status=resized))
    assert plain.class_key == larger.class_key
    assert (plain.demand.requests["cpu"], larger.demand.requests["cpu"]) == (1000, 3000)


@pytest.mark.parametrize("controller", [True, False])
def test_the_controller_is_part_of_the_class(controller: bool) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": controller}
    owned = meta.from_builtins({"metadata": {"name": "a", "namespace": "shop", "ownerReferences": [owner]}}, Pod)
    alone = meta.from_builtins({"metadata": {"name": "a", "namespace": "shop"}}, Pod)
    assert (PodInfo(owned).class_key != PodInfo(alone).class_key) is controller
