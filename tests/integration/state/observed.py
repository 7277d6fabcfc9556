"""What is really in Redis, and that it is what the model says. Reads the keys themselves, not through the code."""

from typing import Any

from dsched.scheduler.ports import QueueName
from dsched.state.client import Store
from tests.integration.state.model import RESERVED_PLACES, Model

ZSETS = {
    QueueName.ACTIVE: "queue:active",
    QueueName.BACKOFF: "queue:backoff",
    QueueName.UNSCHEDULABLE: "queue:unschedulable",
    QueueName.GATED: "queue:gated",
    QueueName.WAITING: "queue:waiting",
}


class Observed:
    """All that is kept about pods and nodes, as of one moment."""

    def __init__(self, store: Store) -> None:
        prefix = store.key("")
        names = sorted(name.decode()[len(prefix) :] for name in store.redis.keys("*"))
        pipe: Any = store.redis.pipeline(transaction=True)
        for zset in ZSETS.values():
            pipe.zrange(prefix + zset, 0, -1, withscores=True)
        hashes = [name for name in names if name.startswith(("pod:", "node:"))]
        hashes += ["queue:inflight", "reservations", "cluster:pods:state"]
        for name in hashes:
            pipe.hgetall(prefix + name)
        replies = pipe.execute()
        self.keys = set(names)
        self.zsets = {
            place: [(member.decode(), int(score)) for member, score in members]
            for place, members in zip(ZSETS, replies, strict=False)
        }
        found = dict(zip(hashes, map(_texts, replies[len(ZSETS) :]), strict=True))
        self.inflight = found.pop("queue:inflight")
        self.reservations = found.pop("reservations")
        self.cluster = found.pop("cluster:pods:state")
        self.records = {name[4:]: fields for name, fields in found.items() if name.startswith("pod:")}
        self.nodes = {name[5:]: fields for name, fields in found.items() if name.startswith("node:")}

    def check(self, model: Model) -> None:
        """Everything is as the model says."""
        self._places(model)
        self._attempts(model)
        self._reservations(model)
        self._sums(model)
        self._binds(model)

    def _places(self, model: Model) -> None:
        """I1: each pending pod in exactly one place, nothing else in any, each place in its order."""
        for place, members in self.zsets.items():
            pods = model.standing(place)
            active = place is QueueName.ACTIVE
            assert members == [(f"{pod.turn} {pod.key}" if active else pod.key, pod.score) for pod in pods], place
        assert set(self.inflight) == {pod.key for pod in model.standing(QueueName.INFLIGHT)}
        pending = {str(pod.key): (pod.uid, pod.place) for pod in model.pods.values() if pod.place}
        assert {key: (record["uid"], record["queue"]) for key, record in self.records.items()} == pending

    def _attempts(self, model: Model) -> None:
        """I4: attempts are counted and never go back."""
        wanted = {str(pod.key): pod.attempts for pod in model.pods.values() if pod.place}
        assert {key: int(record.get("attempts", 0)) for key, record in self.records.items()} == wanted

    def _reservations(self, model: Model) -> None:
        """I6: those that stand, and no others."""
        wanted = {
            uid: f"{model.pods[uid].key} {held.node} {held.epoch} {held.state} {held.attempt} {held.since_ms}"
            for uid, held in model.held.items()
        }
        assert self.reservations == wanted
        for pod in model.standing(*RESERVED_PLACES):
            assert self.records[pod.key]["node"] == model.held[pod.uid].node

    def _sums(self, model: Model) -> None:
        """I3: what is taken on each node is what its pods take up."""
        assert set(self.nodes) == set(model.nodes)
        for name, node in model.nodes.items():
            fields = self.nodes[name]
            used = {field[5:]: int(value) for field, value in fields.items() if field.startswith("used.")}
            assert {resource: amount for resource, amount in used.items() if amount} == model.taken(name)
            assert (fields["allocatable.cpu"], fields["allocatable.pods"]) == (str(node.cpu), str(node.pods))

    def _binds(self, model: Model) -> None:
        """I2: each pod is bound to the node it was reserved, or not at all."""
        found = {key: tuple(line.split(" ")[:2]) for key, line in self.cluster.items()}
        alive = [pod for pod in model.pods.values() if pod.alive]
        assert found == {str(pod.key): (pod.uid, pod.bound or "-") for pod in alive}


def _texts(raw: dict[bytes, bytes]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in raw.items()}
