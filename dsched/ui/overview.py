"""What goes on in the system at one moment: who leads, what is paused, how full the queues are, who works."""

from collections.abc import Mapping, Sequence

import msgspec

from dsched.state import client, counts, leader_config, leaders, lease, pauses, standings, versions, workers
from dsched.state.leaders import LeaderNote
from dsched.state.pauses import Paused
from dsched.ui import queues
from dsched.ui.system import System
from dsched.ui.throughput import Point


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


def read(system: System, following: Following) -> Overview:
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
