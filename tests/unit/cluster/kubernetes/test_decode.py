"""Objects as an API server sends them, with much that scheduling does not read."""

import itertools
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.cluster.kubernetes import resources
from dsched.cluster.kubernetes.http import pages
from dsched.cluster.kubernetes.http.connection import ChunkDecoder
from dsched.model import meta
from dsched.model.node import Node
from dsched.model.pod import Pod

POD: dict[str, Any] = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {
        "name": "web-7d4b9",
        "generateName": "web-",
        "namespace": "shop",
        "uid": "32394af0-62a8-4bf6-b07f-628d0c3ffeec",
        "resourceVersion": "824",
        "generation": 2,
        "creationTimestamp": "2026-11-21T19:15:08Z",
        "deletionTimestamp": None,
        "labels": {"app": "web", "pod-template-hash": "7d4b9"},
        "annotations": None,
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web-7d4b9",
                "uid": "1",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:metadata": {"f:labels": {".": {}}}}}],
    },
    "spec": {
        "volumes": [
            {
                "name": "kube-api-access",
                "projected": {"sources": [{"serviceAccountToken": {"expirationSeconds": 3607}}], "defaultMode": 420},
            }
        ],
        "containers": [
            {
                "name": "c",
                "image": "nginx:1.27",
                "ports": [{"containerPort": 80, "protocol": "TCP", "name": "http"}],
                "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
                "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
                "livenessProbe": {"httpGet": {"path": "/", "port": "http"}},
                "securityContext": {"capabilities": {"drop": ["ALL"]}},
                "terminationMessagePath": "/dev/termination-log",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "dsched",
        "tolerations": [
            {
                "key": "node.kubernetes.io/not-ready",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
        ],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "somethingOfTomorrow": {"a": [1, 2, {"b": None}]},
    },
    "status": {"phase": "Pending", "qosClass": "Burstable", "conditions": None},
}
NODE: dict[str, Any] = {
    "metadata": {
        "name": "n1",
        "uid": "u",
        "resourceVersion": "7",
        "labels": {"zone": "a"},
        "annotations": {"ttl": "0"},
    },
    "spec": {"podCIDR": "10.0.0.0/24", "taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": None}]},
    "status": {
        "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
        "allocatable": {"cpu": "7910m", "memory": "30Gi", "pods": "110", "nvidia.com/gpu": "1"},
        "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-21T19:15:08Z"}],
        "addresses": [{"type": "InternalIP", "address": "10.1.0.4"}],
        "images": [{"names": ["nginx:1.27"], "sizeBytes": 72950530}],
        "nodeInfo": {"kubeletVersion": "v1.34.1"},
    },
}


def test_a_pod() -> None:
    known = resources.decode(resources.POD, json.dumps(POD).encode())
    assert (known.key, known.uid, known.version) == ("shop/web-7d4b9", POD["metadata"]["uid"], "824")
    pod = known.object
    assert isinstance(pod, Pod)
    assert pod.spec.scheduler_name == "dsched"
    assert pod.spec.containers[0].resources.requests == {"cpu": "100m", "memory": "128Mi"}
    assert pod.spec.tolerations[0].toleration_seconds == 300
    assert pod.metadata.owner_references[0].controller
    assert (pod.metadata.annotations, pod.status.conditions, pod.deleting) == ({}, [], False)


def test_a_node() -> None:
    node = resources.decode(resources.NODE, json.dumps(NODE).encode()).object
    assert isinstance(node, Node)
    assert node.status.allocatable["nvidia.com/gpu"] == "1"
    assert node.spec.taints[0].key == "k"
    assert node.status.images[0].size_bytes == 72950530
    assert node.resizes_evict
    spec = {**NODE["spec"], "podPreemptionPolicy": {"disableResizePreemption": ["autoscaler"]}}
    forbidding = resources.decode(resources.NODE, json.dumps({**NODE, "spec": spec}).encode()).object
    assert isinstance(forbidding, Node) and not forbidding.resizes_evict
    assert not resources.same(node, forbidding)


