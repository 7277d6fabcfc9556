"""A leader as far as the state room is concerned: it does what `dsched.leader` does, and knows what the model knows."""

from collections.abc import Callable, Sequence
from typing import Any

from dsched.framework.pod_info import PodInfo
from dsched.framework.table import amounts
from dsched.model.meta import NodeName, PodUid
from dsched.scheduler.cache import Cache
from dsched.scheduler.ports import Move, QueueName
from dsched.state.client import Store
from dsched.state.lease import Lease
from dsched.state.node_log import NodeLog
from dsched.state.queue import Queue
from dsched.state.reservations import CHANGED, OK, Request, Reservations
from dsched.state.results import Binds, Result, Results
from dsched.state.usage import Usage
from tests.builders import make_node, make_pod
from tests.integration.state.model import Model, ModelNode, ModelPod
from tests.integration.state.support import LONG_MS, take_over


def info(pod: ModelPod) -> PodInfo:
    """The pod as the leader sees it."""
    ports = [pod.port] if pod.port else []
    return PodInfo(make_pod(pod.key, cpu=f"{pod.cpu}m", ports=ports, uid=pod.uid, node=pod.bound))


def move(pod: ModelPod, source: QueueName, target: QueueName, score: int, **fields: int) -> Move:
    """A move of the pod."""
    number = pod.order if target is QueueName.ACTIVE else score
    return Move(pod.key, pod.uid, source, target, number, pod.turn, pod.order, {"error": 0, **fields})


