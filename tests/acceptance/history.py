"""What a standalone cluster and its scheduler have written down in Redis, read as any Redis client would."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

PREFIX = "dsched:{default}:"
QUEUES = ("queue:active", "queue:backoff", "queue:unschedulable")
AT_ONCE = 5000


@dataclass(frozen=True)
class Bound:
    """A bind that the cluster accepted."""

    version: int
    key: str
    uid: str
    node: str


@dataclass(frozen=True)
class State:
    """A pod as the cluster keeps it: node "" and time 0 while it is not bound."""

    uid: str
    node: str
    bound_at_ms: int


class History:
    """The Redis of the system that runs over a data folder right now."""

    def __init__(self, data_dir: Path) -> None:
        url = json.loads((data_dir / "system.json").read_text())["redis_url"]
        self._redis: Any = redis.Redis.from_url(url, decode_responses=True)

    def close(self) -> None:
        self._redis.close()

    def leader(self) -> tuple[str, int] | None:
        """Who holds the lease, and the epoch."""
        text = self._redis.get(PREFIX + "leader")
        if text is None:
            return None
        identity, _, epoch = text.rpartition(" ")
        return identity, int(epoch)

    def epoch(self) -> int:
        """The newest epoch there ever was."""
        return int(self._redis.get(PREFIX + "leader:epoch") or 0)

    def open(self) -> int:
        """How many pods have neither a node nor the verdict that there is none for them."""
        return sum(not state.node for state in self.states()) - int(self._redis.zcard(PREFIX + QUEUES[2]))

    def states(self) -> list[State]:
        """All pods."""
        lines = [line.split(" ") for line in self._redis.hvals(PREFIX + "cluster:pods:state")]
        return [State(uid, "" if node == "-" else node, int(at) if at != "-" else 0) for uid, node, at, *_ in lines]

    def depths(self) -> dict[str, int]:
        """How many pods there are, and how many stand in each place of the queue."""
        pipe = self._redis.pipeline(transaction=True)
        for queue in QUEUES:
            pipe.zcard(PREFIX + queue)
        for name in ("queue:inflight", "reservations", "cluster:pods"):
            pipe.hlen(PREFIX + name)
        names = [*(queue.removeprefix("queue:") for queue in QUEUES), "inflight", "reserved", "pods"]
        return dict(zip(names, pipe.execute(), strict=True))

    def log(self) -> Iterator[tuple[int, dict[str, str]]]:
        """The watch log: version and fields of each change.

        Raises:
            AssertionError: a change is missing.
        """
        expected, start = 1, "-"
        while entries := self._redis.xrange(PREFIX + "cluster:log", min=start, count=AT_ONCE):
            for entry, fields in entries:
                version = int(entry.partition("-")[0])
                assert version == expected, f"the watch log goes from version {expected - 1} to {version}"
                expected += 1
                yield version, fields
            start = f"({entries[-1][0]}"

    def binds(self) -> list[Bound]:
        """Every bind that the cluster accepted, in order."""
        return [
            Bound(version, fields["key"], fields["uid"], fields["node"])
            for version, fields in self.log()
            if fields["change"] == "BOUND"
        ]

    def evicted(self) -> dict[str, int]:
        """Pods that were deleted to make room for others: UID to the version at which that happened."""
        return {
            fields["uid"]: version
            for version, fields in self.log()
            if fields["change"] == "DELETED" and fields.get("reason") == "PreemptionByScheduler"
        }

    def scheduled_events(self) -> Counter[str]:
        """How many times each pod was told to have been scheduled."""
        names = list(self._redis.scan_iter(match=_escaped("cluster:events:") + "*", count=AT_ONCE))
        pipe = self._redis.pipeline(transaction=False)
        for name in names:
            pipe.lrange(name, 0, -1)
        told: Counter[str] = Counter()
        for name, lines in zip(names, pipe.execute(), strict=True):
            for line in lines:
                _, reason, count, *_ = line.split(" ", 3)
                if reason == "Scheduled":
                    told[name.removeprefix(PREFIX + "cluster:events:")] += int(count)
        return told

    def attempts(self) -> dict[str, int]:
        """How often each pending pod has been tried, by UID."""
        names = list(self._redis.scan_iter(match=_escaped("pod:") + "*", count=AT_ONCE))
        pipe = self._redis.pipeline(transaction=False)
        for name in names:
            pipe.hmget(name, "uid", "attempts")
        return {uid: int(attempts or 0) for uid, attempts in pipe.execute() if uid is not None}


def _escaped(name: str) -> str:
    """The beginning of a key as a pattern."""
    return (PREFIX + name).replace("{", "\\{").replace("}", "\\}")
