"""A running system to be harmed: ``dsched up`` with two leaders, evaluators and binders, a Redis of its own behind a
proxy, and a cluster whose history is recorded.

Two kinds: `Standalone` keeps nodes and pods in that same Redis; `Kubernetes` keeps them behind an API server that the
tests run, so that Redis may lose everything and the cluster nothing.
"""

import json
import os
import shutil
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import redis

from tests.acceptance import processes
from tests.acceptance.system import System
from tests.faults.history import PREFIX, History
from tests.faults.proxy import Proxy
from tests.redis_server import RedisServer

Json = dict[str, Any]

UP = ("--leaders", "2", "--evaluators", "2", "--binders", "2")
LEASE_S = 3.0
HEALTHY_S = 90.0
AOF = ("--appendonly", "yes", "--appendfsync", "everysec")
ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class Standing:
    """How full everything is, at one moment.

    Attributes:
        moving: pods in a place where something is still to happen to them.
        intake: how far the leader has taken the cluster in.
    """

    moving: dict[str, int]
    unschedulable: int
    gated: int
    intake: int
    led: bool


class Arena(ABC):
    """One running system.

    Attributes:
        kind: ``standalone`` or ``kubernetes``.
        system: its command line; server: its Redis; proxy: what its processes believe to be Redis.
        history: what the cluster has accepted.
        redis: a connection of our own, past the proxy.
    """

    kind = ""

    def __init__(self, folder: Path, *options: str, **variables: str) -> None:
        self.folder = folder
        self.options = options
        self.system = System(folder, **variables)
        self.server = RedisServer(folder / "redis", *AOF)
        self.proxy = Proxy(self.server.port)
        self.history = History()
        self.redis: Any = None
        self.runs = 0
        self.stopped: set[int] = set()

    # -- the cluster, as its users see it --------------------------------------------------------------------------

    @abstractmethod
    def put(self, kind: str, *objects: Json) -> None:
        """Create or change objects of a kind (``Node``, ``Pod``)."""

    @abstractmethod
    def delete(self, kind: str, *keys: str) -> None:
        """Delete objects."""

    @abstractmethod
    def objects(self, kind: str) -> list[Json]:
        """All of a kind, as they are now."""

    @abstractmethod
    def scheduled_events(self) -> dict[str, int]:
        """How often each pod was told that it was scheduled: by key (standalone) or uid (kubernetes)."""

    @abstractmethod
    def caught_up(self, standing: Standing) -> bool:
        """Whether history and leader know all that the cluster has accepted."""

    @abstractmethod
    def went_back(self) -> None:
        """Redis has lost what it was told last: so has the cluster, where it is kept there."""

    # -- start and stop --------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start everything and wait until it is healthy."""
        self.server.start()
        self.proxy.start()
        self.connect(self.server.url)
        self.system.redis_url = f"redis://127.0.0.1:{self.proxy.port}/0"
        self.system.up(*UP, *self.options)
        self.wait_healthy()

    def stop(self) -> None:
        """Stop everything; nothing is left running."""
        self.go_on()
        self.proxy.heal()
        try:
            self.system.end()
        finally:
            self.redis.close()
            self.proxy.stop()
            self.server.stop()

    def connect(self, url: str) -> None:
        """Look at this Redis from now on."""
        if self.redis is not None:
            self.redis.close()
        self.redis = redis.Redis.from_url(url, decode_responses=True, socket_timeout=10)

    def keep_logs(self, where: Path) -> None:
        """Copy the logs of all processes to a folder, with the history as lines of JSON."""
        shutil.copytree(self.folder / "data" / "logs", where, dirs_exist_ok=True)
        lines = [json.dumps(asdict(entry)) for entry in self.history.entries()]
        (where / "history.jsonl").write_text("\n".join(lines))

    # -- processes -------------------------------------------------------------------------------------------------

    def running(self, part: str) -> list[int]:
        """Processes of a part that run: ``leader``, ``evaluator``, ``binder``."""
        pids = self.system.pids()
        return [pid for name, pid in sorted(pids.items()) if name.startswith(f"{part}-") and processes.runs(pid)]

    def forked(self, part: str) -> list[int]:
        """The pool processes of a kind of worker, which do the work."""
        return [child for pid in self.running(part) for child in processes.children(pid)]

    def leading(self) -> list[int]:
        """The process that holds the lease, if it runs."""
        held = str(self.redis.get(PREFIX + "leader") or "")
        return [pid for pid in self.running("leader") if f"-{pid}-" in held]

    def standing_by(self) -> list[int]:
        leading = self.leading()
        return [pid for pid in self.running("leader") if pid not in leading]

    def halt(self, *pids: int) -> None:
        """SIGSTOP."""
        for pid in pids:
            self.stopped.add(pid)
            os.kill(pid, signal.SIGSTOP)

    def go_on(self, *pids: int) -> None:
        """SIGCONT: to these, or to all that are stopped."""
        for pid in pids or tuple(self.stopped):
            self.stopped.discard(pid)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def is_healthy(self) -> bool:
        """One leads, one stands by, and each worker has shown that it takes tasks."""
        if len(self.running("leader")) < 2 or not self.leading():
            return False
        now_ms = time.time() * 1000
        seen = [text.split() for text in self.redis.hvals(PREFIX + "workers")]
        fresh = [kind for kind, last, *_ in seen if now_ms - int(last) < 3000]
        return fresh.count("evaluator") >= 2 and fresh.count("binder") >= 2

    def wait_healthy(self, deadline_s: float = HEALTHY_S) -> None:
        processes.wait_until("all parts of the system run", self.is_healthy, deadline_s)

    # -- scheduling state, read as any Redis client would ----------------------------------------------------------

    def standing(self) -> Standing:
        pipe = self.redis.pipeline(transaction=True)
        for name in ("queue:active", "queue:backoff", "queue:waiting", "queue:unschedulable", "queue:gated"):
            pipe.zcard(PREFIX + name)
        pipe.hlen(PREFIX + "queue:inflight")
        pipe.hlen(PREFIX + "reservations")
        pipe.hget(PREFIX + "intake", "version")
        pipe.exists(PREFIX + "leader")
        active, backoff, waiting, unschedulable, gated, inflight, reserved, intake, led = pipe.execute()
        moving = {"active": active, "backoff": backoff, "inflight": inflight, "waiting": waiting, "reserved": reserved}
        return Standing(moving, unschedulable, gated, int(intake or -1), bool(led))

    def epoch(self) -> int:
        return int(self.redis.get(PREFIX + "leader:epoch") or 0)

    def attempts(self) -> dict[str, int]:
        """How often each pending pod has been tried, by uid; pod groups count anew after each attempt that succeeds."""
        names = list(self.redis.scan_iter(match=PREFIX.replace("{", "\\{").replace("}", "\\}") + "pod:*", count=1000))
        pipe = self.redis.pipeline(transaction=False)
        for name in names:
            if name.count("/") == 1:
                pipe.hmget(name, "uid", "attempts")
        return {uid: int(tried or 0) for uid, tried in pipe.execute() if uid is not None}

    def families(self) -> dict[str, int]:
        """How many keys of each family there are: the part of the name before a namespace, a node or a request."""
        found: dict[str, int] = {}
        for name in self.redis.scan_iter(match="*", count=1000):
            parts = name.removeprefix(PREFIX).split(":")
            family = ":".join(parts[:-1]) if "/" in parts[-1] or parts[0] in ("node", "replies") else ":".join(parts)
            found[family] = found.get(family, 0) + 1
        return found

    def fsck(self) -> list[str]:
        """What ``dsched fsck`` calls a breach."""
        done = self.system.run("fsck", "--redis-url", self.server.url, "-o", "json")
        if not done.stdout:
            return [f"fsck: exit code {done.returncode}: {done.stderr.strip()}"]
        answer = json.loads(done.stdout)
        return [f"fsck {each['invariant']} {each['subject']}: {each['message']}" for each in answer["breaches"]]


def pending(pods: Iterable[Json]) -> list[Json]:
    """Pods that wait to be scheduled."""
    return [
        pod
        for pod in pods
        if not pod["spec"].get("nodeName")
        and pod.get("status", {}).get("phase") not in ENDED
        and not pod["metadata"].get("deletionTimestamp")
    ]


def refused(pod: Json) -> bool:
    """Whether it says that it fits nowhere."""
    conditions: Sequence[Json] = pod.get("status", {}).get("conditions", ())
    return any(each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable" for each in conditions)