class Leadership:
    """One epoch."""

    def __init__(self, store: Store) -> None:
        self.epoch = take_over(store)
        self.store = store
        self.queue = Queue(store, self.epoch)
        self.held = Reservations(store, self.epoch)
        self.results = Results(store, self.epoch)
        self.cache = Cache(Usage(store, self.epoch), NodeLog(store, self.epoch))

    # -- reservations --------------------------------------------------------------------------------------------------

    def reserve(self, asked: Sequence[tuple[ModelPod, str]], view: str, now_ms: int, deadline_ms: int) -> list[str]:
        """Assume, reserve, and forget what was refused."""
        requests, ahead = [], dict.fromkeys((node for _, node in asked), 0)
        assumed = [self.cache.snapshot.table.node_of(pod.uid) is None for pod, _ in asked]
        for (pod, node), is_new in zip(asked, assumed, strict=True):
            if is_new:
                self.cache.assume(info(pod), NodeName(node))
            seen = self.cache.usage.seen(NodeName(node))
            version = seen.version + ahead[node] if view == "fresh" else -1
            changed = -1 if view == "other object" else seen.object_version
            taken, ports = amounts(info(pod)), bool(pod.port)
            requests.append(Request(pod.key, pod.uid, NodeName(node), version, changed, taken, ports, deadline_ms))
            ahead[node] += 1
        verdicts = self.held.reserve(requests, now_ms)
        for (pod, node), is_new, verdict in zip(asked, assumed, verdicts, strict=True):
            if verdict == OK:
                self.cache.reserved(info(pod), NodeName(node))
            elif is_new:
                self.cache.forget(pod.uid, released=False)
        for (_, node), verdict in zip(asked, verdicts, strict=True):
            if verdict == CHANGED:
                self.cache.usage.look_again(NodeName(node))
        return verdicts

    def release(self, pod: ModelPod, node: str, target: QueueName, score: int) -> bool:
        """End a reservation without a bind."""
        (stood,) = self.held.release(
            [(move(pod, QueueName.RESERVED, target, score), NodeName(node), amounts(info(pod)))]
        )
        if stood:
            self.cache.forget(pod.uid, released=True)
        return stood

    def confirm(self, pod: ModelPod) -> bool:
        """End a reservation whose pod is bound."""
        (stood,) = self.held.confirm([(pod.key, pod.uid)])
        if stood:
            self.cache.confirm(pod.uid)
        return stood

    # -- the cluster ---------------------------------------------------------------------------------------------------

    def hear_gone(self, model: Model, pod: ModelPod) -> None:
        """The pod is no longer in the cluster."""
        held = model.held.get(pod.uid)
        if held is not None:
            assert self.release(pod, held.node, QueueName.NOWHERE, 0)
            model.released(pod, QueueName.NOWHERE, 0)
        stood = self.queue.remove([(pod.key, pod.uid), (pod.key, pod.uid)])
        assert stood == [pod.place, QueueName.NOWHERE]
        pod.place, pod.heard_gone = QueueName.NOWHERE, True
        model.counted.pop(pod.uid, None)
        self.cache.remove_pod(pod.uid)
        self.cache.usage.flush()

    def set_node(self, name: str, node: ModelNode) -> None:
        """The node is new or has changed."""
        self.cache.set_node(make_node(name, cpu=f"{node.cpu}m", pods=node.pods))
        self.cache.usage.flush()

    def remove_node(self, name: str) -> None:
        """The node is gone."""
        self.cache.remove_node(NodeName(name))
        self.cache.usage.flush()

    # -- taking over ---------------------------------------------------------------------------------------------------

    def taking_over(self, model: Model) -> list[Callable[[], None]]:
        """The steps of taking over as `dsched.leader.takeover` does them; the leader may be killed after any. What is
        bound, gone or queued is known from the model, as from a listing of the cluster."""

        def adopt() -> None:
            assert self.held.adopt([*model.held, PodUid("uid-unheard-of")]) == len(model.held)
            model.adopted()

        def recover() -> None:
            assert self.queue.recover() == len(model.standing(QueueName.INFLIGHT))
            model.recovered()
            assert self.queue.recover() == 0

        def nodes() -> None:
            for name, node in model.nodes.items():
                self.cache.set_node(make_node(name, cpu=f"{node.cpu}m", pods=node.pods))

        def reservations() -> None:
            for uid in list(model.held):
                self._settle(model, model.pods[uid])

        def bound() -> None:
            model.counted = {pod.uid: pod.bound for pod in model.pods.values() if pod.alive and pod.bound}
            for uid, node in model.counted.items():
                self.cache.add_pod(info(model.pods[uid]), NodeName(node))

        def pending() -> None:
            for pod in model.pods.values():
                if not pod.alive and not pod.heard_gone:
                    assert self.queue.remove([(pod.key, pod.uid)]) == [pod.place]
                    pod.place, pod.heard_gone = QueueName.NOWHERE, True

        def usage() -> None:
            table = self.cache.snapshot.table
            infos = [table.info(row) for row in range(len(table))]
            self.cache.usage.rebuild([(each.name, each.allocatable, each.requested) for each in infos])

        return [adopt, recover, nodes, reservations, bound, pending, usage]

    def _settle(self, model: Model, pod: ModelPod) -> None:
        held = model.held[pod.uid]
        if pod.bound == held.node and pod.alive:
            assert self.confirm(pod)
            model.confirmed(pod)
        elif not pod.alive or held.state == "waiting" or held.node not in model.nodes:
            target = QueueName.ACTIVE if pod.alive else QueueName.NOWHERE
            assert self.release(pod, held.node, target, 0)
            model.released(pod, target, 0)
        else:
            self.cache.assume(info(pod), NodeName(held.node))

    # -- what a leader that no longer leads may try --------------------------------------------------------------------

    def acts(self, pod: ModelPod, node: str, now_ms: int) -> dict[str, Callable[[], Any]]:
        """Everything that changes something, about a pod and a node."""
        usage, lease = Usage(self.store, self.epoch), Lease(self.store, "overslept", LONG_MS)
        usage.set(NodeName(node), {"cpu": 1})
        lease.epoch = self.epoch
        request = Request(pod.key, pod.uid, NodeName(node), 1, 1, amounts(info(pod)), False)
        back = move(pod, QueueName.RESERVED, QueueName.ACTIVE, 0)
        named = [(pod.key, pod.uid)]
        return {
            "pop": lambda: self.queue.pop("stale", 3, now_ms, from_backoff=True),
            "move": lambda: self.queue.move([move(pod, pod.place, QueueName.UNSCHEDULABLE, 0)]),
            "flush": lambda: self.queue.flush_backoff(now_ms),
            "remove": lambda: self.queue.remove(named),
            "recover": self.queue.recover,
            "mark": lambda: self.queue.mark_intake(1, ["dsched"]),
            "reserve": lambda: self.held.reserve([request], now_ms),
            "release": lambda: self.held.release([(back, NodeName(node), amounts(info(pod)))]),
            "confirm": lambda: self.held.confirm(named),
            "allow": lambda: self.held.allow(named),
            "adopt": lambda: self.held.adopt([pod.uid]),
            "usage": usage.flush,
            "log": lambda: NodeLog(self.store, self.epoch).publish(self.cache.snapshot),
            "ack": lambda: self.results.ack([Result("1-0", self.epoch, "binder", ())]),
            "renew": lease.renew,
            "begin": lambda: Binds(self.store).begin(self.epoch, [(pod.key, pod.uid, NodeName(node), 1)]),
            "cancel": lambda: self.held.cancel([pod.uid]),
        }
