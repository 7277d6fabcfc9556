"""Manifests that an API server takes, of each kind that standalone mode keeps, and changes to them: fields and items
that are gone, given twice, swapped or of another kind, and values just inside or outside of what is allowed."""

import copy
import random
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
Place = tuple[str | int, ...]

REQUIRED, PREFERRED = (f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred"))


def _object(kind: str, version: str, name: str, namespaced: bool = True, **fields: Any) -> Json:
    metadata = {"name": name, **({"namespace": "default"} if namespaced else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def _container(name: str, **fields: Any) -> Json:
    return {"name": name, "image": "pause", **fields}


def _pod(**spec: Any) -> Json:
    pod = _object("Pod", "v1", "web", spec={"containers": [_container("main")], **spec})
    pod["metadata"] |= {
        "labels": {"app": "web", "revision": "1", "pod": ""},
        "annotations": {"example.com/owner": "me"},
    }
    return pod


SELECTOR = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}, {"key": "x", "operator": "Exists"}],
}
POD_TERM = {
    "labelSelector": SELECTOR,
    "topologyKey": "zone",
    "namespaces": ["shop"],
    "namespaceSelector": {"matchLabels": {"team": "a"}},
    "matchLabelKeys": ["revision"],
    "mismatchLabelKeys": ["pod"],
}
POD_TERMS = {REQUIRED: [POD_TERM], PREFERRED: [{"weight": 5, "podAffinityTerm": POD_TERM}]}
NODE_TERM = {
    "matchExpressions": [
        {"key": "zone", "operator": "In", "values": ["a", "b"]},
        {"key": "cores", "operator": "Gt", "values": ["5"]},
    ],
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
}
NODE_TERMS = {"nodeSelectorTerms": [NODE_TERM]}
TOLERATIONS = [
    {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"},
    {"operator": "Exists"},
    {"key": "c", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
]
SPREAD = [
    {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": SELECTOR,
        "minDomains": 2,
        "nodeAffinityPolicy": "Honor",
        "nodeTaintsPolicy": "Ignore",
        "matchLabelKeys": ["revision"],
    },
    {"maxSkew": 2, "topologyKey": "host", "whenUnsatisfiable": "ScheduleAnyway"},
]
LARGE = {"cpu": "1", "memory": "1Gi", "example.com/gpu": "1", "ephemeral-storage": "1Gi", "hugepages-2Mi": "4Mi"}
VOLUMES = [
    {"name": "claimed", "persistentVolumeClaim": {"claimName": "data"}},
    {"name": "gce", "gcePersistentDisk": {"pdName": "p", "readOnly": True}},
    {"name": "ebs", "awsElasticBlockStore": {"volumeID": "v"}},
    {"name": "iscsi", "iscsi": {"iqn": "iqn.2001-04.com.example:x", "targetPortal": "1.2.3.4", "lun": 0}},
    {"name": "rbd", "rbd": {"monitors": ["m"], "pool": "rbd", "image": "i"}},
    {"name": "csi", "csi": {"driver": "disks.example.com"}},
    {"name": "azure", "azureDisk": {"diskURI": "https://a.blob.core.windows.net/b/c.vhd", "diskName": "n"}},
    {"name": "image", "image": {"reference": "r"}},
    {"name": "empty", "emptyDir": {}},
]
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [_container("main")]}}

