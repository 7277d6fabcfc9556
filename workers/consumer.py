"""Celery's consumer, which goes on soon after Redis is back.

Celery waits 2 s after the first attempt to connect that fails, then 4 s, up to 30 s, and has no setting for it: a
binder that waits so long keeps reserved pods from being bound. It gives up after 100 attempts, which would be too soon
then. And it ends when Redis refuses to write, as a replica does that is about to take over, or one whose disk is full:
here that is a connection to be made anew.

Workers say nothing to each other, and listen to nobody but their queues, whatever the command line says: what others
broadcast could tell them to stop.
"""

from typing import Any

from celery.worker.consumer import Consumer

from dsched.state.client import UNAVAILABLE

FIRST_S, STEP_S, LONGEST_S = 0.1, 0.1, 0.5


class PromptConsumer(Consumer):  # type: ignore[misc]
    """Named by the setting ``worker_consumer``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        alone = {"without_gossip": True, "without_mingle": True, "without_heartbeat": True}
        super().__init__(*args, **{**kwargs, **alone})
        self.connection_errors = (*self.conninfo.connection_errors, *UNAVAILABLE)

    def ensure_connected(self, conn: Any) -> Any:
        """Connect, again and again."""
        once = conn.ensure_connection

        def patiently(errback: Any, _max_retries: int, **options: Any) -> Any:
            waits = {"interval_start": FIRST_S, "interval_step": STEP_S, "interval_max": LONGEST_S}
            return once(errback, None, **waits, **options)

        conn.ensure_connection = patiently
        return super().ensure_connected(conn)
