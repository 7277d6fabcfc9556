"""What a leader believes, written to its log when somebody asks (SIGUSR2): first how that differs from the cluster and
from Redis, then the queue, the nodes with their usage and pods, and the promises.

A line a pod and a line a node, whatever ``--log-level`` says, a few in each turn of the loop, so that scheduling goes
on. So each line says what was so when it was written. The queue comes before the nodes: who is bound meanwhile is named
twice rather than not at all.

Source: pkg/scheduler/backend/cache/debugger (``CacheDebugger``, ``CacheComparer``, ``CacheDumper``).
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator

from dsched.framework.pod_info import PodInfo
from dsched.framework.table import NodeInfo
from dsched.leader.audit.compare import Audit
from dsched.leader.parts import LeaderMemory
from dsched.log import logger
from dsched.model.meta import NodeName
from dsched.scheduler.ports import QueueName
from dsched.scheduler.queue import QueuedGroup, QueuedPod

_log = logger(__name__)
_log.setLevel(logging.INFO)  # somebody has asked for it

LINES_A_TURN = 200
"""Some milliseconds."""


class Dump:
    """Writes for one epoch."""

    def __init__(self, memory: LeaderMemory, *, audit: Audit, compare: Callable[[], None]) -> None:
        """
        Args:
            compare: takes the audit's look one piece further.
        """
        self._audit = audit
        self._compare = compare
        self._pending, self._cache = memory.pending, memory.cache
        self._asked = False
        self._turns: Iterator[None] | None = None
        self._written: Counter[str] = Counter()

    def ask(self) -> None:
        """Write everything soon, once more where that is under way; from any thread or a signal handler."""
        self._asked = True

    @property
    def due(self) -> bool:
        """Whether there is something to write."""
        return self._asked or self._turns is not None

    def step(self) -> None:
        """Write what belongs into one turn of the loop.

        Raises:
            StateError: as `Audit.step`.
        """
        if self._turns is None:
            if not self._asked:
                return
            self._asked = False
            self._turns = self._all()
        for _ in self._turns:
            return
        self._turns = None

    def _all(self) -> Iterator[None]:
        """Ends a turn with each item."""
        _log.info("dump begins", extra={"action": "dump"})
        self._written.clear()
        yield from self._compared()
        for number, _ in enumerate(self._lines(), 1):
            if number % LINES_A_TURN == 0:
                yield
        _log.info("dump ends", extra={"action": "dump", **self._written})

    def _lines(self) -> Iterator[None]:
        """Writes a line before each item."""
        yield from self._differences()
        yield from self._queue()
        yield from self._nodes()
        yield from self._homeless()
        yield from self._promises()

    # -- compared --------------------------------------------------------------------------------------------------

    def _compared(self) -> Iterator[None]:
        self._audit.begin()
        while self._audit.looking:
            self._compare()
            yield

    def _differences(self) -> Iterator[None]:
        """None of them counts yet: what has just changed is on its way to the leader."""
        found = self._audit.found
        if found is None:
            return
        self._written["differences"] = len(found)
        for suspect in found:
            detail = " ".join(map(str, suspect.detail))
            extra = {"action": "dump", suspect.kind: suspect.subject, "what": suspect.what, "detail": detail}
            _log.warning("cache differs, repaired if that lasts", extra=extra)
            yield

    # -- queue -----------------------------------------------------------------------------------------------------

    def _queue(self) -> Iterator[None]:
        places = (QueueName.ACTIVE, QueueName.BACKOFF, QueueName.UNSCHEDULABLE, QueueName.GATED)
        self._written.update({place.value: 0 for place in places})
        for pod in list(self._pending):
            if self._pending.get(pod.key) is pod:
                self._written[pod.place.value or "nowhere"] += 1
                _log.info("pod in the queue", extra=self._queued(pod))
                yield

        for group in list(self._pending.groups()):
            if self._pending.group(group.pod_group.key) is group:
                self._written[group.place.value or "nowhere"] += 1
                _log.info("pod group in the queue", extra=self._group(group))
                yield

    def _group(self, group: QueuedGroup) -> dict[str, object]:
        pods = len(self._pending.members(group.pod_group.key))
        stands = {"queue": group.place.value, "attempts": group.attempts, "plugins": " ".join(sorted(group.plugins))}
        return {"action": "dump", "group": group.pod_group.key, "uid": group.uid, "pods": pods, **stands}

    def _queued(self, pod: QueuedPod) -> dict[str, object]:
        stands: dict[str, object] = {"queue": pod.place.value, "attempts": pod.attempts}
        stands["plugins"] = " ".join(sorted(pod.plugins))
        if pod.group:
            stands["group"] = pod.group
        return {**_pod(pod.info), **stands, "nominated_node": pod.info.pod.status.nominated_node_name}

    # -- nodes -----------------------------------------------------------------------------------------------------

    def _nodes(self) -> Iterator[None]:
        table = self._cache.snapshot.table
        self._written["nodes"] = self._written["pods"] = 0
        for name in list(table.names):
            row = table.index.get(name)
            if row is None:
                continue
            info = table.info(row)
            pods = list(info.pods)
            self._written["nodes"] += 1
            _log.info("node in the cache", extra=self._node(info, len(pods)))
            yield
            for pod in pods:
                self._on(name, pod)
                yield

    def _node(self, info: NodeInfo, pods: int) -> dict[str, object]:
        promised = len(self._cache.snapshot.nominations.on(info.name))
        amounts = {"requested": info.requested, "allocatable": info.allocatable}
        return {"action": "dump", "node": info.name, "pods": pods, "nominated": promised, **amounts}

    def _homeless(self) -> Iterator[None]:
        """Pods on nodes that are not there."""
        table = self._cache.snapshot.table
        for name, pod in [(name, pod) for name, pod in table.placed() if name not in table.index]:
            self._on(name, pod, node_is_gone=True)
            yield

    def _on(self, node: NodeName, pod: PodInfo, **more: bool) -> None:
        self._written["pods"] += 1
        assumed = self._cache.assumed_on(pod.uid) is not None
        _log.info("pod on a node", extra={**_pod(pod), "node": node, "assumed": assumed, **more})

    def _promises(self) -> Iterator[None]:
        nominations = self._cache.snapshot.nominations
        self._written["nominated"] = 0
        for node in nominations.nodes():
            for pod in nominations.on(node):
                self._written["nominated"] += 1
                _log.info("pod with a nominated node", extra={**_pod(pod), "node": node})
                yield


def _pod(info: PodInfo) -> dict[str, object]:
    return {"action": "dump", "pod": info.key, "uid": info.uid, "phase": info.pod.status.phase}
