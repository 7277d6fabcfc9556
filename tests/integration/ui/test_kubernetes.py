"""The page about a system that schedules a Kubernetes cluster: it asks the API server for little."""

import pytest

from dsched import config
from dsched.cluster import opening
from dsched.cluster.opening import Chosen, Kind
from dsched.model.meta import NodeName
from dsched.state.client import Store
from dsched.ui import nodes
from tests.integration.cluster.kubernetes.fake_api import FakeApi
from tests.manifests import node_manifest, pod_manifest


def test_only_the_nodes_own_pods_are_asked_for(api: FakeApi, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    api.put("nodes", node_manifest("n1"), node_manifest("n2"))
    api.put("pods", *(pod_manifest(f"shop/{name}", nodeName=node) for name, node in (("web", "n1"), ("db", "n2"))))
    api.fault("GET", r"/pods\?(?!.*spec\.nodeName%3Dn1)", status=400)
    monkeypatch.setenv(opening.KUBECONFIG, api.kubeconfig())
    monkeypatch.setenv(opening.CONTEXT, "")
    configured = config.default()
    chosen = Chosen(Kind.KUBERNETES, api.kubeconfig())
    cluster = opening.open_cluster(chosen, store, configured)
    try:
        found = nodes.read(store, configured, cluster, NodeName("n1"))
    finally:
        cluster.close()
    assert [each.key for each in found.pods] == ["shop/web"]
    assert dict(api.requests) == {
        ("GET", "/api/v1/nodes/n1"): 1,
        ("GET", "/api/v1/pods"): 1,
        ("GET", "/api/v1/namespaces/shop/pods/web"): 1,
        ("GET", "/apis/resource.k8s.io/v1/resourceslices"): 2,
    }
