"""A worker that Redis has lost is put back into the list of workers.

A leader pings those in the list and no others, so a worker that is lost from it (Redis was emptied, or had lost its
last second) would never run a task again that says that it lives. It is put back as one that has been silent for long:
the leader pings it, and reckons with it once it has answered. A worker that takes no tasks stays silent that way.
"""

import threading
from collections.abc import Callable

from dsched.log import logger
from dsched.state import workers
from dsched.state.client import UNAVAILABLE, Store, WrongType
from dsched.state.workers import Worker

_log = logger(__name__)

LOOK_EVERY_S = 2.0


class WorkerRegistration:
    """Looks now and then, in the process that the pool is forked from.

    Args:
        connect: opens a connection of its own, once the pool has been forked.
        note: what is to stand in the list, as of so long ago.
    """

    def __init__(self, connect: Callable[[], Store], note: Callable[[Store, int], Worker]) -> None:
        self._connect = connect
        self._note = note
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="registration", daemon=True)

    def start(self) -> None:
        """The pool has been forked."""
        self._thread.start()

    def close(self) -> None:
        """The worker ends, and is not put back any more."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(LOOK_EVERY_S)

    def _watch(self) -> None:
        store = self._connect()
        while not self._over.wait(LOOK_EVERY_S):
            try:
                self.look(store)
            except (*UNAVAILABLE, WrongType):
                continue  # nobody could be told, either; a leader clears what somebody else has put there
        store.close()

    def look(self, store: Store) -> None:
        """Put it back where it is missing; killed in between, it is looked again after the restart."""
        note = self._note(store, workers.SILENT_AFTER_MS + 1)
        if workers.add(store, note):
            _log.warning("worker was lost from the list, put back", extra={"action": "put_back", "worker": note.name})
