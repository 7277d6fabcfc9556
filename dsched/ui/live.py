"""Looks at the system every two seconds, for all who have the page open, and tells them.

An overview is what goes on in the system at one moment: who leads, what is paused, how full the queues are, who works.
Attempts per second over time come from what the leader counts and are kept in this process alone.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

import msgspec
from starlette.concurrency import run_in_threadpool

from dsched.errors import DschedError
from dsched.log import logger
from dsched.state import client, counts, leader_config, leaders, lease, pauses, phases, standings, versions, workers
from dsched.state.leaders import LeaderNote
from dsched.state.pauses import Paused
from dsched.state.phases import Written
from dsched.ui import queues
from dsched.ui.shares import SharesTable
from dsched.ui.system import System

_log = logger(__name__)

EVERY_S = 2.0
MOST_LISTENERS = 64
KEPT = 450
"""Points; 15 minutes of one every 2 s."""


class Point(msgspec.Struct, frozen=True):
    """Attempts per second since the point before, by result: scheduled (a node was found), unschedulable, error."""

    at_ms: int
    rates: Mapping[str, float]


class Throughput:
    """The last points, oldest first."""

    def __init__(self) -> None:
        self._points: deque[Point] = deque(maxlen=KEPT)
        self._before: tuple[float, int, Written] | None = None
        self._lock = Lock()

    def add(self, at_ms: int, at_s: float, epoch: int, written: Written) -> Point | None:
        """Take in what the leader has counted; the new point, None where there is nothing to compare with.

        Args:
            at_s: the same moment in monotonic seconds.
            epoch: of the leader; another one has begun to count anew.
        """
        before, self._before = self._before, (at_s, epoch, written)
        if before is None or before[1] != epoch or written.written < before[2].written or at_s <= before[0]:
            return None
        earlier = before[2].attempts
        rates = {
            result: round(max(0, sum(counts) - sum(earlier.get(result, ()))) / (at_s - before[0]), 2)
            for result, counts in written.attempts.items()
        }
        point = Point(at_ms, rates)
        with self._lock:
            self._points.append(point)
        return point

    def points(self) -> list[Point]:
        """What is kept."""
        with self._lock:
            return list(self._points)


class Worker(msgspec.Struct, frozen=True):
    """An evaluator or a binder.

    Attributes:
        silent: whether it has not run a task for too long.
        behind: by how many versions its replica of the node table is behind; None where it has none.
    """

    name: str
    kind: str
    seen_ms: int
    silent: bool
    behind: int | None
    config: str
    trouble: str


class Overview(msgspec.Struct, frozen=True):
    """
    Attributes:
        at_ms: when it was read; times are in ms since the epoch.
        redis: the URL with its password hidden.
        cluster: what keeps nodes and pods: ``standalone`` or ``kubernetes``; empty before the first leader.
        leader: identity, None where nobody leads.
        since_ms: since when this leader is seen to lead, None where nobody leads.
        since_start: whether it led already when this page's server began to look.
        queues: pods in each place.
        tasks: messages that no worker has taken, by kind of worker; ``results``: binds that the leader has not read.
        config: hash of the configuration that the leader publishes, empty where it does not.
        emulated: the version of kube-scheduler that the leader emulates, ``1.37``; empty where it does not say.
        feature_gates: those of it that were set, ``A=true,B=false``.
        latest: the last point of the throughput, None before the second look at this leader.
    """

    at_ms: int
    name: str
    redis: str
    cluster: str
    leader: str | None
    epoch: int
    since_ms: int | None
    since_start: bool
    paused: Sequence[Paused]
    queues: Mapping[str, int]
    tasks: Mapping[str, int]
    results: int
    leaders: Sequence[LeaderNote]
    workers: Sequence[Worker]
    config: str
    emulated: str = ""
    feature_gates: str = ""
    latest: Point | None = None


class Following:
    """Since when somebody leads, as far as this process has seen."""

    def __init__(self) -> None:
        self._epoch: int | None = None
        self._since_ms = 0
        self._from_start = False

    def see(self, epoch: int, now_ms: int) -> tuple[int, bool]:
        """Since when this epoch's leader leads, and whether it led before this process looked."""
        if epoch != self._epoch:
            self._from_start, self._epoch, self._since_ms = self._epoch is None, epoch, now_ms
        return self._since_ms, self._from_start

    def nobody(self) -> None:
        """Nobody leads."""
        self._epoch = 0


