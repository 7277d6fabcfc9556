"""A leader worked by hand: it does what a leader does to Redis, one step a call, through the real scripts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dsched.clock import ManualClock
from dsched.cluster.interface import Binding, BindVerdict
from dsched.cluster.standalone.applying import Applier
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.framework.pod_info import PodInfo
from dsched.framework.table import amounts
from dsched.fsck import inspection
from dsched.fsck.inspection import Report
from dsched.fsck.profiles import Profiles
from dsched.manifests import kinds
from dsched.model import quantity
from dsched.model.meta import NodeName, PodKey
from dsched.model.pod import Pod
from dsched.scheduler.ports import Move, QueueName
from dsched.state import keys
from dsched.state.client import Store
from dsched.state.lease import Lease
from dsched.state.queue import Queue
from dsched.state.reservations import OK, Request, Reservations
from dsched.state.results import Binds
from dsched.state.usage import Usage
from tests.manifests import Json, loaded, node_manifest, pod_manifest

LEASE_MS = 3_600_000


class Pausing(ManualClock):
    """A clock for inspections: something happens during the pause between the two looks."""

    def __init__(self, now_ms: int, meanwhile: Callable[[], object]) -> None:
        super().__init__(now_ms)
        self._meanwhile = meanwhile

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self._meanwhile()


class ByHand:
    """A system under one leader."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store = store
        self.clock = ManualClock()
        self.cluster = StandaloneCluster(store, self.clock)
        self._applier = Applier(store, self.clock)
        self._folder = folder
        self._known: set[str] = set()
        self.lead()

    def lead(self) -> None:
        """A new leader takes over, and has settled nothing yet."""
        self.store.redis.delete(self.key(keys.LEADER.name))
        lease = Lease(self.store, "leader-1", LEASE_MS)
        assert lease.acquire()
        self.epoch = lease.epoch
        self.queue = Queue(self.store, self.epoch)
        self.reservations = Reservations(self.store, self.epoch)
        self.usage = Usage(self.store, self.epoch)

    def key(self, suffix: str) -> str:
        """The full name of a key."""
        return self.store.key(suffix)

    # -- the cluster ---------------------------------------------------------------------------------------------------

    def apply(self, *objects: Json) -> None:
        """Apply objects; the leader does not hear of it."""
        self._applier.apply(loaded(self._folder, *objects))

    def replace(self, name: str) -> None:
        """Another pod takes the name of one; says that the leader has heard of it."""
        self.apply(pod_manifest(f"default/{name}", uid="00000000-0000-0000-0000-000000000001"))
        self.mark()

    def cluster_with(self, *pods: str, nodes: tuple[str, ...] = ("n1", "n2"), **spec: Any) -> None:
        """Nodes and pending pods of 100m each, which the leader has taken in."""
        self.apply(*map(node_manifest, nodes), *(pod_manifest(f"default/{name}", **spec) for name in pods))
        self.take_in()

    def delete(self, kind: kinds.Kind, key: str) -> None:
        """Delete an object, and say that the leader has heard of it."""
        assert self._applier.delete(kind, [key]) == [True]
        self.mark()

    def pod(self, name: str) -> Pod:
        """A pod as it is now."""
        (found,) = self.cluster.get_pods([PodKey(f"default/{name}")])
        assert found is not None
        return found

    # -- the leader ----------------------------------------------------------------------------------------------------

    def take_in(self) -> None:
        """Take in what is new in the cluster: nodes and bound pods into their usage, pending pods into active."""
        listing = self.cluster.list()
        nodes = [node for node in listing.nodes if node.name not in self._known]
        for node in nodes:
            given = node.status.allocatable.items()
            self.usage.set(node.name, {name: quantity.amount(name, quantity.nano(text)) for name, text in given})
        pods = [pod for pod in listing.pods if pod.uid not in self._known]
        for pod in pods:
            if pod.node_name:
                self.usage.add(pod.node_name, amounts(PodInfo(pod)))
        self.usage.flush()
        moves = [self._move(pod, QueueName.NOWHERE, QueueName.ACTIVE) for pod in pods if not pod.node_name]
        assert self.queue.move(moves) == []
        self._known |= {node.name for node in nodes} | {pod.uid for pod in pods}
        self.mark()

    def mark(self) -> None:
        """Everything has been taken in."""
        self.queue.mark_intake(self.cluster.newest_version(), ["default-scheduler"])

    def pop(self, count: int = 100) -> None:
        """Take pods from the head of the active queue."""
        self.queue.pop(f"{self.epoch}-1", count, self.clock.now_ms(), from_backoff=False)

    def put(self, name: str, place: QueueName, source: QueueName = QueueName.INFLIGHT, **fields: Any) -> None:
        """Move a pod."""
        fields = {"plugins": "NodeResourcesFit", "message": "0/2 nodes are available"} | fields
        assert self.queue.move([self._move(self.pod(name), source, place, **fields)]) == []

    def reserve(self, name: str, node: str = "n1", deadline_ms: int = 0) -> None:
        """Reserve a node for a pod in flight."""
        info, target = PodInfo(self.pod(name)), NodeName(node)
        self.usage.look_again(target)
        seen = self.usage.seen(target)
        request = Request(
            info.key, info.uid, target, seen.version, seen.object_version, amounts(info), False, deadline_ms
        )
        assert self.reservations.reserve([request], self.clock.now_ms()) == [OK]

    def bind(self, name: str, node: str = "n1") -> None:
        """What a binder does, up to the bound pod; the leader has not heard of it."""
        pod = self.pod(name)
        self.begin(pod, node)
        (outcome,) = self.cluster.bind([Binding(pod.key, pod.uid, NodeName(node), self.epoch)])
        assert outcome.verdict is BindVerdict.BOUND

    def begin(self, pod: Pod, node: str) -> None:
        """What a binder does first."""
        assert Binds(self.store).begin(self.epoch, [(pod.key, pod.uid, NodeName(node), 1)]) == [True]

    def confirm(self, name: str) -> None:
        """The leader hears that a pod is bound."""
        pod = self.pod(name)
        assert self.reservations.confirm([(pod.key, pod.uid)]) == [True]
        self.mark()

    def release(self, name: str, place: QueueName) -> None:
        """The bind failed: the pod goes back."""
        pod = self.pod(name)
        released = (self._move(pod, QueueName.RESERVED, place), NodeName("n1"), amounts(PodInfo(pod)))
        assert self.reservations.release([released]) == [True]

    def forget(self, name: str) -> None:
        """The pod leaves the queue."""
        pod = self.pod(name)
        self.queue.remove([(pod.key, pod.uid)])

    def schedule(self, name: str, node: str = "n1") -> None:
        """All the way from active, where it has to be the only one, to bound."""
        self.pop()
        self.reserve(name, node)
        self.bind(name, node)
        self.confirm(name)

    def _move(self, pod: Pod, source: QueueName, target: QueueName, **fields: Any) -> Move:
        now_ms = self.clock.now_ms()
        written = {"error": 0, "queued_us": now_ms * 1000, "profile": pod.spec.scheduler_name, "plugins": "", **fields}
        score = 0 if target is QueueName.ACTIVE else now_ms
        return Move(pod.key, pod.uid, source, target, score, f"turn-{pod.metadata.name}", 0, written)

    # -- the checker ---------------------------------------------------------------------------------------------------

    def inspect(self, meanwhile: Callable[[], object] = lambda: None, profiles: Profiles | None = None) -> Report:
        """Inspect it; something may happen between the two looks."""
        return inspection.inspect(self.store, Pausing(self.clock.now_ms(), meanwhile), profiles)

    def breaches(self, meanwhile: Callable[[], object] = lambda: None) -> list[str]:
        """Breaches as they are printed."""
        return [str(finding) for finding in self.inspect(meanwhile).breaches]
