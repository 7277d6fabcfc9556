"""Node usage in Redis: what is allocatable and taken on each node, and the version that optimistic reservations check.

The leader is the only writer. Its versions here mirror those in Redis: each change of a node moves them by one.
"""

from collections.abc import Sequence

from dsched.model import raw
from dsched.model.meta import NodeName
from dsched.scheduler.ports import Amounts, Seen
from dsched.state import keys
from dsched.state.client import Store
from dsched.state.pieces import cut, packed
from dsched.state.reservations import texts
from dsched.state.scripts import Script

_AMOUNT_BYTES = 200
"""An amount counts as so many bytes, so that a script writes some 5,000 of them at most."""


class Usage:
    """Writes node usage under one epoch; changes are gathered and written by `flush`."""

    def __init__(self, store: Store, epoch: int, key: keys.Key = keys.NODE) -> None:
        """
        Args:
            key: under which it is written; queues and their limits are written as nodes are.
        """
        self._epoch = epoch
        self._store = store
        self._key = key
        self._write = Script(store, "nodes_write")
        self._seen: dict[NodeName, Seen] = {}
        self._pending: list[list[object]] = []

    def seen(self, node: NodeName) -> Seen:
        """The node's versions as the leader knows them."""
        return self._seen.get(node, Seen(0, 0))

    def moved(self, node: NodeName) -> None:
        """A reservation script has charged or released the node."""
        seen = self._seen.get(node)
        if seen is not None:
            self._seen[node] = Seen(seen.version + 1, seen.object_version)

    def look_again(self, node: NodeName) -> bool:
        """Redis refused a reservation: read the node's versions anew; whether there are any, or somebody has written
        there what is none, so that every reservation is refused until `mend`. To be called after `moved` for all that
        the same call reserved, or those would count twice."""
        self._seen.pop(node, None)
        self._seen.update(self._versions([node]))
        return node in self._seen

    def set(self, node: NodeName, allocatable: Amounts) -> None:
        """The node object is new or has changed."""
        seen = self.seen(node)
        self._seen[node] = Seen(seen.version + 1, seen.object_version + 1)
        self._pending.append(["set", node, texts(allocatable)])

    def add(self, node: NodeName, amounts: Amounts) -> None:
        """A pod joined the node without a reservation."""
        self._charge("add", node, amounts)

    def subtract(self, node: NodeName, amounts: Amounts) -> None:
        """A bound pod left the node."""
        self._charge("sub", node, amounts)

    def gone(self, node: NodeName) -> None:
        """The node is no more."""
        self._seen.pop(node, None)
        self._pending.append(["gone", node])

    def _charge(self, what: str, node: NodeName, amounts: Amounts) -> None:
        if node in self._seen:
            self._pending.append([what, node, texts(amounts)])
            self.moved(node)

    def flush(self) -> None:
        """Write what has been gathered.

        Raises:
            StaleEpoch: another leader has taken over; nothing was written.
        """
        self.flush_ahead()
        self._store.settle()

    def flush_ahead(self) -> None:
        """As `flush`, but without waiting for Redis (`Script.ahead`)."""
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        for piece in cut(pending, _size):
            self._write.ahead(keys.names(keys.EPOCH, self._key), [self._epoch, packed(piece)])

    def rebuild(self, nodes: Sequence[tuple[NodeName, Amounts, Amounts]]) -> None:
        """Write every node anew (name, allocatable, used) and drop those that are not there: for a new leader.

        Raises:
            StaleEpoch: another leader has taken over.
        """
        wanted = {name for name, _, _ in nodes}
        stale = [name for name in read_names(self._store, self._key) if name not in wanted]
        self._pending = [["gone", name] for name in stale]
        self._pending += [["reset", name, texts(allocatable), texts(used)] for name, allocatable, used in nodes]
        self.flush()
        self._seen = self._versions([name for name, _, _ in nodes])

    def mend(self, nodes: Sequence[tuple[NodeName, Amounts, Amounts]]) -> None:
        """Write these nodes anew (name, allocatable, used); what was gathered before is written first.

        Raises:
            StaleEpoch: another leader has taken over.
        """
        self._pending += [["reset", name, texts(allocatable), texts(used)] for name, allocatable, used in nodes]
        self.flush()
        for name, _, _ in nodes:
            self._seen.pop(name, None)
        self._seen.update(self._versions([name for name, _, _ in nodes]))

    def _versions(self, names: Sequence[NodeName]) -> dict[NodeName, Seen]:
        return read_versions(self._store, names, self._key)


def _size(change: Sequence[object]) -> int:
    """About how many bytes a change is: what it costs is the amounts in it."""
    return sum(_AMOUNT_BYTES * len(part) for part in change if isinstance(part, dict))


def read_names(store: Store, key: keys.Key = keys.NODE) -> list[NodeName]:
    """Nodes with usage in Redis."""
    prefix = store.key(key.name)
    return [NodeName(raw.text(name)[len(prefix) :]) for name in store.names(key.name)]


def read_versions(store: Store, names: Sequence[NodeName], key: keys.Key = keys.NODE) -> dict[NodeName, Seen]:
    """The versions of nodes as they are in Redis; a node that has none there is left out."""
    found: dict[NodeName, Seen] = {}
    for piece in cut(names):
        with store.redis.pipeline(transaction=False) as pipeline:
            for name in piece:
                pipeline.hmget(store.key(key.name + name), "version", "object")
            rows = zip(piece, pipeline.execute(), strict=True)
        found |= {
            name: Seen(int(version), int(changed))
            for name, (version, changed) in rows
            if version is not None and raw.is_whole(version) and changed is not None and raw.is_whole(changed)
        }
    return found


def read_usage(store: Store, name: NodeName, key: keys.Key = keys.NODE) -> dict[str, str]:
    """A node's usage as it is in Redis, field to text."""
    fields = store.redis.hgetall(store.key(key.name + name))
    return {raw.text(field): raw.text(value) for field, value in fields.items()}
