"""Objects of a real cluster, made, read and deleted through the official Python client."""

import json
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from kubernetes import client, config
from urllib3.exceptions import HTTPError

from tests.e2e.apiserver import ApiServer

T = TypeVar("T")
Json = dict[str, Any]

SCHEDULER = "dsched"
DEADLINE_S = 120.0
DELETION_DEADLINE_S = 300.0
AT_ONCE = 8
RETRY_S = 0.2


class Cluster:
    """The nodes, pods and volumes of a test, in a namespace of its own.

    Attributes:
        core, storage, api: the client's APIs.
        namespace: where `pods` go.
    """

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.api = config.new_client_from_config(str(server.kubeconfig))
        self.core = client.CoreV1Api(self.api)
        self.storage = client.StorageV1Api(self.api)
        self.namespace = ""

    def __enter__(self) -> "Cluster":
        self.clear()
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()
        self.api.close()

    def clear(self) -> None:
        """Delete all nodes, pods, volumes and claims, and go on in a new namespace."""
        for pod in self.core.list_pod_for_all_namespaces().items:
            at = (pod.metadata.name, pod.metadata.namespace)
            _ignore_missing(lambda at=at: self.core.delete_namespaced_pod(*at, grace_period_seconds=0))
        for claim in self.core.list_persistent_volume_claim_for_all_namespaces().items:
            at = (claim.metadata.name, claim.metadata.namespace)
            _ignore_missing(lambda at=at: self.core.delete_namespaced_persistent_volume_claim(*at))
        self.core.delete_collection_persistent_volume()
        self.core.delete_collection_node()
        self.storage.delete_collection_storage_class()
        self.namespace = f"e2e-{uuid.uuid4().hex[:8]}"
        self.core.create_namespace({"metadata": {"name": self.namespace}})

    # -- making ----------------------------------------------------------------------------------------------------

    def add_nodes(self, *nodes: Json) -> None:
        """Create nodes as a kubelet does: the object, then its status."""

        def create(node: Json) -> None:
            name = node["metadata"]["name"]
            self.core.create_node(node)
            self.core.patch_node_status(name, {"status": node["status"]})

        _each(create, nodes)

    def wait_known(self, *nodes: str) -> None:
        """Wait until the scheduler has heard of the status of these nodes, which may come after a pod that is created
        later: a pod is placed on each."""
        probes = [make_pod(f"on-{node}", nodeSelector={"kubernetes.io/hostname": node}) for node in nodes]
        self.add_pods(*probes)
        self.wait_placed(*(probe["metadata"]["name"] for probe in probes))

    def add_priority(self, name: str, value: int) -> str:
        """Create a PriorityClass whose pods evict nobody; its name, which is the namespace's own."""
        own = f"{name}-{self.namespace}"
        body = {"metadata": {"name": own}, "value": value, "preemptionPolicy": "Never"}
        client.SchedulingV1Api(self.api).create_priority_class(body)
        return own

    def add_pods(self, *pods: Json) -> None:
        """Create pods, whatever becomes of the API server meanwhile."""
        _each(lambda pod: persistently(lambda: self.core.create_namespaced_pod(self.namespace, pod)), pods)

    def pour_pods(self, *pods: Json) -> None:
        """Create pods, in their order, as fast as the API server takes them: without the client's models."""
        path = f"{self.api.configuration.host}/api/v1/namespaces/{self.namespace}/pods"
        pool = self.api.rest_client.pool_manager

        def create(pod: Json) -> None:
            body = json.dumps({"apiVersion": "v1", "kind": "Pod", **pod})
            answer = pool.request("POST", path, body=body, headers={"Content-Type": "application/json"})
            assert answer.status == 201, answer.data

        _each(create, pods)

    def delete_all_pods(self) -> None:
        """Delete the namespace's pods at once. A request for thousands may outlast the API server's patience, and its
        answer break off: it is asked again.
        """
        persistently(
            lambda: self.core.delete_collection_namespaced_pod(self.namespace, grace_period_seconds=0),
            DELETION_DEADLINE_S,
        )

    def delete_pods(self, *names: str) -> None:
        """Delete pods at once."""
        for name in names:
            self.core.delete_namespaced_pod(name, self.namespace, grace_period_seconds=0)

    # -- reading ---------------------------------------------------------------------------------------------------

    def nodes(self) -> list[Json]:
        """All nodes, as the API server has them."""
        return self._json(self.core.list_node().items)

    def pods(self) -> list[Json]:
        """The pods of the namespace, as the API server has them."""
        return self._json(self.core.list_namespaced_pod(self.namespace).items)

    def pod(self, name: str) -> Json:
        """One pod."""
        return self._json(self.core.read_namespaced_pod(name, self.namespace))

    def events(self, pod: str | None = None) -> list[Json]:
        """The events about a pod, or all of the namespace."""
        items = self._json(self.core.list_namespaced_event(self.namespace).items)
        return [event for event in items if pod is None or event["involvedObject"]["name"] == pod]

    def placed(self) -> dict[str, str]:
        """Pod to node, of the pods that have one."""
        return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in self.pods() if pod["spec"].get("nodeName")}

    def wait_placed(self, *names: str, deadline_s: float = DEADLINE_S) -> dict[str, str]:
        """Wait until these pods have nodes, all of the namespace without names."""

        def placed() -> dict[str, str] | None:
            pods = {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in self.pods()}
            wanted = {name: pods.get(name, "") for name in names} if names else pods
            return wanted if all(wanted.values()) else None

        return self.wait(f"{names or 'all'} are bound", placed, deadline_s)

    def wait_unschedulable(self, name: str, says: str = "") -> str:
        """Wait until a pod says that it fits nowhere, with a text among its message; its message.

        Without the text it may be what was true before the newest node had come.
        """

        def told() -> str | None:
            message: str | None = scheduled_condition(self.pod(name)).get("message")
            return message if message is not None and says in message else None

        return self.wait(f"{name} is unschedulable: {says or 'for whatever reason'}", told)

    def wait(self, what: str, condition: Callable[[], T | None], deadline_s: float = DEADLINE_S) -> T:
        """The condition's first true value; the API server may be away meanwhile.

        Raises:
            AssertionError: there is none in time.
        """
        deadline = time.monotonic() + deadline_s
        while True:
            try:
                value = condition()
            except (HTTPError, client.ApiException) as error:
                if isinstance(error, client.ApiException) and not _passing(error):
                    raise
                value = None
            if value:
                return value
            assert time.monotonic() < deadline, f"not in {deadline_s:g} s: {what}\n{self._open()}"
            time.sleep(RETRY_S)

    def _open(self) -> list[Any]:
        """Pods without a node and what they say, for messages, or why they could not be asked for."""
        try:
            pods = self.pods()
        except (HTTPError, client.ApiException) as error:
            return [error]
        return [(pod["metadata"]["name"], scheduled_condition(pod)) for pod in pods if not pod["spec"].get("nodeName")][
            :10
        ]

    def _json(self, objects: Any) -> Any:
        """The client's models as the API server has sent them."""
        return self.api.sanitize_for_serialization(objects)


