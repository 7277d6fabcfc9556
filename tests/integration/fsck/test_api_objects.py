"""What fsck sees of a Kubernetes cluster."""

import pytest

from dsched.cluster.kubernetes.access import Access
from dsched.errors import ClusterUnavailable
from dsched.fsck.api_objects import ApiObjects
from dsched.fsck.findings import Kind
from dsched.model.meta import NodeName, PodKey
from tests.integration.cluster.kubernetes.fake_api import FakeApi
from tests.manifests import Json, node_manifest, pod_manifest


@pytest.fixture
def objects(api: FakeApi) -> ApiObjects:
    api.put("nodes", node_manifest("n1", cpu="4"), node_manifest("n2"))
    mirror = pod_manifest("default/mirror", nodeName="n1", schedulerName="dsched")
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    api.put(
        "pods",
        pod_manifest("default/ours", nodeName="n1", schedulerName="dsched"),
        pod_manifest("default/theirs", nodeName="n1", schedulerName="another"),
        mirror,
        pod_manifest("default/waits", schedulerName="dsched"),
        broken(),
    )
    return ApiObjects(Access(api.kubeconfig()), frozenset({"dsched"}))


def broken() -> Json:
    """A pod that means nothing: its containers are a number."""
    return {"metadata": {"name": "broken", "namespace": "default"}, "spec": {"containers": 5}}


def test_whose_pods_are_where(api: FakeApi, objects: ApiObjects) -> None:
    seen = objects.everything()
    assert {pod.key: (pod.node, pod.by_manifest, pod.scheduler) for pod in seen.pods.values()} == {
        "default/ours": ("n1", False, "dsched"),
        "default/theirs": ("n1", True, "another"),
        "default/mirror": ("n1", True, "dsched"),
        "default/waits": ("", False, "dsched"),
    }
    assert list(seen.broken) == [(Kind.POD, "default/broken")]
    assert seen.nodes[NodeName("n1")].allocatable["cpu"] == 4000
    assert seen.version == max(pod.version for pod in seen.pods.values())
    assert not seen.told


def test_some_of_them(api: FakeApi, objects: ApiObjects) -> None:
    keys = [PodKey(f"default/{name}") for name in ("broken", "gone", "ours")]
    seen = objects.some(keys, [NodeName("n2"), NodeName("n3")])
    assert list(seen.pods) == ["default/ours"]
    assert list(seen.nodes) == ["n2"]
    assert list(seen.broken) == [(Kind.POD, "default/broken")]


def test_what_may_not_be_read_is_said(api: FakeApi, objects: ApiObjects) -> None:
    api.fault("GET", "/api/v1/nodes", status=403)
    with pytest.raises(ClusterUnavailable, match="nodes cannot be read"):
        objects.everything()
    api.fault("GET", "/pods/ours", status=403)
    with pytest.raises(ClusterUnavailable, match="pod default/ours cannot be read"):
        objects.some([PodKey("default/ours")], [])
