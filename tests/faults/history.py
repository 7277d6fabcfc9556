"""What a cluster accepted, in the order in which it did: recorded outside the scheduler, as it happens.

Nothing of dsched is used. A standalone cluster's log is followed by a thread that reads it as any Redis client would;
the API server of the tests writes down each change while it makes it.
"""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import redis

Json = dict[str, Any]

PREFIX = "dsched:{default}:"
ADDED, MODIFIED, DELETED, BOUND, LOST = "ADDED", "MODIFIED", "DELETED", "BOUND", "LOST"
KINDS = ("Node", "Pod")
WAIT_MS = 500
AT_ONCE = 2000


@dataclass(frozen=True)
class Entry:
    """One change.

    Attributes:
        at: monotonic seconds at which it was seen.
        version: the cluster's, grows by each change.
        change: LOST: the cluster has gone back to ``version`` (its Redis had lost what came later).
        node: where a BOUND pod was bound to; of an ADDED pod, the node that its manifest named.
        reason: of a DELETED pod, what the log says; empty for a user's.
    """

    at: float
    version: int
    change: str
    kind: str = ""
    key: str = ""
    uid: str = ""
    object: Json | None = None
    node: str = ""
    reason: str = ""


class History:
    """All entries, and what they come to: the objects that are there now.

    Attributes:
        nodes, pods: the last entry with an object, by key; where each pod is bound to, by uid.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._entries: list[Entry] = []
        self.nodes: dict[str, Json] = {}
        self.pods: dict[str, Json] = {}
        self.bound: dict[str, str] = {}

    def add(self, entry: Entry) -> None:
        """Take note of a change."""
        with self.lock:
            self._entries.append(entry)
            if entry.change == LOST:
                self._replay(entry.version)
            else:
                self._apply(entry)

    def entries(self) -> list[Entry]:
        """All of them, from the beginning."""
        with self.lock:
            return list(self._entries)

    def forget(self) -> None:
        """Begin anew from what is there now: the entries of an earlier run are of no use to the next."""
        with self.lock:
            now = time.monotonic()
            last = self._entries[-1].version if self._entries else 0
            standing = [("Node", key, node) for key, node in self.nodes.items()]
            standing += [("Pod", key, pod) for key, pod in self.pods.items()]
            self._entries = [Entry(now, last, ADDED, kind, key, _uid(obj), obj) for kind, key, obj in standing]
            self._entries += [
                Entry(now, last, BOUND, "Pod", key, _uid(pod), None, self.bound[_uid(pod)])
                for key, pod in self.pods.items()
                if _uid(pod) in self.bound
            ]

    def first(self, since: float, wanted: Callable[[Entry], bool]) -> Entry | None:
        """The first entry seen after a moment that is wanted."""
        return next((each for each in self.entries() if each.at > since and wanted(each)), None)

    def _apply(self, entry: Entry) -> None:
        held = self.nodes if entry.kind == "Node" else self.pods
        if entry.change == DELETED:
            held.pop(entry.key, None)
            self.bound.pop(entry.uid, None)
        elif entry.change == BOUND:
            self.bound[entry.uid] = entry.node
        elif entry.object is not None:
            held[entry.key] = entry.object
            if entry.node:
                self.bound[entry.uid] = entry.node

    def _replay(self, version: int) -> None:
        self._entries = [each for each in self._entries if each.change == LOST or each.version <= version]
        self.nodes, self.pods, self.bound = {}, {}, {}
        for each in self._entries:
            if each.change != LOST:
                self._apply(each)


class Follower:
    """Follows the log of a standalone cluster in a thread of its own, through restarts and losses of its Redis."""

    def __init__(self, url: str, history: History) -> None:
        self._redis: Any = redis.Redis.from_url(url, socket_timeout=10, decode_responses=True)
        self._history = history
        self._seen = 0
        self._losses = 0
        self._cluster: str | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="follower", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(20)
        self._redis.close()

    def caught_up(self) -> bool:
        """Whether everything that the cluster has accepted until now is in the history."""
        return int(self._redis.get(PREFIX + "cluster:version") or 0) == self._seen

    def retarget(self, url: str) -> None:
        """Follow another server, which has the same cluster or an older state of it."""
        old, self._redis = self._redis, redis.Redis.from_url(url, socket_timeout=10, decode_responses=True)
        old.close()

    def lost(self, version: int) -> None:
        """The cluster has gone back to a version: whatever it accepted later has not happened."""
        with self._history.lock:
            self._losses += 1
            if version < self._seen:
                self._back_to(version, time.monotonic(), self._cluster)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._read()
            except (redis.RedisError, OSError, ValueError):  # away, restarting, or just exchanged for another one
                self._stopping.wait(0.02)

    def _read(self) -> None:
        losses = self._losses
        found = self._redis.xread({PREFIX + "cluster:log": f"{self._seen}-0"}, AT_ONCE, WAIT_MS)
        now = time.monotonic()
        cluster, newest = self._redis.mget(PREFIX + "cluster:id", PREFIX + "cluster:version")
        with self._history.lock:
            if losses == self._losses:
                self._take(found, now, cluster, int(newest or 0))

    def _take(self, found: Any, now: float, cluster: str | None, newest: int) -> None:
        if self._cluster not in (None, cluster):
            self._back_to(0, now, cluster)
            return
        self._cluster = cluster
        if newest < self._seen:
            self._back_to(newest, now, cluster)
            return
        for name, fields in found[0][1] if found else ():
            self._seen = int(name.partition("-")[0])
            if fields["kind"] in KINDS and fields["change"] != "STATUS":
                self._history.add(_entry(now, self._seen, fields))

    def _back_to(self, version: int, now: float, cluster: str | None) -> None:
        self._seen, self._cluster = version, cluster
        self._history.add(Entry(now, version, LOST))


def _entry(now: float, version: int, fields: dict[str, str]) -> Entry:
    value = json.loads(fields["object"]) if "object" in fields else None
    node = fields.get("node", "") if fields["change"] != MODIFIED else ""
    if fields["change"] == ADDED and value is not None and fields["kind"] == "Pod":
        node = value["spec"].get("nodeName", "")
    return Entry(
        now, version, fields["change"], fields["kind"], fields["key"], fields["uid"], value, node,
        fields.get("reason", ""),
    )  # fmt: skip


def _uid(value: Json) -> str:
    return str(value["metadata"]["uid"])
