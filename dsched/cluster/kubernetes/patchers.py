"""Writing conditions of pod groups and the status of queues to an API server.

Of a group that is written which differs from the group as it was looked at: its resourceVersion goes along, for a group
that somebody found scheduled meanwhile must not be told that it is not. The status of a queue nobody else writes, so
what goes along is only what changes, not the version of the queue that was looked at. Of the patches that are merged, a
custom resource takes plain ones only.

What this process has written itself is remembered: the watch may not have told of it yet.

Source: pkg/scheduler/util/utils.go ``PatchPodGroupStatus``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from dsched.cluster import pod_groups, queues
from dsched.cluster.interface import GroupStatus
from dsched.cluster.kubernetes import resources
from dsched.cluster.kubernetes.http import client
from dsched.cluster.kubernetes.http.client import Calls, Outcome
from dsched.cluster.kubernetes.http.exchange import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Answer, Request
from dsched.model.meta import from_json
from dsched.model.queues import QueueStatus

PATIENCE_S = 30.0
ATTEMPTS = 5
"""How often a group that changes all the time is looked at anew."""
_REMEMBERED = 10_000

PlainObject = Mapping[str, Any]
KnownObject = Callable[[str], PlainObject | None]
"""What the watch knows of an object, by key; None for nothing."""


class _Written:
    """The newest of what was written and what is known; used from one thread."""

    def __init__(self, known: KnownObject) -> None:
        self._known = known
        self._written: dict[str, PlainObject] = {}

    def newest(self, key: str) -> PlainObject | None:
        """The object as this process knows it."""
        known, written = self._known(key), self._written.get(key)
        if written is None or (known is not None and _version(known) >= _version(written)):
            self._written.pop(key, None)
            return known
        return written

    def remember(self, key: str, value: PlainObject | None) -> None:
        """The object as the API server answered that it is now."""
        if value is not None:
            self._written[key] = value
            while len(self._written) > _REMEMBERED:
                del self._written[next(iter(self._written))]


def _decoded(outcome: Outcome) -> PlainObject | None:
    """The object that an answer holds; None where it holds none."""
    if not isinstance(outcome, Answer) or not client.succeeded(outcome):
        return None
    value: PlainObject = msgspec.json.decode(outcome.body, type=dict[str, Any])
    return value


def _version(value: PlainObject) -> int:
    return resources.number(str(value["metadata"].get("resourceVersion", "")))


class GroupPatcher:
    """Writes one condition at a time; called from one thread."""

    def __init__(self, calls: Calls, known: KnownObject) -> None:
        self._calls = calls
        self._objects = _Written(known)

    def write(self, status: GroupStatus) -> Outcome | None:
        """Write a condition; None when there is nothing to write. A group that is gone is answered with the 404."""
        group, outcome = self._objects.newest(status.key), None
        path = resources.POD_GROUP.path(status.key)
        for _ in range(ATTEMPTS):
            if group is None or outcome is not None:
                looked = self._calls.make(Request("GET", path), PATIENCE_S)
                group = _decoded(looked)
                if group is None:
                    return looked
            condition = pod_groups.condition(group, status, _now())
            if condition is None:
                return None
            metadata = {"uid": status.uid, "resourceVersion": group["metadata"].get("resourceVersion", "")}
            patch = msgspec.json.encode({"metadata": metadata, "status": {"conditions": [condition]}})
            outcome = self._calls.make(Request("PATCH", f"{path}/status", patch, STRATEGIC_MERGE_PATCH), PATIENCE_S)
            if not isinstance(outcome, Answer) or outcome.status != client.CONFLICT:
                self._objects.remember(status.key, _decoded(outcome))
                return outcome
        return outcome


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


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
        self._objects = _Written(known)

    def write(self, job: QueueReport) -> Outcome | None:
        """Write a status; None when there is nothing to write, or no such queue."""
        queue = self._objects.newest(job.key)
        changes = queues.changes(queue, from_json(job.status, QueueStatus)) if queue is not None else {}
        if not changes:
            return None
        path = f"{resources.QUEUE.path(job.key)}/status"
        patch = msgspec.json.encode({"status": changes})
        outcome = self._calls.make(Request("PATCH", path, patch, MERGE_PATCH), PATIENCE_S)
        self._objects.remember(job.key, _decoded(outcome))
        return outcome
