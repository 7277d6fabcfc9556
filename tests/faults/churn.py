"""A cluster that changes all the time: nodes and pods come, change, go and come again under the same name; pods of
several priorities, gated ones, ones that want a host port, a zone or a tainted node. Seeded; in a thread of its own.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.faults.arena import Arena
from tests.faults.standalone import NotNow

Json = dict[str, Any]

ZONES = ("north", "south")
PRIORITIES = (0, 0, 0, 10, 100, 1000)
CPUS = ("100m", "250m", "500m", "1", "1500m", "3")
NODES = 8
PODS_AT_FIRST = 30
MANY = 90
"""With more pods than this, pods are deleted rather than made."""
MOST_PODS_AT_ONCE = 6
PAUSE_S = (0.01, 0.06)
KEPT = "kept"
"""Label of pods that a scenario needs: the churn neither changes nor deletes them."""


class Churn:
    """Changes a cluster.

    Attributes:
        deleted: uids of pods that the churn, or its tidying up, has deleted.
        pausing: set while nothing is to be changed.
    """

    def __init__(
        self,
        arena: Arena,
        rng: random.Random,
        tag: str,
        said: Callable[[int, bool], tuple[dict[str, str], Json]] = lambda number, plain: ({}, {}),
    ) -> None:
        """
        Args:
            said: further labels of a pod, and fields of its spec, by its number and whether it is plain.
        """
        self._said = said
        self.arena = arena
        self.rng = rng
        self.deleted: set[str] = set()
        self.pausing = threading.Event()
        self._tag = tag
        self._number = 0
        self._nodes: dict[str, Json] = {}
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="churn", daemon=True)
        self._failed: Exception | None = None

    # -- what a scenario may use -----------------------------------------------------------------------------------

    def start(self) -> None:
        """The first nodes and pods; then all the time."""
        with self._lock:
            self.put_nodes(*(self.node() for _ in range(NODES)))
            self.arena.put("Pod", *(self.pod() for _ in range(PODS_AT_FIRST)))
        self._thread.start()

    def stop(self) -> None:
        """Change nothing any more, and open all nodes again."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._failed is not None:
            raise self._failed
        # As the cluster has them: it may have lost what was told it last.
        closed = [node for node in self.arena.objects("Node") if node["spec"].get("unschedulable")]
        if closed:
            self.put_nodes(*(manifest(node, unschedulable=False) for node in closed))

    def pods(self, count: int, **spec: Any) -> list[str]:
        """Create pods that fit anywhere; their keys."""
        made = [self.pod(cpu="50m", plain=True, **spec) for _ in range(count)]
        self.arena.put("Pod", *made)
        return [f"default/{pod['metadata']['name']}" for pod in made]

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """No change is under way in the block."""
        with self._lock:
            yield

    def put_nodes(self, *nodes: Json) -> None:
        """Create or change nodes; the churn goes on from them."""
        self.arena.put("Node", *nodes)
        self._nodes |= {node["metadata"]["name"]: node for node in nodes}

    def delete_node(self, name: str) -> None:
        """Delete a node; what is on it is deleted by `collect`."""
        self.arena.delete("Node", name)
        self._nodes.pop(name, None)

    def nodes(self) -> list[Json]:
        """The nodes as they were put last."""
        return list(self._nodes.values())

    def delete_pods(self, *keys: str) -> None:
        """Delete pods as a user does, those of them that are there. It is the cluster that says which these are: the
        history may not have heard yet that a pod came, or that another one has its name."""
        there = {
            f"{_meta(pod)['namespace']}/{_meta(pod)['name']}": _meta(pod)["uid"] for pod in self.arena.objects("Pod")
        }
        found = [key for key in keys if key in there]
        self.deleted |= {there[key] for key in found}
        if found:
            self.arena.delete("Pod", *found)

    def collect(self) -> int:
        """Delete the pods of nodes that are gone, as Kubernetes' garbage collector does; how many there were."""
        with self.arena.history.lock:
            history = self.arena.history
            keys = [
                key
                for key, pod in history.pods.items()
                if (node := history.bound.get(pod["metadata"]["uid"])) and node not in history.nodes
            ]
        if keys:
            self.delete_pods(*keys)
        return len(keys)

    def node(self, name: str = "") -> Json:
        """A new node of some size and kind."""
        number, rng = self._next(), self.rng
        labels = {"zone": rng.choice(ZONES)}
        spec: Json = {"taints": [{"key": "special", "value": "yes", "effect": "NoSchedule"}]} if number % 7 == 0 else {}
        cpu = rng.choice(("2", "4", "4", "8"))
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name or f"{self._tag}-n{number}", "labels": labels},
            "spec": spec,
            "status": {"allocatable": {"cpu": cpu, "memory": f"{2 * int(cpu)}Gi", "pods": rng.choice(("12", "110"))}},
        }

    def pod(self, name: str = "", *, cpu: str = "", plain: bool = False, **fields: Any) -> Json:
        """A new pod; a plain one wants nothing in particular."""
        number, rng = self._next(), self.rng
        container: Json = {
            "name": "main",
            "image": "nginx",
            "resources": {"requests": {"cpu": cpu or rng.choice(CPUS)}},
        }
        container["resources"]["requests"]["memory"] = "64Mi"
        spec: Json = {
            "containers": [container],
            "priority": rng.choice(PRIORITIES),
            "schedulerName": "default-scheduler",
        }
        if not plain:
            if rng.random() < 0.15:
                spec["nodeSelector"] = {"zone": rng.choice(ZONES)}
            if rng.random() < 0.1:
                container["ports"] = [{"containerPort": 80, "hostPort": rng.choice((8080, 9090)), "protocol": "TCP"}]
            if rng.random() < 0.2:
                spec["tolerations"] = [{"key": "special", "operator": "Exists"}]
            if rng.random() < 0.08:
                spec["schedulingGates"] = [{"name": "example.org/wait"}]
        labels, more = self._said(number, plain)
        metadata = {
            "name": name or f"{self._tag}-p{number}",
            "namespace": "default",
            "labels": {"run": self._tag, **labels},
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {**spec, **more, **fields},
            "status": {"phase": "Pending"},
        }

    # -- in the thread ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        steps: list[tuple[Callable[[], None], int]] = [
            (self._add_pods, 12),
            (self._delete_pod, 5),
            (self._recreate_pod, 3),
            (self._ungate, 2),
            (self._relabel_pod, 2),
            (self._cordon, 2),
            (self._grow_node, 1),
            (self._add_node, 1),
            (self._recreate_node, 1),
            (self._delete_node, 1),
        ]
        choices, weights = [step for step, _ in steps], [weight for _, weight in steps]
        try:
            while not self._stopping.is_set():
                if not self.pausing.is_set():
                    try:
                        with self._lock:
                            self.rng.choices(choices, weights)[0]()
                    except NotNow:
                        self._stopping.wait(0.1)
                self._stopping.wait(self.rng.uniform(*PAUSE_S))
        except Exception as error:  # noqa: BLE001 - told to who waits for the thread
            self._failed = error

    def _add_pods(self) -> None:
        if len(self.arena.history.pods) > MANY:
            self._delete_pod()
        else:
            self.arena.put("Pod", *(self.pod() for _ in range(self.rng.randint(1, MOST_PODS_AT_ONCE))))

    def _delete_pod(self) -> None:
        keys = self._keys()
        if keys:
            self.delete_pods(*self.rng.sample(keys, min(len(keys), 2)))

    def _recreate_pod(self) -> None:
        keys = self._keys()
        if keys:
            key = self.rng.choice(keys)
            self.delete_pods(key)
            self.arena.put("Pod", self.pod(key.partition("/")[2]))

    def _ungate(self) -> None:
        self._change_pod(
            lambda pod: bool(pod["spec"].get("schedulingGates")), lambda pod: pod["spec"].update(schedulingGates=[])
        )

    def _relabel_pod(self) -> None:
        stamp = str(self._next())
        self._change_pod(lambda pod: True, lambda pod: pod["metadata"]["labels"].update(stamp=stamp))

    def _change_pod(self, wanted: Callable[[Json], bool], change: Callable[[Json], None]) -> None:
        with self.arena.history.lock:
            found = [pod for pod in self.arena.history.pods.values() if _is_free(pod) and wanted(pod)]
        if found:
            pod = self.rng.choice(found)
            kept = {name: dict(pod["metadata"][name]) if name == "labels" else pod["metadata"][name] for name in _NAMED}
            value = {**pod, "metadata": kept, "spec": dict(pod["spec"])}
            value.pop("status", None)
            change(value)
            self.arena.put("Pod", value)

    def _cordon(self) -> None:
        node = self._some_node()
        if node is not None:
            self.put_nodes(manifest(node, unschedulable=not node["spec"].get("unschedulable", False)))

    def _grow_node(self) -> None:
        node = self._some_node()
        if node is not None:
            value = manifest(node)
            cpu = int(value["status"]["allocatable"]["cpu"]) + 1
            value["status"] = {"allocatable": {**value["status"]["allocatable"], "cpu": str(cpu)}}
            self.put_nodes(value)

    def _add_node(self) -> None:
        if len(self._nodes) < 2 * NODES:
            self.put_nodes(self.node())

    def _delete_node(self) -> None:
        node = self._some_node()
        if node is not None and len(self._nodes) > NODES // 2:
            self.delete_node(node["metadata"]["name"])
            self._stopping.wait(self.rng.uniform(0, 0.2))
            self.collect()

    def _recreate_node(self) -> None:
        """A node of the same name and size: pods that were on the old one are collected first."""
        node = self._some_node()
        if node is not None:
            self.delete_node(node["metadata"]["name"])
            self._stopping.wait(self.rng.uniform(0, 0.1))
            self.collect()
            self.put_nodes(manifest(node, unschedulable=False))

    def _some_node(self) -> Json | None:
        return self.rng.choice(list(self._nodes.values())) if self._nodes else None

    def _keys(self) -> list[str]:
        with self.arena.history.lock:
            return sorted(key for key, pod in self.arena.history.pods.items() if _is_free(pod))

    def _next(self) -> int:
        self._number += 1
        return self._number


_NAMED = ("name", "namespace", "labels")


def _meta(pod: Json) -> Json:
    found: Json = pod["metadata"]
    return found


def _is_free(pod: Json) -> bool:
    """Whether the churn may do with it what it likes."""
    return KEPT not in pod["metadata"].get("labels", {})


def manifest(node: Json, **spec: Any) -> Json:
    """A node as a manifest has it, with something changed."""
    metadata = {name: node["metadata"][name] for name in ("name", "labels")}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": {**node["spec"], **spec},
        "status": node["status"],
    }


def wait_for(condition: Callable[[], bool], deadline_s: float) -> bool:
    """Whether it became true in time."""
    until = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
