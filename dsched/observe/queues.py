"""The scheduler's queues as gauges, counted in Redis when somebody asks; the leader tells of them, standbys do not."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from dsched import metrics
from dsched.clock import Clock
from dsched.scheduler.pod_groups import GroupCounts
from dsched.scheduler.ports import QueueName
from dsched.state import counts, pauses, workers
from dsched.state.client import Store


class Queues(Collector):
    """One system's queues."""

    def __init__(
        self, store: Store, clock: Clock, wanted: Callable[[], bool], groups: Callable[[], GroupCounts]
    ) -> None:
        """
        Args:
            wanted: whether this process is the one to tell of them.
            groups: the pods of pod groups among them, each of which Redis counts as one.
        """
        self._store = store
        self._clock = clock
        self._wanted = wanted
        self._groups = groups

    def collect(self) -> Iterator[Metric]:
        """The gauges; raises what `dsched.state.client.UNAVAILABLE` lists."""
        if not self._wanted():
            return
        found = counts.read(self._store)
        yield from _queues(found.queues, self._groups())
        tasks, seen = metrics.TASKS_WAITING.family(), metrics.WORKERS_SEEN.family()
        for queue, messages in found.tasks.items():
            tasks.add_metric([queue], messages)
        now_ms = self._clock.now_ms()
        states = Counter(
            (worker.kind, "silent" if worker.silent(now_ms) else "live") for worker in workers.read(self._store)
        )
        for kind in ("evaluator", "binder"):
            for state in ("live", "silent"):
                seen.add_metric([kind, state], states[kind, state])
        paused = metrics.PAUSED_PROFILES.family()
        for profile in pauses.profiles(self._store):
            paused.add_metric([profile], 1)
        yield from (tasks, seen, paused)
        for scraped, value in (
            (metrics.INFLIGHT, found.inflight),
            (metrics.WAITING, found.waiting),
            (metrics.RESULTS, found.results),
            (metrics.NODE_LOG, found.node_log),
        ):
            family = scraped.family()
            family.add_metric([], value)
            yield family


def _queues(standing: Mapping[str, int], groups: GroupCounts) -> Iterator[Metric]:
    """Pods and pod groups by queue. The groups are counted a moment later, so no difference of the two is trusted to be
    positive."""
    pending, entities = metrics.PENDING_PODS.family(), metrics.QUEUED_ENTITIES.family()
    for queue, count in standing.items():
        incomplete = groups.incomplete if queue == QueueName.GATED else 0
        alone = max(0, count - groups.groups[queue] - incomplete)
        pending.add_metric([queue], alone + groups.pods[queue])
        entities.add_metric([queue, "pod"], alone)
        entities.add_metric([queue, "podgroup"], groups.groups[queue])
    pending.add_metric(["incomplete"], groups.incomplete)
    pending.add_metric(["pending"], groups.pending)
    yield from (pending, entities)
