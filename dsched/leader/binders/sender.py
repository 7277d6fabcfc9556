"""Carries bind jobs to the broker in a thread of its own: the loop decides the next pods while the broker is busy.

Jobs go in the order in which they were handed over. One that is lost with the process or does not get through is looked
up when it is overdue, as one that no binder answers. Between them go errands, like asking workers for a sign of life.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue

from dsched.errors import RedisUnavailable, StateError
from dsched.framework import plugin_timeout
from dsched.leader.dispatch import Dispatcher
from dsched.log import logger
from dsched.model import messages
from dsched.model.messages import BindRequest
from dsched.state.client import UNAVAILABLE

log = logger(__name__)

Errand = Callable[[], None]

CLOSE_S = 2.0
"""How long the end of a term may be held up by what is not sent yet; a next leader hands it out again."""


@dataclass(frozen=True, slots=True)
class Job:
    """An encoded `BindRequest`, and what has to be known of it to send it."""

    payload: bytes
    config: str
    pods: int
    refused: bool


class BindSender:
    """The thread of one epoch; it begins with the first job."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._jobs: SimpleQueue[Job | Errand | None] = SimpleQueue()
        self._errands: set[Errand] = set()
        self._failed: Exception | None = None
        self._thread: threading.Thread | None = None
        self._closing = False

    def bind(self, request: BindRequest, *, refused: bool = False) -> None:
        """Have a job sent; ``refused`` as for `Dispatcher.bind`.

        Raises:
            StateError: the thread has failed in a way that was not foreseen.
        """
        # Encoded here: what Reserve has left for PreBind may change with the pod's next attempt.
        self._hand_over(Job(messages.encode(request), request.config, len(request.pods), refused))

    def run(self, errand: Errand) -> None:
        """Have something done that the loop need not wait for, once what was handed over before is; not again while it
        waits. It is not done where Redis is away.

        Raises:
            StateError: as `bind`.
        """
        if errand not in self._errands:
            self._errands.add(errand)
            self._hand_over(errand)

    def close(self) -> None:
        """Send what is left and end. What takes longer than `CLOSE_S` is cut off: its connection is closed then."""
        self._closing = True
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join(CLOSE_S)

    def _hand_over(self, job: Job | Errand) -> None:
        if self._failed is not None:
            raise StateError(f"bind sender: the thread has failed: {self._failed!r}") from self._failed
        if self._thread is None:
            self._thread = threading.Thread(target=self._carry, name="bind-sender", daemon=True)
            self._thread.start()
        self._jobs.put(job)

    def _carry(self) -> None:
        plugin_timeout.unheard()
        try:
            while (job := self._jobs.get()) is not None:
                if isinstance(job, Job):
                    self._send(job)
                else:
                    self._run(job)
        except Exception as error:
            if self._closing:
                log.warning("cut off at the end of the term", extra={"action": "hand_out", "error": repr(error)})
            else:
                log.exception("the thread bind-sender has failed")
            self._failed = error

    def _send(self, job: Job) -> None:
        try:
            self._dispatcher.bind_encoded(job.payload, job.config, refused=job.refused)
        except RedisUnavailable as error:
            extra = {"action": "hand_out", "pods": job.pods, "error": str(error)}
            log.warning("bind job not sent, will be looked up", extra=extra)

    def _run(self, errand: Errand) -> None:
        self._errands.discard(errand)
        try:
            errand()
        except (*UNAVAILABLE, RedisUnavailable) as error:
            log.warning("errand not done", extra={"action": "errand", "error": str(error)})
