"""Writing conditions of pod groups to an API server.

Written is what differs from the group as it was looked at: its resourceVersion goes along, for a group that somebody
found scheduled meanwhile must not be told that it is not.

Source: pkg/scheduler/util/utils.go ``PatchPodGroupStatus``.
"""

from datetime import UTC, datetime

import msgspec

from dsched.cluster import pod_groups
from dsched.cluster.interface import GroupStatus
from dsched.cluster.kubernetes import resources
from dsched.cluster.kubernetes.http import client
from dsched.cluster.kubernetes.http.client import Calls, Outcome
from dsched.cluster.kubernetes.http.exchange import STRATEGIC_MERGE_PATCH, Answer, Request
from dsched.cluster.kubernetes.written import KnownObject, Written, decoded

PATIENCE_S = 30.0
ATTEMPTS = 5
"""How often a group that changes all the time is looked at anew."""


class GroupPatcher:
    """Writes one condition at a time; called from one thread."""

    def __init__(self, calls: Calls, known: KnownObject) -> None:
        self._calls = calls
        self._objects = Written(known)

    def write(self, status: GroupStatus) -> Outcome | None:
        """Write a condition; None when there is nothing to write. A group that is gone is answered with the 404."""
        group, outcome = self._objects.newest(status.key), None
        path = resources.POD_GROUP.path(status.key)
        for _ in range(ATTEMPTS):
            if group is None or outcome is not None:
                looked = self._calls.make(Request("GET", path), PATIENCE_S)
                group = decoded(looked)
                if group is None:
                    return looked
            condition = pod_groups.condition(group, status, _now())
            if condition is None:
                return None
            metadata = {"uid": status.uid, "resourceVersion": group["metadata"].get("resourceVersion", "")}
            patch = msgspec.json.encode({"metadata": metadata, "status": {"conditions": [condition]}})
            outcome = self._calls.make(Request("PATCH", f"{path}/status", patch, STRATEGIC_MERGE_PATCH), PATIENCE_S)
            if not isinstance(outcome, Answer) or outcome.status != client.CONFLICT:
                self._objects.remember(status.key, decoded(outcome))
                return outcome
        return outcome


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
