"""Celery's consumer, which goes on soon after Redis is back.

Celery waits 2 s after the first attempt to connect that fails, then 4 s, up to 30 s, and has no setting for it: a
binder that waits so long keeps reserved pods from being bound. It gives up after 100 attempts, which would be too soon
then. And it ends when Redis refuses to write, as a replica does that is about to take over, or one whose disk is full,
and when Redis goes away again before the worker has begun to take tasks: here these are connections to be made anew.

Workers say nothing to each other, and listen to nobody but their queues, whatever the command line says: what others
broadcast could tell them to stop.
"""

from typing import Any

from celery.utils.dispatch import Signal
from celery.worker.consumer import Consumer
from kombu.exceptions import OperationalError

from dsched.state.broker import CONNECTING
from dsched.state.client import UNAVAILABLE

pool_forked = Signal(name="pool_forked")
"""Sent once, before the worker connects: threads do no harm from then on. The sender is the consumer."""


class PromptConsumer(Consumer):  # type: ignore[misc]
    """Named by the setting ``worker_consumer``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        alone = {"without_gossip": True, "without_mingle": True, "without_heartbeat": True}
        super().__init__(*args, **{**kwargs, **alone})
        self.connection_errors = (*self.conninfo.connection_errors, *UNAVAILABLE, OperationalError)

    def start(self) -> None:
        pool_forked.send(sender=self)
        super().start()

    def ensure_connected(self, conn: Any) -> Any:
        """Connect, again and again."""
        once = conn.ensure_connection

        def patiently(errback: Any, _max_retries: int, **options: Any) -> Any:
            return once(errback, None, **CONNECTING, **options)

        conn.ensure_connection = patiently
        return super().ensure_connected(conn)
