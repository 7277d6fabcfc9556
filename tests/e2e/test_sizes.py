"""The benchmark of sizes measures whole systems, here a tiny one. Nothing is said about how much they take."""

from benchmarks import kubernetes, sizes
from tests.e2e.apiserver import ApiServer
from tests.e2e.cluster import Cluster


def test_every_process_is_measured_while_pods_come(api_server: ApiServer, cluster: Cluster):
    sizes.fill(api_server, 2)
    rows, pace = sizes.run(api_server, kubernetes.account(api_server), 2, "distributed", 1.0)
    assert [row.process for row in rows] == ["Redis", "leader", "evaluator 1", "evaluator 2", "binder 1", "binder 2"]
    assert all(row.memory_mib > 1 for row in rows)
    assert all(row.cores >= 0 for row in rows)
    assert 0 < pace.bound <= pace.came
    pods = cluster.core.list_namespaced_pod("default").items
    assert all(pod.spec.node_name for pod in pods)
    names = {pod.metadata.name.partition("-")[0] for pod in pods}
    assert names == {"placed", "first", "then"}
