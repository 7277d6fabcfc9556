"""Writing the status of queues to an API server.

Nobody else writes it, so what goes along is only what changes, not the version of the queue that was looked at. Of the
patches that are merged, a custom resource takes plain ones only.
"""

from dataclasses import dataclass

import msgspec

from dsched.cluster import queues
from dsched.cluster.kubernetes import resources
from dsched.cluster.kubernetes.http.client import Calls, Outcome
from dsched.cluster.kubernetes.http.exchange import MERGE_PATCH, Request
from dsched.cluster.kubernetes.written import KnownObject, Written, decoded
from dsched.model.meta import from_json
from dsched.model.queues import QueueStatus

PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class QueueReport:
    """The status of a queue, as JSON."""

    key: str
    status: bytes

    @property
    def uid(self) -> str:
        """What it waits to be written under: beside the UIDs of pods and groups."""
        return f"queue {self.key}"


def report(name: str, status: QueueStatus) -> QueueReport:
    """What there is to write of a queue."""
    return QueueReport(name, msgspec.json.encode(status, order="deterministic"))


class QueuePatcher:
    """Writes one status at a time; called from one thread."""

    def __init__(self, calls: Calls, known: KnownObject) -> None:
        self._calls = calls
        self._objects = Written(known)

    def write(self, job: QueueReport) -> Outcome | None:
        """Write a status; None when there is nothing to write, or no such queue."""
        queue = self._objects.newest(job.key)
        changes = queues.changes(queue, from_json(job.status, QueueStatus)) if queue is not None else {}
        if not changes:
            return None
        path = f"{resources.QUEUE.path(job.key)}/status"
        patch = msgspec.json.encode({"status": changes})
        outcome = self._calls.make(Request("PATCH", path, patch, MERGE_PATCH), PATIENCE_S)
        self._objects.remember(job.key, decoded(outcome))
        return outcome
