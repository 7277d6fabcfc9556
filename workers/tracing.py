"""A worker's part of pods' traces; nothing where the leader sends none or no collector is configured."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from celery.signals import worker_process_shutdown

from dsched import tracing
from dsched.state.results import Outcome
from dsched.tracing import Tracing

if TYPE_CHECKING:
    from opentelemetry.trace import Span


class WorkerTraces:
    """One worker's traces. The process of the pool that runs tasks has its own connection to the collector, made with
    the first task that is traced."""

    def __init__(self, kind: str, system: str) -> None:
        self.instance = kind
        self._kind = kind
        self._system = system
        self._tracing: Tracing | None = None
        self._started = False
        worker_process_shutdown.connect(self._stopped)

    def _open(self, told: Sequence[str]) -> Tracing | None:
        if not any(told):
            return None
        if not self._started:
            self._started = True
            self._tracing = tracing.start(self._kind, self.instance, self._system)
        return self._tracing

    @contextmanager
    def shard(self, told: Sequence[str], attributes: tracing.Attributes, start_ns: int) -> Iterator["Span | None"]:
        """The time that a shard is judged in: below the first pod that it is judged for, with links to the others."""
        opened = self._open(told)
        contexts = [each for each in map(tracing.context_of, told) if each is not None] if opened else []
        if opened is None or not contexts:
            yield None
            return
        span = opened.span("evaluate shard", contexts[0], start_ns, attributes, contexts[1:])
        try:
            yield span
        finally:
            span.end()

    def bound(
        self, told: Sequence[str], uids: Sequence[str], outcomes: Sequence[Outcome], start_ns: int, end_ns: int
    ) -> None:
        """The time that pods were bound in, one ``told`` and one UID each."""
        opened = self._open(told)
        if opened is None:
            return
        by_uid = {outcome.uid: outcome for outcome in outcomes}
        for text, uid in zip(told, uids, strict=False):
            outcome, context = by_uid.get(uid), tracing.context_of(text) if text else None  # type: ignore[call-overload]
            if outcome is None or context is None:
                continue
            attributes = {
                "k8s.pod.uid": uid,
                "k8s.node.name": outcome.node,
                "dsched.verdict": outcome.verdict,
                "dsched.pods": len(uids),
            }
            span = opened.span("bind pod", context, start_ns, attributes)
            if outcome.message:
                tracing.failed(span, outcome.message)
            span.end(end_ns)

    def _stopped(self, **_: object) -> None:
        if self._tracing is not None:
            self._tracing.close()