def make_node(
    name: str, cpu: str = "4", memory: str = "8Gi", pods: str = "110", labels: Mapping[str, str] | None = None
) -> Json:
    """A node that is ready."""
    room = {"cpu": cpu, "memory": memory, "pods": pods}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "status": {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def make_pod(
    name: str, cpu: str = "100m", *, scheduler: str = SCHEDULER, labels: Mapping[str, str] | None = None, **spec: Any
) -> Json:
    """A pod with one container, for dsched; further fields of its spec by name."""
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {"schedulerName": scheduler, "containers": [container], **spec},
    }


def scheduled_condition(pod: Json) -> Json:
    """A pod's condition PodScheduled, empty where it has none."""
    conditions = pod.get("status", {}).get("conditions", ())
    return next((each for each in conditions if each["type"] == "PodScheduled"), {})


def persistently(change: Callable[[], Any], deadline_s: float = DEADLINE_S) -> None:
    """Create or delete while the API server may be away; a call that failed may have done it already."""
    deadline = time.monotonic() + deadline_s
    while True:
        try:
            change()
            return
        except (HTTPError, client.ApiException) as error:
            if isinstance(error, client.ApiException) and error.status == 409:
                return
            if time.monotonic() > deadline or (isinstance(error, client.ApiException) and not _passing(error)):
                raise
            time.sleep(RETRY_S)


def _passing(error: client.ApiException) -> bool:
    """Whether an answer may be another one soon: too many requests, or a server that starts or ends."""
    return error.status in (0, 429) or error.status >= 500


def _ignore_missing(delete: Callable[[], Any]) -> None:
    try:
        delete()
    except client.ApiException as error:
        if error.status != 404:
            raise


def _each(do: Callable[[Json], None], objects: Iterable[Json]) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(do, objects))
