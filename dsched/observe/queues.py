"""The scheduler's queues as gauges, counted in Redis when somebody asks; the leader tells of them, standbys do not."""

from collections import Counter
from collections.abc import Callable, Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from dsched import metrics
from dsched.clock import Clock
from dsched.state import counts, pauses, workers
from dsched.state.client import Store


class Queues(Collector):
    """One system's queues; ``wanted`` says whether this process is the one to tell of them."""

    def __init__(self, store: Store, clock: Clock, wanted: Callable[[], bool]) -> None:
        self._store = store
        self._clock = clock
        self._wanted = wanted

    def collect(self) -> Iterator[Metric]:
        """The gauges; raises what `dsched.state.client.UNAVAILABLE` lists."""
        if not self._wanted():
            return
        found = counts.read(self._store)
        pending, tasks, seen = (
            metrics.PENDING_PODS.family(),
            metrics.TASKS_WAITING.family(),
            metrics.WORKERS_SEEN.family(),
        )
        for queue, pods in found.queues.items():
            pending.add_metric([queue], pods)
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
        yield from (pending, tasks, seen, paused)
        for scraped, value in (
            (metrics.INFLIGHT, found.inflight),
            (metrics.WAITING, found.waiting),
            (metrics.RESULTS, found.results),
            (metrics.NODE_LOG, found.node_log),
        ):
            family = scraped.family()
            family.add_metric([], value)
            yield family