def test_other_objects_lose_what_is_large_and_not_read() -> None:
    value = {
        "metadata": {"name": "rs", "namespace": "shop", "uid": "u", "resourceVersion": "3", "managedFields": [{}]},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": {"spec": {"containers": []}}},
        "status": {"replicas": 3},
    }
    known = resources.decode(resources.BY_KIND["ReplicaSet"], json.dumps(value).encode())
    assert known.key == "shop/rs"
    assert known.object == {
        "metadata": {"name": "rs", "namespace": "shop", "uid": "u", "resourceVersion": "3"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}},
    }


@pytest.mark.parametrize("raw", [b"{}", b'{"metadata":null}', b'{"metadata":{"name":""}}', b"[]", b'"text"'])
def test_what_is_no_object(raw: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        resources.decode(resources.BY_KIND["Service"], raw)


def test_paths() -> None:
    assert resources.POD.path("shop/web") == "/api/v1/namespaces/shop/pods/web"
    assert resources.NODE.path("n1") == "/api/v1/nodes/n1"
    assert resources.BY_KIND["ReplicaSet"].collection == "/apis/apps/v1/replicasets"


def changed(**parts: dict[str, Any]) -> Pod:
    return meta.from_builtins({**POD, **{part: {**POD[part], **fields} for part, fields in parts.items()}}, Pod)


BEFORE = changed()


@pytest.mark.parametrize(
    "after",
    [
        changed(metadata={"resourceVersion": "900", "generation": 3}),
        changed(status={"conditions": [{"type": "Ready", "status": "True"}], "podIP": "10.0.0.4"}),
    ],
)
def test_changes_that_scheduling_cannot_see(after: Pod) -> None:
    assert resources.same(BEFORE, after)
    assert not resources.only_bound(BEFORE, after)


@pytest.mark.parametrize(
    "after",
    [
        changed(metadata={"labels": {"app": "api"}}),
        changed(metadata={"deletionTimestamp": "2026-11-21T19:15:08Z"}),
        changed(spec={"priority": 1}),
        changed(spec={"schedulingGates": [{"name": "g"}]}),
        changed(status={"phase": "Running"}),
        changed(status={"startTime": "2026-11-21T19:15:08Z"}),
        changed(status={"nominatedNodeName": "n1"}),
        changed(status={"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "2"}}]}),
        changed(status={"conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}),
        changed(status={"conditions": [{"type": "PodResizePending", "reason": "Deferred"}]}),
        changed(status={"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "web-gpu-x2x4b"}]}),
        changed(status={"extendedResourceClaimStatus": {"resourceClaimName": "web-extended-resources-x2x4b"}}),
        changed(spec={"nodeName": "n1", "priority": 1}),
    ],
)
def test_changes_that_scheduling_sees(after: Pod) -> None:
    assert not resources.same(BEFORE, after)
    assert not resources.only_bound(BEFORE, after)


def test_a_pod_that_was_only_bound() -> None:
    bound = changed(spec={"nodeName": "n1"}, status={"conditions": [{"type": "PodScheduled", "status": "True"}]})
    assert resources.only_bound(BEFORE, bound)
    assert not resources.only_bound(bound, bound)
    promised = changed(status={"nominatedNodeName": "n1"})
    assert resources.only_bound(promised, bound), "that the promise is gone with it is no news"


# -- what comes over the wire, however it is cut -----------------------------------------------------------------------


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:stop] for start, stop in itertools.pairwise(edges)]


@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=8),
    st.lists(st.integers(0, 10_000), max_size=12),
    st.booleans(),
)
def test_chunks(payloads: list[bytes], places: list[int], extended: bool) -> None:
    mark = b";name=value" if extended else b""
    sent = b"".join(b"%x%s\r\n%s\r\n" % (len(payload), mark, payload) for payload in payloads) + b"0\r\n\r\n"
    decoder = ChunkDecoder()
    assert b"".join(decoder.feed(part) for part in cut(sent, places)) == b"".join(payloads)
    assert decoder.done


def test_what_is_not_chunked() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        ChunkDecoder().feed(b"<html>\r\n")


@given(st.lists(st.integers(0, 10_000), max_size=12), st.integers(0, 5))
def test_frames(places: list[int], count: int) -> None:
    sent = b"".join(b'{"type":"ADDED","object":{"n":%d}}\n' % number for number in range(count))
    found = [frame for frames in pages.frames(cut(sent, places)) for frame in frames]
    assert [bytes(frame.object) for frame in found] == [b'{"n":%d}' % number for number in range(count)]
