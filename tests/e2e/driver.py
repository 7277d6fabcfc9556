"""A driver of devices and the claim controller, as far as tests need them: both write through the API."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from kubernetes import client

from tests.devices import DRIVER, asking, make_class, make_slice
from tests.e2e.cluster import Cluster

Json = dict[str, Any]
FINALIZER = "resource.kubernetes.io/delete-protection"


class Driver:
    """Publishes slices and classes, and makes claims for pods as kube-controller-manager does."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._api = client.ResourceV1Api(cluster.api)

    def clear(self) -> None:
        """Take everything away, whoever has it."""
        self._api.delete_collection_resource_slice()
        self._api.delete_collection_device_class()
        for claim in self.claims():
            self.release(claim["metadata"]["name"])

    def add_class(self, name: str = "gpu", **spec: Any) -> None:
        """Make a class of this driver's devices."""
        self._api.create_device_class(make_class(name, f'device.driver == "{DRIVER}"', **spec))

    def publish(
        self, node: str, devices: Iterable[Json | str], *, name: str = "", generation: int = 1, slices: int = 1
    ) -> None:
        """Offer devices on a node, instead of what the slice of this name has offered."""
        wanted = make_slice(node, devices, name=name, generation=generation, slices=slices)
        del wanted["metadata"]["uid"]
        key = wanted["metadata"]["name"]
        there = [each.metadata.name for each in self._api.list_resource_slice().items]
        if key not in there:
            self._api.create_resource_slice(wanted)
            return
        # Lists are replaced as a whole; a pool that has no devices left has none here either.
        patch = {"spec": {"devices": None, **wanted["spec"]}}
        self._api.patch_resource_slice(key, patch)

    def withdraw(self, name: str) -> None:
        """Offer a slice no longer."""
        self._api.delete_resource_slice(name)

    def make_claim(self, pod: str, entry: str = "c", count: int = 1) -> str:
        """The claim of a pod's template, its name in the pod's status; says which."""
        made_for = self._cluster.pod(pod)["metadata"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": made_for["uid"], "controller": True}
        claim = {
            "metadata": {
                "generateName": f"{pod}-{entry}-",
                "annotations": {"resource.kubernetes.io/pod-claim-name": entry},
                "ownerReferences": [{**owner, "blockOwnerDeletion": True}],
            },
            "spec": {"devices": {"requests": [asking(count=count)]}},
        }
        name: str = self._api.create_namespaced_resource_claim(self._cluster.namespace, claim).metadata.name
        status = {"status": {"resourceClaimStatuses": [{"name": entry, "resourceClaimName": name}]}}
        self._cluster.core.patch_namespaced_pod_status(pod, self._cluster.namespace, status)
        return name

    def tell(self, claim: str, device: str, condition: str) -> None:
        """Say that a condition of a claim's device holds."""
        pool, _, name = device.partition("/")
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        holds = {"type": condition, "status": "True", "reason": "Told", "message": "", "lastTransitionTime": now}
        status = {"devices": [{"driver": DRIVER, "pool": pool, "device": name, "conditions": [holds]}]}
        self._api.patch_namespaced_resource_claim_status(claim, self._cluster.namespace, {"status": status})

    def claims(self) -> list[Json]:
        """The namespace's claims, as the API server has them."""
        found = self._api.list_namespaced_resource_claim(self._cluster.namespace).items
        plain: list[Json] = self._cluster.api.sanitize_for_serialization(found)
        return plain

    def claim(self, name: str) -> Json:
        """One claim."""
        return next(each for each in self.claims() if each["metadata"]["name"] == name)

    def given(self) -> dict[str, list[str]]:
        """Claim to the devices it has, ``pool/device``; claims without devices are left out."""
        found = {}
        for claim in self.claims():
            allocation = claim.get("status", {}).get("allocation")
            if allocation:
                results = allocation["devices"]["results"]
                found[claim["metadata"]["name"]] = [f"{each['pool']}/{each['device']}" for each in results]
        return found

    def release(self, name: str) -> None:
        """Delete a claim whose pod is gone, with its devices, as the controller does."""
        at = (name, self._cluster.namespace)
        self._api.delete_namespaced_resource_claim(*at)
        left = [each for each in self.claims() if each["metadata"]["name"] == name]
        if left and left[0].get("status"):
            self._api.patch_namespaced_resource_claim_status(*at, {"status": {"allocation": None, "reservedFor": None}})
        if left:
            self._api.patch_namespaced_resource_claim(*at, {"metadata": {"finalizers": None}})
