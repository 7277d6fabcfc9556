"""The leader's part of each pod's trace: an attempt from the queue to its end.

::

    schedule pod          queued .......................................... bound, or back in the queue
      queue               queued ... popped
      decide                              popped ... decided      (links to the evaluation of its class)
        evaluate                            the pod that stands for its class; evaluators' spans are below it
      reserve                                               reserve script
      bind                                                            handed out ... outcome known; the binder's below

Made only where traces are asked for.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from dsched.engine.evaluation import Evaluation
from dsched.leader.observers.loop_time import EVALUATE, RESERVE
from dsched.model.messages import BindItem
from dsched.model.meta import NO_NODE, NodeName, PodUid
from dsched.scheduler.cache import Cache
from dsched.scheduler.observer import Observer
from dsched.scheduler.ports import Popped
from dsched.scheduler.queue import PendingPods, QueuedPod
from dsched.tracing import Tracing, failed, traceparent

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanContext

MOST_LINKS = 32
"""Of a shard's span to the pods that it was judged for."""


@dataclass(slots=True)
class Attempt:
    """A pod that is traced, from the moment it is popped."""

    pod: QueuedPod
    root: "Span"
    bind: "Span | None" = None
    node: NodeName = NO_NODE


class Traces(Observer):
    """The spans of one epoch."""

    def __init__(self, tracing: Tracing, epoch: int, pending: PendingPods, cache: Cache) -> None:
        self._tracing = tracing
        self._epoch = epoch
        self._pending = pending
        self._cache = cache
        self._attempts: dict[PodUid, Attempt] = {}
        self._batch: list[Attempt] = []
        self._phases: list[tuple[str, int]] = []
        self._judged: dict[bytes, SpanContext] = {}
        self._judging: list[Span] = []
        self._shards = 0

    # -- a batch ---------------------------------------------------------------------------------------------------

    def popped(self, batch: str, popped: Sequence[Popped]) -> None:
        """A batch begins."""
        now_ns = time.time_ns()
        self._phases, self._judged = [], {}
        for entry in popped:
            pod = self._pending.get(entry.key)
            if pod is None or pod.uid != entry.uid:
                continue
            attributes = self._attributes(pod, entry.attempt)
            attributes |= {"dsched.batch": batch, "dsched.batch.size": len(popped)}
            queued_ns = min(pod.queued_us * 1000, now_ns) or now_ns
            root = self._tracing.root(pod.uid, "schedule pod", queued_ns, attributes)
            if not root.is_recording():
                continue
            self._tracing.span("queue", root, queued_ns, {}).end(now_ns)
            self._batch.append(Attempt(pod, root))
            self._attempts[pod.uid] = self._batch[-1]

    def phase(self, phase: str) -> None:
        """Take down when the batch came to it."""
        if self._batch:
            self._phases.append((phase, time.time_ns()))

    @contextmanager
    def judging(self, evaluations: Sequence[Evaluation]) -> Iterator[None]:
        """While evaluations are judged there is a span for each that stands for a traced pod."""
        self._judging, self._shards = [], 0
        first = {each.pod.info.class_key: each for each in reversed(self._batch)}
        now_ns = time.time_ns()
        for evaluation in evaluations if first else ():
            attempt = first.get(evaluation.pod.class_key)
            if attempt is not None and evaluation.framework.profile_name == _profile(attempt):
                span = self._tracing.span("evaluate", attempt.root, now_ns, {"dsched.nodes": evaluation.searched})
                self._judging.append(span)
                self._judged[evaluation.pod.class_key] = span.get_span_context()
        try:
            yield
        finally:
            for span in self._judging:
                span.set_attribute("dsched.where", "distributed" if self._shards else "local")
                span.set_attribute("dsched.shards", self._shards)
                span.end()
            self._judging = []

    def scattered(self, shards: int) -> list[str]:
        """What evaluators are told of the pods whose classes they judge."""
        self._shards += shards
        return [traceparent(span) for span in self._judging[:MOST_LINKS]]

    def handed_out(self, items: Sequence[BindItem]) -> list[str]:
        """What binders are told of pods, one each, empty for one that is not traced; their spans begin."""
        now_ns = time.time_ns()
        return [self._handed_out(item, now_ns) for item in items]

    def _handed_out(self, item: BindItem, now_ns: int) -> str:
        attempt = self._attempts.get(item.uid) or self._adopted(item, now_ns)
        if attempt is None:
            return ""
        if attempt.bind is not None:
            failed(attempt.bind, "no outcome, handed out again")
            attempt.bind.end(now_ns)
        attempt.node = item.node
        attempt.bind = self._tracing.span("bind", attempt.root, now_ns, {"k8s.node.name": item.node})
        return traceparent(attempt.bind)

    def _adopted(self, item: BindItem, now_ns: int) -> Attempt | None:
        """A reservation of an earlier leader, or of an earlier configuration."""
        pod = self._pending.get(item.key)
        if pod is None or pod.uid != item.uid:
            return None
        attributes = self._attributes(pod, item.attempt) | {"dsched.adopted": True}
        root = self._tracing.root(item.uid, "schedule pod", now_ns, attributes)
        if not root.is_recording():
            return None
        attempt = self._attempts[item.uid] = Attempt(pod, root)
        return attempt

    def _attributes(self, pod: QueuedPod, attempt: int) -> dict[str, str | int]:
        """Of the span that stands for an attempt."""
        return {
            "k8s.pod.uid": pod.uid,
            "k8s.pod.name": pod.info.pod.metadata.name,
            "k8s.namespace.name": pod.info.pod.metadata.namespace,
            "dsched.profile": pod.info.pod.spec.scheduler_name,
            "dsched.attempt": attempt,
            "dsched.epoch": self._epoch,
        }

    def finished(self) -> None:
        """The batch is over: what was reserved stays open until it is bound, the rest ends here."""
        if not self._batch:
            return
        now_ns = time.time_ns()
        decide, reserve = self._spans(now_ns)
        for attempt in self._batch:
            link = self._judged.get(attempt.pod.info.class_key)
            for start_ns, end_ns in decide:
                links = () if link is None else (link,)
                self._tracing.span("decide", attempt.root, start_ns, {}, links).end(end_ns)
            node = self._cache.assumed_on(attempt.pod.uid)
            if node is None:
                self._end(attempt, now_ns)
                continue
            attempt.node = node
            attempt.root.set_attribute("k8s.node.name", node)
            for start_ns, end_ns in reserve[-1:]:
                self._tracing.span("reserve", attempt.root, start_ns, {"k8s.node.name": node}).end(end_ns)
        self._batch = []

    def _spans(self, now_ns: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """When the batch was decided and reserved, a pair for each round."""
        found: dict[str, list[tuple[int, int]]] = {EVALUATE: [], RESERVE: []}
        for (phase, begun_ns), (_, end_ns) in pairwise([*self._phases, ("", now_ns)]):
            found.setdefault(phase, []).append((begun_ns, end_ns))
        return found[EVALUATE], found[RESERVE]

    # -- until it is bound -----------------------------------------------------------------------------------------

    def settled(self) -> None:
        """Look which traced pods are no longer reserved: bound, or back in the queue."""
        if not self._attempts:
            return
        now_ns = time.time_ns()
        for uid, attempt in list(self._attempts.items()):
            if self._cache.assumed_on(uid) is None:
                self._end(attempt, now_ns)

    def close(self) -> None:
        """The term is over; whoever leads next goes on with a span of its own."""
        now_ns = time.time_ns()
        for attempt in list(self._attempts.values()):
            attempt.root.set_attribute("dsched.result", "left to the next leader")
            self._finish(attempt, now_ns)

    def _end(self, attempt: Attempt, now_ns: int) -> None:
        uid = attempt.pod.uid
        if attempt.node and self._cache.snapshot.table.node_of(uid) == attempt.node:
            attempt.root.set_attribute("dsched.result", "bound")
        elif (pod := self._pending.get(attempt.pod.key)) is not None and pod.uid == uid:
            attempt.root.set_attribute("dsched.result", pod.place.value)
            attempt.root.set_attribute("dsched.plugins", " ".join(sorted(pod.plugins)))
            failed(attempt.root, f"not placed, now {pod.place.value}")
        else:
            attempt.root.set_attribute("dsched.result", "gone")
        self._finish(attempt, now_ns)

    def _finish(self, attempt: Attempt, now_ns: int) -> None:
        if attempt.bind is not None:
            attempt.bind.end(now_ns)
        attempt.root.end(now_ns)
        self._attempts.pop(attempt.pod.uid, None)


def _profile(attempt: Attempt) -> str:
    return attempt.pod.info.pod.spec.scheduler_name
