"""Celery's consumer, which goes on soon after Redis is back.

Celery waits 2 s after the first attempt to connect that fails, then 4 s, up to 30 s, and has no setting for it: a
binder that waits so long keeps reserved pods from being bound. And it ends when Redis refuses to write, as a replica
does that is about to take over: here that is a connection to be made anew.
"""

from functools import partial
from typing import Any

from celery.worker.consumer import Consumer

from dsched.state.client import UNAVAILABLE

FIRST_S, STEP_S, LONGEST_S = 0.1, 0.1, 0.5


class PromptConsumer(Consumer):  # type: ignore[misc]
    """Named by the setting ``worker_consumer``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.connection_errors = (*self.conninfo.connection_errors, *UNAVAILABLE)

    def ensure_connected(self, conn: Any) -> Any:
        """Connect, again and again."""
        conn.ensure_connection = partial(
            conn.ensure_connection, interval_start=FIRST_S, interval_step=STEP_S, interval_max=LONGEST_S
        )
        return super().ensure_connected(conn)
