"""The objects of a workload: from templates to manifests that are checked, named and ready to be written.

What is the same for all pods of an operation is checked once. Names and UIDs come from a seed.

Source: kubernetes v1.37 test/integration/scheduler_perf/runners.go (``IntegrationTestNodePreparer``, ``CreatePod``,
``CreatePodWithPersistentVolume``, ``NodeAllocatableStrategy`` …), executor.go (``GetPodTemplate``),
nodedeclaredfeatures/node_declared_features_test.go (``updateNodesWithDeclaredFeatures``).
"""

import random
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dsched.bench.operations import CreateNodes
from dsched.bench.templates import Template
from dsched.errors import ConfigError
from dsched.manifests import kinds, load
from dsched.manifests.load import Manifest
from dsched.manifests.reader import Document

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_HOSTNAME = "kubernetes.io/hostname"
_SIGNATURE = "signature"
_MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
_RESOURCES = {"cpu": "100m", "memory": "500Mi"}

Object = dict[str, Any]

DEFAULT_NODE: Object = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {},
    "status": {
        "capacity": {"pods": "110", "cpu": "4", "memory": "32Gi"},
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
DEFAULT_POD: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "pod-"},
    "spec": {
        "containers": [
            {
                "name": "pause",
                "image": "registry.k8s.io/pause:3.10.1",
                "ports": [{"containerPort": 80}],
                "resources": {"limits": _RESOURCES, "requests": _RESOURCES},
            }
        ]
    },
}


class Names:
    """Names for objects that leave theirs to the server, each given once; and UIDs."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._given: set[str] = set()

    def fill_in(self, metadata: Object) -> str:
        """Give the object a name if it has none."""
        prefix = metadata.pop("generateName", "")
        if not metadata.get("name"):
            metadata["name"] = self._generated(prefix)
        return str(metadata["name"])

    def uid(self) -> str:
        """A new UID."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def _generated(self, prefix: str) -> str:
        while True:
            name = prefix + "".join(self._random.choices(_LETTERS, k=5))
            if name not in self._given:
                self._given.add(name)
                return name