def read_overview(system: System, following: Following) -> Overview:
    """Look now.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    store, now_ms = system.store, system.clock.now_ms()
    with client.reachable(store):
        held = lease.holder(store)
        sizes = counts.read(store)
        known = workers.read(store)
        newest = versions.newest(store)
        told = leader_config.read(store)
        noted = leaders.read(store)
    since = None
    if held is None:
        following.nobody()
    else:
        since = following.see(held[1], now_ms)
    return Overview(
        at_ms=now_ms,
        name=store.name,
        redis=system.where,
        cluster=standings.cluster(store),
        leader=held[0] if held else None,
        epoch=held[1] if held else standings.moment(store).epoch,
        since_ms=since[0] if since else None,
        since_start=bool(since and since[1]),
        paused=pauses.read(store),
        queues=queues.counts(store),
        tasks=sizes.tasks,
        results=sizes.results,
        leaders=noted,
        workers=[
            Worker(
                each.name,
                each.kind,
                each.last_seen_ms,
                each.silent(now_ms),
                each.behind(newest),
                each.config,
                each.trouble,
            )
            for each in known
            if now_ms - each.last_seen_ms <= workers.FORGOTTEN_AFTER_MS
        ],
        config=told.hash if told else "",
        emulated=told.version if told else "",
        feature_gates=told.gates if told else "",
    )


@dataclass(frozen=True, slots=True)
class Look:
    """What the last look came to: an overview, or why there is none."""

    number: int
    overview: Overview | None
    error: str = ""

    def event(self) -> bytes:
        """As a server-sent event: ``overview`` with the overview, or ``trouble`` with the error."""
        kind, data = ("overview", self.overview) if self.overview is not None else ("trouble", {"message": self.error})
        return f"event: {kind}\nid: {self.number}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"


class Live:
    """One system, looked at from one thread at a time."""

    def __init__(self, system: System, every_s: float = EVERY_S) -> None:
        self._system = system
        self._every_s = every_s
        self._following = Following()
        self._changed = asyncio.Condition()
        self._stopped = asyncio.Event()
        self._listeners = 0
        self.throughput = Throughput()
        self.shares = SharesTable(system)
        self.latest = Look(0, None, "nothing was read yet")

    @property
    def full(self) -> bool:
        """Whether there are as many listeners as are served."""
        return self._listeners >= MOST_LISTENERS

    def look(self) -> Look:
        """Look now; blocks.

        Errors are told, not raised: the system may be back at the next look.
        """
        number = self.latest.number + 1
        try:
            now_s, now_ms = self._system.clock.monotonic(), self._system.clock.now_ms()
            written = phases.read(self._system.store)
            found = read_overview(self._system, self._following)
            point = self.throughput.add(now_ms, now_s, found.epoch, written) if found.leader else None
            self.shares.look()
            look = Look(number, msgspec.structs.replace(found, latest=point))
        except DschedError as error:
            look = Look(number, None, str(error))
        except Exception as error:  # noqa: BLE001 - of another version, perhaps: the page tells it and goes on
            look = Look(number, None, f"what stands in Redis cannot be read ({type(error).__name__}: {error})")
        if look.error and look.error != self.latest.error:
            _log.warning("system cannot be read", extra={"action": "look", "error": look.error})
        self.latest = look
        return look

    async def run(self) -> None:
        """Look again and again, until `stop`."""
        while not self._stopped.is_set():
            await run_in_threadpool(self.look)
            async with self._changed:
                self._changed.notify_all()
            try:
                await asyncio.wait_for(self._stopped.wait(), self._every_s)
            except TimeoutError:
                continue

    async def stop(self) -> None:
        """End `run` and every `events`."""
        self._stopped.set()
        async with self._changed:
            self._changed.notify_all()

    async def events(self) -> AsyncIterator[bytes]:
        """Server-sent events: what the last look came to, and each further one."""
        self._listeners += 1
        try:
            told = 0
            while not self._stopped.is_set():
                look = self.latest
                if look.number != told:
                    told = look.number
                    yield look.event()
                    continue
                async with self._changed:
                    while self.latest is look and not self._stopped.is_set():
                        await self._changed.wait()
        finally:
            self._listeners -= 1