PODS = [
    _pod(nodeSelector={"zone": "a"}, priorityClassName="system-node-critical", schedulerName="default-scheduler"),
    _pod(affinity={"nodeAffinity": {REQUIRED: NODE_TERMS, PREFERRED: [{"weight": 5, "preference": NODE_TERM}]}}),
    _pod(affinity={"podAffinity": POD_TERMS}),
    _pod(affinity={"podAntiAffinity": POD_TERMS}),
    _pod(tolerations=TOLERATIONS),
    _pod(topologySpreadConstraints=SPREAD),
    _pod(schedulingGates=[{"name": "a"}, {"name": "example.com/b"}]),
    _pod(nodeName="n1"),
    _pod(
        containers=[
            _container("main", resources={"requests": LARGE, "limits": {**LARGE, "cpu": "2", "memory": "2Gi"}}),
            _container("side", resources={"limits": {"cpu": "100m"}}),
        ],
        initContainers=[
            _container("first", restartPolicy="Always", resources={"requests": {"cpu": "1"}}),
            _container("second", resources={"limits": {"memory": "1Gi"}}),
        ],
    ),
    _pod(
        resources={"requests": {"cpu": "2", "memory": "2Gi"}, "limits": {"cpu": "4", "memory": "4Gi"}},
        containers=[_container("main", resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2"}})],
    ),
    _pod(
        containers=[
            _container(
                "main",
                ports=[
                    {"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1", "protocol": "TCP"},
                    {"containerPort": 81},
                    {"containerPort": 80, "hostPort": 8080, "protocol": "UDP"},
                ],
            )
        ],
        initContainers=[
            _container("first", restartPolicy="Always", ports=[{"containerPort": 80, "hostPort": 9090}]),
            _container("second", ports=[{"containerPort": 80, "hostPort": 9090}]),
        ],
    ),
    _pod(
        hostNetwork=True,
        containers=[_container("main", ports=[{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}])],
    ),
    _pod(
        resourceClaims=[
            {"name": "one", "resourceClaimName": "gpu"},
            {"name": "two", "resourceClaimTemplateName": "gpus"},
        ]
    ),
    _pod(schedulingGroup={"podGroupName": "training"}),
    _pod(volumes=VOLUMES),
]

OPAQUE = {"driver": "gpus.example.com", "parameters": {"sharing": 1}}
REQUESTS = [
    {
        "name": "one",
        "exactly": {
            "deviceClassName": "gpu",
            "selectors": [{"cel": {"expression": "device.driver == 'gpus.example.com'"}}],
            "allocationMode": "ExactCount",
            "count": 2,
            "tolerations": [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute"}],
            "capacity": {"requests": {"example.com/memory": "1"}},
        },
    },
    {
        "name": "other",
        "firstAvailable": [
            {"name": "all", "deviceClassName": "gpu", "allocationMode": "All"},
            {"name": "three", "deviceClassName": "gpu", "count": 3},
        ],
    },
]
CLAIM = {
    "devices": {
        "requests": REQUESTS,
        "constraints": [
            {"requests": ["one"], "matchAttribute": "example.com/switch"},
            {"requests": ["one", "other/all"], "matchAttribute": "example.com/rack"},
        ],
        "config": [{"requests": ["one"], "opaque": OPAQUE}],
    }
}
SHARED = {
    "memory": {
        "value": "10Gi",
        "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi", "max": "4Gi", "step": "1Gi"}},
    },
    "cores": {"value": "10", "requestPolicy": {"default": "1", "validValues": ["1", "2"]}},
}
ATTRIBUTES = {
    "index": {"int": 1},
    "example.com/model": {"string": "x"},
    "firmware": {"version": "1.2.3"},
    "healthy": {"bool": True},
}
DEVICES = [
    {
        "name": "gpu-0",
        "attributes": ATTRIBUTES,
        "capacity": {"memory": {"value": "1Gi"}, "cores": {"value": "8"}},
        "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
    },
    {
        "name": "gpu-1",
        "allowMultipleAllocations": True,
        "capacity": SHARED,
        "bindsToNode": True,
        "bindingConditions": ["ready"],
        "bindingFailureConditions": ["broken"],
    },
    {"name": "part-0", "consumesCounters": [{"counterSet": "whole", "counters": {"memory": {"value": "1"}}}]},
]
DRIVER = "gpus.example.com"
SLICES = [
    {"nodeName": "n1", "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1}, "devices": DEVICES},
    {
        "allNodes": True,
        "pool": {"name": "rack/1", "generation": 0, "resourceSliceCount": 1},
        "sharedCounters": [{"name": "whole", "counters": {"memory": {"value": "1"}, "cores": {"value": "2"}}}],
    },
    {
        "perDeviceNodeSelection": True,
        "pool": {"name": "fabric", "generation": 1, "resourceSliceCount": 2},
        "devices": [
            {"name": "a", "nodeName": "n1"},
            {"name": "b", "allNodes": True},
            {"name": "c", "nodeSelector": NODE_TERMS},
        ],
    },
]
RESOURCE, STORAGE = "resource.k8s.io/v1", "storage.k8s.io/v1"

OTHERS = [
    _object(
        "Node",
        "v1",
        "n1",
        False,
        spec={
            "unschedulable": True,
            "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}],
        },
        status={
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110", "example.com/gpu": "2"},
            "allocatable": {"cpu": "3500m", "memory": "8Gi", "pods": 110},
            "images": [{"names": ["pause"], "sizeBytes": 5}],
        },
    ),
    _object("Namespace", "v1", "shop", False),
    _object("Service", "v1", "web", spec={"selector": {"app": "web"}, "ports": [{"port": 80}]}),
    _object("ReplicationController", "v1", "web", spec={"selector": {"app": "web"}, "template": TEMPLATE}),
    _object(
        "ReplicaSet",
        "apps/v1",
        "web",
        spec={
            "selector": {
                "matchLabels": {"app": "web"},
                "matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}],
            },
            "template": TEMPLATE,
        },
    ),
    _object("StatefulSet", "apps/v1", "web", spec={"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}),
    _object("PodDisruptionBudget", "policy/v1", "web", spec={"selector": SELECTOR, "minAvailable": 1}),
    _object("PodDisruptionBudget", "policy/v1", "web", spec={"selector": SELECTOR, "maxUnavailable": "50%"}),
    _object("PriorityClass", "scheduling.k8s.io/v1", "high", False, value=1000, preemptionPolicy="Never"),
    _object(
        "PodGroup",
        "scheduling.k8s.io/v1beta1",
        "training",
        spec={
            "schedulingPolicy": {"gang": {"minCount": 3}},
            "disruptionMode": {"all": {}},
            "resourceClaims": [{"name": "one", "resourceClaimName": "gpu"}],
            "schedulingConstraints": {"topology": [{"key": "zone"}]},
        },
    ),
    _object("PodGroup", "scheduling.k8s.io/v1beta1", "training", spec={"schedulingPolicy": {"basic": {}}}),
    _object(
        "StorageClass",
        STORAGE,
        "fast",
        False,
        provisioner="disks.example.com",
        volumeBindingMode="WaitForFirstConsumer",
        allowedTopologies=[{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}],
    ),
    _object(
        "PersistentVolume",
        "v1",
        "disk",
        False,
        spec={
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "volumeMode": "Block",
            "csi": {"driver": "disks.example.com", "volumeHandle": "disk-1"},
            "nodeAffinity": {"required": NODE_TERMS},
            "claimRef": {"namespace": "default", "name": "data", "uid": "1"},
        },
    ),
    _object(
        "PersistentVolumeClaim",
        "v1",
        "data",
        spec={
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "fast",
            "volumeMode": "Block",
            "volumeName": "disk",
            "selector": SELECTOR,
        },
    ),
    _object(
        "CSINode",
        STORAGE,
        "n1",
        False,
        spec={
            "drivers": [
                {"name": "disks.example.com", "nodeID": "n1", "topologyKeys": ["zone"], "allocatable": {"count": 5}},
                {"name": "files.example.com", "nodeID": "n1"},
            ]
        },
    ),
    _object("CSIDriver", STORAGE, "disks.example.com", False, spec={"storageCapacity": True}),
    _object(
        "CSIStorageCapacity",
        STORAGE,
        "zone-a",
        storageClassName="fast",
        capacity="5Gi",
        maximumVolumeSize="1Gi",
        nodeTopology=SELECTOR,
    ),
    _object(
        "VolumeAttachment",
        STORAGE,
        "disk-n1",
        False,
        spec={"attacher": "disks.example.com", "nodeName": "n1", "source": {"persistentVolumeName": "disk"}},
    ),
    _object("ResourceClaim", RESOURCE, "gpu", spec=CLAIM),
    _object("ResourceClaimTemplate", RESOURCE, "gpus", spec={"metadata": {"labels": {"a": "b"}}, "spec": CLAIM}),
    _object(
        "DeviceClass",
        RESOURCE,
        "gpu",
        False,
        spec={
            "selectors": [{"cel": {"expression": "device.attributes['example.com'].model == 'x'"}}],
            "config": [{"opaque": OPAQUE}],
            "extendedResourceName": "example.com/gpu",
        },
    ),
    _object(
        "DeviceTaintRule",
        RESOURCE,
        "broken",
        False,
        spec={
            "deviceSelector": {"driver": DRIVER, "pool": "n1", "device": "gpu-0"},
            "taint": {"key": "example.com/broken", "value": "yes", "effect": "NoSchedule"},
        },
    ),
    *(_object("ResourceSlice", RESOURCE, "slice", False, spec={"driver": DRIVER, **spec}) for spec in SLICES),
]
SAMPLES = PODS + OTHERS

TEXTS = (
    *("", "a", "A", "-", "a.b", "a/b", "a_b", "a b", "é", "a\n", "٣", "A.b/c", "a/b/c", "/a", "a/", "../a"),
    *("x" * 63, "x" * 64, "x" * 253, "x" * 254, "0", "1", "5", "-1", "+5", "007", "1.5", "9223372036854775808"),
    *("Exists", "In", "NotIn", "DoesNotExist", "Gt", "Lt", "Equal", "NoSchedule", "NoExecute", "PreferNoSchedule"),
    *("None", "Always", "Never", "All", "ExactCount", "Block", "Filesystem", "Immediate", "DoNotSchedule", "Ignore"),
    *("ReadWriteOncePod", "ReadOnlyMany", "PreemptLowerPriority", "50%", "5%%", "-5%", "150%", "metadata.name"),
    *("kubernetes.io/x", "a.kubernetes.io/x", "requests.example.com/x", "example.com/gpu", "D.example.com"),
    *("1.2.3.4", "01.2.3.4", "::1", "system-x", "system-node-critical"),
)
AMOUNTS = (
    *(
        "1",
        1,
        1.5,
        "1.5",
        "100m",
        "0",
        "-1",
        "1e3",
        "1E3",
        "1Ki",
        "0.5Gi",
        "1k",
        "1Gi",
        "3Mi",
        "4Mi",
        "0.5",
        "1.0",
        "2",
    ),
    *("2", "", " 1", "1ki", "1K", "0x10", "inf", "NaN", "1_0", "+1", ".5", "5.", "1e-3", "1e400"),
)
"""None finer than a thousandth, which an API server rounds up, none of 64 bits, which it counts wrongly, and none
without a digit, which it takes for nothing."""
NUMBERS = (
    *(0, -1, 1, 2, 3, 80, 81, 100, 101, 65535, 65536, 10**9, 10**9 + 1, 2**31 - 1, 2**31, -(2**31) - 1, 2**63),
    *(1.0, 1.5, "1", True),
)
NAMES = ("cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "hugepages-3x", "storage", "pods", "example.com/fpga")
OF_AMOUNTS = {
    *("requests", "limits", "capacity", "allocatable", "maximumVolumeSize"),
    *("value", "min", "max", "step", "default", "validValues"),
}
"""Fields that are amounts, or hold some."""
LENGTHS = (2, 4, 7, 8, 15, 16, 31, 32, 63, 127, 128)


def changed(chosen: random.Random) -> tuple[Json, list[str]]:
    """One of the samples with one or two changes, and where these are."""
    manifest = copy.deepcopy(chosen.choice(SAMPLES))
    return manifest, [_change(manifest, chosen) for _ in range(chosen.choice((1, 1, 1, 2)))]


def _change(manifest: Json, chosen: random.Random) -> str:
    places = [place for place in _places(manifest) if _open(place)]
    if not places:
        return "nowhere"
    place = chosen.choice(places)
    holder: Any = manifest
    for part in place[:-1]:
        holder = holder[part]
    if chosen.random() < 0.12:
        del holder[place[-1]]
    else:
        holder[place[-1]] = _other(holder[place[-1]], any(part in OF_AMOUNTS for part in place[-2:]), chosen)
    return ".".join(map(str, place))


def _places(value: Any, place: Place = ()) -> Iterator[Place]:
    yield place
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _places(item, (*place, key))


def _open(place: Place) -> bool:
    """Whether something may change there: names of objects stay, and what a driver alone reads."""
    fixed = ((), ("apiVersion",), ("kind",), ("metadata",), ("metadata", "name"), ("metadata", "namespace"))
    return place not in fixed and "opaque" not in place


def _other(value: Any, amount: bool, chosen: random.Random) -> Any:
    if isinstance(value, bool):
        return chosen.choice((True, False, "true", 1, None))
    if isinstance(value, int | float | str) and amount:
        return chosen.choice(AMOUNTS)
    if isinstance(value, int | float):
        return chosen.choice(NUMBERS)
    if isinstance(value, str):
        return chosen.choice((*TEXTS, *TEXTS, 1, True, [], {}, None))
    return _other_list(value, chosen) if isinstance(value, list) else _other_object(value, chosen)


def _other_list(value: list[Any], chosen: random.Random) -> Any:
    how = chosen.choice(("empty", "twice", "long", "shorter", "turned", "other"))
    if how == "other" or not value:
        return chosen.choice(({}, "", 5, None))
    if how == "empty":
        return []
    if how == "twice":
        return [*value, copy.deepcopy(chosen.choice(value))]
    if how == "long":
        named = isinstance(value[0], dict) and "name" in value[0]
        more = [copy.deepcopy(value[0]) for _ in range(chosen.choice(LENGTHS))]
        return [*value, *({**each, "name": f"n{index}"} if named else each for index, each in enumerate(more))]
    return value[1:] if how == "shorter" else value[::-1]


def _other_object(value: Json, chosen: random.Random) -> Any:
    how = chosen.choice(("empty", "renamed", "more", "other", "null"))
    if how == "other" or not value:
        return chosen.choice(({}, [], "", None))
    if how == "empty":
        return {}
    key = chosen.choice(list(value))
    if how == "null":
        return {**value, key: None}
    kept = {name: item for name, item in value.items() if how == "more" or name != key}
    return {**kept, chosen.choice((*TEXTS, *NAMES)): copy.deepcopy(value[key])}