class Maker:
    """Makes the objects of one workload.

    Args:
        declared: features that every node declares.
        signatures: pods from a template have a label ``signature``, as upstream gives them since v1.37: without it
            they are alike, with it each is another.
    """

    def __init__(self, seed: int, declared: Sequence[str] = (), *, signatures: bool = True) -> None:
        self._names = Names(seed)
        self._signatures = signatures
        self._declared = list(declared)

    def any(self, template: Template, index: int, count: int, namespace: str | None) -> Manifest:
        """One object; a namespace is only for kinds that have one."""
        value = template.object(index, count)
        kind = kinds.BY_NAME.get(str(value.get("kind")))
        self._names.fill_in(value.setdefault("metadata", {}))
        return self._checked(value, str(template.path), namespace if kind is not None and kind.namespaced else None)

    def namespaces(self, names: Sequence[str], template: Template | None = None) -> list[Manifest]:
        """Namespaces with these names."""
        base: Object = template.object() if template else {"apiVersion": "v1", "kind": "Namespace"}
        return [
            self._checked({**base, "metadata": {**base.get("metadata", {}), "name": name}}, f"namespace {name}", None)
            for name in names
        ]

    def nodes(self, number: int, operation: CreateNodes, template: Template | None) -> list[Manifest]:
        """Nodes and, where the operation wants them, their CSINodes.

        Args:
            number: of the operation; names the nodes that have no template.
        """
        found: list[Manifest] = []
        for index in range(operation.count):
            value = template.object(index, operation.count) if template else DEFAULT_NODE
            value = {**value, "metadata": {**value["metadata"]}, "status": {**value.get("status", {})}}
            if self._declared:
                value["status"]["declaredFeatures"] = self._declared
            if template is None:
                value["metadata"]["generateName"] = f"node-{number}-"
            name = self._names.fill_in(value["metadata"])
            labels = {**(value["metadata"].get("labels") or {}), _HOSTNAME: name}
            value["metadata"]["labels"] = labels
            found += [self._checked(each, f"node {name}", None) for each in self._prepared(operation, index, value)]
        return found

    def pods(self, template: Template | None, namespace: str, count: int, batch: int = 1) -> Iterator[Manifest]:
        """Pods; a template that says the same for all is checked once.

        Args:
            batch: so many pods in a row have the same signature.
        """
        first: Manifest | None = None
        for index in range(count):
            signature = {_SIGNATURE: f"signature-label-{index // batch}"} if template and self._signatures else {}
            if first is not None and (template is None or template.fixed):
                yield self._twin(first, signature)
                continue
            value = template.object(index, count) if template else DEFAULT_POD
            value = {**value, "metadata": {**value.get("metadata", {})}}
            if signature:
                value["metadata"]["labels"] = {**(value["metadata"].get("labels") or {}), **signature}
            prefix = value["metadata"].get("generateName", "")
            self._names.fill_in(value["metadata"])
            value["metadata"]["uid"] = self._names.uid()
            made = self._checked(value, str(template.path) if template else "the default pod", namespace)
            first = replace(made, origin=prefix)
            yield made

    def volumes(self, namespace: str, count: int, volume: Template, claim: Template) -> list[Manifest]:
        """A claim ``pvc-N`` and a volume that are bound to each other, for each pod of an operation."""
        found: list[Manifest] = []
        for index in range(count):
            claim_name, name = f"pvc-{index}", f"{namespace}-vol-{index}"
            persistent = volume.object(index, count)
            spec = persistent["spec"] = {**persistent["spec"]}
            if "csi" in spec:
                spec["csi"] = {**spec["csi"], "volumeHandle": name}
            elif "awsElasticBlockStore" in spec:
                spec["awsElasticBlockStore"] = {**spec["awsElasticBlockStore"], "volumeID": f"vol-{index}"}
            reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace}
            spec["claimRef"] = {**reference, "name": claim_name}
            persistent["metadata"] = {**persistent.get("metadata", {}), "name": name}
            persistent["status"] = {"phase": "Bound"}
            wanted = claim.object(index, count)
            wanted["metadata"] = {**wanted.get("metadata", {}), "name": claim_name}
            wanted["spec"] = {**wanted["spec"], "volumeName": name}
            wanted["status"] = {"phase": "Bound"}
            found += [
                self._checked(persistent, f"volume {name}", None),
                self._checked(wanted, f"claim {claim_name}", namespace),
            ]
        return found

    def _prepared(self, operation: CreateNodes, index: int, node: Object) -> Iterator[Object]:
        allocatable, label = operation.node_allocatable_strategy, operation.label_node_prepare_strategy
        unique, name = operation.unique_node_label_strategy, node["metadata"]["name"]
        if allocatable is not None:
            status = node["status"]
            given = status.get("allocatable") or status.get("capacity", {})
            status["allocatable"] = {**given, **allocatable.node_allocatable}
            yield node
            yield _csi_node(name, allocatable.csi_node_allocatable, allocatable.migrated_plugins)
            return
        if label is not None:
            node["metadata"]["labels"][label.label_key] = label.label_values[index % len(label.label_values)]
        elif unique is not None:
            node["metadata"]["labels"][unique.label_key] = self._names.uid()
        yield node

    def _twin(self, first: Manifest, signature: Mapping[str, str]) -> Manifest:
        """A pod that differs from one that has been checked by its name, UID and signature alone."""
        metadata = {**first.value["metadata"], "uid": self._names.uid()}
        metadata.pop("name")
        metadata["generateName"] = first.origin
        if signature:
            metadata["labels"] = {**metadata["labels"], **signature}
        self._names.fill_in(metadata)
        key = first.kind.key(metadata["namespace"], metadata["name"])
        return Manifest(key, first.kind, key, {**first.value, "metadata": metadata})

    def _checked(self, value: Object, origin: str, namespace: str | None) -> Manifest:
        (manifest,) = load.check([Document(origin, value)], namespace)
        return manifest


def with_claim(pod: Manifest, index: int) -> Manifest:
    """The pod with its one volume, the claim of this number."""
    volume = {"name": "vol", "persistentVolumeClaim": {"claimName": f"pvc-{index}"}}
    return replace(pod, value={**pod.value, "spec": {**pod.value["spec"], "volumes": [volume]}})


def _csi_node(name: str, allocatable: Mapping[str, Mapping[str, Any]], migrated: Sequence[str]) -> Object:
    if not name:
        raise ConfigError("a CSINode needs a node with a name")
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name, "annotations": {_MIGRATED: ",".join(migrated)}},
        "spec": {
            "drivers": [
                {"name": driver, "nodeID": name, "allocatable": dict(given)} for driver, given in allocatable.items()
            ]
        },
    }
