"""Counting pods by the cluster's watch: one pass over its log, objects are never decoded.

Upstream counts in its informer. The time of a bind is when it was seen here, so a count is late by up to `POLL_S`,
never early. Who acts on each bind follows closely, as an informer would (`Follower.closely`).
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from dsched.cluster.standalone.watch_log import Entry, WatchLog
from dsched.errors import DschedError
from dsched.state.client import Store

POLL_S = 0.03
CLOSE_S = 0.002
"""So long between two looks while it is followed closely; what comes meanwhile is taken at once."""
_POD = b"Pod"
_CONDITION = b"PodScheduled"

Labels = Mapping[str, str]


@dataclass(slots=True)
class Counter:
    """Binds of chosen pods as they are seen.

    Attributes:
        seen: (monotonic time, pods bound since the last look), looks that saw none left out.
    """

    namespaces: Collection[str]
    selector: Labels
    seen: list[tuple[float, int]] = field(default_factory=list)

    @property
    def total(self) -> int:
        """All of them."""
        return sum(count for _, count in self.seen)


@dataclass(slots=True)
class _Pods:
    """The pods of one namespace: their labels, and who is bound, was tried, is gated.

    Evicted ones stay. Upstream has no kubelet there, so that a pod with a grace period keeps its node while it
    terminates, for good: measured pods that were bound and then had to go for others count as scheduled.

    Attributes:
        evicted: those that are no longer there.
    """

    labels: dict[str, Labels] = field(default_factory=dict)
    bound: set[str] = field(default_factory=set)
    tried: set[str] = field(default_factory=set)
    gated: set[str] = field(default_factory=set)
    evicted: set[str] = field(default_factory=set)
    _fitting: dict[tuple[tuple[str, str], ...], set[str]] = field(default_factory=dict)

    def label(self, name: str, labels: Labels) -> None:
        """A pod exists and has these labels."""
        self.labels[name] = labels
        self.evicted.discard(name)
        self._fitting.clear()

    def forget(self, name: str) -> None:
        """A pod is gone."""
        self.labels.pop(name, None)
        for group in (self.bound, self.tried, self.gated, self.evicted, *self._fitting.values()):
            group.discard(name)

    def count(self, names: set[str], selector: Labels) -> int:
        """How many of these pods have the labels; asked often while nothing is written."""
        if not selector:
            return len(names)
        key = tuple(selector.items())
        if key not in self._fitting:
            self._fitting[key] = {name for name, labels in self.labels.items() if _fits(labels, selector)}
        return len(names & self._fitting[key])


class Follower:
    """Follows the watch in a thread of its own; what it has counted can be waited for."""

    def __init__(self, store: Store) -> None:
        self._log = WatchLog(store)
        self._version = self._log.now()
        self._known: dict[str, _Pods] = {}
        self._counters: list[Counter] = []
        self._changed = threading.Condition()
        self._over = threading.Event()
        self._close = False
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="follower", daemon=True)

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def stop(self) -> None:
        """Stop following."""
        self._over.set()
        self._thread.join()

    @contextmanager
    def closely(self) -> Iterator[None]:
        """Hear of changes as they come. Else looking now and then costs those who are measured less."""
        self._close = True
        try:
            yield
        finally:
            self._close = False

    def announce(self, key: str, labels: Labels, *, gated: bool = False) -> None:
        """Say what a pod is like before it is written: the log is not decoded."""
        namespace, _, name = key.partition("/")
        with self._changed:
            pods = self._known.setdefault(namespace, _Pods())
            pods.label(name, labels)
            (pods.gated.add if gated else pods.gated.discard)(name)

    def count(self, namespaces: Collection[str], selector: Labels) -> Counter:
        """Count binds from here on."""
        counter = Counter(namespaces, selector)
        with self._changed:
            self._counters.append(counter)
        return counter

    def end(self, counter: Counter) -> None:
        """Stop counting."""
        with self._changed:
            self._counters.remove(counter)

    def bound(self, namespace: str, selector: Labels) -> int:
        """How many pods are bound, those that were evicted since among them."""
        with self._changed:
            pods = self._known.get(namespace) or _Pods()
            return pods.count(pods.bound, selector)

    def bound_keys(self, namespace: str) -> list[str]:
        """The keys of the pods that are bound and not deleted."""
        with self._changed:
            pods = self._known.get(namespace) or _Pods()
            return [f"{namespace}/{name}" for name in sorted(pods.bound - pods.evicted)]

    def tried(self, namespace: str, selector: Labels) -> int:
        """How many pods are bound or were found not to fit; gated ones count, as the API server marks them."""
        with self._changed:
            pods = self._known.get(namespace) or _Pods()
            return pods.count(pods.bound | pods.tried | pods.gated, selector)

    def gated(self) -> int:
        """How many gated pods there are."""
        with self._changed:
            return sum(len(pods.gated) for pods in self._known.values())

    def keys(self, namespace: str, selector: Labels) -> list[str]:
        """The keys of the pods that exist, in order of creation."""
        with self._changed:
            pods = self._known.get(namespace) or _Pods()
            there = ((name, labels) for name, labels in pods.labels.items() if name not in pods.evicted)
            return [f"{namespace}/{name}" for name, labels in there if _fits(labels, selector)]

    def wait(self, done: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until something counted makes it done, looking at least every ``timeout_s``; whether it is done.

        Raises:
            DschedError: following has failed.
        """
        with self._changed:
            if not done():
                self._changed.wait(timeout_s)
            if self._error is not None:
                raise DschedError(f"the watch cannot be followed: {self._error}") from self._error
            return done()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                entries = self._log.read(self._version, POLL_S if self._close else 0.0)
            except DschedError as error:
                with self._changed:
                    self._error = error
                    self._changed.notify_all()
                return
            if entries:
                self._version = entries[-1][0]
                self._take(entries)
            if len(entries) < 1000:
                self._over.wait(CLOSE_S if self._close else POLL_S)

    def _take(self, entries: list[Entry]) -> None:
        now = time.monotonic()
        with self._changed:
            news = [0] * len(self._counters)
            for _, fields in entries:
                if fields[b"kind"] == _POD:
                    self._event(fields, news)
            for counter, count in zip(self._counters, news, strict=True):
                if count:
                    counter.seen.append((now, count))
            self._changed.notify_all()

    def _event(self, fields: Mapping[bytes, bytes], news: list[int]) -> None:
        namespace, _, name = fields[b"key"].decode().partition("/")
        pods = self._known.setdefault(namespace, _Pods())
        change = fields[b"change"]
        if change == b"BOUND":
            pods.bound.add(name)
            labels = pods.labels.get(name, {})
            for number, counter in enumerate(self._counters):
                if namespace in counter.namespaces and _fits(labels, counter.selector):
                    news[number] += 1
        elif change == b"STATUS":
            if _CONDITION in fields.get(b"status", b""):
                pods.tried.add(name)
        elif change == b"DELETED":
            if fields.get(b"reason") and name in pods.bound:
                pods.evicted.add(name)
            else:
                pods.forget(name)
        else:
            if name not in pods.labels:
                pods.label(name, {})
            if fields.get(b"node"):
                pods.bound.add(name)


def _fits(labels: Labels, selector: Labels) -> bool:
    return all(labels.get(name) == value for name, value in selector.items())
